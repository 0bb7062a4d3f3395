//===- CpuSession.cpp - programs on this CPU ------------------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "AttnFuse/Pipelines/Pipelines.h"
#include "AttnFuse/Target/CPU/CpuProgram.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ThreadPool.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::test;

struct Session::State {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> source, lowered;
  std::unique_ptr<CpuProgram> program;
};

Session::Session(const std::string &text, const std::string &rope)
    : state(std::make_unique<State>()) {
  state->source = parseProgram(text, *state->context);
  if (!state->source) {
    return;
  }
  state->lowered = state->source->clone();
  PassManager pm(state->context.get());
  PipelineOptions options;
  options.rope = rope;
  buildAttnFuseToCPU(pm, options);
  if (failed(pm.run(*state->lowered))) {
    return;
  }
  auto compiled = CpuProgram::compile(*state->lowered);
  if (!compiled) {
    ADD_FAILURE() << llvm::toString(compiled.takeError());
    return;
  }
  state->program = std::move(*compiled);
}

Session::~Session() = default;

bool Session::ready() const { return state->program != nullptr; }

func::FuncOp Session::function() const {
  return state->source->lookupSymbol<func::FuncOp>("main");
}

llvm::Expected<std::vector<HostTensor>>
Session::run(llvm::ArrayRef<HostTensor> arguments) {
  static llvm::DefaultThreadPool threads(llvm::hardware_concurrency(2));
  return state->program->run(state->lowered->lookupSymbol<func::FuncOp>("main"),
                             arguments, threads,
                             /*poison=*/true);
}

reference::Options Session::oracle() { return {}; }
