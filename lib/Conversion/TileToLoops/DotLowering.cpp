//===- DotLowering.cpp - register-blocked products -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attnfuse;

/// A splat of zero, in place of an accumulator.
static bool isZeroSplat(Value tile) {
  auto splat = tile.getDefiningOp<tile::SplatOp>();
  return splat && matchPattern(splat.getValue(), m_AnyZeroFloat());
}

void KernelLowering::lowerDot(tile::DotOp op) {
  TileBuffer lhs = tiles[op.getLhs()], rhs = tiles[op.getRhs()];
  TileBuffer acc, scale;
  if (isFusedRescale(op.getAcc().getDefiningOp())) {
    auto map = op.getAcc().getDefiningOp<tile::MapOp>();
    acc = tiles[map.getInputs()[0]];
    scale = tiles[map.getInputs()[1]];
  } else if (!isZeroSplat(op.getAcc())) {
    acc = tiles[op.getAcc()];
  }
  TileBuffer result = bufferFor(op.getResult());
  if (!op.getGuardZeros()) {
    emitProduct(lhs, rhs, acc, scale, result, op.getTransposeB());
    return;
  }
  // Only a factor that is not finite tells a guarded product from a plain one.
  auto branch = scf::IfOp::create(b, loc, isFinite(rhs), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitProduct(lhs, rhs, acc, scale, result, op.getTransposeB());
  b.setInsertionPointToStart(branch.elseBlock());
  // The accumulator, rescaled, then the terms one by one.
  int64_t lanes = lanesFor(result.rows);
  Value zero = index(0);
  loop(result.columns, 1, [&](Value column) {
    loop(result.rows, lanes, [&](Value row) {
      Value start =
          acc ? loadVector(acc, row, column, lanes)
              : Value(arith::ConstantOp::create(
                    b, loc, b.getZeroAttr(vectorType(lanes, b.getF32Type()))));
      if (scale) {
        start = arith::MulFOp::create(b, loc, start,
                                      loadVector(scale, row, zero, lanes));
      }
      storeVector(start, result, row, column);
    });
  });
  emitGuardedProduct(lhs, rhs, result, op.getTransposeB());
}

/// Element (k, n) of a right factor that is given as it is or transposed.
static std::pair<Value, Value> rhsPlace(bool transposed, Value inner,
                                        Value column) {
  return transposed ? std::pair(column, inner) : std::pair(inner, column);
}

void KernelLowering::emitProduct(const TileBuffer &lhs, const TileBuffer &rhs,
                                 const TileBuffer &acc, const TileBuffer &scale,
                                 const TileBuffer &result, bool transposed) {
  int64_t lanes = lanesFor(result.rows);
  CpuMicroTile micro = chooseMicroTile({lanes, cpu.registers},
                                       result.rows / lanes, result.columns);
  Value zero = index(0), one = index(1), inner = index(lhs.columns);
  VectorType type = vectorType(lanes, b.getF32Type());
  int64_t panel = micro.vectors * lanes;

  // One block: `count` columns of the result, `panel` rows.
  auto block = [&](Value row, Value column, int64_t count) {
    SmallVector<Value> rows, columns;
    for (int64_t v = 0; v < micro.vectors; ++v) {
      rows.push_back(v ? add(row, index(v * lanes)) : row);
    }
    for (int64_t c = 0; c < count; ++c) {
      columns.push_back(c ? add(column, index(c)) : column);
    }
    SmallVector<Value> scales, starts;
    if (scale) {
      for (Value at : rows) {
        scales.push_back(loadVector(scale, at, zero, lanes));
      }
    }
    for (Value c : columns) {
      for (auto [v, at] : llvm::enumerate(rows)) {
        Value start =
            acc ? loadVector(acc, at, c, lanes)
                : Value(arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
        if (scale) {
          start = arith::MulFOp::create(b, loc, start, scales[v]);
        }
        starts.push_back(start);
      }
    }
    auto sums = scf::ForOp::create(
        b, loc, zero, inner, one, starts,
        [&](OpBuilder &, Location, Value k, ValueRange state) {
          SmallVector<Value> factors, next;
          for (Value at : rows) {
            factors.push_back(loadVector(lhs, at, k, lanes));
          }
          for (auto [c, at] : llvm::enumerate(columns)) {
            auto [r, s] = rhsPlace(transposed, k, at);
            Value other = broadcast(loadScalar(rhs, r, s), lanes);
            for (int64_t v = 0; v < micro.vectors; ++v) {
              next.push_back(vector::FMAOp::create(
                  b, loc, factors[v], other, state[c * micro.vectors + v]));
            }
          }
          scf::YieldOp::create(b, loc, next);
        });
    size_t place = 0;
    for (Value c : columns) {
      for (Value at : rows) {
        storeVector(sums.getResult(place++), result, at, c);
      }
    }
  };

  int64_t rest = result.columns % micro.columns;
  int64_t whole = result.columns - rest;
  loop(result.rows, panel, [&](Value row) {
    loop(whole, micro.columns,
         [&](Value column) { block(row, column, micro.columns); });
    if (rest) {
      block(row, index(whole), rest);
    }
  });
}

void KernelLowering::emitGuardedProduct(const TileBuffer &lhs,
                                        const TileBuffer &rhs,
                                        const TileBuffer &result,
                                        bool transposed) {
  int64_t lanes = lanesFor(result.rows);
  VectorType type = vectorType(lanes, b.getF32Type());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  loop(result.rows, lanes, [&](Value row) {
    loop(result.columns, 1, [&](Value column) {
      Value start = loadVector(result, row, column, lanes);
      auto sum = scf::ForOp::create(
          b, loc, index(0), index(lhs.columns), index(1), start,
          [&](OpBuilder &, Location, Value k, ValueRange state) {
            Value factor = loadVector(lhs, row, k, lanes);
            auto [r, s] = rhsPlace(transposed, k, column);
            Value other = broadcast(loadScalar(rhs, r, s), lanes);
            Value product =
                vector::FMAOp::create(b, loc, factor, other, state[0]);
            Value isZero = arith::CmpFOp::create(
                b, loc, arith::CmpFPredicate::OEQ, factor, none);
            Value next =
                arith::SelectOp::create(b, loc, isZero, state[0], product);
            scf::YieldOp::create(b, loc, next);
          });
      storeVector(sum.getResult(0), result, row, column);
    });
  });
}

Value KernelLowering::isFinite(const TileBuffer &buffer) {
  // A sum of x * 0 is 0 unless some x is infinite or NaN.
  auto type = cast<MemRefType>(buffer.memory.getType());
  int64_t outer = type.getDimSize(0), inner = type.getDimSize(1);
  int64_t lanes = lanesFor(inner);
  VectorType vector = vectorType(lanes, b.getF32Type());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  Value zero = index(0);
  auto overOuter = scf::ForOp::create(
      b, loc, zero, index(outer), index(1), none,
      [&](OpBuilder &, Location, Value o, ValueRange outerState) {
        auto overInner = scf::ForOp::create(
            b, loc, zero, index(inner), index(lanes), outerState,
            [&](OpBuilder &, Location, Value i, ValueRange state) {
              Value x = vector::LoadOp::create(b, loc, vector, buffer.memory,
                                               ValueRange{o, i});
              Value next = vector::FMAOp::create(b, loc, x, none, state[0]);
              scf::YieldOp::create(b, loc, next);
            });
        scf::YieldOp::create(b, loc, overInner.getResults());
      });
  Value sum = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                          overOuter.getResult(0));
  Value scalarZero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, sum,
                               scalarZero);
}
