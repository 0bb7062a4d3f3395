//===- AttentionKernel.cpp - the main kernel of an attention ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One instance computes one tile of query rows against all keys its rows
// read. Softmax is online (Milakov and Gimelshein 2018; Dao et al. 2022): with
// x the scores in the kernel's unit and c the factor such that the weight is
// 2^(c (x - m)), each key tile does
//
//   m' = max(m, rowmax x)            p = 2^(c (x - m'))     a = 2^(c (m - m'))
//   l' = a l + rowsum p              O' = a O + p V
//
// and the end is O / l and lse = (c ln 2) m + ln l.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"
#include "MaskCode.h"
#include "ScoreCode.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>
#include <optional>

using namespace mlir;
using namespace attnfuse;

static constexpr double kLog2E = 1.4426950408889634074;
static constexpr double kLn2 = 0.69314718055994530942;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {

/// Running values of a query tile, carried by the loop over key tiles.
struct State {
  Value maximum, sum, accumulator;

  SmallVector<Value> values() const {
    SmallVector<Value> all;
    for (Value value : {maximum, sum, accumulator}) {
      if (value) {
        all.push_back(value);
      }
    }
    return all;
  }
  /// The same members, taken from a loop's arguments or results.
  State with(ValueRange range) const {
    State state;
    size_t next = 0;
    state.maximum = maximum ? range[next++] : Value();
    state.sum = sum ? range[next++] : Value();
    state.accumulator = accumulator ? range[next++] : Value();
    return state;
  }
};

class AttentionKernelBuilder {
public:
  AttentionKernelBuilder(KernelContext &context,
                         const AttentionProgram &program,
                         tile::ScheduleAttr schedule, Value rotatedKey)
      : context(context), program(program), rows(schedule.getBlockM()),
        columns(schedule.getBlockN()), rotatedKey(rotatedKey) {}

  LogicalResult build();

private:
  void placeTile();
  State initialState();
  State visitRange(Value lower, Value upper, bool tested, State state);
  State visitEnds(KeyInterval left, KeyInterval right, State state);
  State visitClassified(Value lower, Value upper, State state);
  State visitTile(Value j0, bool tested, State state);
  Value scores(Value j0, Value products, bool tested);
  void finish(State state);

  Value headOf(Value tensor) {
    // Query head h reads head h * Hk / Hq.
    IndexMath m = context.math();
    auto heads = [](Value t) {
      return cast<RankedTensorType>(t.getType()).getDimSize(1);
    };
    int64_t group = heads(program.query) / heads(tensor);
    return m.floorDiv(tile.head, group);
  }
  int64_t width(Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getDimSize(3);
  }

  KernelContext &context;
  AttentionProgram program;
  int64_t rows, columns;
  Value rotatedKey;

  QueryTile tile;
  Value query, keyHead, valueHead;
  MaskModel model;
  std::optional<MaskCode> mask;
  std::optional<ScoreCode> scoreCode;
  /// True if scores stay raw products, with the scale in `unit`.
  bool raw = false;
  double unit = kLog2E;
  /// True if a weight may be exactly 0 beside a value that is not finite.
  bool guardAll = false;
};

} // namespace

void AttentionKernelBuilder::placeTile() {
  IndexMath m = context.math();
  Value queryView = context.get(program.query);
  tile.queries = context.dim(queryView, 2);
  tile.keys = context.dim(context.get(rotatedKey), 2);
  tile.batch = context.programId(2);
  tile.head = context.programId(1);
  // Under a causal mask the last rows read the most keys: they go first.
  Value count = m.ceilDiv(tile.queries, rows);
  Value place = m.sub(m.add(count, -1), context.programId(0));
  tile.i0 = m.mul(place, rows);
  tile.i1 = m.min(m.add(tile.i0, rows), tile.queries);

  query = context.load(queryView, {tile.batch, tile.head, tile.i0, m.index(0)},
                       {2, 3}, rows, width(program.query));
  query = context.rotate(program.queryRopes, query, tile.batch, tile.i0);
  keyHead = headOf(program.key);
  if (program.aggregate) {
    valueHead = headOf(program.aggregate.getValue());
  }
}

