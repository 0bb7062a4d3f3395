//===- ScalarProgram.h - regions of score_mod and mask_mod -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_SCALARPROGRAM_H
#define ATTNFUSE_LIB_REFERENCE_SCALARPROGRAM_H

#include "Array.h"

#include "mlir/IR/Region.h"

#include <functional>

namespace attnfuse::reference {

/// A float (f) or an integer (i), as its type says.
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

/// A region decoded into steps over numbered slots, so that running it for
/// each pair needs no look at the IR.
class ScalarProgram {
public:
  /// Captured values are looked up in `values`, which has to hold them.
  static llvm::Expected<ScalarProgram> decode(mlir::Region &region,
                                              const Values &values);

  /// Runs on the block's arguments; `error` is set if an index lies outside
  /// its tensor.
  Scalar run(llvm::ArrayRef<Scalar> arguments, std::vector<Scalar> &slots,
             std::string &error) const;

private:
  using Step = std::function<void(std::vector<Scalar> &, std::string &)>;

  std::vector<Scalar> initial;
  std::vector<Step> steps;
  size_t result = 0;
  friend class Decoder;
};

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCALARPROGRAM_H
