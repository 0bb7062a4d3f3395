//===- Options.h - the command line of attnfuse-run ------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_OPTIONS_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_OPTIONS_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace attnfuse::run {

struct Options {
  std::string program;
  std::string entry;
  std::string device;
  /// Extents by name, from --set.
  std::map<std::string, int64_t> extents;
  /// Files for arguments, by name or number, and for results, by number.
  std::map<std::string, std::string> inputs, outputs;
  uint64_t seed = 0;
  unsigned threads = 0;
  bool allowEmpty = false;

  bool check = false;
  int64_t checkRows = 0;
  bool bench = false, flush = false;
  int64_t warmup = 0, repetitions = 0;
  bool explain = false;
  std::string emit;
  std::string dumpPhases;
  std::string json;
  /// Passed on to the pipeline: chip, block-m, block-n, rope.
  std::string rope, chip;
  int64_t blockM = 0, blockN = 0, warps = 0, stages = 0;
  /// Further options of the pipeline, as it takes them.
  std::string pipeline;
  /// Who makes machine code for a GPU: "driver" or "ptxas".
  std::string assembler;
};

/// Reads the command line; an error says which flag is wrong and what it takes.
llvm::Expected<Options> parseOptions(int argc, char **argv);

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_OPTIONS_H
