//===- HopperAttentionKernel.cpp - the schedule for sm_90a -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One warpgroup produces: it copies tiles into rings by TMA. Each of the others
// consumes: it owns 64 query rows, whose scores and accumulators stay in its
// registers. Softmax of one tile of keys runs under the product of queries and
// the next one; the product of weights and values of the tile before is in
// flight at the same time:
//
//   start  S' = Q K[n]^T
//   start  O += P V[n-1]
//   wait   S'                  release K[n]
//          m, a, P' = softmax(S')
//   wait   O                   release V[n-1]
//          O *= a              (not at all while no row has grown much)
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"
#include "AttentionKernel.h"

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attnfuse;

namespace {
using State = AttentionState;

/// Keys and values that groups of heads read together: most of the cache.
constexpr int64_t kCacheBytes = 32 << 20;

struct Rings {
  Value query, key, value, result;
};

/// What both roles know of a block's query tile.
class BlockCode : public AttentionCode {
public:
  BlockCode(KernelContext &context, const AttentionProgram &program,
            tile::ScheduleAttr schedule, Value rotatedKey, const Rings &rings)
      : AttentionCode(context, program, schedule, rotatedKey),
        schedule(schedule), rings(rings) {}

  /// Loops over the block's query tiles; the body gets the number of the tile
  /// among the block's own, and the number of key tiles before it, and returns
  /// the number of key tiles after it.
  LogicalResult
  forTiles(llvm::function_ref<FailureOr<Value>(Value, Value)> body);

  LogicalResult place(Value number);
  /// Tiles of keys that the block visits: at least one, so that roles agree.
  Value visited();

  int64_t consumers() const { return schedule.getWarps() / 4; }
  bool classified() const { return mask && !mask->isAnalytic(); }

  tile::ScheduleAttr schedule;
  Rings rings;
  KeyTiles keys;

  friend class Producer;
  friend class Consumer;
};

class Producer : public BlockCode {
public:
  using BlockCode::BlockCode;
  LogicalResult build();

private:
  void load(Value view, Value ring, Value head, Value row, Value use);
};

/// The code of one consumer, over its own 64 rows.
class Consumer : public AttentionCode {
public:
  Consumer(BlockCode &block, tile::ScheduleAttr own)
      : AttentionCode(block.context, block.program, own, block.rotatedKey),
        block(block) {}
  static LogicalResult build(BlockCode &block);

private:
  void placeRows();
  void ownTiles(Value count);
  FailureOr<Value> run(Value number, Value before);
  void passOver(Value from, Value to, Value before);
  Value products(Value use);
  Value startValues(Value weights, Value use, Value accumulator);
  Value testedScores(Value key, Value products, Value tested);
  Value tested(Value key);
  Value narrow(Value weights);
  State first(Value key, Value use, Value isTested, Value &weights);
  State step(Value key, Value use, Value isTested, State state, Value &weights);
  void finish(State state, Value use);

  BlockCode &block;
  KeyTiles keys;
  Value queryUse, firstTile, endTile;
};
} // namespace

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult BlockCode::place(Value number) {
  if (number) {
    placeTile(number, kCacheBytes);
  } else {
    placeTile();
  }
  mask.reset();
  scoreCode.reset();
  if (failed(prepare())) {
    return failure();
  }
  keys = keyTiles();
  return success();
}

Value BlockCode::visited() {
  IndexMath m = context.math();
  Value length = m.max(m.sub(keys.last, keys.first), m.index(1));
  return m.ceilDiv(length, columns);
}

LogicalResult
BlockCode::forTiles(llvm::function_ref<FailureOr<Value>(Value, Value)> body) {
  OpBuilder &b = context.builder;
  IndexMath m = context.math();
  Value zero = m.index(0);
  if (!schedule.getPersistent()) {
    return failed(place(Value())) || failed(body(zero, zero)) ? failure()
                                                              : success();
  }
  Value total = countTiles();
  Type index = b.getIndexType();
  LogicalResult result = success();
  scf::WhileOp::create(
      b, context.loc, TypeRange{index, index, index}, ValueRange{zero, zero},
      [&](OpBuilder &, Location loc, ValueRange args) {
        Value number = tile::NextWorkOp::create(b, loc, index, args[0]);
        scf::ConditionOp::create(b, loc, m.lt(number, total),
                                 ValueRange{args[0], args[1], number});
      },
      [&](OpBuilder &, Location loc, ValueRange args) {
        FailureOr<Value> after = args[1];
        if (failed(place(args[2])) || failed(after = body(args[0], args[1]))) {
          result = failure();
          after = Value(args[1]);
        }
        scf::YieldOp::create(b, loc, ValueRange{m.add(args[0], 1), *after});
      });
  return result;
}

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

