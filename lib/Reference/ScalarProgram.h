//===- ScalarProgram.h - scalar operations, decoded ------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_SCALARPROGRAM_H
#define ATTNFUSE_LIB_REFERENCE_SCALARPROGRAM_H

#include "Array.h"

#include "mlir/IR/Region.h"

#include <functional>

namespace attnfuse::reference {

/// Scalar operations decoded into steps over numbered slots, so that running
/// them for each pair needs no look at the IR.
class ScalarProgram {
public:
  /// The region of a score_mod or mask_mod. Captured values are looked up in
  /// `values`.
  static llvm::Expected<ScalarProgram> decode(mlir::Region &region,
                                              const Values &values);
  /// One operation on the elements of its operands.
  static llvm::Expected<ScalarProgram> decode(mlir::Operation &op,
                                              const Values &values);

  /// Slots to run on, any number of times.
  std::vector<Scalar> begin() const { return initial; }
  /// `error` is set if an index lies outside its tensor.
  Scalar run(llvm::ArrayRef<Scalar> arguments, std::vector<Scalar> &slots,
             std::string &error) const;

  /// What the arguments stand for, in order.
  llvm::SmallVector<mlir::Value> parameters;

private:
  using Step = std::function<void(std::vector<Scalar> &, std::string &)>;

  std::vector<Scalar> initial;
  std::vector<Step> steps;
  size_t result = 0;
  friend class Decoder;
};

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCALARPROGRAM_H
