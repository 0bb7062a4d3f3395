//===- GpuScheduleTest.cpp - tiling for GPUs -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/GpuSchedule.h"

#include "AttnFuse/Analysis/Chip.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <tuple>

using namespace attnfuse;
using testing::HasSubstr;

static constexpr const char *kChips[] = {"sm_80",  "sm_86",  "sm_89", "sm_90",
                                         "sm_90a", "sm_100", "sm_120"};

static int64_t sharedMemoryOf(const char *chip) {
  return llvm::cantFail(lookupChip(chip)).sharedMemory;
}

static GpuProblem problem(int64_t width, int64_t bytes) {
  GpuElement element = bytes == 4 ? GpuElement::F32 : GpuElement::BF16;
  return {width, width, element, element};
}

static void expectFits(const GpuBlocks &blocks, const GpuProblem &problem,
                       int64_t sharedMemory) {
  EXPECT_LE(portableSharedBytes(blocks, problem), sharedMemory);
  EXPECT_LE(portableRegisters(blocks, problem), 255);
  EXPECT_GE(blocks.warps, 1);
  EXPECT_LE(blocks.warps, 32);
  EXPECT_GE(blocks.stages, 1);
  EXPECT_LE(blocks.stages, 8);
  EXPECT_EQ(blocks.blockM % (16 * blocks.warps), 0);
  // Whole steps of the product of weights and values.
  EXPECT_EQ(blocks.blockN % (problem.value == GpuElement::F32 ? 8 : 16), 0);
}

TEST(GpuSchedule, EveryWidthFitsEveryChip) {
  for (const char *chip : kChips) {
    int64_t sharedMemory = sharedMemoryOf(chip);
    for (int64_t bytes : {2, 4}) {
      for (int64_t width = 1; width <= 256; ++width) {
        SCOPED_TRACE(testing::Message()
                     << chip << ", width " << width << ", " << bytes);
        std::string considered;
        auto blocks = choosePortableBlocks(problem(width, bytes), sharedMemory,
                                           &considered);
        ASSERT_TRUE(blocks) << considered;
        expectFits(*blocks, problem(width, bytes), sharedMemory);
      }
    }
  }
}

/// Every pair of widths that a program may have, of every pair of types.
TEST(GpuSchedule, ValuesOfOtherWidthsAndTypes) {
  static constexpr GpuElement elements[] = {GpuElement::F32, GpuElement::F16,
                                            GpuElement::BF16};
  for (const char *chip : kChips) {
    int64_t sharedMemory = sharedMemoryOf(chip);
    for (int64_t width : {1, 32, 40, 64, 80, 96, 128, 192, 256}) {
      for (int64_t valueWidth : {0, 1, 32, 40, 64, 80, 96, 128, 192, 256}) {
        for (GpuElement element : elements) {
          for (GpuElement value : elements) {
            GpuProblem mix{width, valueWidth, element, value};
            SCOPED_TRACE(testing::Message()
                         << chip << ", widths " << width << " and "
                         << valueWidth << ", types " << int(element) << " and "
                         << int(value));
            std::string considered;
            auto blocks = choosePortableBlocks(mix, sharedMemory, &considered);
            ASSERT_TRUE(blocks) << considered;
            expectFits(*blocks, mix, sharedMemory);
          }
        }
      }
    }
  }
}

/// The bytes of the rings, counted as an allocation of them would.
TEST(GpuSchedule, SharedBytesAreTheRings) {
  // 128 x 64 queries, two slots of 64 x 64 keys and as many values.
  EXPECT_EQ(portableSharedBytes({128, 64, 4, 2}, problem(64, 2)),
            (128 * 64 + 2 * 64 * 64 + 2 * 64 * 64) * 2);
  EXPECT_EQ(portableSharedBytes({128, 64, 4, 1}, problem(64, 2)),
            (128 * 64 + 64 * 64 + 64 * 64) * 2);
  EXPECT_EQ(portableSharedBytes({64, 32, 4, 1}, problem(64, 4)),
            (64 * 64 + 32 * 64 + 32 * 64) * 4);
  // Rows are padded to 16 columns of 16 bits, 8 of 32.
  EXPECT_EQ(portableSharedBytes({64, 64, 4, 1}, problem(33, 2)),
            portableSharedBytes({64, 64, 4, 1}, problem(48, 2)));
  EXPECT_EQ(portableSharedBytes({64, 64, 4, 1}, problem(33, 4)),
            portableSharedBytes({64, 64, 4, 1}, problem(40, 4)));
  // Each starts at a multiple of 1024.
  EXPECT_EQ(portableSharedBytes({16, 16, 1, 1}, problem(16, 2)), 3 * 1024);
  // No values: neither their slots nor a result.
  GpuProblem none = problem(64, 2);
  none.valueWidth = 0;
  EXPECT_EQ(portableSharedBytes({128, 64, 4, 2}, none),
            (128 * 64 + 2 * 64 * 64) * 2);
}

