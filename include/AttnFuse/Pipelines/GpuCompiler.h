//===- GpuCompiler.h - from a module to PTX and a manifest ------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_GPUCOMPILER_H
#define ATTNFUSE_PIPELINES_GPUCOMPILER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
class PassManager;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace attnfuse {

struct PipelineOptions;

/// A program for one chip, as docs/runtime.md describes it.
struct GpuProgram {
  std::string ptx, manifest;
  /// A line per choice.
  std::vector<std::string> explanation;
  double passSeconds = 0, codeSeconds = 0;
};

/// Compiles a copy of `source` for the chip of `options`, `function` (one of
/// its own) being the entry. `argumentNames` name arguments in messages.
/// `prepare`, if any, may add instrumentation to the pass manager.
llvm::Expected<GpuProgram> compileForGpu(
    mlir::ModuleOp source, mlir::func::FuncOp function,
    const PipelineOptions &options, llvm::ArrayRef<std::string> argumentNames,
    llvm::function_ref<llvm::Error(mlir::PassManager &, mlir::ModuleOp)>
        prepare = nullptr);

} // namespace attnfuse

#endif // ATTNFUSE_PIPELINES_GPUCOMPILER_H
