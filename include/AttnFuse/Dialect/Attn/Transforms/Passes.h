//===- Passes.h - passes within the attn dialect ----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_TRANSFORMS_PASSES_H
#define ATTNFUSE_DIALECT_ATTN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attnfuse::attn {

#define GEN_PASS_DECL
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h.inc"

/// The marker of a kernel function, set by attn-outline.
inline constexpr llvm::StringLiteral kKernelAttrName = "attn.kernel";
/// The result of attn-analyze-masks, on attn.mask.
inline constexpr llvm::StringLiteral kTilesAttrName = "attn.tiles";
/// The result of attn-place-rope, on attn.rope.
inline constexpr llvm::StringLiteral kPlacementAttrName = "attn.placement";

} // namespace attnfuse::attn

#endif // ATTNFUSE_DIALECT_ATTN_TRANSFORMS_PASSES_H
