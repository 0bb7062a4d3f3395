//===- GpuRun.h - a program on a GPU ----------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_GPURUN_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_GPURUN_H

#include "Options.h"
#include "Report.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace attnfuse::run {

/// The GPU to run on: the number after `cuda:`, the first one where no device
/// is named and there is one, or nothing for the CPU. An error says what is
/// missing where a GPU was asked for.
llvm::Expected<std::optional<int>> selectGpu(const Options &options);

/// Compiles, runs and times the program on a GPU; fills in device, times,
/// explanation and results of the report.
llvm::Error runOnGpu(int ordinal, mlir::ModuleOp module,
                     mlir::func::FuncOp function,
                     llvm::ArrayRef<HostTensor> inputs, const Options &options,
                     int64_t typicalLength, Report &report);

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_GPURUN_H
