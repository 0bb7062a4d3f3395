//===- ParseProgram.cpp - text to module --------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "AttnFuse/InitAll.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

std::unique_ptr<MLIRContext> attnfuse::test::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return std::make_unique<MLIRContext>(registry,
                                       MLIRContext::Threading::DISABLED);
}

OwningOpRef<ModuleOp> attnfuse::test::parseProgram(const std::string &text,
                                                   MLIRContext &context) {
  return parseSourceString<ModuleOp>(text, &context);
}
