//===- GpuAttentionKernel.cpp - the portable GPU schedule ------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For every chip from sm_80 on: all warps copy, multiply and exponentiate.
// With rings of two and more slots the copies of keys and values run a tile or
// more ahead, and one barrier per tile tells that a slot is full and that the
// slot before it is free. With single slots, values are copied under the
// product of queries and keys, and the next keys under the product of weights
// and values; two barriers.
//
// A weight of 0 must not meet a value that is not finite. Products have no
// such guard; so where weights can be 0, the accumulators are looked at once at
// the end, and if any is not finite the tile is computed again by guarded
// products.
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

class GpuAttentionKernelBuilder : AttentionCode {
public:
  GpuAttentionKernelBuilder(KernelContext &context,
                            const AttentionProgram &program,
                            tile::ScheduleAttr schedule, Value rotatedKey,
                            Value marks)
      : AttentionCode(context, program, schedule, rotatedKey),
        schedule(schedule), marks(marks) {}

  LogicalResult build();

private:
  /// The tile of keys that is being computed, and the one whose copy starts.
  struct Step {
    Value number, key;      // use of the rings, first key
    Value tested;           // i1, or null: never
    Value leadKey, hasLead; // first key, i1
  };

  Value allocate(int64_t stages, int64_t rows, int64_t width, Type element);
  void loadQuery();
  void load(Value view, Value ring, Value head, Value key, Value use);
  /// Starts the copies of a tile if there is one; the group is closed anyway.
  void startTile(Value key, Value use, Value exists);
  void startKeys(Value key, Value use, Value exists);
  int64_t lead() const {
    return std::max<int64_t>(schedule.getStages() - 1, 1);
  }
  bool single() const { return schedule.getStages() == 1; }

  State run(bool guarded);
  State runBounded(bool guarded);
  State runClassified(bool guarded);
  SmallVector<Value> nextVisited(Value key);
  State visit(const Step &step, bool guarded, State state);
  State guardedAgain(State state);
  void finish(State state);

  tile::ScheduleAttr schedule;
  Value marks;
  Value queryRing, keyRing, valueRing;
  KeyTiles keys;
};
} // namespace

Value GpuAttentionKernelBuilder::allocate(int64_t stages, int64_t ringRows,
                                          int64_t width, Type element) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t padded = tile::paddedWidth(width, bytes);
  auto type = tile::RingType::get(
      context.builder.getContext(), stages, ringRows, padded, element,
      tile::SlotLayout::widestSwizzle(padded, bytes));
  return tile::AllocOp::create(context.builder, context.loc, type);
}

void GpuAttentionKernelBuilder::load(Value view, Value ring, Value head,
                                     Value key, Value use) {
  Value zero = context.math().index(0);
  tile::AsyncLoadOp::create(context.builder, context.loc, view,
                            ValueRange{tile.batch, head, key, zero},
                            ArrayRef<int64_t>{2, 3}, ring, use);
}

void GpuAttentionKernelBuilder::startKeys(Value key, Value use, Value exists) {
  OpBuilder &b = context.builder;
  scf::IfOp::create(b, context.loc, exists, [&](OpBuilder &, Location loc) {
    tile::AcquireOp::create(b, loc, keyRing, use);
    load(context.get(rotatedKey), keyRing, keyHead, key, use);
    scf::YieldOp::create(b, loc);
  });
  tile::CommitOp::create(b, context.loc, keyRing, use);
}

void GpuAttentionKernelBuilder::startTile(Value key, Value use, Value exists) {
  OpBuilder &b = context.builder;
  scf::IfOp::create(b, context.loc, exists, [&](OpBuilder &, Location loc) {
    tile::AcquireOp::create(b, loc, keyRing, use);
    load(context.get(rotatedKey), keyRing, keyHead, key, use);
    if (valueRing) {
      load(context.get(program.aggregate.getValue()), valueRing, valueHead, key,
           use);
    }
    scf::YieldOp::create(b, loc);
  });
  tile::CommitOp::create(b, context.loc, keyRing, use);
}

//===----------------------------------------------------------------------===//
// One tile of keys
//===----------------------------------------------------------------------===//

