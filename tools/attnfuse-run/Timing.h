//===- Timing.h - repeated runs --------------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_ATTNFUSE_RUN_TIMING_H
#define ATTNFUSE_TOOLS_ATTNFUSE_RUN_TIMING_H

#include "Options.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace attnfuse::run {

/// Seconds on a clock that only goes forward.
double seconds();

/// Times of repeated runs, in seconds.
struct Timing {
  std::vector<double> runs;
  int64_t warmup = 0;
  /// The q-th quantile, 0 to 1, interpolated.
  double quantile(double q) const;
  double median() const { return quantile(0.5); }
};

/// Warm-up, then as many runs as --repetitions says: by default for about a
/// second with --bench and a third of one without, from 5 to 1000 runs.
llvm::Expected<Timing> timeRuns(const Options &options, double firstRunSeconds,
                                llvm::function_ref<llvm::Error()> run);

} // namespace attnfuse::run

#endif // ATTNFUSE_TOOLS_ATTNFUSE_RUN_TIMING_H
