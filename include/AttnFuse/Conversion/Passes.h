//===- Passes.h - passes between dialects -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_CONVERSION_PASSES_H
#define ATTNFUSE_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attnfuse {

#define GEN_PASS_DECL
#include "AttnFuse/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "AttnFuse/Conversion/Passes.h.inc"

} // namespace attnfuse

#endif // ATTNFUSE_CONVERSION_PASSES_H
