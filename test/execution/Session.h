//===- Session.h - a compiled program under test ---------------- -*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TEST_EXECUTION_SESSION_H
#define ATTNFUSE_TEST_EXECUTION_SESSION_H

#include "AttnFuse/Reference/Evaluator.h"
#include "AttnFuse/Support/HostTensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>

namespace attnfuse::test {

/// A program compiled for the target under test (CpuSession.cpp, or
/// test/gpu/GpuTestSession.cpp), beside its source for the oracle.
class Session {
public:
  Session(const std::string &text, const std::string &rope);
  ~Session();

  /// False if it did not compile; the reason has been reported.
  bool ready() const;
  mlir::func::FuncOp function() const;
  /// Runs it once, on poisoned outputs.
  llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> arguments);

  /// How the oracle has to compare this target's results.
  static reference::Options oracle();

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Parses a module, or returns null with the errors printed.
mlir::OwningOpRef<mlir::ModuleOp> parseProgram(const std::string &text,
                                               mlir::MLIRContext &context);
std::unique_ptr<mlir::MLIRContext> makeContext();

} // namespace attnfuse::test

#endif // ATTNFUSE_TEST_EXECUTION_SESSION_H
