//===- RopeCost.cpp - the Rotation Calculus --------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/RopeCost.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attnfuse;

/// No tensor is as long as this.
static constexpr int64_t kLongest = int64_t(1) << 40;

/// Seconds to rotate so many pairs of dimensions, all units at work.
static double rotation(double pairs, const ChipDescription &chip) {
  return pairs * (chip.cyclesPerAngle + chip.cyclesPerPair) /
         (static_cast<double>(chip.units) * chip.clock);
}

static double inLoop(const RopeProblem &p, const ChipDescription &chip) {
  double tiles =
      p.visited * static_cast<double>(p.batch) *
      static_cast<double>(p.queryHeads) *
      std::ceil(static_cast<double>(p.queries) /
                static_cast<double>(p.blockM)) *
      std::ceil(static_cast<double>(p.keys) / static_cast<double>(p.blockN));
  double pairs =
      tiles * static_cast<double>(p.blockN) * static_cast<double>(p.rotary) / 2;
  return rotation(pairs, chip) * (1 - chip.hidden);
}

static double once(const RopeProblem &p, const ChipDescription &chip) {
  bool isGpu = chip.kind == ChipDescription::GPU;
  double rows = static_cast<double>(p.batch) * static_cast<double>(p.keyHeads) *
                static_cast<double>(p.keys);
  // CPU kernels convert keys to f32 anyway and read them back as such.
  double bytes =
      static_cast<double>(p.bytesPerElement + (isGpu ? p.bytesPerElement : 4));
  double memory = rows * static_cast<double>(p.width) * bytes / chip.bandwidth;
  double arithmetic = rotation(rows * static_cast<double>(p.rotary) / 2, chip);
  // The many warps of a GPU compute while others wait for memory: a rotation
  // of 4 x 16 heads of 4096 keys took as long as a copy of them on an H200.
  return chip.launch +
         (isGpu ? std::max(memory, arithmetic) : memory + arithmetic);
}

static int64_t crossover(RopeProblem problem, const ChipDescription &chip) {
  auto onceWins = [&](int64_t length) {
    problem.queries = problem.keys = length;
    return once(problem, chip) <= inLoop(problem, chip);
  };
  if (onceWins(1)) {
    return 0;
  }
  if (!onceWins(kLongest)) {
    return std::numeric_limits<int64_t>::max();
  }
  int64_t loses = 1, wins = kLongest;
  while (wins - loses > 1) {
    int64_t middle = loses + (wins - loses) / 2;
    (onceWins(middle) ? wins : loses) = middle;
  }
  return wins;
}

RopeCost attnfuse::estimate(const RopeProblem &problem,
                            const ChipDescription &chip) {
  return {inLoop(problem, chip), once(problem, chip), crossover(problem, chip)};
}
