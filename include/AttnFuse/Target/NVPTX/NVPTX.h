//===- NVPTX.h - from nvvm kernels to PTX -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_NVPTX_NVPTX_H
#define ATTNFUSE_TARGET_NVPTX_NVPTX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm
namespace mlir {
class OpPassManager;
namespace gpu {
class GPUModuleOp;
} // namespace gpu
} // namespace mlir

namespace attnfuse {

/// The lowest PTX version, times ten, with which the kernels that are made for
/// a chip assemble: older drivers load it.
int ptxVersionFor(llvm::StringRef chip);

/// What convert-tile-to-nvvm leaves (scf, arith, math, nvvm in gpu.module) to
/// the llvm dialect. Runs on the module around the gpu.module.
void buildNVVMToLLVMPipeline(mlir::OpPassManager &pm);

/// LLVM IR of a lowered gpu.module, optimised for the chip.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateKernels(mlir::gpu::GPUModuleOp kernels, llvm::StringRef chip,
                 llvm::LLVMContext &context);

/// PTX text of a lowered gpu.module.
llvm::Expected<std::string> generatePTX(mlir::gpu::GPUModuleOp kernels,
                                        llvm::StringRef chip);

/// Assembles PTX with ptxas, found by ATTNFUSE_PTXAS, on the path, or in bin of
/// CUDA_HOME or /usr/local/cuda. `log` gets what it says under -v.
llvm::Expected<std::string> assemblePTX(llvm::StringRef ptx,
                                        llvm::StringRef chip, std::string &log);

} // namespace attnfuse

#endif // ATTNFUSE_TARGET_NVPTX_NVPTX_H
