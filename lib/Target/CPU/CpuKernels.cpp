//===- CpuKernels.cpp - kernels compiled for this CPU ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Target/CPU/CpuKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"

#include <atomic>
#include <mutex>

using namespace attnfuse;

CpuKernels::CpuKernels(std::unique_ptr<mlir::ExecutionEngine> engine)
    : engine(std::move(engine)) {}

CpuKernels::~CpuKernels() = default;

/// The kernels come blocked and vectorised; what is left to LLVM is to fold the
/// address arithmetic. The standard levels take three times as long for code
/// that runs no faster.
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
          passes, "function(simplifycfg,early-cse,instcombine,"
                  "loop-mssa(licm),early-cse)")) {
    return error;
  }
  passes.run(module, modules);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<CpuKernels>>
CpuKernels::compile(mlir::ModuleOp kernels) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  mlir::registerBuiltinDialectTranslation(*kernels->getContext());
  mlir::registerLLVMDialectTranslation(*kernels->getContext());

  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) {
    return builder.takeError();
  }
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  auto machine = builder->createTargetMachine();
  if (!machine) {
    return machine.takeError();
  }
  std::shared_ptr<llvm::TargetMachine> target = std::move(*machine);
  mlir::ExecutionEngineOptions options;
  options.transformer = [target](llvm::Module *module) {
    return cleanUp(*module, target.get());
  };
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Default;
  options.enableObjectDump = false;
  auto engine = mlir::ExecutionEngine::create(kernels, options);
  if (!engine) {
    return engine.takeError();
  }
  std::unique_ptr<CpuKernels> result(new CpuKernels(std::move(*engine)));
  // ORC compiles at the first lookup: not in the first launch, and once.
  static constexpr llvm::StringLiteral wrapper("_mlir_ciface_");
  for (auto function : kernels.getOps<mlir::LLVM::LLVMFuncOp>()) {
    llvm::StringRef name = function.getName();
    if (!name.consume_front(wrapper)) {
      continue;
    }
    auto code = result->engine->lookupPacked(function.getName());
    if (!code) {
      return code.takeError();
    }
    result->functions[name] = *code;
  }
  return result;
}

llvm::Error CpuKernels::launch(llvm::StringRef name,
                               llvm::ArrayRef<KernelArgument> arguments,
                               int64_t points,
                               llvm::ThreadPoolInterface &pool) const {
  auto found = functions.find(name);
  if (found == functions.end()) {
    return llvm::createStringError("there is no kernel '" + name + "'");
  }
  Function function = found->second;
  // Descriptors of MLIR's memref ABI: allocated and aligned pointer, offset,
  // sizes, strides. The wrapper takes the address of every argument.
  std::vector<std::vector<int64_t>> descriptors(arguments.size());
  std::vector<int64_t *> pointers(arguments.size());
  std::vector<int64_t> integers(arguments.size());
  std::vector<float> reals(arguments.size());
  std::vector<void *> packed(arguments.size() + 2);
  for (auto [place, argument] : llvm::enumerate(arguments)) {
    integers[place] = argument.integer;
    reals[place] = static_cast<float>(argument.real);
    switch (argument.kind) {
    case KernelArgument::Array: {
      std::vector<int64_t> &descriptor = descriptors[place];
      auto address = reinterpret_cast<int64_t>(argument.array.data);
      descriptor = {address, address, 0};
      llvm::append_range(descriptor, argument.array.sizes);
      llvm::append_range(descriptor, argument.array.strides);
      pointers[place] = descriptor.data();
      packed[place] = &pointers[place];
      break;
    }
    case KernelArgument::F32:
      packed[place] = &reals[place];
      break;
    case KernelArgument::Index:
    case KernelArgument::I32:
    case KernelArgument::I64:
      packed[place] = &integers[place];
      break;
    }
  }

  std::atomic<int64_t> next{0};
  auto work = [&] {
    std::vector<void *> mine = packed;
    for (int64_t point = next++; point < points; point = next++) {
      int64_t end = point + 1;
      mine[arguments.size()] = &point;
      mine[arguments.size() + 1] = &end;
      function(mine.data());
    }
  };
  auto threads = std::min<int64_t>(pool.getMaxConcurrency(), points);
  if (threads <= 1) {
    work();
    return llvm::Error::success();
  }
  // This thread works too: it would only wait, and is awake already.
  llvm::ThreadPoolTaskGroup group(pool);
  for (int64_t thread = 1; thread < threads; ++thread) {
    group.async(work);
  }
  work();
  group.wait();
  return llvm::Error::success();
}