void Producer::load(Value view, Value ring, Value head, Value row, Value use) {
  OpBuilder &b = context.builder;
  Value zero = context.math().index(0);
  tile::AcquireOp::create(b, context.loc, ring, use);
  tile::AsyncLoadOp::create(b, context.loc, view,
                            ValueRange{tile.batch, head, row, zero},
                            ArrayRef<int64_t>{2, 3}, ring, use);
  tile::CommitOp::create(b, context.loc, ring, use);
}

LogicalResult Producer::build() {
  OpBuilder &b = context.builder;
  return forTiles([&](Value number, Value before) -> FailureOr<Value> {
    IndexMath m = context.math();
    Value keyView = context.get(rotatedKey), valueView;
    if (rings.value) {
      valueView = context.get(program.aggregate.getValue());
    }
    for (int64_t w = 0; w < consumers(); ++w) {
      load(context.get(program.query), rings.query, tile.head,
           m.add(tile.i0, w * 64), m.add(m.mul(number, consumers()), w));
    }
    // Keys run a slot ahead of values: consumers want them first.
    Value count = visited();
    load(keyView, rings.key, keyHead, keys.first, before);
    scf::ForOp::create(
        b, context.loc, m.index(0), count, m.index(1), ValueRange(),
        [&](OpBuilder &, Location loc, Value n, ValueRange) {
          Value key = m.add(keys.first, m.mul(n, columns));
          Value next = m.add(n, 1);
          scf::IfOp::create(b, loc, m.lt(next, count),
                            [&](OpBuilder &, Location loc) {
                              load(keyView, rings.key, keyHead,
                                   m.add(key, columns), m.add(before, next));
                              scf::YieldOp::create(b, loc);
                            });
          if (rings.value) {
            load(valueView, rings.value, valueHead, key, m.add(before, n));
          }
          scf::YieldOp::create(b, loc);
        });
    return m.add(before, count);
  });
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

void Consumer::placeRows() {
  IndexMath m = context.math();
  tile = block.tile;
  keyHead = block.keyHead;
  valueHead = block.valueHead;
  Value own = tile::WarpgroupOp::create(context.builder, context.loc,
                                        context.builder.getIndexType());
  tile.i0 = m.add(tile.i0, m.mul(own, rows));
  tile.i1 = m.min(m.add(tile.i0, rows), tile.queries);
}

/// Tiles of the block's keys that these rows need, by number.
void Consumer::ownTiles(Value count) {
  IndexMath m = context.math();
  keys = keyTiles();
  Value last = m.add(count, -1), zero = m.index(0);
  // At least one: rows without any key get zeros from a tile that is masked.
  Value start = m.max(m.sub(keys.first, block.keys.first), zero);
  firstTile = m.min(m.floorDiv(start, columns), last);
  Value length = m.max(m.sub(keys.last, block.keys.first), zero);
  endTile =
      m.min(m.max(m.ceilDiv(length, columns), m.add(firstTile, 1)), count);
}

void Consumer::passOver(Value from, Value to, Value before) {
  OpBuilder &b = context.builder;
  IndexMath m = context.math();
  scf::ForOp::create(b, context.loc, from, to, m.index(1), ValueRange(),
                     [&](OpBuilder &, Location loc, Value n, ValueRange) {
                       Value use = m.add(before, n);
                       for (Value ring : {block.rings.key, block.rings.value}) {
                         if (ring) {
                           tile::WaitOp::create(b, loc, ring, use, 0);
                           tile::ReleaseOp::create(b, loc, ring, use);
                         }
                       }
                       scf::YieldOp::create(b, loc);
                     });
}

Value Consumer::products(Value use) {
  OpBuilder &b = context.builder;
  auto type =
      tile::PendingType::get(context.tileType(rows, columns, b.getF32Type()));
  tile::WaitOp::create(b, context.loc, block.rings.key, use, 0);
  return tile::DotStartOp::create(b, context.loc, type, block.rings.query,
                                  queryUse, block.rings.key, use, Value(),
                                  /*transpose_b=*/true);
}

Value Consumer::startValues(Value weights, Value use, Value accumulator) {
  OpBuilder &b = context.builder;
  auto type =
      tile::PendingType::get(cast<tile::TileType>(accumulator.getType()));
  tile::WaitOp::create(b, context.loc, block.rings.value, use, 0);
  return tile::DotStartOp::create(b, context.loc, type, weights, Value(),
                                  block.rings.value, use, accumulator,
                                  /*transpose_b=*/false);
}

static Value waitFor(KernelContext &context, Value pending,
                     int64_t outstanding) {
  auto type = cast<tile::PendingType>(pending.getType()).getTile();
  return tile::DotWaitOp::create(context.builder, context.loc, type, pending,
                                 outstanding);
}

Value Consumer::tested(Value key) {
  IndexMath m = context.math();
  auto keyType = cast<RankedTensorType>(program.key.getType());
  if (!mask && !keyType.isDynamicDim(2) &&
      keyType.getDimSize(2) % columns == 0) {
    return {};
  }
  Value end = m.add(key, columns);
  return m.either(m.lt(keys.wholeLast, end), m.lt(key, keys.wholeFirst));
}

Value Consumer::testedScores(Value key, Value products, Value isTested) {
  OpBuilder &b = context.builder;
  Value x = scores(key, products, /*tested=*/false);
  if (!isTested) {
    return x;
  }
  return scf::IfOp::create(
             b, context.loc, isTested,
             [&](OpBuilder &, Location loc) {
               scf::YieldOp::create(b, loc, masked(key, x));
             },
             [&](OpBuilder &, Location loc) {
               scf::YieldOp::create(b, loc, x);
             })
      .getResult(0);
}

Value Consumer::narrow(Value weights) {
  auto type = cast<tile::TileType>(weights.getType());
  Type element =
      cast<tile::RingType>(block.rings.value.getType()).getElementType();
  return tile::CastOp::create(context.builder, context.loc,
                              type.withElementType(element), weights);
}

State Consumer::first(Value key, Value use, Value isTested, Value &weights) {
  OpBuilder &b = context.builder;
  int64_t valueWidth =
      block.rings.value
          ? cast<tile::RingType>(block.rings.value.getType()).getColumns()
          : 0;
  State state = initialState(valueWidth);
  Value x = waitFor(context, products(use), 0);
  tile::ReleaseOp::create(b, context.loc, block.rings.key, use);
  x = testedScores(key, x, isTested);
  Value p;
  if (program.softmax) {
    Value top = context.reduce(tile::ReduceKind::Max, x, 1);
    SmallVector<Value> row = updateRows(state.maximum, top);
    p = weightsOf(x, row[1]);
    state.maximum = row[0];
    state.sum = context.reduce(tile::ReduceKind::Add, p, 1, /*partial=*/true);
  } else {
    p = reluOf(x);
  }
  if (block.rings.value) {
    weights = narrow(p);
  }
  return state;
}

State Consumer::step(Value key, Value use, Value isTested, State state,
                     Value &weights) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Location loc = context.loc;
  Value before = m.add(use, -1);
  Value started = products(use);
  Value sums;
  if (state.accumulator) {
    sums = startValues(weights, before, state.accumulator);
  }
  Value x = waitFor(context, started, sums ? 1 : 0);
  tile::ReleaseOp::create(b, loc, block.rings.key, use);
  x = testedScores(key, x, isTested);

  State next;
  Value p, alpha, grown;
  if (program.softmax) {
    Value part = context.reduce(tile::ReduceKind::Max, x, 1, /*partial=*/true);
    int64_t threshold = block.schedule.getRescale();
    if (threshold) {
      // The reference stays while no row of the warp grows by more than a
      // factor of 2^threshold; weights may exceed 1 by as much.
      Value above =
          context
              .map({part, state.maximum}, rows, 1, {b.getI1Type()},
                   [&](IndexMath m, ValueRange args) {
                     Value by = m.mulf(m.subf(args[0], args[1]), m.f32(unit));
                     return SmallVector<Value>{
                         m.cmpf(arith::CmpFPredicate::OGT, by,
                                m.f32(double(threshold)))};
                   })
              .front();
      grown = tile::AnyOp::create(b, loc, b.getI1Type(), tile::VoteScope::Warp,
                                  above);
      auto rowsOf = scf::IfOp::create(
          b, loc, grown,
          [&](OpBuilder &, Location loc) {
            Value top = context.combine(tile::ReduceKind::Max, part);
            scf::YieldOp::create(b, loc, updateRows(state.maximum, top));
          },
          [&](OpBuilder &, Location loc) {
            SmallVector<Value> same = keepRows(state.maximum);
            scf::YieldOp::create(b, loc, same);
          });
      next.maximum = rowsOf.getResult(0);
      p = weightsOf(x, rowsOf.getResult(1));
      alpha = rowsOf.getResult(2);
    } else {
      Value top = context.combine(tile::ReduceKind::Max, part);
      SmallVector<Value> row = updateRows(state.maximum, top);
      next.maximum = row[0];
      p = weightsOf(x, row[1]);
      alpha = row[2];
    }
  } else {
    p = reluOf(x);
  }
  Value added;
  if (program.softmax) {
    added = context.reduce(tile::ReduceKind::Add, p, 1, /*partial=*/true);
  }
  if (sums) {
    next.accumulator = waitFor(context, sums, 0);
    tile::ReleaseOp::create(b, loc, block.rings.value, before);
    weights = narrow(p);
  }
  if (!program.softmax) {
    return next;
  }
  next.sum = state.sum;
  auto rescale = [&]() -> SmallVector<Value> {
    SmallVector<Value> scaled{scaledBy(next.sum, alpha)};
    if (sums) {
      scaled.push_back(scaledBy(next.accumulator, alpha));
    }
    return scaled;
  };
  SmallVector<Value> scaled;
  if (grown) {
    auto choose = scf::IfOp::create(
        b, loc, grown,
        [&](OpBuilder &, Location loc) {
          scf::YieldOp::create(b, loc, rescale());
        },
        [&](OpBuilder &, Location loc) {
          SmallVector<Value> same{next.sum};
          if (sums) {
            same.push_back(next.accumulator);
          }
          scf::YieldOp::create(b, loc, same);
        });
    llvm::append_range(scaled, choose.getResults());
  } else {
    scaled = rescale();
  }
  next.sum = context.mapF32(
      {scaled[0], added}, rows, 1,
      [&](IndexMath m, ValueRange args) { return m.addf(args[0], args[1]); });
  if (sums) {
    next.accumulator = scaled[1];
  }
  return next;
}

