//===- VectorMath.h - elementary functions on vectors ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_TILETOLOOPS_VECTORMATH_H
#define ATTNFUSE_LIB_CONVERSION_TILETOLOOPS_VECTORMATH_H

#include "mlir/IR/Builders.h"

namespace attnfuse {

/// 2^x for a vector of f32: relative error below 2e-7, results below 2^-126
/// are 0, NaN is handed on.
mlir::Value emitExp2(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// tanh(x) for a vector of f32, absolute error below 3e-7.
mlir::Value emitTanh(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_TILETOLOOPS_VECTORMATH_H
