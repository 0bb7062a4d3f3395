//===- Pipelines.h - the passes in order -------------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_PIPELINES_H
#define ATTNFUSE_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace attnfuse {

/// Options of every pipeline; the defaults compile for the machine at hand.
struct PipelineOptions : public mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("Chip to compile for"),
                           llvm::cl::init("cpu")};
  Option<int64_t> blockM{*this, "block-m",
                         llvm::cl::desc("Query rows per tile; 0: the chip's"),
                         llvm::cl::init(0)};
  Option<int64_t> blockN{*this, "block-n",
                         llvm::cl::desc("Key rows per tile; 0: the chip's"),
                         llvm::cl::init(0)};
  Option<int64_t> warps{
      *this, "warps",
      llvm::cl::desc("Warps per query tile on a GPU; 0: the chip's"),
      llvm::cl::init(0)};
  Option<int64_t> stages{
      *this, "stages",
      llvm::cl::desc("Slots of the rings of keys and values; 0: the chip's"),
      llvm::cl::init(0)};
  Option<int64_t> rescale{
      *this, "rescale",
      llvm::cl::desc("Growth in log2 units that is not rescaled (sm_90a); "
                     "-1: the table's"),
      llvm::cl::init(-1)};
  Option<std::string> scheduler{
      *this, "scheduler",
      llvm::cl::desc("Who hands out query tiles (sm_90a): grid or counter"),
      llvm::cl::init("")};
  Option<std::string> path{
      *this, "path", llvm::cl::desc("Kernels for sm_90a: hopper or portable"),
      llvm::cl::init("")};
  Option<std::string> rope{
      *this, "rope",
      llvm::cl::desc("Place of key rotations: in_loop or once; empty: by cost"),
      llvm::cl::init("")};
  Option<int64_t> length{
      *this, "length",
      llvm::cl::desc("Length assumed for dynamic extents in cost models"),
      llvm::cl::init(4096)};
};

/// attn to tile: canonicalize, outline, mask analysis, rope placement, tiling.
void buildAttnFuseToTile(mlir::OpPassManager &pm,
                         const PipelineOptions &options);

/// attn to the LLVM dialect for a CPU: the former, then convert-tile-to-loops
/// and the lowering of the kernels' module.
void buildAttnFuseToCPU(mlir::OpPassManager &pm,
                        const PipelineOptions &options);

/// attn to kernels in the LLVM dialect for a GPU, ready for generatePTX: to
/// tile, then convert-tile-to-nvvm and the lowering of the gpu.module.
void buildAttnFuseToPTX(mlir::OpPassManager &pm,
                        const PipelineOptions &options);

/// Registers `attnfuse-to-tile`, `attnfuse-to-cpu` and `attnfuse-to-ptx`.
void registerAttnFusePipelines();

} // namespace attnfuse

#endif // ATTNFUSE_PIPELINES_PIPELINES_H
