//===- Compile.cpp - from a file to a compiled program ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"
#include "AttnFuse/InitAll.h"
#include "AttnFuse/Pipelines/Pipelines.h"

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

std::string toText(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// Reads the decisions off the module as attn-to-tile finds and leaves it.
class Explainer : public PassInstrumentation {
public:
  Explainer(ModuleOp module, std::vector<std::string> &lines)
      : module(module), lines(lines) {}

  void runBeforePass(Pass *pass, Operation *) override {
    if (pass->getArgument() != "attn-to-tile") {
      return;
    }
    module.walk([&](func::FuncOp function) {
      if (!function->hasAttr(attn::kKernelAttrName)) {
        return;
      }
      lines.push_back("kernel " + function.getSymName().str());
      function.walk([&](Operation *op) {
        if (Attribute tiles = op->getDiscardableAttr(attn::kTilesAttrName)) {
          lines.push_back("  mask: " + toText(tiles));
        }
        if (Attribute place =
                op->getDiscardableAttr(attn::kPlacementAttrName)) {
          lines.push_back("  rotation: " + toText(place));
        }
      });
    });
  }

  void runAfterPass(Pass *pass, Operation *) override {
    if (pass->getArgument() != "attn-to-tile") {
      return;
    }
    module.walk([&](tile::KernelOp kernel) {
      std::string line = "tile kernel " + kernel.getSymName().str();
      if (kernel.getScheduleAttr()) {
        line += ": " + toText(kernel.getScheduleAttr());
      }
      lines.push_back(line);
    });
  }

private:
  ModuleOp module;
  std::vector<std::string> &lines;
};
} // namespace

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static PipelineOptions *pipelineOptions(const Options &options,
                                        int64_t typicalLength,
                                        PipelineOptions &pipeline) {
  pipeline.rope = options.rope;
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
  pm.addInstrumentation(
      std::make_unique<Explainer>(*compiled.module, compiled.explanation));
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

llvm::Error attnfuse::run::emitForm(ModuleOp source, const Options &options) {
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager pm(source.getContext());
  if (llvm::Error error = prepare(pm, *module, options)) {
    return error;
  }
  PipelineOptions pipeline;
  pipelineOptions(options, 4096, pipeline);
  if (options.emit == "tile") {
    buildAttnFuseToTile(pm, pipeline);
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
  registerBuiltinDialectTranslation(*source.getContext());
  registerLLVMDialectTranslation(*source.getContext());
  for (auto kernels : module->getOps<ModuleOp>()) {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> code =
        translateModuleToLLVMIR(kernels, context);
    if (!code) {
      return refused();
    }
    code->print(llvm::outs(), nullptr);
  }
  return llvm::Error::success();
}
