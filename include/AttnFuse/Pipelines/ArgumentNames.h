//===- ArgumentNames.h - names of arguments in a source ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_ARGUMENTNAMES_H
#define ATTNFUSE_PIPELINES_ARGUMENTNAMES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace attnfuse {

/// The identifier that the source has at an argument's location.
std::string argumentName(mlir::BlockArgument argument, llvm::StringRef source);

} // namespace attnfuse

#endif // ATTNFUSE_PIPELINES_ARGUMENTNAMES_H