FailureOr<Value> Consumer::run(Value number, Value before) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Location loc = context.loc;
  placeRows();
  mask.reset();
  scoreCode.reset();
  if (failed(prepare())) {
    return failure();
  }
  Value count = block.visited();
  ownTiles(count);
  Value own = tile::WarpgroupOp::create(b, loc, b.getIndexType());
  queryUse = m.add(m.mul(number, block.consumers()), own);
  tile::WaitOp::create(b, loc, block.rings.query, queryUse, 0);
  context.rotateSlot(program.queryRopes, block.rings.query, queryUse,
                     tile.batch, tile.i0);
  passOver(m.index(0), firstTile, before);

  auto keyOf = [&](Value n) {
    return m.add(block.keys.first, m.mul(n, columns));
  };
  Value weights;
  Value firstKey = keyOf(firstTile);
  State state =
      first(firstKey, m.add(before, firstTile), tested(firstKey), weights);
  SmallVector<Value> carried = state.values();
  if (weights) {
    carried.push_back(weights);
  }
  auto loop = scf::ForOp::create(
      b, loc, m.add(firstTile, 1), endTile, m.index(1), carried,
      [&](OpBuilder &, Location loc, Value n, ValueRange args) {
        Value last = weights ? args.back() : Value();
        Value key = keyOf(n);
        State next =
            step(key, m.add(before, n), tested(key), state.with(args), last);
        SmallVector<Value> results = next.values();
        if (last) {
          results.push_back(last);
        }
        scf::YieldOp::create(b, loc, results);
      });
  state = state.with(loop.getResults());
  bool shares = block.rings.result == block.rings.query;
  if (!shares) {
    tile::ReleaseOp::create(b, loc, block.rings.query, queryUse);
  }
  if (weights) {
    Value use = m.add(before, m.add(endTile, -1));
    Value sums = startValues(loop.getResults().back(), use, state.accumulator);
    state.accumulator = waitFor(context, sums, 0);
    tile::ReleaseOp::create(b, loc, block.rings.value, use);
  }
  // Rows that end early write their result while others still multiply: the
  // tiles that these pass over are awaited only by the next query tile.
  finish(state, shares ? queryUse : own);
  if (shares) {
    tile::ReleaseOp::create(b, loc, block.rings.query, queryUse);
  }
  passOver(endTile, count, before);
  return m.add(before, count);
}

