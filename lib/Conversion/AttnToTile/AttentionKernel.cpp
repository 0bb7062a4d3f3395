//===- AttentionKernel.cpp - the main kernel of an attention ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Unscheduled: one instance computes one tile of query rows against all keys
// its rows read, in the order of the formulas in AttentionCode.h.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"
#include "AttentionCode.h"

using namespace mlir;
using namespace attnfuse;

namespace {
using State = AttentionState;

class AttentionKernelBuilder : AttentionCode {
public:
  using AttentionCode::AttentionCode;
  LogicalResult build();

private:
  State visitRange(Value lower, Value upper, bool tested, State state);
  State visitEnds(KeyInterval left, KeyInterval right, State state);
  State visitClassified(Value lower, Value upper, State state);
  State visitTile(Value j0, bool tested, State state);
  void finish(State state);

  Value query;
};
} // namespace

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
    SmallVector<Value> rowValues = updateRows(state.maximum, top);
    weights = weightsOf(x, rowValues[1]);
    Value added = context.reduce(tile::ReduceKind::Add, weights, 1);
    next.maximum = rowValues[0];
    next.sum = updateSum(state.sum, rowValues[2], added);
    if (program.aggregate) {
      rescaled = scaledBy(state.accumulator, rowValues[2]);
    }
  } else {
    weights = reluOf(x);
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
  unsigned nextOutput = 0;
  SmallVector<Value> row;
  if (program.softmax) {
    row = finishRows(state);
  }
  if (program.aggregate) {
    context.store(finishResult(state.accumulator, row),
                  context.output(nextOutput++),
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
  query = context.load(context.get(program.query),
                       {tile.batch, tile.head, tile.i0, m.index(0)}, {2, 3},
                       rows, width(program.query));
  query = context.rotate(program.queryRopes, query, tile.batch, tile.i0);
  if (failed(prepare())) {
    return failure();
  }
  State state =
      initialState(program.aggregate ? width(program.aggregate.getValue()) : 0);
  KeyTiles tiles = keyTiles();
  if (mask && !mask->isAnalytic()) {
    finish(visitClassified(tiles.first, tiles.last, state));
    tile::ReturnOp::create(context.builder, context.loc);
    return success();
  }
  state =
      visitRange(tiles.wholeFirst, tiles.wholeLast, /*tested=*/false, state);
  auto keyType = cast<RankedTensorType>(program.key.getType());
  bool divides =
      !mask && !keyType.isDynamicDim(2) && keyType.getDimSize(2) % columns == 0;
  if (mask && !mask->startsAtZero()) {
    state = visitEnds({tiles.first, tiles.wholeFirst},
                      {tiles.wholeLast, tiles.last}, state);
  } else if (!divides) {
    state = visitRange(tiles.wholeLast, tiles.last, /*tested=*/true, state);
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
    tile::ScheduleAttr schedule, Value rotatedKey, Value marks) {
  KernelContext context(
      source, name, inputs, outputs,
      gridOver(source.getContext(), inputs.size(), schedule.getBlockM()));
  context.kernel.setScheduleAttr(schedule);
  LogicalResult built =
      schedule.getRegisters()
          ? buildHopperAttention(context, program, schedule, rotatedKey)
      : schedule.getWarps()
          ? buildGpuAttention(context, program, schedule, rotatedKey, marks)
          : AttentionKernelBuilder(context, program, schedule, rotatedKey)
                .build();
  if (failed(built)) {
    context.kernel.erase();
    return failure();
  }
  return context.kernel;
}

tile::KernelOp
attnfuse::buildRotationKernel(func::FuncOp source, StringRef name,
                              ArrayRef<attn::RopeOp> ropes, Value tensor,
                              ValueRange inputs, RankedTensorType output,
                              int64_t rows, tile::ScheduleAttr schedule) {
  KernelContext context(source, name, inputs, output,
                        gridOver(source.getContext(), inputs.size(), rows));
  if (schedule) {
    context.kernel.setScheduleAttr(schedule);
    buildGpuRotation(context, ropes, tensor, rows);
    return context.kernel;
  }
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
