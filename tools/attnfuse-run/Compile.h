//===- Compile.h - from a file to a compiled program -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_COMPILE_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_COMPILE_H

#include "Options.h"

#include "AttnFuse/Pipelines/GpuCompiler.h"
#include "AttnFuse/Target/CPU/CpuProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace attnfuse::run {

struct Compiled {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<CpuProgram> program;
  /// What --explain prints: a line per choice.
  std::vector<std::string> explanation;
  double passSeconds = 0, codeSeconds = 0;
};

/// The function to run: the one named, else the first public one with a body.
llvm::Expected<mlir::func::FuncOp> findEntry(mlir::ModuleOp module,
                                             const Options &options);

/// Compiles a copy of `source` for this CPU.
llvm::Expected<Compiled> compileForCPU(mlir::ModuleOp source,
                                       const Options &options,
                                       int64_t typicalLength);

/// Compiles a copy of `source` for a chip; argument names go into messages.
llvm::Expected<GpuProgram>
compileForGpuChip(mlir::ModuleOp source, mlir::func::FuncOp function,
                  const Options &options, llvm::StringRef chip,
                  int64_t typicalLength, llvm::ArrayRef<std::string> names);

/// Prints the program in the form of --emit.
llvm::Error emitForm(mlir::ModuleOp source, const Options &options);

/// A dialect registry with what programs and pipelines use.
mlir::DialectRegistry makeRegistry();

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_COMPILE_H