void Consumer::finish(State state, Value use) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  unsigned nextOutput = 0;
  SmallVector<Value> row;
  if (needsMarks(program)) {
    Value bad = notFinite(state.accumulator);
    Value mark = context
                     .map({bad}, rows, 1, {b.getI8Type()},
                          [&](IndexMath m, ValueRange args) {
                            return SmallVector<Value>{arith::ExtUIOp::create(
                                b, m.loc, b.getI8Type(), args[0])};
                          })
                     .front();
    context.store(mark, context.lastOutput(), {tile.batch, tile.head, tile.i0},
                  {2, -1});
  }
  if (program.softmax) {
    state.sum = context.combine(tile::ReduceKind::Add, state.sum);
    row = finishRows(state);
  }
  if (program.aggregate) {
    Value result = finishResult(state.accumulator, row);
    tile::PutOp::create(b, context.loc, result, block.rings.result, use);
    tile::CopyOutOp::create(
        b, context.loc, block.rings.result, use, context.output(nextOutput++),
        ValueRange{tile.batch, tile.head, tile.i0, m.index(0)},
        ArrayRef<int64_t>{2, 3},
        /*drained=*/block.rings.result == block.rings.query);
  }
  if (program.wantsLse) {
    context.store(row[1], context.output(nextOutput++),
                  {tile.batch, tile.head, tile.i0}, {2, -1});
  }
}