State AttentionKernelBuilder::initialState() {
  IndexMath m = context.math();
  State state;
  Value zero = m.f32(0);
  if (program.softmax) {
    state.maximum = context.splat(m.f32(-kInfinity), rows, 1);
    state.sum = context.splat(zero, rows, 1);
  }
  if (program.aggregate) {
    state.accumulator =
        context.splat(zero, rows, width(program.aggregate.getValue()));
  }
  return state;
}

Value AttentionKernelBuilder::scores(Value j0, Value products, bool tested) {
  if (raw && !tested) {
    return products;
  }
  SmallVector<Value> inputs{products};
  SmallVector<Value> scoreTiles = scoreCode->operands(j0);
  llvm::append_range(inputs, scoreTiles);
  if (tested && mask) {
    llvm::append_range(inputs, mask->operands(j0));
  }
  return context.mapF32(
      inputs, rows, columns, [&](IndexMath m, ValueRange arguments) {
        Value i = m.add(tile.i0, arguments[inputs.size()]);
        Value j = m.add(j0, arguments[inputs.size() + 1]);
        ValueRange scalars = arguments.slice(1, inputs.size() - 1);
        Value score =
            raw ? arguments[0]
                : scoreCode->apply(m, arguments[0],
                                   scalars.take_front(scoreTiles.size()), i, j);
        if (tested) {
          Value kept = m.lt(j, tile.keys);
          if (mask) {
            kept = m.both(
                kept,
                mask->test(m, scalars.drop_front(scoreTiles.size()), i, j));
          }
          score = m.select(kept, score, m.f32(program.relu ? 0 : -kInfinity));
        }
        return score;
      });
}

State AttentionKernelBuilder::visitTile(Value j0, bool tested, State state) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  Value zero = m.index(0);
  Value key =
      context.load(context.get(rotatedKey), {tile.batch, keyHead, j0, zero},
                   {2, 3}, columns, width(program.key));
  if (rotatedKey == program.key) {
    key = context.rotate(program.keyRopes, key, tile.batch, j0);
  }
  Value none = context.splat(m.f32(0), rows, columns);
  Value products = tile::DotOp::create(b, context.loc, none.getType(), query,
                                       key, none, /*transpose_b=*/true,
                                       /*guard_zeros=*/false);
  Value x = scores(j0, products, tested);

  State next;
  Value weights;
  Value rescaled = state.accumulator;
  if (program.softmax) {
    Value top = context.reduce(tile::ReduceKind::Max, x, 1);
    // Until a row has a score its maximum is -inf, and 0 stands in for it.
    SmallVector<Value> rowValues = context.map(
        {state.maximum, top}, rows, 1,
        {b.getF32Type(), b.getF32Type(), b.getF32Type()},
        [&](IndexMath m, ValueRange args) {
          Value maximum = arith::MaxNumFOp::create(b, m.loc, args[0], args[1]);
          Value isEmpty =
              m.cmpf(arith::CmpFPredicate::OEQ, maximum, m.f32(-kInfinity));
          Value base = m.select(isEmpty, m.f32(0), maximum);
          Value alpha = math::Exp2Op::create(
              b, m.loc, m.mulf(m.subf(args[0], base), m.f32(unit)));
          // Products are far from overflowing: their scaled maximum can be
          // taken off in one multiply-add. Scores that operations have changed
          // may be the lowest finite value.
          Value taken = raw ? m.mulf(base, m.f32(-unit)) : base;
          return SmallVector<Value>{maximum, taken, alpha};
        });
    weights = context.mapF32(
        {x, rowValues[1]}, rows, columns, [&](IndexMath m, ValueRange args) {
          Value power = raw ? Value(math::FmaOp::create(b, m.loc, args[0],
                                                        m.f32(unit), args[1]))
                            : m.mulf(m.subf(args[0], args[1]), m.f32(unit));
          return math::Exp2Op::create(b, m.loc, power);
        });
    Value added = context.reduce(tile::ReduceKind::Add, weights, 1);
    next.maximum = rowValues[0];
    next.sum =
        context.mapF32({state.sum, rowValues[2], added}, rows, 1,
                       [&](IndexMath m, ValueRange args) {
                         return m.addf(m.mulf(args[0], args[1]), args[2]);
                       });
    if (program.aggregate) {
      rescaled = context.mapF32({state.accumulator, rowValues[2]}, rows,
                                width(program.aggregate.getValue()),
                                [&](IndexMath m, ValueRange args) {
                                  return m.mulf(args[0], args[1]);
                                });
    }
  } else {
    weights = context.mapF32(
        {x}, rows, columns, [&](IndexMath m, ValueRange args) -> Value {
          // maximumf hands a NaN on.
          return arith::MaximumFOp::create(b, m.loc, args[0], m.f32(0));
        });
  }
  if (program.aggregate) {
    Value values = context.load(context.get(program.aggregate.getValue()),
                                {tile.batch, valueHead, j0, zero}, {2, 3},
                                columns, width(program.aggregate.getValue()));
    next.accumulator = tile::DotOp::create(
        b, context.loc, rescaled.getType(), weights, values, rescaled,
        /*transpose_b=*/false, /*guard_zeros=*/tested || guardAll);
  }
  return next;
}

