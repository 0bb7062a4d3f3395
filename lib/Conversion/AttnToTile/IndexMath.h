//===- IndexMath.h - index and scalar arithmetic ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_INDEXMATH_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_INDEXMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace attnfuse {

/// Short names for the arithmetic that kernels are made of; folds constants.
struct IndexMath {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  template <typename Op> mlir::Value make(mlir::Value a, mlir::Value b) const {
    return builder.createOrFold<Op>(loc, a, b);
  }
  mlir::Value index(int64_t value) const {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::Value f32(double value) const {
    return mlir::arith::ConstantFloatOp::create(
        builder, loc, builder.getF32Type(),
        llvm::APFloat(static_cast<float>(value)));
  }
  mlir::Value boolean(bool value) const {
    return mlir::arith::ConstantIntOp::create(builder, loc, value, 1);
  }

  mlir::Value add(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::AddIOp>(a, b);
  }
  mlir::Value add(mlir::Value a, int64_t b) const {
    return b ? add(a, index(b)) : a;
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::SubIOp>(a, b);
  }
  mlir::Value mul(mlir::Value a, int64_t b) const {
    return b == 1 ? a : make<mlir::arith::MulIOp>(a, index(b));
  }
  mlir::Value max(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::MaxSIOp>(a, b);
  }
  mlir::Value min(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::MinSIOp>(a, b);
  }
  /// floor(a / b) and ceil(a / b) for a >= 0 and b > 0.
  mlir::Value floorDiv(mlir::Value a, int64_t b) const {
    return b == 1 ? a : make<mlir::arith::DivUIOp>(a, index(b));
  }
  mlir::Value ceilDiv(mlir::Value a, int64_t b) const {
    return floorDiv(add(a, b - 1), b);
  }
  mlir::Value cmp(mlir::arith::CmpIPredicate predicate, mlir::Value a,
                  mlir::Value b) const {
    return builder.createOrFold<mlir::arith::CmpIOp>(loc, predicate, a, b);
  }
  mlir::Value lt(mlir::Value a, mlir::Value b) const {
    return cmp(mlir::arith::CmpIPredicate::slt, a, b);
  }
  mlir::Value le(mlir::Value a, mlir::Value b) const {
    return cmp(mlir::arith::CmpIPredicate::sle, a, b);
  }
  mlir::Value select(mlir::Value c, mlir::Value a, mlir::Value b) const {
    return builder.createOrFold<mlir::arith::SelectOp>(loc, c, a, b);
  }
  mlir::Value both(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::AndIOp>(a, b);
  }
  mlir::Value either(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::OrIOp>(a, b);
  }
  mlir::Value negate(mlir::Value a) const {
    return make<mlir::arith::XOrIOp>(a, boolean(true));
  }
  mlir::Value toIndex(mlir::Value a) const {
    return a.getType().isIndex() ? a
                                 : mlir::arith::IndexCastOp::create(
                                       builder, loc, builder.getIndexType(), a);
  }

  mlir::Value addf(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::AddFOp>(a, b);
  }
  mlir::Value subf(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::SubFOp>(a, b);
  }
  mlir::Value mulf(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::MulFOp>(a, b);
  }
  mlir::Value cmpf(mlir::arith::CmpFPredicate predicate, mlir::Value a,
                   mlir::Value b) const {
    return mlir::arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_INDEXMATH_H
