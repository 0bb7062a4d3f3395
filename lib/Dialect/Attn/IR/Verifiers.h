//===- Verifiers.h - checks shared by the attn verifiers -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_DIALECT_ATTN_IR_VERIFIERS_H
#define ATTNFUSE_LIB_DIALECT_ATTN_IR_VERIFIERS_H

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

namespace attnfuse::attn::detail {

/// True unless both extents are static and differ.
inline bool compatible(int64_t a, int64_t b) {
  return mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b) ||
         a == b;
}

/// Prints an extent as types do: a number or '?'.
std::string extent(int64_t size);

/// A runtime position is a scalar or a vector with one entry per batch entry.
mlir::LogicalResult verifyPosition(mlir::Operation *op, mlir::Value position,
                                   llvm::StringRef name);

/// The region of score_mod and mask_mod: the given block arguments, one value
/// of the given type yielded, and scalar operations only.
mlir::LogicalResult verifyScalarRegion(mlir::Operation *op,
                                       mlir::Region &region,
                                       mlir::TypeRange arguments,
                                       mlir::Type yielded);

/// The tables of every mask that `mask` is made of fit scores of this type.
mlir::LogicalResult verifyMaskExtents(mlir::Operation *op, mlir::Value mask,
                                      ScoresType scores);

} // namespace attnfuse::attn::detail

#endif // ATTNFUSE_LIB_DIALECT_ATTN_IR_VERIFIERS_H