State AttentionKernelBuilder::visitRange(Value lower, Value upper, bool tested,
                                         State state) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  auto loop = scf::ForOp::create(
      b, context.loc, lower, upper, m.index(columns), state.values(),
      [&](OpBuilder &, Location loc, Value j0, ValueRange carried) {
        State next = visitTile(j0, tested, state.with(carried));
        scf::YieldOp::create(b, loc, next.values());
      });
  return state.with(loop.getResults());
}

State AttentionKernelBuilder::visitEnds(KeyInterval left, KeyInterval right,
                                        State state) {
  // One loop over both, so that its body is there once: tile n counts through
  // the left interval, then through the right one.
  IndexMath outer = context.math();
  OpBuilder &b = context.builder;
  auto tilesOf = [&](KeyInterval keys) {
    Value length = outer.max(outer.sub(keys.upper, keys.lower), outer.index(0));
    return outer.ceilDiv(length, columns);
  };
  Value leftCount = tilesOf(left);
  Value count = outer.add(leftCount, tilesOf(right));
  auto loop = scf::ForOp::create(
      b, context.loc, outer.index(0), count, outer.index(1), state.values(),
      [&](OpBuilder &, Location loc, Value n, ValueRange carried) {
        IndexMath m = context.math();
        Value j0 =
            m.select(m.lt(n, leftCount), m.add(left.lower, m.mul(n, columns)),
                     m.add(right.lower, m.mul(m.sub(n, leftCount), columns)));
        State next = visitTile(j0, /*tested=*/true, state.with(carried));
        scf::YieldOp::create(b, loc, next.values());
      });
  return state.with(loop.getResults());
}

State AttentionKernelBuilder::visitClassified(Value lower, Value upper,
                                              State state) {
  OpBuilder &b = context.builder;
  IndexMath outer = context.math();
  auto loop = scf::ForOp::create(
      b, context.loc, lower, upper, outer.index(columns), state.values(),
      [&](OpBuilder &, Location loc, Value j0, ValueRange carried) {
        IndexMath m = context.math();
        State before = state.with(carried);
        Value end = m.add(j0, columns);
        auto [any, all] = mask->classify(j0, m.min(end, tile.keys));
        Value whole = m.both(all, m.le(end, tile.keys));
        auto visit = [&](bool tested) {
          return [&, tested](OpBuilder &, Location loc) {
            State next = visitTile(j0, tested, before);
            scf::YieldOp::create(b, loc, next.values());
          };
        };
        auto some = scf::IfOp::create(
            b, loc, any,
            [&](OpBuilder &, Location loc) {
              auto which =
                  scf::IfOp::create(b, loc, whole, visit(false), visit(true));
              scf::YieldOp::create(b, loc, which.getResults());
            },
            [&](OpBuilder &, Location loc) {
              scf::YieldOp::create(b, loc, before.values());
            });
        scf::YieldOp::create(b, loc, some.getResults());
      });
  return state.with(loop.getResults());
}

