//===- Formulas.h - published formulas ----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_FORMULAS_H
#define ATTNFUSE_DIALECT_ATTN_IR_FORMULAS_H

#include "llvm/ADT/SmallVector.h"

namespace attnfuse::attn {

class RopeOp;

/// Pair t at position p turns by `p * frequencies[t]`; cosines and sines are
/// multiplied by `magnitude`. The formulas are those of #attn.rope_scaling.
struct RopeAngles {
  llvm::SmallVector<double> frequencies;
  double magnitude = 1.0;
};

/// For a rope without tables.
RopeAngles computeRopeAngles(RopeOp rope);

} // namespace attnfuse::attn

#endif // ATTNFUSE_DIALECT_ATTN_IR_FORMULAS_H
