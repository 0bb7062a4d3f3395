//===- RopeCostTest.cpp - the Rotation Calculus -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/RopeCost.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace attnfuse;

static ChipDescription chipOf(llvm::StringRef name) {
  return llvm::cantFail(lookupChip(name));
}

/// A chip with numbers that are easy to follow.
static ChipDescription simpleChip(ChipDescription::Kind kind) {
  ChipDescription chip;
  chip.kind = kind;
  chip.units = 10;
  chip.clock = 1e9;
  chip.bandwidth = 1e9;
  chip.launch = 1e-6;
  chip.cyclesPerAngle = 0.5;
  chip.cyclesPerPair = 1.5;
  chip.hidden = 0.25;
  return chip;
}

static RopeProblem simpleProblem() {
  RopeProblem problem;
  problem.batch = 2;
  problem.queryHeads = 6;
  problem.keyHeads = 3;
  problem.queries = 100;
  problem.keys = 200;
  problem.width = 8;
  problem.rotary = 4;
  problem.blockM = 32;
  problem.blockN = 64;
  return problem;
}

TEST(RopeCost, Formulas) {
  RopeProblem problem = simpleProblem();
  problem.visited = 0.5;
  RopeCost gpu = estimate(problem, simpleChip(ChipDescription::GPU));
  // 0.5 * 2 * 6 * ceil(100/32) * ceil(200/64) tiles of 64 * 2 pairs.
  EXPECT_DOUBLE_EQ(gpu.inLoop, 6.0 * 4 * 4 * 128 * 2 * 0.75 / 1e10);
  // 2 * 3 * 200 rows of 8 * (2 + 2) bytes.
  EXPECT_DOUBLE_EQ(gpu.once, 1e-6 + 1200.0 * 8 * 4 / 1e9);
  RopeCost cpu = estimate(problem, simpleChip(ChipDescription::CPU));
  EXPECT_DOUBLE_EQ(cpu.inLoop, gpu.inLoop);
  // f32 out, and the arithmetic of 2 pairs a row on top.
  EXPECT_NEAR(cpu.once, 1e-6 + 1200.0 * 8 * 6 / 1e9 + 1200.0 * 2 * 2 / 1e10,
              1e-15);
}

TEST(RopeCost, CrossoverSeparates) {
  for (const char *name : {"cpu-avx2", "cpu-avx512", "sm_80", "sm_90a"}) {
    for (int64_t queryHeads : {1, 8, 32}) {
      for (double visited : {0.1, 0.5, 1.0}) {
        RopeProblem problem;
        problem.queryHeads = queryHeads;
        problem.visited = visited;
        ChipDescription chip = chipOf(name);
        int64_t crossover = estimate(problem, chip).crossover;
        ASSERT_GE(crossover, 0);
        ASSERT_LT(crossover, int64_t(1) << 40);
        problem.queries = problem.keys = 2 * crossover + 256;
        EXPECT_TRUE(estimate(problem, chip).onceIsFaster());
        if (crossover > 512) {
          problem.queries = problem.keys = crossover - 256;
          EXPECT_FALSE(estimate(problem, chip).onceIsFaster());
        }
      }
    }
  }
}

TEST(RopeCost, CrossoverExtremes) {
  ChipDescription chip = simpleChip(ChipDescription::GPU);
  chip.launch = 0;
  chip.bandwidth = 1e15;
  // A tile of keys costs more than the one key there is.
  EXPECT_EQ(estimate(simpleProblem(), chip).crossover, 0);
  chip.hidden = 1;
  EXPECT_EQ(estimate(simpleProblem(), chip).crossover,
            std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(estimate(simpleProblem(), chip).onceIsFaster());
}

TEST(RopeCost, NoKeysOrQueries) {
  RopeProblem problem = simpleProblem();
  problem.queries = 0;
  EXPECT_EQ(estimate(problem, chipOf("sm_90a")).inLoop, 0);
  problem = simpleProblem();
  problem.keys = 0;
  EXPECT_EQ(estimate(problem, chipOf("sm_90a")).inLoop, 0);
  problem.keys = problem.queries = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(std::isfinite(estimate(problem, chipOf("sm_90a")).inLoop));
}

/// What was measured on an H200 with 4 x 16 heads of 4096 rows of 128 in bf16:
/// in the loop +38..41 % of about 0.88 ms, in three groups of 64 query rows; a
/// copy of the keys 35 us.
TEST(RopeCost, Hopper) {
  RopeProblem problem;
  problem.batch = 4;
  problem.queryHeads = problem.keyHeads = 16;
  problem.queries = problem.keys = 4096;
  ChipDescription chip = chipOf("sm_90a");
  RopeCost cost = estimate(problem, chip);
  EXPECT_TRUE(cost.onceIsFaster());
  EXPECT_NEAR(cost.once, 35e-6, 5e-6);
  EXPECT_GT(cost.inLoop, 0.3 * 0.88e-3);
  EXPECT_LT(cost.inLoop, 0.5 * 0.88e-3);
  EXPECT_LT(cost.crossover, 2048);

  // Grouped heads: the same queries share a quarter of the keys.
  problem.keyHeads = 4;
  EXPECT_LT(estimate(problem, chip).once, cost.once / 2);
  EXPECT_LT(estimate(problem, chip).crossover, cost.crossover);

  // Short ones: not worth a launch.
  problem.batch = 1;
  problem.queries = problem.keys = 256;
  EXPECT_FALSE(estimate(problem, chip).onceIsFaster());

  // Decoding reads each key tile once per head.
  problem.keyHeads = 16;
  problem.queries = 1;
  problem.keys = 4096;
  EXPECT_FALSE(estimate(problem, chip).onceIsFaster());
}
