//===- FunctionWalk.h - the functions that a pass works on -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_DIALECT_ATTN_TRANSFORMS_FUNCTIONWALK_H
#define ATTNFUSE_LIB_DIALECT_ATTN_TRANSFORMS_FUNCTIONWALK_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace attnfuse::attn {

/// Calls `work` with `root`, if that is a function, or else with each function
/// directly inside it; declarations are left out. Stops at a failure.
inline llvm::LogicalResult forEachFunction(
    mlir::Operation *root,
    llvm::function_ref<llvm::LogicalResult(mlir::Operation *)> work) {
  if (auto function = llvm::dyn_cast<mlir::FunctionOpInterface>(root)) {
    return function.isExternal() ? llvm::success() : work(function);
  }
  for (mlir::Region &region : root->getRegions()) {
    for (auto function : region.getOps<mlir::FunctionOpInterface>()) {
      if (!function.isExternal() && failed(work(function))) {
        return llvm::failure();
      }
    }
  }
  return llvm::success();
}

} // namespace attnfuse::attn

#endif // ATTNFUSE_LIB_DIALECT_ATTN_TRANSFORMS_FUNCTIONWALK_H
