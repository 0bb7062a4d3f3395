//===- ChipTest.cpp - the table of chips -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/Chip.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace attnfuse;
using testing::HasSubstr;

TEST(Chip, EveryKnownChipIsComplete) {
  for (const char *name : {"cpu", "cpu-avx2", "cpu-avx512", "sm_80", "sm_86",
                           "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    SCOPED_TRACE(name);
    llvm::Expected<ChipDescription> chip = lookupChip(name);
    ASSERT_TRUE(static_cast<bool>(chip)) << llvm::toString(chip.takeError());
    EXPECT_EQ(chip->name, name);
    EXPECT_GT(chip->units, 0);
    EXPECT_GT(chip->clock, 0);
    EXPECT_GT(chip->bandwidth, 0);
    EXPECT_GT(chip->launch, 0);
    EXPECT_GT(chip->cyclesPerAngle + chip->cyclesPerPair, 0);
    EXPECT_GE(chip->hidden, 0);
    EXPECT_LE(chip->hidden, 1);
    if (chip->kind == ChipDescription::CPU) {
      EXPECT_GE(chip->vectorBits, 128);
      EXPECT_GE(chip->vectorRegisters, 16);
    } else {
      EXPECT_GT(chip->matrixFlops, 0);
      EXPECT_GT(chip->sharedMemory, 0);
      EXPECT_GT(chip->registers, 0);
    }
  }
}

TEST(Chip, ForcedVectorWidths) {
  EXPECT_EQ(lookupChip("cpu-avx2")->vectorBits, 256);
  EXPECT_EQ(lookupChip("cpu-avx2")->vectorRegisters, 16);
  EXPECT_EQ(lookupChip("cpu-avx512")->vectorBits, 512);
  EXPECT_EQ(lookupChip("cpu-avx512")->vectorRegisters, 32);
}

TEST(Chip, UnknownNamesTheKnown) {
  for (const char *name : {"", "sm_75", "CPU", "sm_90b"}) {
    llvm::Expected<ChipDescription> chip = lookupChip(name);
    ASSERT_FALSE(static_cast<bool>(chip));
    std::string message = llvm::toString(chip.takeError());
    EXPECT_THAT(message, HasSubstr("unknown chip '" + std::string(name) + "'"));
    EXPECT_THAT(message, HasSubstr("cpu-avx2"));
    EXPECT_THAT(message, HasSubstr("sm_120"));
  }
}
