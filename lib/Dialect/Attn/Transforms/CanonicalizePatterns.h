//===- CanonicalizePatterns.h - rewrites of attn-canonicalize ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_DIALECT_ATTN_TRANSFORMS_CANONICALIZEPATTERNS_H
#define ATTNFUSE_LIB_DIALECT_ATTN_TRANSFORMS_CANONICALIZEPATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace attnfuse::attn {

/// The rewrites that look at an operation and its neighbours. `folded` counts
/// the scale factors folded into products and outlives the patterns.
void populateAttnCanonicalizationPatterns(mlir::RewritePatternSet &patterns,
                                          unsigned &folded);

} // namespace attnfuse::attn

#endif // ATTNFUSE_LIB_DIALECT_ATTN_TRANSFORMS_CANONICALIZEPATTERNS_H
