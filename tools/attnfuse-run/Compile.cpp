//===- Compile.cpp - from a file to a compiled program ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"
#include "AttnFuse/InitAll.h"
#include "AttnFuse/Pipelines/Explain.h"
#include "AttnFuse/Pipelines/Pipelines.h"
#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::run;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

DialectRegistry attnfuse::run::makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

llvm::Expected<func::FuncOp> attnfuse::run::findEntry(ModuleOp module,
                                                      const Options &options) {
  std::string names;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal()) {
      continue;
    }
    if (options.entry.empty() ? function.isPublic()
                              : function.getSymName() == options.entry) {
      return function;
    }
    names += (names.empty() ? "" : ", ") + function.getSymName().str();
  }
  if (options.entry.empty()) {
    return llvm::createStringError("'" + options.program +
                                   "' has no public function with a body");
  }
  return llvm::createStringError(
      "'" + options.program + "' has no function '" + options.entry +
      "' with a body; it has: " + (names.empty() ? "none" : names));
}

//===----------------------------------------------------------------------===//
// Instrumentation
//===----------------------------------------------------------------------===//

namespace {
/// Writes the whole module after each pass to a folder, numbered.
class PhaseDumper : public PassInstrumentation {
public:
  PhaseDumper(ModuleOp module, std::string folder)
      : module(module), folder(std::move(folder)) {}