/// A result that the queries' slot does not take has a slot of its own: one of
/// another width, size or type.
TEST(GpuSchedule, ResultsOfOtherWidthOrType) {
  GpuBlocks blocks{64, 32, 4, 1};
  int64_t slot = 64 * 64 * 2;
  GpuProblem same = problem(64, 2), wider = same, narrower = same, other = same;
  EXPECT_TRUE(resultsTakeQuerySlot(same));
  wider.value = GpuElement::F32;
  EXPECT_FALSE(resultsTakeQuerySlot(wider));
  EXPECT_EQ(portableSharedBytes(blocks, wider),
            portableSharedBytes(blocks, same) + 32 * 64 * 2 + 2 * slot);
  narrower.valueWidth = 32;
  EXPECT_FALSE(resultsTakeQuerySlot(narrower));
  EXPECT_EQ(portableSharedBytes(blocks, narrower),
            portableSharedBytes(blocks, same) - 32 * 32 * 2 + slot / 2);
  // Of one size: the slot is one of f16 and cannot be stored as bf16.
  other.element = GpuElement::F16;
  EXPECT_FALSE(resultsTakeQuerySlot(other));
  EXPECT_EQ(portableSharedBytes(blocks, other),
            portableSharedBytes(blocks, same) + slot);
  // Widths that padding makes equal.
  GpuProblem padded{33, 48, GpuElement::BF16, GpuElement::BF16};
  EXPECT_TRUE(resultsTakeQuerySlot(padded));
}

TEST(GpuSchedule, MoreOfAnythingNeedsNoLess) {
  for (int64_t width : {32, 64, 96, 128, 256}) {
    for (int64_t bytes : {2, 4}) {
      GpuProblem mine = problem(width, bytes);
      int64_t shared = portableSharedBytes({64, 32, 4, 1}, mine);
      int64_t registers = portableRegisters({64, 32, 4, 1}, mine);
      for (GpuBlocks more : {GpuBlocks{128, 32, 4, 1}, GpuBlocks{64, 64, 4, 1},
                             GpuBlocks{64, 32, 4, 2}}) {
        EXPECT_GE(portableSharedBytes(more, mine), shared);
        EXPECT_GE(portableRegisters(more, mine), registers);
      }
    }
  }
}

/// As shared memory shrinks so do the blocks; what was passed over is said, a
/// line per schedule.
TEST(GpuSchedule, ASmallerScheduleIsTried) {
  GpuProblem mine = problem(128, 2);
  int64_t passedOver = 0, needed = INT64_MAX, schedules = 1;
  for (int64_t available = 227 * 1024; available >= 16 * 1024;
       available -= 1024) {
    SCOPED_TRACE(testing::Message() << available << " bytes");
    std::string considered;
    auto blocks = choosePortableBlocks(mine, available, &considered);
    int64_t lines = std::count(considered.begin(), considered.end(), '\n');
    EXPECT_GE(lines, passedOver);
    if (lines) {
      EXPECT_THAT(considered, HasSubstr(" stages: needs "));
      EXPECT_THAT(considered,
                  HasSubstr(" bytes of shared memory, " +
                            std::to_string(available) + " available\n"));
    }
    if (blocks) {
      EXPECT_LE(portableSharedBytes(*blocks, mine), available);
      EXPECT_LE(portableSharedBytes(*blocks, mine), needed);
      needed = portableSharedBytes(*blocks, mine);
      schedules += lines > passedOver;
    }
    passedOver = lines;
  }
  EXPECT_GE(schedules, 3) << "several sizes are there to choose from";
  EXPECT_FALSE(choosePortableBlocks(mine, 15 * 1024, nullptr));
}

TEST(GpuSchedule, SmallChipsGetSmallerBlocks) {
  for (int64_t bytes : {2, 4}) {
    GpuProblem wide = problem(256, bytes);
    auto large = choosePortableBlocks(wide, sharedMemoryOf("sm_90"), nullptr);
    auto small = choosePortableBlocks(wide, sharedMemoryOf("sm_86"), nullptr);
    ASSERT_TRUE(large && small);
    EXPECT_LT(portableSharedBytes(*small, wide),
              portableSharedBytes(*large, wide));
  }
}

