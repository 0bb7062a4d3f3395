//===- CpuKernels.h - kernels compiled for this CPU -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_CPU_CPUKERNELS_H
#define ATTNFUSE_TARGET_CPU_CPUKERNELS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mlir {
class ExecutionEngine;
class ModuleOp;
class OpPassManager;
} // namespace mlir
namespace llvm {
class ThreadPoolInterface;
} // namespace llvm

namespace attnfuse {

/// Adds the passes that take a module of kernel functions, as made by
/// convert-tile-to-loops, to the LLVM dialect.
void buildLoopsToLLVMPipeline(mlir::OpPassManager &pm);

/// A strided array in memory, as a kernel gets it; strides in elements.
struct StridedArray {
  void *data = nullptr;
  llvm::SmallVector<int64_t> sizes, strides;
};

/// One argument of a kernel: an array or a scalar.
struct KernelArgument {
  StridedArray array;
  int64_t integer = 0;
  double real = 0;
  enum Kind { Array, Index, I32, I64, F32 } kind = Array;
};

/// Machine code of a module of kernels (LLVM's ORC JIT, for the host CPU).
class CpuKernels {
public:
  /// `kernels` is in the LLVM dialect. Errors are LLVM's own.
  static llvm::Expected<std::unique_ptr<CpuKernels>>
  compile(mlir::ModuleOp kernels);
  ~CpuKernels();

  /// Runs `points` grid points of a kernel on the pool's threads, which take
  /// the next point each as they become free; returns when all are done.
  llvm::Error launch(llvm::StringRef name,
                     llvm::ArrayRef<KernelArgument> arguments, int64_t points,
                     llvm::ThreadPoolInterface &pool) const;

private:
  explicit CpuKernels(std::unique_ptr<mlir::ExecutionEngine> engine);

  std::unique_ptr<mlir::ExecutionEngine> engine;
  /// Takes the addresses of the arguments.
  using Function = void (*)(void **);
  llvm::StringMap<Function> functions;
};

} // namespace attnfuse

#endif // ATTNFUSE_TARGET_CPU_CPUKERNELS_H
