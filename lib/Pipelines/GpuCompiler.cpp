//===- GpuCompiler.cpp - from a module to PTX and a manifest ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Pipelines/GpuCompiler.h"

#include "AttnFuse/Pipelines/Explain.h"
#include "AttnFuse/Pipelines/Pipelines.h"
#include "AttnFuse/Target/NVPTX/Manifest.h"
#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include <chrono>

using namespace mlir;
using namespace attnfuse;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

llvm::Expected<GpuProgram> attnfuse::compileForGpu(
    ModuleOp source, func::FuncOp function, const PipelineOptions &options,
    ArrayRef<std::string> argumentNames,
    llvm::function_ref<llvm::Error(PassManager &, ModuleOp)> prepare) {
  GpuProgram program;
  double start = now();
  auto equal = equalExtents(function);
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager pm(source.getContext());
  if (prepare) {
    if (llvm::Error error = prepare(pm, *module)) {
      return std::move(error);
    }
  }
  pm.addInstrumentation(makeExplainer(*module, program.explanation));
  buildAttnFuseToPTX(pm, options);
  if (failed(pm.run(*module))) {
    return llvm::createStringError("the program could not be compiled");
  }
  double middle = now();
  auto entry = module->lookupSymbol<func::FuncOp>(function.getSymName());
  auto manifest =
      writeManifest(*module, entry, options.chip, equal, argumentNames);
  if (!manifest) {
    return manifest.takeError();
  }
  program.manifest = std::move(*manifest);
  for (auto kernels : module->getOps<gpu::GPUModuleOp>()) {
    auto ptx = generatePTX(kernels, options.chip);
    if (!ptx) {
      return ptx.takeError();
    }
    program.ptx = std::move(*ptx);
  }
  program.passSeconds = middle - start;
  program.codeSeconds = now() - middle;
  return program;
}
