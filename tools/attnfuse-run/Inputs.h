//===- Inputs.h - arguments of a program -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_INPUTS_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_INPUTS_H

#include "Options.h"

#include "AttnFuse/Support/HostTensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attnfuse::run {

/// One argument: its name in the source ("q" for %q), and its value.
struct Argument {
  std::string name;
  HostTensor value;
  /// "random", a file, or the form of attn.init.
  std::string origin;
};

/// Reads the files that the options name and fills the rest as the function's
/// attn.init attributes and the seed say; dynamic extents come from files,
/// from --set, and else are B = 1 and N = 1024. Everything is checked
/// against the argument's type first.
llvm::Expected<std::vector<Argument>> makeInputs(mlir::func::FuncOp function,
                                                 llvm::StringRef source,
                                                 const Options &options);

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_INPUTS_H
