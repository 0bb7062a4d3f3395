//===- Attention.h - attention and rotation, whole tensors -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_ATTENTION_H
#define ATTNFUSE_LIB_REFERENCE_ATTENTION_H

#include "Array.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Reference/Evaluator.h"

namespace attnfuse::reference {

/// An array of which only some rows may have been computed.
struct RowResult {
  ArrayRefPtr values;
  std::vector<uint8_t> computed;
  std::vector<double> magnitudes;
  std::vector<double> spreads;
};

/// The weighted sum of an aggregate, or the log-sum-exp of a softmax. Memory
/// beyond the result is linear in the number of keys, per thread.
llvm::Expected<RowResult> evaluateAggregate(attn::AggregateOp op,
                                            const Values &values,
                                            const Options &options);
llvm::Expected<RowResult> evaluateLse(attn::SoftmaxOp op, const Values &values,
                                      const Options &options);

/// A rotated tensor.
llvm::Expected<ArrayRefPtr> evaluateRope(attn::RopeOp op, const Values &values);

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_ATTENTION_H