State GpuAttentionKernelBuilder::visit(const Step &step, bool guarded,
                                       State state) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Location loc = context.loc;
  Value leadUse = m.add(step.number, lead());
  // The groups committed after this tile's, where copies run ahead.
  tile::WaitOp::create(b, loc, keyRing, step.number, single() ? 0 : lead() - 1);
  if (single()) {
    if (valueRing) {
      tile::AcquireOp::create(b, loc, valueRing, step.number);
      load(context.get(program.aggregate.getValue()), valueRing, valueHead,
           step.key, step.number);
      tile::CommitOp::create(b, loc, valueRing, step.number);
    }
  } else {
    startTile(step.leadKey, leadUse, step.hasLead);
  }
  if (rotatedKey == program.key) {
    context.rotateSlot(program.keyRopes, keyRing, step.number, tile.batch,
                       step.key);
  }

  auto scoreType = context.tileType(rows, columns, b.getF32Type());
  Value started = tile::DotStartOp::create(
      b, loc, tile::PendingType::get(scoreType), queryRing, m.index(0), keyRing,
      step.number, Value(), /*transpose_b=*/true);
  Value products = tile::DotWaitOp::create(b, loc, scoreType, started, 0);
  tile::ReleaseOp::create(b, loc, keyRing, step.number);
  if (single()) {
    tile::WaitOp::create(b, loc, valueRing ? valueRing : keyRing, step.number,
                         0);
    startKeys(step.leadKey, leadUse, step.hasLead);
  }

  Value x = scores(step.key, products, /*tested=*/false);
  if (step.tested) {
    auto choose = scf::IfOp::create(
        b, loc, step.tested,
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(b, loc, masked(step.key, x));
        },
        [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, x); });
    x = choose.getResult(0);
  }

  State next;
  Value weights, accumulator = state.accumulator;
  if (program.softmax) {
    Value top = context.reduce(tile::ReduceKind::Max, x, 1);
    SmallVector<Value> rowValues = updateRows(state.maximum, top);
    weights = weightsOf(x, rowValues[1]);
    // Sums are combined across lanes once, at the end.
    Value added =
        context.reduce(tile::ReduceKind::Add, weights, 1, /*partial=*/true);
    next.maximum = rowValues[0];
    next.sum = updateSum(state.sum, rowValues[2], added);
    if (accumulator) {
      accumulator = scaledBy(accumulator, rowValues[2]);
    }
  } else {
    weights = reluOf(x);
  }
  if (!accumulator) {
    return next;
  }
  auto valueType = cast<tile::RingType>(valueRing.getType());
  auto resultType = cast<tile::TileType>(accumulator.getType());
  if (guarded) {
    next.accumulator = tile::DotGuardedOp::create(
        b, loc, resultType, weights, valueRing, step.number, accumulator);
  } else {
    Value narrow = weights;
    if (!valueType.getElementType().isF32()) {
      auto type = cast<tile::TileType>(weights.getType());
      narrow = tile::CastOp::create(
          b, loc, type.withElementType(valueType.getElementType()), weights);
    }
    Value sum = tile::DotStartOp::create(
        b, loc, tile::PendingType::get(resultType), narrow, Value(), valueRing,
        step.number, accumulator, /*transpose_b=*/false);
    next.accumulator = tile::DotWaitOp::create(b, loc, resultType, sum, 0);
  }
  tile::ReleaseOp::create(b, loc, valueRing, step.number);
  return next;
}

//===----------------------------------------------------------------------===//
// All tiles of keys
//===----------------------------------------------------------------------===//