TEST(GpuSchedule, WhatCannotFitIsRefusedWithReasons) {
  std::string considered;
  EXPECT_FALSE(choosePortableBlocks(problem(1024, 2), sharedMemoryOf("sm_80"),
                                    &considered));
  EXPECT_THAT(considered, HasSubstr("bytes of shared memory, " +
                                    std::to_string(163 * 1024) + " available"));
  EXPECT_THAT(considered, HasSubstr("32x16, 1 stages: needs"));

  // Enough shared memory, but a row of accumulators is wider than registers.
  considered.clear();
  EXPECT_FALSE(choosePortableBlocks(problem(512, 2), 1 << 30, &considered));
  EXPECT_THAT(considered, HasSubstr(" registers, 255 available"));
  EXPECT_THAT(considered, testing::Not(HasSubstr("shared memory")));
}

//===----------------------------------------------------------------------===//
// sm_90a
//===----------------------------------------------------------------------===//

TEST(HopperSchedule, EveryWidthFits) {
  int64_t sharedMemory = sharedMemoryOf("sm_90a");
  for (bool uneven : {false, true}) {
    for (int64_t width = 1; width <= 256; ++width) {
      for (int64_t valueWidth : {int64_t(0), int64_t(64), width}) {
        SCOPED_TRACE(testing::Message() << "widths " << width << " and "
                                        << valueWidth << ", " << uneven);
        GpuProblem mine = problem(width, 2);
        mine.valueWidth = valueWidth;
        std::string reason;
        auto blocks = chooseHopperBlocks(mine, uneven, sharedMemory, &reason);
        ASSERT_TRUE(blocks) << reason;
        EXPECT_LE(hopperSharedBytes(*blocks, mine), sharedMemory);
        EXPECT_TRUE(hopperRegistersFit(*blocks));
        EXPECT_GE(blocks->consumers, 1);
        EXPECT_LE(blocks->consumers, 4);
        // wgmma takes N in multiples of 8, K of 16.
        EXPECT_EQ(blocks->blockN % 16, 0);
        for (int64_t budget : {blocks->registers, blocks->producerRegisters}) {
          EXPECT_EQ(budget % 8, 0);
          EXPECT_GE(budget, 24);
          EXPECT_LE(budget, 256);
        }
        // Only where the queries' slots take a result exactly.
        if (blocks->sharedResult) {
          EXPECT_TRUE(resultsTakeQuerySlot(mine));
        }
      }
    }
  }
}

TEST(HopperSchedule, ResultsOfAnotherTypeHaveASlot) {
  GpuProblem mine = problem(256, 2);
  int64_t sharedMemory = sharedMemoryOf("sm_90a");
  auto same = chooseHopperBlocks(mine, false, sharedMemory, nullptr);
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->sharedResult);
  mine.element = GpuElement::F16;
  auto other = chooseHopperBlocks(mine, false, sharedMemory, nullptr);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->sharedResult);
  EXPECT_LE(hopperSharedBytes(*other, mine), sharedMemory);
}

TEST(HopperSchedule, RegistersOfALaunch) {
  // 65536 in equal parts: 168 for each of 384 threads, 128 for 512.
  HopperBlocks blocks;
  blocks.consumers = 2;
  blocks.producerRegisters = 24;
  blocks.registers = 240;
  EXPECT_TRUE(hopperRegistersFit(blocks));
  blocks.producerRegisters = 32;
  EXPECT_FALSE(hopperRegistersFit(blocks));
  blocks.consumers = 3;
  blocks.registers = 160;
  EXPECT_TRUE(hopperRegistersFit(blocks));
  blocks.registers = 168;
  EXPECT_FALSE(hopperRegistersFit(blocks));
  // Consumers cannot give back, nor the producer take.
  blocks.registers = 120;
  EXPECT_FALSE(hopperRegistersFit(blocks));
  blocks.registers = 128;
  blocks.producerRegisters = 128;
  EXPECT_TRUE(hopperRegistersFit(blocks));
  // A single consumer has all that a thread can have from the start.
  blocks.consumers = 1;
  blocks.producerRegisters = 24;
  blocks.registers = 240;
  EXPECT_FALSE(hopperRegistersFit(blocks));
}

TEST(HopperSchedule, EveryNumberOfConsumersHasBudgets) {
  for (int64_t consumers = 1; consumers <= 4; ++consumers) {
    HopperBlocks blocks;
    blocks.consumers = consumers;
    std::tie(blocks.registers, blocks.producerRegisters) =
        hopperBudgets(consumers);
    EXPECT_TRUE(hopperRegistersFit(blocks)) << consumers;
  }
}

TEST(HopperSchedule, WhatCannotFitIsRefusedWithReasons) {
  std::string reason;
  EXPECT_FALSE(chooseHopperBlocks(problem(257, 2), false,
                                  sharedMemoryOf("sm_90a"), &reason));
  EXPECT_THAT(reason, HasSubstr("widths up to 256 have a schedule, got 257"));
  EXPECT_FALSE(chooseHopperBlocks(problem(128, 2), false, 32 * 1024, &reason));
  EXPECT_THAT(reason, HasSubstr("bytes of shared memory, 32768 available"));
}
