//===- CpuSchedule.cpp - tiling for CPUs -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/CpuSchedule.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace attnfuse;

CpuMicroTile attnfuse::chooseMicroTile(const CpuVectors &cpu,
                                       int64_t rowVectors, int64_t columns) {
  CpuMicroTile best{1, 1};
  double bestCost = 1e9;
  for (int64_t vectors = 1; vectors <= rowVectors; ++vectors) {
    if (rowVectors % vectors) {
      continue;
    }
    int64_t rows = std::min((cpu.registers - 1 - vectors) / vectors, columns);
    for (int64_t count = 1; count <= rows; ++count) {
      // Loads per multiply-add; columns that are left over run a smaller
      // block at a worse ratio, which is charged as if they were whole.
      double blocks = (columns + count - 1) / count;
      double cost =
          blocks * (vectors + count) / static_cast<double>(vectors * columns);
      if (cost < bestCost - 1e-12) {
        bestCost = cost;
        best = {vectors, count};
      }
    }
  }
  return best;
}

CpuBlocks attnfuse::chooseCpuBlocks(const CpuVectors &cpu, int64_t width,
                                    int64_t valueWidth, int64_t queries,
                                    int64_t tableBlock) {
  // More rows per tile amortise the copy of the key and value tiles, as far as
  // the query tile and the accumulator stay in a cache near by. Powers of two
  // waste nothing on lengths that are.
  int64_t vectors = width + valueWidth <= 256 ? 8 : 4;
  if (tableBlock > 0) {
    // Tiles that coincide with the table's blocks are empty or whole.
    vectors = 4;
    while (vectors > 1 && tableBlock % (vectors * cpu.lanes)) {
      vectors /= 2;
    }
  }
  if (queries >= 0) {
    int64_t needed =
        std::max<int64_t>((queries + cpu.lanes - 1) / cpu.lanes, 1);
    vectors = std::min(vectors, needed);
  }
  // Tiles hold whole rows, on the stack of a thread.
  bool isWide = width + valueWidth > 2048;
  return {(isWide ? 1 : vectors) * cpu.lanes, isWide ? 16 : 64};
}

int64_t attnfuse::stackBytes(const CpuBlocks &blocks, int64_t width,
                             int64_t valueWidth) {
  // Query, rotated query and its angles, accumulator, scores; key, rotated key
  // and its angles, value; all held as f32.
  // Blocks asked for may be of any size; beyond the largest number is too much
  // all the same.
  auto times = [](uint64_t x, uint64_t y) {
    return llvm::SaturatingMultiply(x, y);
  };
  auto plus = [](uint64_t x, uint64_t y) { return llvm::SaturatingAdd(x, y); };
  uint64_t perKey = 3 * width + valueWidth;
  uint64_t rows = times(blocks.blockM, plus(perKey, blocks.blockN));
  uint64_t keys = times(blocks.blockN, perKey);
  uint64_t bytes = times(4, plus(rows, keys));
  return std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max());
}
