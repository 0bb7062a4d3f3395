//===- Array.h - arrays of the oracle --------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_ARRAY_H
#define ATTNFUSE_LIB_REFERENCE_ARRAY_H

#include "AttnFuse/Support/HostTensor.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace attnfuse::reference {

/// A float (f) or an integer (i), as its type says. Integers are kept with the
/// sign of their type, predicates as 0 or 1.
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

/// A dense row-major array of float64 or, if `isInteger`, of int64; a scalar
/// has rank 0.
struct Array {
  llvm::SmallVector<int64_t> shape;
  bool isInteger = false;
  std::vector<double> data;
  std::vector<int64_t> ints;

  int64_t size() const {
    int64_t count = 1;
    for (int64_t extent : shape) {
      count *= extent;
    }
    return count;
  }
  Scalar get(int64_t offset) const {
    return isInteger ? Scalar{0, ints[offset]} : Scalar{data[offset], 0};
  }
  void push(Scalar value) {
    isInteger ? ints.push_back(value.i) : data.push_back(value.f);
  }
  /// Position of an index; an extent of 1 broadcasts.
  int64_t offset(llvm::ArrayRef<int64_t> index) const {
    int64_t result = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      result = result * shape[dim] + (shape[dim] == 1 ? 0 : index[dim]);
    }
    return result;
  }
};

using ArrayRefPtr = std::shared_ptr<const Array>;
using Values = llvm::DenseMap<mlir::Value, ArrayRefPtr>;

ArrayRefPtr integerScalar(int64_t value);
ArrayRefPtr toArray(const HostTensor &tensor);

/// The value of a position operand for a batch entry: a scalar, or a vector of
/// one or B entries.
int64_t positionOf(const Array &array, int64_t batch);

/// a + b, at the end of the range where it would leave it.
inline int64_t addSaturating(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX)
                                            : sum;
}

std::string locationText(mlir::Location loc);
/// "argument 2" or "the result of 'arith.constant'", with type.
std::string describeValue(mlir::Value value);
/// An error that begins with a location.
llvm::Error errorAt(mlir::Location loc, const llvm::Twine &message);

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_ARRAY_H
