//===- CpuScheduleTest.cpp - tiling for CPUs -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/CpuSchedule.h"

#include "gtest/gtest.h"

using namespace attnfuse;

static constexpr CpuVectors kCpus[] = {{4, 16}, {4, 32}, {8, 16}, {16, 32}};

TEST(CpuSchedule, MicroTileFitsTheRegisters) {
  for (const CpuVectors &cpu : kCpus) {
    for (int64_t rowVectors = 1; rowVectors <= 16; ++rowVectors) {
      for (int64_t columns = 1; columns <= 128; ++columns) {
        CpuMicroTile tile = chooseMicroTile(cpu, rowVectors, columns);
        ASSERT_GE(tile.vectors, 1);
        ASSERT_GE(tile.columns, 1);
        ASSERT_EQ(rowVectors % tile.vectors, 0);
        ASSERT_LE(tile.columns, columns);
        ASSERT_LE(tile.vectors * tile.columns + tile.vectors + 1,
                  cpu.registers);
      }
    }
  }
}

TEST(CpuSchedule, MicroTileUsesMostRegisters) {
  for (const CpuVectors &cpu : kCpus) {
    CpuMicroTile tile = chooseMicroTile(cpu, 6, 64);
    EXPECT_GE(tile.vectors * tile.columns, cpu.registers / 2);
  }
}

TEST(CpuSchedule, BlocksAreWholeVectors) {
  for (const CpuVectors &cpu : kCpus) {
    for (int64_t width : {1, 64, 128, 256, 512}) {
      for (int64_t queries : {-1, 0, 1, 5, 16, 17, 4096}) {
        CpuBlocks blocks = chooseCpuBlocks(cpu, width, width, queries, 0);
        ASSERT_GT(blocks.blockM, 0);
        ASSERT_GT(blocks.blockN, 0);
        ASSERT_EQ(blocks.blockM % cpu.lanes, 0);
        if (queries > 0) {
          // No vector of rows that lies beyond the last query.
          ASSERT_LT(blocks.blockM - cpu.lanes, queries);
        }
      }
    }
  }
}

TEST(CpuSchedule, WideRowsGetFewerPerTile) {
  CpuVectors cpu{16, 32};
  EXPECT_LT(chooseCpuBlocks(cpu, 512, 512, -1, 0).blockM,
            chooseCpuBlocks(cpu, 64, 64, -1, 0).blockM);
}

TEST(CpuSchedule, TilesDivideTheBlocksOfATable) {
  for (const CpuVectors &cpu : kCpus) {
    for (int64_t block : {16, 32, 64, 128, 256}) {
      CpuBlocks blocks = chooseCpuBlocks(cpu, 64, 64, -1, block);
      EXPECT_EQ(block % blocks.blockM, 0) << cpu.lanes << " " << block;
    }
    // One that no vector divides: a vector of rows per tile.
    EXPECT_EQ(chooseCpuBlocks(cpu, 64, 64, -1, 7).blockM, cpu.lanes);
  }
}

TEST(CpuSchedule, EveryWidthFitsTheStack) {
  for (int64_t lanes : {4, 8, 16}) {
    for (int64_t width : {1, 64, 256, 512, 1024, 1025, 4096}) {
      CpuBlocks blocks = chooseCpuBlocks({lanes, 32}, width, width, -1, 0);
      EXPECT_LE(stackBytes(blocks, width, width), kStackLimit) << width;
    }
  }
  EXPECT_GT(stackBytes({1024, 1024}, 1024, 1024), kStackLimit);
}
