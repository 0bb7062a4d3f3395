//===- Pipelines.cpp - the passes in order ---------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Pipelines/Pipelines.h"

#include "AttnFuse/Conversion/Passes.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"
#include "AttnFuse/Target/CPU/CpuKernels.h"
#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attnfuse::buildAttnFuseToTile(OpPassManager &pm,
                                   const PipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(attn::createAttnCanonicalize());
  // Ahead of outlining: constant tables, which stay with the host, are seen.
  pm.addNestedPass<func::FuncOp>(attn::createAttnAnalyzeMasks());
  pm.addPass(attn::createAttnOutline());
  attn::AttnPlaceRopeOptions rope;
  rope.chip = options.chip;
  rope.force = options.rope;
  rope.length = options.length;
  pm.addNestedPass<func::FuncOp>(attn::createAttnPlaceRope(rope));
  AttnToTileOptions tiling;
  tiling.chip = options.chip;
  tiling.blockM = options.blockM;
  tiling.blockN = options.blockN;
  tiling.warps = options.warps;
  tiling.stages = options.stages;
  tiling.rescale = options.rescale;
  tiling.scheduler = options.scheduler;
  tiling.path = options.path;
  pm.addPass(createAttnToTile(tiling));
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
}

void attnfuse::buildAttnFuseToCPU(OpPassManager &pm,
                                  const PipelineOptions &options) {
  buildAttnFuseToTile(pm, options);
  pm.addPass(createConvertTileToLoops());
  buildLoopsToLLVMPipeline(pm.nest<ModuleOp>());
}

void attnfuse::buildAttnFuseToPTX(OpPassManager &pm,
                                  const PipelineOptions &options) {
  buildAttnFuseToTile(pm, options);
  ConvertTileToNVVMOptions nvvm;
  nvvm.chip = options.chip;
  pm.addPass(createConvertTileToNVVM(nvvm));
  buildNVVMToLLVMPipeline(pm);
}

void attnfuse::registerAttnFusePipelines() {
  PassPipelineRegistration<PipelineOptions>("attnfuse-to-tile",
                                            "attn programs to tile programs",
                                            buildAttnFuseToTile);
  PassPipelineRegistration<PipelineOptions>(
      "attnfuse-to-cpu", "attn programs to the LLVM dialect for a CPU",
      buildAttnFuseToCPU);
  PassPipelineRegistration<PipelineOptions>(
      "attnfuse-to-ptx",
      "attn programs to kernels in the LLVM dialect for a GPU",
      buildAttnFuseToPTX);
}
