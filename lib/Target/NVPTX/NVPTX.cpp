//===- NVPTX.cpp - llvm dialect to PTX -------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <cstdlib>
#include <mutex>

using namespace attnfuse;

int attnfuse::ptxVersionFor(llvm::StringRef chip) {
  return llvm::StringSwitch<int>(chip)
      .Case("sm_80", 70)
      .Case("sm_86", 71)
      .Cases({"sm_89", "sm_90"}, 78)
      // TMA copies of a single block (".shared::cta" destinations).
      .Case("sm_90a", 86)
      .Case("sm_100", 86)
      .Case("sm_120", 87)
      .Default(80);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
targetFor(llvm::StringRef chip) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    return llvm::createStringError("this LLVM has no NVPTX target: " + error);
  }
  std::string features = "+ptx" + std::to_string(ptxVersionFor(chip));
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip, features, llvm::TargetOptions(), std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

/// Tiles are unrolled and in registers already: what is left is to fold
/// addresses. What does not vary stays in the loops, where ptxas places it:
/// moved out here it would hold registers that accumulators need.
static llvm::Error cleanUp(llvm::Module &module, llvm::TargetMachine *target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(
          passes, "function(early-cse,instcombine<max-iterations=1;no-verify-"
                  "fixpoint>,early-cse)")) {
    return error;
  }
  passes.run(module, modules);
  return llvm::Error::success();
}

namespace {
/// Leaves out the passes that LLVM's code generator runs before selection to
/// reuse parts of addresses: half of the time of code generation, to no good.
/// What is reused stays in registers, and accumulators were spilled for it.
class LeanPassManager : public llvm::legacy::PassManagerBase {
public:
  explicit LeanPassManager(llvm::legacy::PassManager &passes)
      : passes(passes) {}

  void add(llvm::Pass *pass) override {
    static constexpr llvm::StringLiteral kUnwanted[] = {
        "early-cse", "loop-reduce", "nary-reassociate",
        "separate-const-offset-from-gep", "slsr"};
    const llvm::PassInfo *info =
        llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    if (info && llvm::is_contained(kUnwanted, info->getPassArgument())) {
      delete pass;
      return;
    }
    passes.add(pass);
  }

private:
  llvm::legacy::PassManager &passes;
};
} // namespace

llvm::Expected<std::unique_ptr<llvm::Module>>
attnfuse::translateKernels(mlir::gpu::GPUModuleOp kernels, llvm::StringRef chip,
                           llvm::LLVMContext &context) {
  mlir::MLIRContext &source = *kernels->getContext();
  mlir::registerBuiltinDialectTranslation(source);
  mlir::registerGPUDialectTranslation(source);
  mlir::registerLLVMDialectTranslation(source);
  mlir::registerNVVMDialectTranslation(source);
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(kernels, context);
  if (!module) {
    return llvm::createStringError("the kernels could not be translated");
  }
  auto machine = targetFor(chip);
  if (!machine) {
    return machine.takeError();
  }
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  if (llvm::Error error = cleanUp(*module, machine->get())) {
    return std::move(error);
  }
  return module;
}

llvm::Expected<std::string>
attnfuse::generatePTX(mlir::gpu::GPUModuleOp kernels, llvm::StringRef chip) {
  llvm::LLVMContext context;
  auto module = translateKernels(kernels, chip, context);
  if (!module) {
    return module.takeError();
  }
  auto machine = targetFor(chip);
  if (!machine) {
    return machine.takeError();
  }
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  LeanPassManager lean(passes);
  if ((*machine)->addPassesToEmitFile(lean, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile,
                                      /*DisableVerify=*/true)) {
    return llvm::createStringError("this LLVM emits no PTX");
  }
  passes.run(**module);
  return text.str().str();
}

/// The value of a variable of the environment; empty counts as not set.
static llvm::StringRef environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// Where ptxas is.
static llvm::Expected<std::string> findAssembler() {
  llvm::StringRef named = environment("ATTNFUSE_PTXAS");
  llvm::StringRef cuda = environment("CUDA_HOME");
  std::string usual = (cuda.empty() ? "/usr/local/cuda" : cuda).str() + "/bin";
  if (!named.empty()) {
    // A name with a slash is given back as it is.
    auto program = llvm::sys::findProgramByName(named);
    if (program && llvm::sys::fs::can_execute(*program)) {
      return *program;
    }
    return llvm::createStringError(
        "ATTNFUSE_PTXAS=" + named +
        " is no program that can be run; name ptxas, or leave the variable out "
        "to look on the path and in " +
        usual);
  }
  if (auto program = llvm::sys::findProgramByName("ptxas")) {
    return *program;
  }
  if (auto program = llvm::sys::findProgramByName("ptxas", {usual})) {
    return *program;
  }
  return llvm::createStringError(
      "there is no ptxas: set ATTNFUSE_PTXAS, put it on the path (the Python "
      "package nvidia-cuda-nvcc has one), or set CUDA_HOME; it is not in " +
      usual);
}

llvm::Expected<std::string> attnfuse::assemblePTX(llvm::StringRef ptx,
                                                  llvm::StringRef chip,
                                                  std::string &log) {
  llvm::Expected<std::string> found = findAssembler();
  if (!found) {
    return found.takeError();
  }
  const std::string &program = *found;
  llvm::SmallString<128> source, target, messages;
  auto temporary = [](llvm::StringRef suffix, llvm::SmallString<128> &path) {
    return llvm::sys::fs::createTemporaryFile("attnfuse", suffix, path);
  };
  std::error_code failed = temporary("ptx", source);
  failed = failed ? failed : temporary("cubin", target);
  failed = failed ? failed : temporary("log", messages);
  if (failed) {
    return llvm::createStringError("no temporary file: " + failed.message());
  }
  {
    std::error_code ignored;
    llvm::raw_fd_ostream stream(source, ignored);
    stream << ptx;
  }
  std::string arch = "-arch=" + chip.str();
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), messages,
                                                messages};
  std::string why;
  int status = llvm::sys::ExecuteAndWait(
      program, {program, arch, "-O3", "-v", source, "-o", target}, std::nullopt,
      redirects, 0, 0, &why);
  auto said = llvm::MemoryBuffer::getFile(messages);
  log = said ? (*said)->getBuffer().str() : "";
  auto code = llvm::MemoryBuffer::getFile(target);
  std::string bytes = code ? (*code)->getBuffer().str() : "";
  for (const auto &path : {source, target, messages}) {
    llvm::sys::fs::remove(path);
  }
  if (status) {
    return llvm::createStringError(program + " failed for " + chip + ": " +
                                   (log.empty() ? why : log));
  }
  return bytes;
}
