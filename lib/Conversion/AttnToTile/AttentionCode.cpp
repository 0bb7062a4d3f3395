//===- AttentionCode.cpp - what every attention kernel computes -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"
#include "AttentionKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace attnfuse;

static constexpr double kLog2E = 1.4426950408889634074;
static constexpr double kLn2 = 0.69314718055994530942;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

SmallVector<Value> AttentionState::values() const {
  SmallVector<Value> all;
  for (Value value : {maximum, sum, accumulator}) {
    if (value) {
      all.push_back(value);
    }
  }
  return all;
}

AttentionState AttentionState::with(ValueRange range) const {
  AttentionState state;
  size_t next = 0;
  state.maximum = maximum ? range[next++] : Value();
  state.sum = sum ? range[next++] : Value();
  state.accumulator = accumulator ? range[next++] : Value();
  return state;
}

Value AttentionCode::headOf(Value tensor) {
  // Query head h reads head h * Hk / Hq.
  auto heads = [](Value t) {
    return cast<RankedTensorType>(t.getType()).getDimSize(1);
  };
  int64_t group = heads(program.query) / heads(tensor);
  return context.math().floorDiv(tile.head, group);
}

void AttentionCode::readExtents() {
  tile.queries = context.dim(context.get(program.query), 2);
  tile.keys = context.dim(context.get(rotatedKey), 2);
}

void AttentionCode::placeHeads() {
  keyHead = headOf(program.key);
  if (program.aggregate) {
    valueHead = headOf(program.aggregate.getValue());
  }
}

void AttentionCode::placeTile() {
  IndexMath m = context.math();
  readExtents();
  tile.batch = context.programId(2);
  tile.head = context.programId(1);
  // Under a causal mask the last rows read the most keys: they go first.
  Value count = m.ceilDiv(tile.queries, rows);
  Value place = m.sub(m.add(count, -1), context.programId(0));
  tile.i0 = m.mul(place, rows);
  tile.i1 = m.min(m.add(tile.i0, rows), tile.queries);
  placeHeads();
}

Value AttentionCode::countTiles() {
  IndexMath m = context.math();
  Value query = context.get(program.query);
  Value heads =
      m.make<arith::MulIOp>(context.dim(query, 0), context.dim(query, 1));
  return m.make<arith::MulIOp>(heads, m.ceilDiv(context.dim(query, 2), rows));
}

void AttentionCode::placeTile(Value number, int64_t cacheBytes) {
  IndexMath m = context.math();
  readExtents();
  auto mul = [&](Value a, Value b) { return m.make<arith::MulIOp>(a, b); };
  auto div = [&](Value a, Value b) { return m.make<arith::DivUIOp>(a, b); };
  Value query = context.get(program.query);
  Value tiles = m.ceilDiv(tile.queries, rows);
  Value heads = context.dim(query, 1);
  Value all = mul(context.dim(query, 0), heads);
  auto keyType = cast<RankedTensorType>(program.key.getType());
  int64_t group =
      cast<RankedTensorType>(program.query.getType()).getDimSize(1) /
      keyType.getDimSize(1);
  int64_t bytesPerKey =
      (keyType.getDimSize(3) +
       (program.aggregate ? width(program.aggregate.getValue()) : 0)) *
      keyType.getElementType().getIntOrFloatBitWidth() / 8;
  // Key heads in the cache at once, times the query heads of each.
  Value inCache = div(m.index(std::max<int64_t>(cacheBytes / bytesPerKey, 1)),
                      m.max(tile.keys, m.index(1)));
  Value together = m.mul(m.max(inCache, m.index(1)), group);
  together = m.min(together, all);
  // Groups of equal size: each starts with its longest tiles, and a last one
  // of few heads would leave multiprocessors without work while those run.
  together = div(
      m.sub(m.add(all, div(m.sub(m.add(all, together), m.index(1)), together)),
            m.index(1)),
      div(m.sub(m.add(all, together), m.index(1)), together));
  Value perGroup = mul(together, tiles);
  Value groupNumber = div(number, perGroup);
  Value first = mul(groupNumber, together);
  Value rest = m.sub(number, mul(groupNumber, perGroup));
  // The last group may have fewer heads.
  Value here = m.min(together, m.sub(all, first));
  Value row = div(rest, here);
  Value place = m.add(first, m.sub(rest, mul(row, here)));
  tile.batch = div(place, heads);
  tile.head = m.sub(place, mul(tile.batch, heads));
  tile.i0 = m.mul(m.sub(m.add(tiles, -1), row), rows);
  tile.i1 = m.min(m.add(tile.i0, rows), tile.queries);
  placeHeads();
}