State GpuAttentionKernelBuilder::runBounded(bool guarded) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Value length = m.max(m.sub(keys.last, keys.first), m.index(0));
  Value count = m.ceilDiv(length, columns);
  for (int64_t n = 0; n < lead(); ++n) {
    Value key = m.add(keys.first, n * columns);
    Value exists = m.lt(m.index(n), count);
    if (single()) {
      startKeys(key, m.index(n), exists);
    } else {
      startTile(key, m.index(n), exists);
    }
  }
  if (!guarded) {
    loadQuery();
  }
  auto keyType = cast<RankedTensorType>(program.key.getType());
  bool divides =
      !mask && !keyType.isDynamicDim(2) && keyType.getDimSize(2) % columns == 0;
  State state = initialState(
      valueRing ? cast<tile::RingType>(valueRing.getType()).getColumns() : 0);
  auto loop = scf::ForOp::create(
      b, context.loc, m.index(0), count, m.index(1), state.values(),
      [&](OpBuilder &, Location loc, Value n, ValueRange carried) {
        Step step;
        step.number = n;
        step.key = m.add(keys.first, m.mul(n, columns));
        if (!divides) {
          Value end = m.add(step.key, columns);
          step.tested = m.lt(keys.wholeLast, end);
          if (mask && !mask->startsAtZero()) {
            step.tested =
                m.either(step.tested, m.lt(step.key, keys.wholeFirst));
          }
        }
        step.leadKey = m.add(step.key, lead() * columns);
        step.hasLead = m.lt(m.add(n, lead()), count);
        State next = visit(step, guarded, state.with(carried));
        scf::YieldOp::create(b, loc, next.values());
      });
  return state.with(loop.getResults());
}

SmallVector<Value> GpuAttentionKernelBuilder::nextVisited(Value key) {
  OpBuilder &b = context.builder;
  IndexMath m = context.math();
  Type index = b.getIndexType(), bit = b.getI1Type();
  auto loop = scf::WhileOp::create(
      b, context.loc, TypeRange{index, bit}, ValueRange{key, m.boolean(false)},
      [&](OpBuilder &, Location loc, ValueRange args) {
        Value end = m.add(args[0], columns);
        auto [any, all] = mask->classify(args[0], m.min(end, tile.keys));
        Value whole = m.both(all, m.le(end, tile.keys));
        Value passOver = m.both(m.lt(args[0], keys.last), m.negate(any));
        scf::ConditionOp::create(b, loc, passOver, ValueRange{args[0], whole});
      },
      [&](OpBuilder &, Location loc, ValueRange args) {
        scf::YieldOp::create(b, loc,
                             ValueRange{m.add(args[0], columns), args[1]});
      });
  return {loop.getResult(0), loop.getResult(1)};
}

State GpuAttentionKernelBuilder::runClassified(bool guarded) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  assert(lead() == 1 && "the place of only the next tile is known");
  SmallVector<Value> first = nextVisited(keys.first);
  Value exists = m.lt(first[0], keys.last);
  if (single()) {
    startKeys(first[0], m.index(0), exists);
  } else {
    startTile(first[0], m.index(0), exists);
  }
  if (!guarded) {
    loadQuery();
  }
  State state = initialState(
      valueRing ? cast<tile::RingType>(valueRing.getType()).getColumns() : 0);
  SmallVector<Value> inits{m.index(0), first[0], first[1]};
  llvm::append_range(inits, state.values());
  auto loop = scf::WhileOp::create(
      b, context.loc, TypeRange(ValueRange(inits)), inits,
      [&](OpBuilder &, Location loc, ValueRange args) {
        scf::ConditionOp::create(b, loc, m.lt(args[1], keys.last), args);
      },
      [&](OpBuilder &, Location loc, ValueRange args) {
        SmallVector<Value> following = nextVisited(m.add(args[1], columns));
        Step step;
        step.number = args[0];
        step.key = args[1];
        step.tested = m.negate(args[2]);
        step.leadKey = following[0];
        step.hasLead = m.lt(following[0], keys.last);
        State next = visit(step, guarded, state.with(args.drop_front(3)));
        SmallVector<Value> results{m.add(args[0], 1), following[0],
                                   following[1]};
        llvm::append_range(results, next.values());
        scf::YieldOp::create(b, loc, results);
      });
  return state.with(loop.getResults().drop_front(3));
}

State GpuAttentionKernelBuilder::run(bool guarded) {
  return mask && !mask->isAnalytic() ? runClassified(guarded)
                                     : runBounded(guarded);
}

