//===- RotaryLowering.cpp - angles and rotations ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attnfuse;

static constexpr double kTwoPi = 6.283185307179586476925286766559;

/// A table of f64 in the module, one per distinct content.
static memref::GlobalOp tableOf(func::FuncOp function,
                                ArrayRef<double> values) {
  auto module = function->getParentOfType<ModuleOp>();
  OpBuilder b(function);
  auto type =
      MemRefType::get({static_cast<int64_t>(values.size())}, b.getF64Type());
  auto content = DenseElementsAttr::get(
      RankedTensorType::get(type.getShape(), b.getF64Type()), values);
  unsigned count = 0;
  for (auto table : module.getOps<memref::GlobalOp>()) {
    if (table.getInitialValueAttr() == content) {
      return table;
    }
    ++count;
  }
  return memref::GlobalOp::create(
      b, function.getLoc(), "frequencies_" + std::to_string(count),
      b.getStringAttr("private"), type, content, /*constant=*/true,
      /*alignment=*/b.getI64IntegerAttr(64));
}

void KernelLowering::lowerAngles(tile::AnglesOp op) {
  TileBuffer cosines = bufferFor(op.getCos()), sines = bufferFor(op.getSin());
  // Frequencies in turns per position: the whole turns of an angle are dropped
  // in f64, where positions up to 2^20 leave 30 bits of fraction and more.
  SmallVector<double> turns;
  for (double frequency : op.getFrequencies()) {
    turns.push_back(frequency / kTwoPi);
  }
  memref::GlobalOp global = tableOf(function, turns);
  Value table = memref::GetGlobalOp::create(b, loc, global.getType(),
                                            global.getSymName());
  double magnitude = op.getMagnitude().convertToDouble();
  Value start = scalars.lookup(op.getStart());

  auto emit = [&](Value positions, Value frequencies, int64_t lanes, Value row,
                  Value column) {
    Value angle = arith::MulFOp::create(b, loc, positions, frequencies);
    Value whole = math::RoundEvenOp::create(b, loc, angle);
    Value fraction = arith::SubFOp::create(b, loc, angle, whole);
    VectorType narrow = vectorType(lanes, b.getF32Type());
    fraction = arith::TruncFOp::create(b, loc, narrow, fraction);
    auto constant = [&](double value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(narrow, static_cast<float>(value)));
    };
    Value radians = arith::MulFOp::create(b, loc, fraction, constant(kTwoPi));
    Value cos = math::CosOp::create(b, loc, radians);
    Value sin = math::SinOp::create(b, loc, radians);
    if (magnitude != 1.0) {
      cos = arith::MulFOp::create(b, loc, cos, constant(magnitude));
      sin = arith::MulFOp::create(b, loc, sin, constant(magnitude));
    }
    storeVector(cos, cosines, row, column);
    storeVector(sin, sines, row, column);
  };
  auto toReal = [&](Value n) {
    Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), n);
    return Value(arith::SIToFPOp::create(b, loc, b.getF64Type(), integer));
  };

  if (cosines.rowMajor) {
    int64_t lanes = lanesFor(cosines.columns);
    loop(cosines.rows, 1, [&](Value row) {
      Value position = broadcast(toReal(add(start, row)), lanes);
      loop(cosines.columns, lanes, [&](Value column) {
        Value frequencies = vector::LoadOp::create(
            b, loc, vectorType(lanes, b.getF64Type()), table, column);
        emit(position, frequencies, lanes, row, column);
      });
    });
    return;
  }
  int64_t lanes = lanesFor(cosines.rows);
  SmallVector<double> steps;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    steps.push_back(lane);
  }
  Value lane = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(vectorType(lanes, b.getF64Type()),
                             ArrayRef<double>(steps)));
  loop(cosines.rows, lanes, [&](Value row) {
    Value positions = arith::AddFOp::create(
        b, loc, broadcast(toReal(add(start, row)), lanes), lane);
    loop(cosines.columns, 1, [&](Value column) {
      Value frequency = memref::LoadOp::create(b, loc, table, column);
      emit(positions, broadcast(frequency, lanes), lanes, row, column);
    });
  });
}

void KernelLowering::lowerRotate(tile::RotateOp op) {
  TileBuffer input = tiles[op.getInput()];
  TileBuffer cosines = tiles[op.getCos()], sines = tiles[op.getSin()];
  TileBuffer output = bufferFor(op.getResult());
  int64_t pairs = cosines.columns, rotated = 2 * pairs;

  auto rotate = [&](Value u, Value w, Value cos, Value sin) {
    auto product = [&](Value x, Value y) {
      return Value(arith::MulFOp::create(b, loc, x, y));
    };
    Value first =
        arith::SubFOp::create(b, loc, product(u, cos), product(w, sin));
    Value second =
        arith::AddFOp::create(b, loc, product(w, cos), product(u, sin));
    return std::pair(first, second);
  };
  // Where the two of a pair stand, `count` pairs from `pair` on.
  auto block = [&](Value row, Value pair, int64_t lanes) {
    Value cos = loadVector(cosines, row, pair, lanes);
    Value sin = loadVector(sines, row, pair, lanes);
    if (!op.getInterleaved()) {
      Value partner = add(pair, index(pairs));
      auto [first, second] =
          rotate(loadVector(input, row, pair, lanes),
                 loadVector(input, row, partner, lanes), cos, sin);
      storeVector(first, output, row, pair);
      storeVector(second, output, row, partner);
      return;
    }
    Value place = mul(pair, index(2));
    if (input.rowMajor) {
      // Neighbours in memory: taken apart and put together in registers.
      Value both = loadVector(input, row, place, 2 * lanes);
      auto apart = vector::DeinterleaveOp::create(b, loc, both);
      auto [first, second] = rotate(apart.getRes1(), apart.getRes2(), cos, sin);
      storeVector(vector::InterleaveOp::create(b, loc, first, second), output,
                  row, place);
      return;
    }
    Value next = add(place, index(1));
    auto [first, second] =
        rotate(loadVector(input, row, place, lanes),
               loadVector(input, row, next, lanes), cos, sin);
    storeVector(first, output, row, place);
    storeVector(second, output, row, next);
  };

  int64_t rest = input.columns - rotated;
  if (input.rowMajor) {
    int64_t lanes = lanesFor(pairs);
    int64_t restLanes = rest ? lanesFor(rest) : 1;
    loop(input.rows, 1, [&](Value row) {
      loop(pairs, lanes, [&](Value pair) { block(row, pair, lanes); });
      if (rest) {
        loop(index(rotated), index(input.columns), restLanes,
             [&](Value column) {
               storeVector(loadVector(input, row, column, restLanes), output,
                           row, column);
             });
      }
    });
    return;
  }
  int64_t lanes = lanesFor(input.rows);
  loop(pairs, 1, [&](Value pair) {
    loop(input.rows, lanes, [&](Value row) { block(row, pair, lanes); });
  });
  if (rest) {
    loop(index(rotated), index(input.columns), 1, [&](Value column) {
      loop(input.rows, lanes, [&](Value row) {
        storeVector(loadVector(input, row, column, lanes), output, row, column);
      });
    });
  }
}