LogicalResult AttentionCode::prepare() {
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
  return success();
}

AttentionCode::KeyTiles AttentionCode::keyTiles() {
  IndexMath m = context.math();
  KeyInterval touched{m.index(0), tile.keys}, full = touched;
  if (mask) {
    std::tie(touched, full) = mask->bounds();
  }
  // To whole tiles: the first and one past the last that are visited, and
  // those among them that need no test.
  KeyTiles tiles;
  tiles.first = m.mul(m.floorDiv(touched.lower, columns), columns);
  tiles.last = touched.upper;
  if (mask && !mask->isAnalytic()) {
    return tiles;
  }
  tiles.wholeFirst = m.mul(m.ceilDiv(full.lower, columns), columns);
  tiles.wholeLast = m.mul(m.floorDiv(full.upper, columns), columns);
  if (!mask || mask->startsAtZero()) {
    tiles.wholeFirst = tiles.first;
    tiles.wholeLast = m.max(tiles.wholeFirst, tiles.wholeLast);
  } else {
    // No whole tile: everything is tested.
    Value some = m.lt(tiles.wholeFirst, tiles.wholeLast);
    tiles.wholeFirst = m.select(some, tiles.wholeFirst, tiles.first);
    tiles.wholeLast = m.select(some, tiles.wholeLast, tiles.first);
  }
  return tiles;
}

AttentionState AttentionCode::initialState(int64_t valueWidth) {
  IndexMath m = context.math();
  AttentionState state;
  Value zero = m.f32(0);
  if (program.softmax) {
    state.maximum = context.splat(m.f32(-kInfinity), rows, 1);
    state.sum = context.splat(zero, rows, 1);
  }
  if (program.aggregate) {
    state.accumulator = context.splat(zero, rows, valueWidth);
  }
  return state;
}