void AttentionKernelBuilder::finish(State state) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  unsigned nextOutput = 0;
  Value sink;
  if (program.softmax && program.softmax.getSinks()) {
    sink = tile::ReadOp::create(b, context.loc, b.getF32Type(),
                                context.get(program.softmax.getSinks()),
                                tile.head);
  }
  // Maximum, denominator and factor on the accumulator, sinks included.
  SmallVector<Value> row;
  if (program.softmax) {
    row = context.map(
        {state.maximum, state.sum}, rows, 1, {b.getF32Type(), b.getF32Type()},
        [&](IndexMath m, ValueRange args) {
          // To natural units: the lowest finite bias would overflow in log2.
          Value maximum = m.mulf(args[0], m.f32(unit * kLn2)), sum = args[1];
          // A row that read nothing: its maximum is -inf whatever the unit.
          Value isEmpty =
              m.cmpf(arith::CmpFPredicate::OEQ, args[0], m.f32(-kInfinity));
          maximum = m.select(isEmpty, m.f32(-kInfinity), maximum);
          Value factor = m.f32(1);
          if (sink) {
            auto exponential = [&](Value x) -> Value {
              return math::Exp2Op::create(b, m.loc, m.mulf(x, m.f32(kLog2E)));
            };
            Value top = arith::MaxNumFOp::create(b, m.loc, maximum, sink);
            Value none =
                m.cmpf(arith::CmpFPredicate::OEQ, top, m.f32(-kInfinity));
            Value base = m.select(none, m.f32(0), top);
            factor = exponential(m.subf(maximum, base));
            Value extra = exponential(m.subf(sink, base));
            sum = m.addf(m.mulf(sum, factor), extra);
            maximum = top;
          }
          Value any = m.cmpf(arith::CmpFPredicate::UNE, sum, m.f32(0));
          Value quotient = arith::DivFOp::create(b, m.loc, factor, sum);
          Value scale = m.select(any, quotient, m.f32(0));
          Value log = math::Log2Op::create(b, m.loc, sum);
          Value lse = m.addf(maximum, m.mulf(log, m.f32(kLn2)));
          lse = m.select(any, lse, m.f32(-kInfinity));
          return SmallVector<Value>{scale, lse};
        });
  }
  if (program.aggregate) {
    int64_t columnsOut = width(program.aggregate.getValue());
    Value result = state.accumulator;
    if (program.softmax) {
      result = context.mapF32({result, row[0]}, rows, columnsOut,
                              [&](IndexMath m, ValueRange args) {
                                return m.mulf(args[0], args[1]);
                              });
    } else if (program.relu.getMean()) {
      Value narrow =
          arith::IndexCastOp::create(b, context.loc, b.getI64Type(), tile.keys);
      Value count =
          arith::SIToFPOp::create(b, context.loc, b.getF32Type(), narrow);
      Value share = arith::DivFOp::create(b, context.loc, m.f32(1), count);
      share = m.select(m.cmp(arith::CmpIPredicate::eq, tile.keys, m.index(0)),
                       m.f32(0), share);
      result = context.mapF32(
          {result}, rows, columnsOut,
          [&](IndexMath m, ValueRange args) { return m.mulf(args[0], share); });
    }
    context.store(result, context.output(nextOutput++),
                  {tile.batch, tile.head, tile.i0, m.index(0)}, {2, 3});
  }
  if (program.wantsLse) {
    context.store(row[1], context.output(nextOutput++),
                  {tile.batch, tile.head, tile.i0}, {2, -1});
  }
}

