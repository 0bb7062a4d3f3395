//===- Timing.cpp - repeated runs ------------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace attnfuse::run;

double attnfuse::run::seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Timing::quantile(double q) const {
  std::vector<double> sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  double place = q * static_cast<double>(sorted.size() - 1);
  auto low = static_cast<size_t>(std::floor(place));
  size_t high = std::min(low + 1, sorted.size() - 1);
  double share = place - static_cast<double>(low);
  return sorted[low] * (1 - share) + sorted[high] * share;
}

llvm::Expected<Timing>
attnfuse::run::timeRuns(const Options &options, double firstRunSeconds,
                        llvm::function_ref<llvm::Error()> run) {
  Timing timing;
  double budget = options.bench ? 1.0 : 0.3;
  // A program that takes seconds needs no warm-up beyond its first run.
  timing.warmup = firstRunSeconds > budget ? 0 : options.warmup;
  for (int64_t n = 0; n < timing.warmup; ++n) {
    if (llvm::Error error = run()) {
      return std::move(error);
    }
  }
  int64_t least = options.repetitions ? options.repetitions : 5;
  int64_t most = options.repetitions ? options.repetitions : 1000;
  double begin = seconds();
  for (int64_t n = 0; n < most; ++n) {
    if (n >= least && seconds() - begin > budget) {
      break;
    }
    double start = seconds();
    if (llvm::Error error = run()) {
      return std::move(error);
    }
    timing.runs.push_back(seconds() - start);
  }
  return timing;
}
