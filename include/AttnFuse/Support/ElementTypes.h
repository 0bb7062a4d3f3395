//===- ElementTypes.h - MLIR's element types and ours ------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_ELEMENTTYPES_H
#define ATTNFUSE_SUPPORT_ELEMENTTYPES_H

#include "AttnFuse/Support/HostTensor.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace attnfuse {

/// The type in memory of an element type; index is held as i64. Nothing for a
/// type that tensors in memory do not have.
inline std::optional<DType> dtypeOf(mlir::Type type) {
  if (type.isF16()) {
    return DType::F16;
  }
  if (type.isBF16()) {
    return DType::BF16;
  }
  if (type.isF32()) {
    return DType::F32;
  }
  if (type.isF64()) {
    return DType::F64;
  }
  if (type.isInteger(1)) {
    return DType::I1;
  }
  if (type.isInteger(8)) {
    return DType::I8;
  }
  if (type.isInteger(32)) {
    return DType::I32;
  }
  if (type.isInteger(64) || type.isIndex()) {
    return DType::I64;
  }
  return std::nullopt;
}

/// Writes a constant's elements to a contiguous tensor of its shape and type.
inline void fillFrom(mlir::DenseElementsAttr constant, HostTensor &tensor) {
  HostTensor flat = HostTensor::wrap(tensor.dtype(), {tensor.numElements()},
                                     {1}, tensor.data(), nullptr);
  int64_t place = 0;
  if (llvm::isa<mlir::FloatType>(constant.getElementType())) {
    for (llvm::APFloat value : constant.getValues<llvm::APFloat>()) {
      bool lost;
      value.convert(llvm::APFloat::IEEEdouble(),
                    llvm::APFloat::rmNearestTiesToEven, &lost);
      flat.set({place++}, value.convertToDouble());
    }
    return;
  }
  bool isPredicate = constant.getElementType().isInteger(1);
  for (llvm::APInt value : constant.getValues<llvm::APInt>()) {
    flat.set({place++}, isPredicate
                            ? static_cast<double>(value.getZExtValue())
                            : static_cast<double>(value.getSExtValue()));
  }
}

} // namespace attnfuse

#endif // ATTNFUSE_SUPPORT_ELEMENTTYPES_H
