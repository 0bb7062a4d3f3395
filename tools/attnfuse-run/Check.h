//===- Check.h - comparison with the oracle --------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_CHECK_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_CHECK_H

#include "Inputs.h"

namespace attnfuse::run {

/// How one result compares with the oracle's.
struct CheckResult {
  int64_t compared = 0;
  double worstError = 0;
  /// Largest error as a share of what is tolerated at that element.
  double worstShare = 0;
  std::string worstPlace;
  bool passed() const { return worstShare <= 1; }
};

/// Evaluates the program in float64 and compares. The tolerance at an element
/// of exact value r is
///
///   u |r| + 2^-24 V F (16 sqrt(D) + 2 sqrt(N) + 64)
///
/// u is half a unit in the last place of the result's type (2^-24 f32, 2^-11
/// f16, 2^-8 bf16) and covers the one rounding of the output. The rest bounds
/// f32 arithmetic: a product of width D errs by about sqrt(D) 2^-24 |s|, which
/// moves a weight by as much, relatively, in numerator and denominator (|s| up
/// to 8); a sum over N keys errs by sqrt(N) 2^-24 twice; exponential,
/// rotation and rescaling take the constant. V is the largest finite input
/// magnitude (at least 1), F the factor of weights that are not normalised
/// (the number of keys for relu attention without `mean`, else 1) times the
/// number of attentions in a row. A log-sum-exp is compared in the same way.
llvm::Expected<std::vector<CheckResult>>
checkResults(mlir::func::FuncOp function, llvm::ArrayRef<Argument> arguments,
             llvm::ArrayRef<HostTensor> results, const Options &options);

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_CHECK_H
