//===- GpuRun.cpp - a program on a GPU -------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "GpuRun.h"
#include "Compile.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Target/NVPTX/GpuSession.h"
#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::run;

static bool isGpuChip(StringRef chip) { return chip.starts_with("sm_"); }

/// Whether the chip to compile for is known and of the kind of the device.
static llvm::Error checkChip(const Options &options) {
  if (options.chip.empty()) {
    return llvm::Error::success();
  }
  auto known = lookupChip(options.chip);
  if (!known) {
    return llvm::createStringError("--chip: " +
                                   llvm::toString(known.takeError()));
  }
  StringRef device = options.device;
  bool isGpu = known->kind == ChipDescription::GPU;
  if (options.emit.empty() && device == "cpu" && isGpu) {
    return llvm::createStringError(
        "--chip=" + options.chip +
        " names a GPU, and --device=cpu is none; leave one of them out, or use "
        "--emit=ptx to see the code for that chip");
  }
  if (options.emit.empty() && device.starts_with("cuda") && !isGpu) {
    return llvm::createStringError(
        "--chip=" + options.chip +
        " is no GPU, and --device=" + options.device +
        " is one; leave one of "
        "them out");
  }
  return llvm::Error::success();
}

llvm::Expected<std::optional<int>>
attnfuse::run::selectGpu(const Options &options) {
  StringRef device = options.device;
  if (llvm::Error error = checkChip(options)) {
    return std::move(error);
  }
  if (device == "cpu") {
    return std::nullopt;
  }
  int32_t count = 0;
  if (device.empty()) {
    bool found = attnfuse_device_count(&count) == ATTNFUSE_OK && count > 0;
    if (!found && options.emit.empty() && isGpuChip(options.chip)) {
      std::string why = attnfuse_last_error();
      return llvm::createStringError(
          "--chip=" + options.chip + " names a GPU, and there is none here" +
          (why.empty() ? "" : " (" + why + ")") +
          "; leave --chip out to run on the CPU, or use --emit=ptx, "
          "--emit=cubin or --emit=tile to see the code for that chip");
    }
    return found ? std::optional<int>(0) : std::nullopt;
  }
  unsigned number = 0;
  StringRef rest = device;
  if (!rest.consume_front("cuda") ||
      (!rest.empty() &&
       !(rest.consume_front(":") && !rest.getAsInteger(10, number)))) {
    return llvm::createStringError("--device=" + options.device +
                                   ": expected cpu or cuda[:n]");
  }
  if (attnfuse_device_count(&count) != ATTNFUSE_OK) {
    return llvm::createStringError("--device=" + options.device + ": " +
                                   attnfuse_last_error());
  }
  if (static_cast<int64_t>(number) >= count) {
    return llvm::createStringError(
        "--device=" + options.device + ": there " +
        (count == 1 ? "is 1 GPU" : "are " + std::to_string(count) + " GPUs") +
        ", numbered from 0; use another number, or --device=cpu");
  }
  return static_cast<int>(number);
}

static std::string describe(const attnfuse_device_info &info, int ordinal,
                            StringRef chip) {
  std::string text = "cuda:" + std::to_string(ordinal) + " (" + info.name +
                     ", " + chip.str() + ", " + std::to_string(info.units) +
                     " multiprocessors, driver " +
                     std::to_string(info.driver_version / 1000) + "." +
                     std::to_string(info.driver_version % 1000 / 10) + ")";
  return text;
}

static std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

llvm::Error attnfuse::run::runOnGpu(int ordinal, ModuleOp module,
                                    func::FuncOp function,
                                    ArrayRef<HostTensor> inputs,
                                    const Options &options,
                                    int64_t typicalLength, Report &report) {
  auto session = GpuSession::open(ordinal);
  if (!session) {
    return session.takeError();
  }
  GpuSession &gpu = **session;
  std::string chip = options.chip;
  if (chip.empty()) {
    auto own = gpu.chip();
    if (!own) {
      return own.takeError();
    }
    chip = *own;
  }
  report.device = describe(gpu.device(), ordinal, chip);

  std::vector<std::string> names;
  for (const Argument &argument : report.arguments) {
    names.push_back(argument.name);
  }
  auto program =
      compileForGpuChip(module, function, options, chip, typicalLength, names);
  if (!program) {
    return program.takeError();
  }
  double start = seconds();
  std::string code = program->ptx, log;
  if (options.assembler == "ptxas") {
    auto cubin = assemblePTX(program->ptx, chip, log);
    if (!cubin) {
      return cubin.takeError();
    }
    code = std::move(*cubin);
  }
  if (llvm::Error error = gpu.load(code, program->manifest)) {
    return error;
  }
  log = log.empty() ? gpu.log() : log;
  report.loadSeconds = seconds() - start;
  report.passSeconds = program->passSeconds;
  report.codeSeconds = program->codeSeconds;
  report.explanation = program->explanation;
  for (const attnfuse_kernel_info &kernel : gpu.kernels()) {
    report.explanation.push_back(
        std::string("kernel ") + kernel.name + ": " +
        std::to_string(kernel.threads) + " threads, " +
        std::to_string(kernel.registers) + " registers, " +
        std::to_string(kernel.spill_bytes) + " bytes spilled, " +
        std::to_string(kernel.shared_bytes) + " bytes of shared memory, " +
        std::to_string(kernel.blocks_per_unit) + " blocks per multiprocessor");
  }

  SmallVector<StringRef> lines;
  StringRef(log).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    // What the assembler holds against the code: each costs speed.
    if (line.contains("C75") || line.contains("arning")) {
      report.explanation.push_back("assembler: " + line.trim().str());
    }
  }

  if (llvm::Error error = gpu.bind(inputs)) {
    return error;
  }
  // The first run is the one that is checked: its outputs were poisoned.
  start = seconds();
  if (llvm::Error error = gpu.run(/*poison=*/true)) {
    return error;
  }
  report.firstRunSeconds = seconds() - start;
  auto results = gpu.results();
  if (!results) {
    return results.takeError();
  }
  report.results = *results;

  if (options.check || options.bench) {
    Timing timing;
    timing.warmup = options.warmup;
    auto first = gpu.time(static_cast<int>(options.warmup) + 1, options.flush);
    if (!first) {
      return first.takeError();
    }
    double budget = options.bench ? 1.0 : 0.3;
    double typical = std::max(first->back(), 1e-6);
    int64_t count = options.repetitions
                        ? options.repetitions
                        : std::clamp<int64_t>(
                              static_cast<int64_t>(budget / typical), 5, 1000);
    auto runs = gpu.time(static_cast<int>(count), options.flush);
    if (!runs) {
      return runs.takeError();
    }
    timing.runs = *runs;
    report.timing = timing;
    // Against the chip's matrix units, which the table of chips describes.
    auto description = lookupChip(chip);
    double flops = countFlops(function, inputs);
    if (description && flops > 0) {
      report.roofline =
          percent(flops / timing.median() / description->matrixFlops) + " of " +
          chip + "'s matrix rate";
    } else if (!description) {
      llvm::consumeError(description.takeError());
    }
  }
  return llvm::Error::success();
}