Value AttentionCode::scores(Value j0, Value products, bool tested) {
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

Value AttentionCode::masked(Value j0, Value x) {
  SmallVector<Value> inputs{x};
  if (mask) {
    llvm::append_range(inputs, mask->operands(j0));
  }
  return context.mapF32(
      inputs, rows, columns, [&](IndexMath m, ValueRange arguments) {
        Value i = m.add(tile.i0, arguments[inputs.size()]);
        Value j = m.add(j0, arguments[inputs.size() + 1]);
        Value kept = m.lt(j, tile.keys);
        if (mask) {
          ValueRange scalars = arguments.slice(1, inputs.size() - 1);
          kept = m.both(kept, mask->test(m, scalars, i, j));
        }
        return m.select(kept, arguments[0],
                        m.f32(program.relu ? 0 : -kInfinity));
      });
}

SmallVector<Value> AttentionCode::updateRows(Value maximum, Value top) {
  OpBuilder &b = context.builder;
  // Until a row has a score its maximum is -inf, and 0 stands in for it.
  return context.map(
      {maximum, top}, rows, 1, {b.getF32Type(), b.getF32Type(), b.getF32Type()},
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
}

SmallVector<Value> AttentionCode::keepRows(Value maximum) {
  OpBuilder &b = context.builder;
  return context.map({maximum}, rows, 1,
                     {b.getF32Type(), b.getF32Type(), b.getF32Type()},
                     [&](IndexMath m, ValueRange args) {
                       Value isEmpty = m.cmpf(arith::CmpFPredicate::OEQ,
                                              args[0], m.f32(-kInfinity));
                       Value base = m.select(isEmpty, m.f32(0), args[0]);
                       Value taken = raw ? m.mulf(base, m.f32(-unit)) : base;
                       return SmallVector<Value>{args[0], taken, m.f32(1)};
                     });
}

Value AttentionCode::weightsOf(Value x, Value taken) {
  OpBuilder &b = context.builder;
  return context.mapF32(
      {x, taken}, rows, columns, [&](IndexMath m, ValueRange args) -> Value {
        Value power = raw ? Value(math::FmaOp::create(b, m.loc, args[0],
                                                      m.f32(unit), args[1]))
                          : m.mulf(m.subf(args[0], args[1]), m.f32(unit));
        return math::Exp2Op::create(b, m.loc, power);
      });
}

Value AttentionCode::reluOf(Value x) {
  OpBuilder &b = context.builder;
  return context.mapF32(
      {x}, rows, columns, [&](IndexMath m, ValueRange args) -> Value {
        // maximumf hands a NaN on.
        return arith::MaximumFOp::create(b, m.loc, args[0], m.f32(0));
      });
}

Value AttentionCode::scaledBy(Value value, Value column) {
  return context.mapF32(
      {value, column}, rows, cast<tile::TileType>(value.getType()).getColumns(),
      [&](IndexMath m, ValueRange args) { return m.mulf(args[0], args[1]); });
}

Value AttentionCode::updateSum(Value sum, Value factor, Value added) {
  return context.mapF32({sum, factor, added}, rows, 1,
                        [&](IndexMath m, ValueRange args) {
                          return m.addf(m.mulf(args[0], args[1]), args[2]);
                        });
}

Value AttentionCode::notFinite(Value accumulator) {
  OpBuilder &b = context.builder;
  // x * 0 is 0 for every finite x, and NaN for the others.
  Value zeros = context.mapF32(
      {accumulator}, rows,
      cast<tile::TileType>(accumulator.getType()).getColumns(),
      [&](IndexMath m, ValueRange args) { return m.mulf(args[0], m.f32(0)); });
  Value sum = context.reduce(tile::ReduceKind::Add, zeros, 1);
  return context
      .map({sum}, rows, 1, {b.getI1Type()},
           [&](IndexMath m, ValueRange args) {
             return SmallVector<Value>{
                 m.cmpf(arith::CmpFPredicate::UNE, args[0], m.f32(0))};
           })
      .front();
}

SmallVector<Value> AttentionCode::finishRows(const AttentionState &state) {
  OpBuilder &b = context.builder;
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
  return row;
}

Value AttentionCode::finishResult(Value accumulator, ValueRange row) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  if (program.softmax) {
    return scaledBy(accumulator, row[0]);
  }
  if (!program.relu.getMean()) {
    return accumulator;
  }
  Value narrow =
      arith::IndexCastOp::create(b, context.loc, b.getI64Type(), tile.keys);
  Value count = arith::SIToFPOp::create(b, context.loc, b.getF32Type(), narrow);
  Value share = arith::DivFOp::create(b, context.loc, m.f32(1), count);
  share = m.select(m.cmp(arith::CmpIPredicate::eq, tile.keys, m.index(0)),
                   m.f32(0), share);
  return context.mapF32(
      {accumulator}, rows,
      cast<tile::TileType>(accumulator.getType()).getColumns(),
      [&](IndexMath m, ValueRange args) { return m.mulf(args[0], share); });
}

bool attnfuse::needsMarks(AttentionProgram program) {
  bool changes = llvm::any_of(program.scoreOps, [](Operation *op) {
    return isa<attn::AdditiveBiasOp, attn::ScoreModOp>(op);
  });
  return program.aggregate &&
         (!program.masks.empty() || changes || program.relu);
}
