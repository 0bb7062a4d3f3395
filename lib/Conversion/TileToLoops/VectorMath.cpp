//===- VectorMath.cpp - elementary functions on vectors --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"

#include <limits>

using namespace mlir;

namespace {
/// Constants and operations of one vector type.
struct Vectors {
  OpBuilder &b;
  Location loc;
  VectorType type;

  Value real(float value) const {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, value));
  }
  Value integer(int32_t value) const {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(VectorType::get(type.getShape(), b.getI32Type()),
                               value));
  }
  Value add(Value x, Value y) const {
    return arith::AddFOp::create(b, loc, x, y);
  }
  Value sub(Value x, Value y) const {
    return arith::SubFOp::create(b, loc, x, y);
  }
  Value fma(Value x, Value y, Value z) const {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value select(arith::CmpFPredicate predicate, Value x, Value y, Value a,
               Value z) const {
    return arith::SelectOp::create(
        b, loc, arith::CmpFOp::create(b, loc, predicate, x, y), a, z);
  }
};
} // namespace

Value attnfuse::emitExp2(OpBuilder &b, Location loc, Value x) {
  Vectors v{b, loc, cast<VectorType>(x.getType())};
  // Adding 1.5 * 2^23 rounds x to the nearest integer n and leaves n in the
  // low bits of the sum; f = x - n lies in [-1/2, 1/2].
  Value magic = v.real(12582912.0f);
  Value shifted = v.add(x, magic);
  Value fraction = v.sub(x, v.sub(shifted, magic));
  // 2^f by a polynomial with p(0) = 1, fitted for least relative error (9.1e-8
  // in exact arithmetic, 1.7e-7 in f32).
  static constexpr float coefficients[] = {
      9.671512878168483e-3f, 5.5507337459251224e-2f, 2.4022242081568215e-1f,
      6.931469775963456e-1f, 1.0f};
  Value p = v.real(1.3264727029149448e-3f);
  for (float coefficient : coefficients) {
    p = v.fma(p, fraction, v.real(coefficient));
  }
  // n goes to the exponent.
  Type integers = VectorType::get(v.type.getShape(), b.getI32Type());
  Value exponent = arith::ShLIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, integers, shifted),
      v.integer(23));
  Value bits = arith::AddIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, integers, p), exponent);
  Value result = arith::BitcastOp::create(b, loc, v.type, bits);
  result = v.select(arith::CmpFPredicate::OLT, x, v.real(-126.0f), v.real(0.0f),
                    result);
  // From 128 on the result is infinite, and a NaN is handed on: one product
  // gives both.
  Value beyond = arith::MulFOp::create(
      b, loc, x, v.real(std::numeric_limits<float>::infinity()));
  return v.select(arith::CmpFPredicate::OLT, x, v.real(128.0f), result, beyond);
}

Value attnfuse::emitTanh(OpBuilder &b, Location loc, Value x) {
  Vectors v{b, loc, cast<VectorType>(x.getType())};
  // tanh(x) = 1 - 2 / (1 + 2^(2 x log2 e)).
  Value power = arith::MulFOp::create(b, loc, x, v.real(2.885390081777927f));
  Value denominator = v.add(emitExp2(b, loc, power), v.real(1.0f));
  Value quotient = arith::DivFOp::create(b, loc, v.real(2.0f), denominator);
  return v.sub(v.real(1.0f), quotient);
}