  void runAfterPass(Pass *pass, Operation *) override {
    std::string number = std::to_string(count++);
    number.insert(0, number.size() < 2 ? 1 : 0, '0');
    SmallString<128> path(folder);
    llvm::sys::path::append(path, number + "-" + pass->getArgument() + ".mlir");
    std::error_code failed;
    llvm::raw_fd_ostream stream(path, failed);
    if (failed) {
      llvm::errs() << "attnfuse-run: '" << path
                   << "' cannot be written: " << failed.message() << "\n";
      return;
    }
    module->print(stream);
    stream << "\n";
  }

private:
  ModuleOp module;
  std::string folder;
  unsigned count = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static PipelineOptions *pipelineOptions(const Options &options,
                                        int64_t typicalLength,
                                        PipelineOptions &pipeline) {
  if (!options.pipeline.empty()) {
    (void)pipeline.parseFromString(options.pipeline);
  }
  pipeline.rope = options.rope;
  pipeline.chip = options.chip.empty() ? "cpu" : options.chip;
  pipeline.warps = options.warps;
  pipeline.stages = options.stages;
  pipeline.blockM = options.blockM;
  pipeline.blockN = options.blockN;
  pipeline.length = typicalLength;
  return &pipeline;
}

static llvm::Error prepare(PassManager &pm, ModuleOp module,
                           const Options &options) {
  if (options.dumpPhases.empty()) {
    return llvm::Error::success();
  }
  if (std::error_code failed =
          llvm::sys::fs::create_directories(options.dumpPhases)) {
    return llvm::createStringError("--dump-phases: the folder '" +
                                   options.dumpPhases +
                                   "' cannot be made: " + failed.message());
  }
  if (!llvm::sys::fs::is_directory(options.dumpPhases)) {
    return llvm::createStringError("--dump-phases: '" + options.dumpPhases +
                                   "' is not a folder");
  }
  pm.addInstrumentation(
      std::make_unique<PhaseDumper>(module, options.dumpPhases));
  return llvm::Error::success();
}

static llvm::Error refused() {
  return llvm::createStringError("the program could not be compiled");
}

llvm::Expected<Compiled> attnfuse::run::compileForCPU(ModuleOp source,
                                                      const Options &options,
                                                      int64_t typicalLength) {
  Compiled compiled;
  double start = now();
  compiled.module = source.clone();
  PassManager pm(source.getContext());
  if (llvm::Error error = prepare(pm, *compiled.module, options)) {
    return std::move(error);
  }
  pm.addInstrumentation(makeExplainer(*compiled.module, compiled.explanation));
  PipelineOptions pipeline;
  buildAttnFuseToCPU(pm, *pipelineOptions(options, typicalLength, pipeline));
  if (failed(pm.run(*compiled.module))) {
    return refused();
  }
  double middle = now();
  auto program = CpuProgram::compile(*compiled.module);
  if (!program) {
    return program.takeError();
  }
  compiled.program = std::move(*program);
  compiled.passSeconds = middle - start;
  compiled.codeSeconds = now() - middle;
  return compiled;
}

llvm::Expected<GpuProgram> attnfuse::run::compileForGpuChip(
    ModuleOp source, func::FuncOp function, const Options &options,
    StringRef chip, int64_t typicalLength, ArrayRef<std::string> names) {
  PipelineOptions pipeline;
  pipelineOptions(options, typicalLength, pipeline);
  pipeline.chip = chip.str();
  return compileForGpu(source, function, pipeline, names,
                       [&](PassManager &pm, ModuleOp module) {
                         return prepare(pm, module, options);
                       });
}

static bool isGpu(StringRef chip) { return chip.starts_with("sm_"); }

/// Prints what --emit asks for of a program for a GPU.
static llvm::Error emitGpuForm(ModuleOp source, const Options &options,
                               const PipelineOptions &pipeline) {
  auto function = findEntry(source, options);
  if (!function) {
    return function.takeError();
  }
  auto program = compileForGpuChip(source, *function, options, pipeline.chip,
                                   pipeline.length, {});
  if (!program) {
    return program.takeError();
  }
  if (options.emit == "ptx") {
    llvm::outs() << program->ptx;
    return llvm::Error::success();
  }
  if (options.emit == "manifest") {
    llvm::outs() << program->manifest << "\n";
    return llvm::Error::success();
  }
  std::string log;
  auto cubin = assemblePTX(program->ptx, pipeline.chip, log);
  if (!cubin) {
    return cubin.takeError();
  }
  llvm::errs() << log;
  llvm::outs() << *cubin;
  return llvm::Error::success();
}

llvm::Error attnfuse::run::emitForm(ModuleOp source, const Options &options) {
  PipelineOptions pipeline;
  pipelineOptions(options, 4096, pipeline);
  bool gpuForm = options.emit == "ptx" || options.emit == "cubin" ||
                 options.emit == "manifest";
  if (gpuForm && !isGpu(pipeline.chip)) {
    return llvm::createStringError("--emit=" + options.emit +
                                   " needs --chip, a GPU (sm_80 ... sm_120, "
                                   "sm_90a), got '" +
                                   pipeline.chip + "'");
  }
  if (gpuForm) {
    return emitGpuForm(source, options, pipeline);
  }
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager pm(source.getContext());
  if (llvm::Error error = prepare(pm, *module, options)) {
    return error;
  }
  bool gpu = isGpu(pipeline.chip);
  if (options.emit == "tile") {
    buildAttnFuseToTile(pm, pipeline);
  } else if (gpu) {
    buildAttnFuseToPTX(pm, pipeline);
  } else {
    buildAttnFuseToCPU(pm, pipeline);
  }
  if (failed(pm.run(*module))) {
    return refused();
  }
  if (options.emit == "tile") {
    module->print(llvm::outs());
    return llvm::Error::success();
  }
  llvm::LLVMContext context;
  for (auto kernels : module->getOps<gpu::GPUModuleOp>()) {
    auto code = translateKernels(kernels, pipeline.chip, context);
    if (!code) {
      return code.takeError();
    }
    (*code)->print(llvm::outs(), nullptr);
  }
  registerBuiltinDialectTranslation(*source.getContext());
  registerLLVMDialectTranslation(*source.getContext());
  for (auto kernels : module->getOps<ModuleOp>()) {
    std::unique_ptr<llvm::Module> code =
        translateModuleToLLVMIR(kernels, context);
    if (!code) {
      return refused();
    }
    code->print(llvm::outs(), nullptr);
  }
  return llvm::Error::success();
}
