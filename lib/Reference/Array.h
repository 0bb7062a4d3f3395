//===- Array.h - float64 arrays of the oracle ------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_ARRAY_H
#define ATTNFUSE_LIB_REFERENCE_ARRAY_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace attnfuse::reference {

/// A dense row-major array; a scalar has rank 0. Integers up to 2^53 are
/// exact.
struct Array {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  int64_t size() const {
    int64_t count = 1;
    for (int64_t extent : shape) {
      count *= extent;
    }
    return count;
  }
  /// Position of an index; an extent of 1 broadcasts.
  int64_t offset(llvm::ArrayRef<int64_t> index) const {
    int64_t result = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      result = result * shape[dim] + (shape[dim] == 1 ? 0 : index[dim]);
    }
    return result;
  }
  double at(llvm::ArrayRef<int64_t> index) const { return data[offset(index)]; }
};

using ArrayRefPtr = std::shared_ptr<const Array>;
using Values = llvm::DenseMap<mlir::Value, ArrayRefPtr>;

/// An error that begins with a location.
llvm::Error errorAt(mlir::Location loc, const llvm::Twine &message);

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_ARRAY_H
