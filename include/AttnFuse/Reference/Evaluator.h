//===- Evaluator.h - the float64 oracle --------------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Evaluates attn programs as they are written, in float64 and from formulas of
// its own; it shares no code with the passes that lower them. What it computes
// is the value of the function on the given (already rounded) inputs: nothing
// is rounded on the way, whatever the tensors' types.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_REFERENCE_EVALUATOR_H
#define ATTNFUSE_REFERENCE_EVALUATOR_H

#include "AttnFuse/Support/HostTensor.h"

#include <vector>

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace attnfuse::reference {

struct Options {
  /// 0: every row; else an even sample of query rows per head, the first and
  /// the last among them. Only results that the function returns directly are
  /// sampled: one that another operation reads is computed whole.
  int64_t maxRowsPerHead = 0;
  /// 0: one per core.
  unsigned threads = 0;
  /// The results to compare with come from matrix units, whose factors are in
  /// the storage type: weights, and queries and keys that have been rotated,
  /// are rounded to it. `Result::spreads` is filled in, and tolerances grow.
  bool matrixUnits = false;
};

struct Result {
  /// F64, of the result's shape; rows that were not computed hold 0.
  HostTensor values;
  /// One flag per row (b, h, i) of the result; empty if all were computed.
  std::vector<uint8_t> computed;
  /// Per row, the largest magnitude of a score whose weight is not negligible
  /// (above 1e-7); empty for results that are not an attention's. The f32
  /// error of a weight grows with it.
  std::vector<double> magnitudes;
  /// Per element of an aggregate, with `Options::matrixUnits`, the root of the
  /// sum of (weight x value)^2: what independent relative errors of the weights
  /// add up to, per unit of theirs.
  std::vector<double> spreads;
};

/// One input per argument; a scalar is a tensor of rank 0. The inputs fit the
/// function (checkInputs). An operation that the oracle does not know is an
/// error with its name and location.
llvm::Expected<std::vector<Result>> evaluate(mlir::func::FuncOp function,
                                             llvm::ArrayRef<HostTensor> inputs,
                                             const Options &options = {});

} // namespace attnfuse::reference

#endif // ATTNFUSE_REFERENCE_EVALUATOR_H
