//===- InitAll.h - registration of everything --------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_INITALL_H
#define ATTNFUSE_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace attnfuse {

/// The dialects of AttnFuse and those that its programs and pipelines use.
void registerAllDialects(mlir::DialectRegistry &registry);

/// AttnFuse's passes and pipelines, and the passes of MLIR that tests use
/// beside them (canonicalize, cse).
void registerAllPasses();

} // namespace attnfuse

#endif // ATTNFUSE_INITALL_H