LogicalResult Consumer::build(BlockCode &block) {
  auto own = tile::ScheduleAttr::get(block.context.builder.getContext(), 64,
                                     block.schedule.getBlockN());
  return block.forTiles([&](Value number, Value before) {
    return Consumer(block, own).run(number, before);
  });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult attnfuse::buildHopperAttention(KernelContext &context,
                                             const AttentionProgram &program,
                                             tile::ScheduleAttr schedule,
                                             Value rotatedKey) {
  OpBuilder &b = context.builder;
  auto ring = [&](int64_t stages, int64_t rows, Value tensor,
                  int64_t readers) -> Value {
    auto type = cast<RankedTensorType>(tensor.getType());
    Type element = type.getElementType();
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    int64_t padded = tile::paddedWidth(type.getDimSize(3), bytes);
    return tile::AllocOp::create(
        b, context.loc,
        tile::RingType::get(b.getContext(), stages, rows, padded, element,
                            tile::SlotLayout::widestSwizzle(padded, bytes)),
        readers);
  };
  int64_t consumers = schedule.getWarps() / 4;
  attn::AggregateOp aggregate = program.aggregate;
  Rings rings;
  rings.query = ring(consumers, 64, program.query, /*readers=*/1);
  rings.key = ring(schedule.getStages(), schedule.getBlockN(), rotatedKey, 0);
  if (aggregate) {
    rings.value = ring(schedule.getStages(), schedule.getBlockN(),
                       aggregate.getValue(), 0);
    rings.result =
        context.source->hasAttr("tile.shared_result")
            ? rings.query
            : ring(consumers, 64, aggregate.getResult(), /*readers=*/1);
  }
  context.layout = tile::FragmentAttr::get(b.getContext(), 4);
  auto roles = tile::RolesOp::create(
      b, context.loc, schedule.getProducerRegisters(), schedule.getRegisters());
  b.createBlock(&roles.getProducer());
  b.createBlock(&roles.getConsumer());

  b.setInsertionPointToStart(&roles.getProducer().front());
  if (failed(Producer(context, program, schedule, rotatedKey, rings).build())) {
    return failure();
  }
  b.setInsertionPointToStart(&roles.getConsumer().front());
  BlockCode block(context, program, schedule, rotatedKey, rings);
  if (failed(Consumer::build(block))) {
    return failure();
  }
  b.setInsertionPointAfter(roles);
  tile::ReturnOp::create(b, context.loc);
  return success();
}
