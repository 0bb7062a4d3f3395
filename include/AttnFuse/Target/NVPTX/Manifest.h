//===- Manifest.h - how compiled kernels are launched -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_NVPTX_MANIFEST_H
#define ATTNFUSE_TARGET_NVPTX_MANIFEST_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace attnfuse {

/// An extent of an argument.
struct ArgumentExtent {
  unsigned argument, dimension;
};

/// Pairs of dynamic extents of a host function's arguments that its attention
/// needs to be the same, read off the attn operations (before lowering).
std::vector<std::pair<ArgumentExtent, ArgumentExtent>>
equalExtents(mlir::func::FuncOp function);

/// The manifest (docs/runtime.md) of a host function whose kernels have been
/// lowered: its calls, launches, uninitialised tensors and constants in order.
/// An operation that a runtime cannot execute is refused by name.
llvm::Expected<std::string>
writeManifest(mlir::ModuleOp module, mlir::func::FuncOp function,
              llvm::StringRef chip,
              llvm::ArrayRef<std::pair<ArgumentExtent, ArgumentExtent>> equal,
              llvm::ArrayRef<std::string> argumentNames);

} // namespace attnfuse

#endif // ATTNFUSE_TARGET_NVPTX_MANIFEST_H
