//===- Report.h - what attnfuse-run prints ---------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_REPORT_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_REPORT_H

#include "Inputs.h"
#include "Timing.h"

#include "AttnFuse/Reference/Compare.h"

#include <optional>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace attnfuse::run {

struct Report {
  std::string device, program, function;
  std::vector<Argument> arguments;
  std::vector<HostTensor> results;
  double passSeconds = 0, codeSeconds = 0, firstRunSeconds = 0;
  /// GPUs: what the driver takes to load the code.
  double loadSeconds = 0;
  /// The share of a limit that was reached, in words.
  std::string roofline;
  std::vector<std::string> explanation;
  std::vector<reference::Comparison> checks;
  std::optional<Timing> timing;
  std::vector<std::pair<std::string, double>> kernelTimes;
  /// Operations of the products, every pair of query and key counted.
  double flops = 0;
};

/// "cpu (znver4, 2 threads, 512-bit vectors)".
std::string describeHost(unsigned threads);

/// 2 (D + Dv) per pair of query and key, heads and batch, for each attention
/// whose extents are known from the arguments.
double countFlops(mlir::func::FuncOp function,
                  llvm::ArrayRef<HostTensor> inputs);

void printReport(llvm::raw_ostream &stream, const Report &report,
                 const Options &options);
llvm::Error writeJson(llvm::StringRef path, const Report &report);
/// Whether there is a place for it; used before any work is done.
llvm::Error checkJson(llvm::StringRef path);

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_REPORT_H