State GpuAttentionKernelBuilder::guardedAgain(State state) {
  OpBuilder &b = context.builder;
  Value bad = notFinite(state.accumulator);
  Value again = tile::AnyOp::create(b, context.loc, b.getI1Type(),
                                    tile::VoteScope::Block, bad);
  auto choose = scf::IfOp::create(
      b, context.loc, again,
      [&](OpBuilder &, Location loc) {
        scf::YieldOp::create(b, loc, run(/*guarded=*/true).values());
      },
      [&](OpBuilder &, Location loc) {
        scf::YieldOp::create(b, loc, state.values());
      });
  return state.with(choose.getResults());
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void GpuAttentionKernelBuilder::loadQuery() {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Value zero = m.index(0);
  load(context.get(program.query), queryRing, tile.head, tile.i0, zero);
  tile::CommitOp::create(b, context.loc, queryRing, zero);
  tile::WaitOp::create(b, context.loc, queryRing, zero, 0);
  context.rotateSlot(program.queryRopes, queryRing, zero, tile.batch, tile.i0);
}

void GpuAttentionKernelBuilder::finish(State state) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Value zero = m.index(0);
  unsigned nextOutput = 0;
  SmallVector<Value> row;
  if (program.softmax) {
    state.sum = context.combine(tile::ReduceKind::Add, state.sum);
    row = finishRows(state);
  }
  if (program.aggregate) {
    Value result = finishResult(state.accumulator, row);
    Value view = context.output(nextOutput++);
    Type element = cast<tile::ViewType>(view.getType()).getElementType();
    auto type = cast<tile::TileType>(result.getType());
    // A warp reads and writes its own rows of the queries' slot alone.
    Value ring = queryRing;
    if (!resultsTakeQuerySlot(problemOf(program))) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(queryRing.getDefiningOp());
      ring = allocate(1, rows, type.getColumns(), element);
    }
    tile::PutOp::create(b, context.loc, result, ring, zero);
    tile::CopyOutOp::create(b, context.loc, ring, zero, view,
                            ValueRange{tile.batch, tile.head, tile.i0, zero},
                            ArrayRef<int64_t>{2, 3}, /*drained=*/false);
  }
  if (program.wantsLse) {
    context.store(row[1], context.output(nextOutput++),
                  {tile.batch, tile.head, tile.i0}, {2, -1});
  }
}

LogicalResult GpuAttentionKernelBuilder::build() {
  placeTile();
  if (failed(prepare())) {
    return failure();
  }
  auto elementOf = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getElementType();
  };
  int64_t stages = schedule.getStages();
  queryRing = allocate(1, rows, width(program.query), elementOf(program.query));
  keyRing =
      allocate(stages, columns, width(program.key), elementOf(rotatedKey));
  if (program.aggregate) {
    Value values = program.aggregate.getValue();
    valueRing = allocate(stages, columns, width(values), elementOf(values));
  }
  auto compute = [&] {
    keys = keyTiles();
    State state = run(/*guarded=*/false);
    if (valueRing && (mask || guardAll)) {
      state = guardedAgain(state);
    }
    finish(state);
  };
  OpBuilder &b = context.builder;
  if (!marks) {
    compute();
  } else {
    Value marked =
        context.load(context.get(marks), {tile.batch, tile.head, tile.i0},
                     {2, -1}, rows, 1, b.getI8Type());
    Value bits = context
                     .map({marked}, rows, 1, {b.getI1Type()},
                          [&](IndexMath m, ValueRange args) {
                            Value zero =
                                arith::ConstantIntOp::create(b, m.loc, 0, 8);
                            return SmallVector<Value>{
                                m.cmp(arith::CmpIPredicate::ne, args[0], zero)};
                          })
                     .front();
    Value any = tile::AnyOp::create(b, context.loc, b.getI1Type(),
                                    tile::VoteScope::Block, bits);
    scf::IfOp::create(b, context.loc, any, [&](OpBuilder &, Location loc) {
      compute();
      scf::YieldOp::create(b, loc);
    });
  }
  tile::ReturnOp::create(b, context.loc);
  return success();
}

LogicalResult attnfuse::buildGpuAttention(KernelContext &context,
                                          const AttentionProgram &program,
                                          tile::ScheduleAttr schedule,
                                          Value rotatedKey, Value marks) {
  context.layout = tile::FragmentAttr::get(context.builder.getContext(),
                                           schedule.getWarps());
  return GpuAttentionKernelBuilder(context, program, schedule, rotatedKey,
                                   marks)
      .build();
}
