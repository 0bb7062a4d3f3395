//===- Scores.h - rows of scores and weights -------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_SCORES_H
#define ATTNFUSE_LIB_REFERENCE_SCORES_H

#include "Masks.h"

namespace attnfuse::reference {

/// A row of weights and what goes with it; reused from row to row.
struct WeightRow {
  std::vector<double> weights;
  Keep keep;
  /// Log-sum-exp, of a softmax.
  double lse = 0;
  /// The largest magnitude of a score whose weight is not negligible.
  double magnitude = 0;
  std::vector<Keep> scratch;
};

/// The operations from a product to its weights, decoded.
class WeightProgram {
public:
  static llvm::Expected<WeightProgram> decode(mlir::Value weights,
                                              const Values &values);

  /// Pairs that a mask removes have weight 0, and no work is done for them.
  void run(const Row &row, WeightRow &out, std::string &error) const;

  ArrayRefPtr query, key;

private:
  /// Changes the scores of the pairs that are kept.
  using Step = std::function<void(const Row &row, std::vector<double> &scores,
                                  const Keep &keep, std::string &error)>;

  llvm::Error decodeStep(mlir::Operation *op, const Values &values);
  void softmax(const Row &row, WeightRow &out) const;
  void rectify(const Row &row, WeightRow &out) const;

  MaskProgram mask;
  std::vector<Step> steps;
  double scale = 1;
  bool isSoftmax = false, divides = false;
  ArrayRefPtr sinks;
};

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCORES_H
