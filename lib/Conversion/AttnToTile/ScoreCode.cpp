//===- ScoreCode.cpp - code that score operations become -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScoreCode.h"

#include "AttnFuse/Dialect/Attn/IR/Formulas.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse;

ScoreCode::ScoreCode(KernelContext &context, const AttentionProgram &program,
                     const QueryTile &tile, int64_t rows, int64_t columns)
    : context(context), program(program), tile(tile), rows(rows),
      columns(columns) {
  for (Operation *op : program.scoreOps) {
    if (auto alibi = dyn_cast<attn::AlibiOp>(op)) {
      slopes[op] = alibiSlope(alibi);
    }
    if (auto mod = dyn_cast<attn::ScoreModOp>(op)) {
      captureRegion(context, mod.getBody());
    }
  }
}

Value ScoreCode::alibiSlope(attn::AlibiOp op) {
  IndexMath m = context.math();
  if (op.getSlopes()) {
    return tile::ReadOp::create(context.builder, context.loc,
                                m.builder.getF32Type(),
                                context.get(op.getSlopes()), tile.head);
  }
  // The published slopes: 2^(-8(h+1)/P) for the first P heads, P the largest
  // power of two, then every other term of the sequence for 2P.
  int64_t heads = op.getScores().getType().getHeads();
  auto power =
      static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(heads)));
  auto toFloat = [&](Value n) -> Value {
    Value narrow =
        arith::IndexCastOp::create(m.builder, m.loc, m.builder.getI32Type(), n);
    return arith::SIToFPOp::create(m.builder, m.loc, m.builder.getF32Type(),
                                   narrow);
  };
  Value exponent = m.mulf(toFloat(m.add(tile.head, 1)), m.f32(-8.0 / power));
  if (heads != power) {
    Value rest = m.add(m.mul(m.add(tile.head, -power), 2), 1);
    Value other = m.mulf(toFloat(rest), m.f32(-4.0 / power));
    exponent = m.select(m.lt(tile.head, m.index(power)), exponent, other);
  }
  return math::Exp2Op::create(m.builder, m.loc, exponent);
}

SmallVector<Value> ScoreCode::operands(Value j0) {
  SmallVector<Value> tiles;
  IndexMath m = context.math();
  for (Operation *op : program.scoreOps) {
    auto bias = dyn_cast<attn::AdditiveBiasOp>(op);
    if (!bias) {
      continue;
    }
    ArrayRef<int64_t> shape = bias.getBias().getType().getShape();
    Value zero = m.index(0);
    auto at = [&](int dim, Value place) {
      return shape[dim] == 1 ? zero : place;
    };
    tiles.push_back(context.load(
        context.get(bias.getBias()),
        {at(0, tile.batch), at(1, tile.head), at(2, tile.i0), at(3, j0)},
        {shape[2] == 1 ? -1 : 2, shape[3] == 1 ? -1 : 3},
        shape[2] == 1 ? 1 : rows, shape[3] == 1 ? 1 : columns,
        m.builder.getF32Type()));
  }
  return tiles;
}

Value ScoreCode::apply(IndexMath m, Value product, ValueRange scalars, Value i,
                       Value j) {
  OpBuilder &b = m.builder;
  Value score = m.mulf(product, m.f32(program.product.getScaleValue()));
  size_t nextBias = 0;
  for (Operation *op : program.scoreOps) {
    score =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case([&](attn::AlibiOp) -> Value {
              // Positions of one tile pair are near one another, so that the
              // distance is exact in i32 and then in f32.
              Value distance =
                  m.sub(m.add(i, m.sub(tile.keys, tile.queries)), j);
              Value narrow = arith::IndexCastOp::create(
                  b, m.loc, b.getI32Type(), distance);
              Value real =
                  arith::SIToFPOp::create(b, m.loc, b.getF32Type(), narrow);
              Value size = math::AbsFOp::create(b, m.loc, real);
              return m.subf(score, m.mulf(slopes[op], size));
            })
            .Case([&](attn::AdditiveBiasOp) -> Value {
              return m.addf(score, scalars[nextBias++]);
            })
            .Case([&](attn::SoftcapOp cap) -> Value {
              double bound = cap.getCap().convertToDouble();
              Value inner = m.mulf(score, m.f32(1 / bound));
              Value tanh = math::TanhOp::create(b, m.loc, inner);
              return m.mulf(tanh, m.f32(bound));
            })
            .Case([&](attn::ScoreModOp mod) -> Value {
              return inlineScalarRegion(context, m, mod.getBody(),
                                        {score, tile.batch, tile.head, i, j});
            })
            .Default([&](Operation *) { return score; });
  }
  return score;
}
