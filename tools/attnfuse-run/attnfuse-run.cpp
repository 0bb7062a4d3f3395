//===- attnfuse-run.cpp - run, check and time a program --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "GpuRun.h"
#include "Inputs.h"
#include "Options.h"
#include "Report.h"
#include "Timing.h"

#include "AttnFuse/Reference/ShapeCheck.h"
#include "AttnFuse/Support/TensorIO.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::run;

static int64_t longestOf(ArrayRef<Argument> arguments) {
  int64_t longest = 1;
  for (const Argument &argument : arguments) {
    if (argument.value.rank() == 4) {
      longest = std::max(longest, argument.value.shape()[2]);
    }
  }
  return longest;
}

static llvm::Error writeOutputs(const Options &options,
                                ArrayRef<HostTensor> results) {
  for (auto &[number, file] : options.outputs) {
    if (llvm::Error error = writeTensor(file, results[std::stoul(number)])) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Compiles, runs and times the program on this CPU; fills in the report.
static llvm::Error runOnCpu(ModuleOp module, func::FuncOp function,
                            ArrayRef<HostTensor> inputs, const Options &options,
                            int64_t typicalLength, Report &report) {
  auto compiled = compileForCPU(module, options, typicalLength);
  if (!compiled) {
    return compiled.takeError();
  }
  report.passSeconds = compiled->passSeconds;
  report.codeSeconds = compiled->codeSeconds;
  report.explanation = compiled->explanation;
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(options.threads));
  auto entry =
      compiled->module->lookupSymbol<func::FuncOp>(function.getSymName());

  // The first run is the one that is checked: its outputs were poisoned.
  double start = seconds();
  auto results = compiled->program->run(entry, inputs, pool, /*poison=*/true);
  if (!results) {
    return results.takeError();
  }
  report.firstRunSeconds = seconds() - start;
  report.results = *results;
  if (options.check || options.bench) {
    // Outputs of the runs below go to memory of their own.
    auto timing =
        timeRuns(options, report.firstRunSeconds, [&]() -> llvm::Error {
          auto again = compiled->program->run(entry, inputs, pool);
          return again ? llvm::Error::success() : again.takeError();
        });
    if (!timing) {
      return timing.takeError();
    }
    report.timing = *timing;
    report.kernelTimes = compiled->program->kernelTimes();
  }
  return llvm::Error::success();
}

static llvm::Error runProgram(const Options &options) {
  auto gpu = selectGpu(options);
  if (!gpu) {
    return gpu.takeError();
  }
  std::string message;
  auto file = openInputFile(options.program, &message);
  if (!file) {
    return llvm::createStringError(message);
  }
  std::string source = file->getBuffer().str();
  MLIRContext context(makeRegistry(), MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module) {
    return llvm::createStringError("'" + options.program +
                                   "' is not a valid program");
  }
  if (!options.emit.empty()) {
    return emitForm(*module, options);
  }
  auto function = findEntry(*module, options);
  if (!function) {
    return function.takeError();
  }

  Report report;
  report.device = describeHost(options.threads);
  report.program = options.program;
  report.function = function->getSymName().str();

  // Everything that can be refused is, before anything is compiled.
  size_t numResults = function->getNumResults();
  for (auto &[number, file] : options.outputs) {
    if (std::stoul(number) >= numResults) {
      return llvm::createStringError(
          "--output " + number + "=" + file + ": the function has " +
          llvm::Twine(numResults) + " results, numbered from 0");
    }
    if (llvm::Error error = checkWritable(file)) {
      return error;
    }
  }
  if (llvm::Error error = checkJson(options.json)) {
    return error;
  }
  auto arguments = makeInputs(*function, source, options);
  if (!arguments) {
    return arguments.takeError();
  }
  report.arguments = *arguments;
  std::vector<HostTensor> inputs;
  for (const Argument &argument : *arguments) {
    inputs.push_back(argument.value);
  }
  if (llvm::Error error = reference::checkInputs(*function, inputs)) {
    return error;
  }

  llvm::Error ran = *gpu ? runOnGpu(**gpu, *module, *function, inputs, options,
                                    longestOf(*arguments), report)
                         : runOnCpu(*module, *function, inputs, options,
                                    longestOf(*arguments), report);
  if (ran) {
    return ran;
  }
  if (llvm::Error error = writeOutputs(options, report.results)) {
    return error;
  }
  if (options.check) {
    reference::Options oracle;
    oracle.threads = options.threads;
    oracle.maxRowsPerHead = options.checkRows;
    oracle.matrixUnits = gpu->has_value();
    auto checks = reference::compare(*function, inputs, report.results, oracle);
    if (!checks) {
      return checks.takeError();
    }
    report.checks = *checks;
  }
  report.flops = countFlops(*function, inputs);

  if (options.json != "-") {
    printReport(llvm::outs(), report, options);
  }
  if (!options.json.empty()) {
    if (llvm::Error error = writeJson(options.json, report)) {
      return error;
    }
  }
  for (const reference::Comparison &check : report.checks) {
    if (!check.passed()) {
      return llvm::createStringError(
          "a result is further from the oracle than its tolerance");
    }
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  auto options = parseOptions(argc, argv);
  llvm::Error error = options ? runProgram(*options) : options.takeError();
  if (error) {
    llvm::outs().flush();
    llvm::errs() << "attnfuse-run: " << llvm::toString(std::move(error))
                 << "\n";
    return 1;
  }
  return 0;
}
