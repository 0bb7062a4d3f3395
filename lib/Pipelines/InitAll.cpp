//===- InitAll.cpp - registration of everything ----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/InitAll.h"

#include "AttnFuse/Conversion/Passes.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"
#include "AttnFuse/Pipelines/Pipelines.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

void attnfuse::registerAllDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<attn::AttnDialect, tile::TileDialect, mlir::arith::ArithDialect,
              mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
              mlir::gpu::GPUDialect, mlir::NVVM::NVVMDialect,
              mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
              mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
              mlir::tensor::TensorDialect, mlir::vector::VectorDialect>();
}

void attnfuse::registerAllPasses() {
  attn::registerAttnTransformsPasses();
  registerAttnFuseConversionPasses();
  registerAttnFusePipelines();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
}
