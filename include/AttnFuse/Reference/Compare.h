//===- Compare.h - results against the oracle --------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_REFERENCE_COMPARE_H
#define ATTNFUSE_REFERENCE_COMPARE_H

#include "AttnFuse/Reference/Evaluator.h"

namespace attnfuse::reference {

/// How one result compares with the oracle's.
struct Comparison {
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
///   u |r| + 2^-24 V F (16 sqrt(D) + 4 S + 2 sqrt(N) + 64)
///
/// u is half a unit in the last place of the result's type (2^-24 f32, 2^-11
/// f16, 2^-8 bf16, relative to the lower end of a binade) and covers the one
/// rounding of the output; for f16, whose subnormals have a fixed spacing,
/// 2^-25 is added. The rest bounds f32 arithmetic: a product of width D errs by
/// about sqrt(D) 2^-24 |s|, which moves a weight by as much, relatively, in
/// numerator and denominator (|s| up to 8); adding to a score of magnitude S
/// (the row's largest of weight) errs by 2^-24 S, twice likewise; a sum over N
/// keys errs by sqrt(N) 2^-24 twice; exponential, rotation and rescaling take
/// the constant. V is the largest finite magnitude among the inputs of rank 4
/// (at least 1), D the largest width and N the largest length among them. F
/// counts the attentions of the module, times N for weights that are not
/// normalised (relu attention without `mean`). A log-sum-exp is compared in the
/// same way.
///
/// With `options.matrixUnits` the tolerance of an aggregate grows by
///
///   4 t (1 + R) sqrt(sum of (weight value)^2)
///
/// t is half a unit in the last place of the narrowest storage type among the
/// inputs (0 for f32, whose products are made of three). Weights are rounded to
/// it, independently of one another: their errors add up to t times the root,
/// and 4 of these cover the largest of millions of elements. A rotated query
/// or key is rounded too and moves a score by t R at most, R = scale x largest
/// element x longest row among the inputs (0 without rotations); a log-sum-exp
/// moves by as much.
///
/// With `options.maxRowsPerHead` 0, as many rows per head are compared as about
/// `seconds` of the oracle's time allow.
llvm::Expected<std::vector<Comparison>>
compare(mlir::func::FuncOp function, llvm::ArrayRef<HostTensor> inputs,
        llvm::ArrayRef<HostTensor> results, Options options,
        double seconds = 10);

} // namespace attnfuse::reference

#endif // ATTNFUSE_REFERENCE_COMPARE_H
