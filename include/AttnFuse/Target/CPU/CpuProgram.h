//===- CpuProgram.h - a program compiled for this CPU -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_CPU_CPUPROGRAM_H
#define ATTNFUSE_TARGET_CPU_CPUPROGRAM_H

#include "AttnFuse/Support/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <vector>

namespace llvm {
class ThreadPoolInterface;
} // namespace llvm
namespace mlir {
class Operation;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace attnfuse {

class CpuKernels;

/// A module whose kernels are machine code and whose host functions are
/// executed operation by operation: calls, launches, extents, uninitialised
/// tensors, constants and index arithmetic. Other operations are refused by
/// name, with their location.
class CpuProgram {
public:
  /// `module` has been through the `attnfuse-to-cpu` pipeline and has to
  /// outlive the program.
  static llvm::Expected<std::unique_ptr<CpuProgram>>
  compile(mlir::ModuleOp module);
  ~CpuProgram();

  /// Runs a host function. A scalar argument is a tensor of rank 0. With
  /// `poison` every uninitialised tensor is filled with NaN first.
  llvm::Expected<std::vector<HostTensor>>
  run(mlir::func::FuncOp function, llvm::ArrayRef<HostTensor> arguments,
      llvm::ThreadPoolInterface &pool, bool poison = false);

  /// Seconds spent in each kernel by the last run, in order of launch.
  llvm::ArrayRef<std::pair<std::string, double>> kernelTimes() const {
    return times;
  }

private:
  CpuProgram(mlir::ModuleOp module, std::unique_ptr<CpuKernels> kernels);

  mlir::ModuleOp module;
  std::unique_ptr<CpuKernels> kernels;
  /// Memory of uninitialised tensors, kept from run to run where nobody else
  /// holds it: fresh pages would be paid for in every run.
  llvm::DenseMap<mlir::Operation *, HostTensor> kept;
  std::vector<std::pair<std::string, double>> times;

  friend class HostExecutor;
};

} // namespace attnfuse

#endif // ATTNFUSE_TARGET_CPU_CPUPROGRAM_H