LogicalResult AttentionKernelBuilder::build() {
  IndexMath m = context.math();
  placeTile();
  raw = !program.hasScoreOps() && program.softmax &&
        program.product.getScaleValue() > 0;
  unit = raw ? kLog2E * program.product.getScaleValue() : kLog2E;
  // A bias or score_mod may give -inf, a weight of 0 like a mask's.
  guardAll =
      llvm::any_of(program.scoreOps,
                   [](Operation *op) {
                     return isa<attn::AdditiveBiasOp, attn::ScoreModOp>(op);
                   }) ||
      program.relu;
  scoreCode.emplace(context, program, tile, rows, columns);

  if (!program.masks.empty()) {
    FailureOr<MaskModel> found =
        buildMaskModel(program.masks, program.product.getScores().getType(),
                       [&] { return program.product.emitOpError(); });
    if (failed(found)) {
      return failure();
    }
    model = std::move(*found);
    mask.emplace(context, model, tile, rows, columns);
  }

  State state = initialState();
  KeyInterval touched{m.index(0), tile.keys}, full = touched;
  if (mask) {
    std::tie(touched, full) = mask->bounds();
  }
  // To whole tiles: the first and one past the last that are visited, and
  // those among them that need no test.
  Value first = m.mul(m.floorDiv(touched.lower, columns), columns);
  Value last = touched.upper;
  if (mask && !mask->isAnalytic()) {
    finish(visitClassified(first, last, state));
    tile::ReturnOp::create(context.builder, context.loc);
    return success();
  }
  Value wholeFirst = m.mul(m.ceilDiv(full.lower, columns), columns);
  Value wholeLast = m.mul(m.floorDiv(full.upper, columns), columns);
  bool fromZero = !mask || mask->startsAtZero();
  if (fromZero) {
    wholeFirst = first;
    wholeLast = m.max(wholeFirst, wholeLast);
  } else {
    // No whole tile: everything is left to the loop that tests.
    Value some = m.lt(wholeFirst, wholeLast);
    wholeFirst = m.select(some, wholeFirst, first);
    wholeLast = m.select(some, wholeLast, first);
  }
  state = visitRange(wholeFirst, wholeLast, /*tested=*/false, state);
  auto keyType = cast<RankedTensorType>(program.key.getType());
  bool divides =
      !mask && !keyType.isDynamicDim(2) && keyType.getDimSize(2) % columns == 0;
  if (!fromZero) {
    state = visitEnds({first, wholeFirst}, {wholeLast, last}, state);
  } else if (!divides) {
    state = visitRange(wholeLast, last, /*tested=*/true, state);
  }
  finish(state);
  tile::ReturnOp::create(context.builder, context.loc);
  return success();
}

/// Batch, heads and tiles of rows of an output, the tiles varying fastest.
static SmallVector<Attribute> gridOver(MLIRContext *context, int64_t argument,
                                       int64_t rows) {
  return {tile::ExtentAttr::get(context, argument, 2, rows),
          tile::ExtentAttr::get(context, argument, 1, 1),
          tile::ExtentAttr::get(context, argument, 0, 1)};
}

FailureOr<tile::KernelOp> attnfuse::buildAttentionKernel(
    func::FuncOp source, StringRef name, const AttentionProgram &program,
    ValueRange inputs, ArrayRef<RankedTensorType> outputs,
    tile::ScheduleAttr schedule, Value rotatedKey) {
  KernelContext context(
      source, name, inputs, outputs,
      gridOver(source.getContext(), inputs.size(), schedule.getBlockM()));
  context.kernel.setScheduleAttr(schedule);
  AttentionKernelBuilder builder(context, program, schedule, rotatedKey);
  if (failed(builder.build())) {
    context.kernel.erase();
    return failure();
  }
  return context.kernel;
}

tile::KernelOp attnfuse::buildRotationKernel(
    func::FuncOp source, StringRef name, ArrayRef<attn::RopeOp> ropes,
    Value tensor, ValueRange inputs, RankedTensorType output, int64_t rows) {
  KernelContext context(source, name, inputs, output,
                        gridOver(source.getContext(), inputs.size(), rows));
  IndexMath m = context.math();
  Value batch = context.programId(2), head = context.programId(1);
  Value first = m.mul(context.programId(0), rows);
  SmallVector<Value> place{batch, head, first, m.index(0)};
  Value x = context.load(context.get(tensor), place, {2, 3}, rows,
                         output.getDimSize(3));
  x = context.rotate(ropes, x, batch, first);
  context.store(x, context.output(0), place, {2, 3});
  tile::ReturnOp::create(context.builder, context.loc);
  return context.kernel;
}
