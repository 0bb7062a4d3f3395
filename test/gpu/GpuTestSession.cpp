//===- GpuTestSession.cpp - programs on a GPU ----------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "../execution/Session.h"

#include "AttnFuse/Pipelines/GpuCompiler.h"
#include "AttnFuse/Pipelines/Pipelines.h"
#include "AttnFuse/Target/NVPTX/GpuSession.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::test;

struct Session::State {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> source;
  std::unique_ptr<GpuSession> gpu;
};

/// $ATTNFUSE_TEST_CHIP, or the device's own.
static llvm::Expected<std::string> chipUnderTest(const GpuSession &gpu) {
  if (const char *chip = std::getenv("ATTNFUSE_TEST_CHIP")) {
    return chip;
  }
  return gpu.chip();
}

static llvm::Error load(GpuSession &gpu, ModuleOp source, func::FuncOp function,
                        const std::string &rope) {
  auto chip = chipUnderTest(gpu);
  if (!chip) {
    return chip.takeError();
  }
  PipelineOptions options;
  options.rope = rope;
  options.chip = *chip;
  auto program = compileForGpu(source, function, options, {});
  if (!program) {
    return program.takeError();
  }
  if (llvm::Error error = gpu.load(program->ptx, program->manifest)) {
    return error;
  }
  for (const attnfuse_kernel_info &kernel : gpu.kernels()) {
    if (kernel.spill_bytes && std::getenv("ATTNFUSE_TEST_SPILLS")) {
      std::printf("spills %d bytes: %s\n", kernel.spill_bytes, kernel.name);
    }
  }
  return llvm::Error::success();
}

Session::Session(const std::string &text, const std::string &rope)
    : state(std::make_unique<State>()) {
  state->source = parseProgram(text, *state->context);
  if (!state->source) {
    return;
  }
  auto gpu = GpuSession::open(0);
  if (!gpu) {
    ADD_FAILURE() << llvm::toString(gpu.takeError());
  } else if (llvm::Error error =
                 load(**gpu, *state->source, function(), rope)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
  } else {
    state->gpu = std::move(*gpu);
  }
}

Session::~Session() = default;

bool Session::ready() const { return state->gpu != nullptr; }

func::FuncOp Session::function() const {
  return state->source->lookupSymbol<func::FuncOp>("main");
}

llvm::Expected<std::vector<HostTensor>>
Session::run(llvm::ArrayRef<HostTensor> arguments) {
  if (llvm::Error error = state->gpu->bind(arguments)) {
    return std::move(error);
  }
  if (llvm::Error error = state->gpu->run(/*poison=*/true)) {
    return std::move(error);
  }
  return state->gpu->results();
}

reference::Options Session::oracle() {
  reference::Options options;
  options.matrixUnits = true;
  options.threads = 2;
  return options;
}
