//===- GpuSchedule.cpp - tiling for GPUs -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/GpuSchedule.h"

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include <algorithm>
#include <tuple>

using namespace attnfuse;

static int64_t roundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Columns of a row in shared memory.
static int64_t padded(int64_t width, GpuElement element) {
  return tile::paddedWidth(width, bytesOf(element));
}

/// Bytes of so many rows.
static int64_t slotBytes(int64_t rows, int64_t width, GpuElement element) {
  return rows * padded(width, element) * bytesOf(element);
}

bool attnfuse::resultsTakeQuerySlot(const GpuProblem &problem) {
  return problem.valueWidth && problem.value == problem.element &&
         padded(problem.valueWidth, problem.value) ==
             padded(problem.width, problem.element);
}

int64_t attnfuse::portableSharedBytes(const GpuBlocks &blocks,
                                      const GpuProblem &problem) {
  auto ring = [](int64_t stages, int64_t rows, int64_t width,
                 GpuElement element) {
    return roundUp(stages * slotBytes(rows, width, element), 1024);
  };
  int64_t bytes =
      ring(1, blocks.blockM, problem.width, problem.element) +
      ring(blocks.stages, blocks.blockN, problem.width, problem.element);
  if (problem.valueWidth) {
    bytes +=
        ring(blocks.stages, blocks.blockN, problem.valueWidth, problem.value);
    if (!resultsTakeQuerySlot(problem)) {
      bytes += ring(1, blocks.blockM, problem.valueWidth, problem.value);
    }
  }
  return bytes;
}

int64_t attnfuse::portableRegisters(const GpuBlocks &blocks,
                                    const GpuProblem &problem) {
  int64_t rowTiles = blocks.blockM / blocks.warps / 16;
  int64_t accumulator =
      rowTiles * padded(problem.valueWidth, problem.value) / 2;
  int64_t scores = rowTiles * blocks.blockN / 2;
  // Weights in the values' type, fragments in flight, addresses.
  int64_t weights = problem.value == GpuElement::F32 ? 0 : scores / 2;
  return accumulator + std::max(scores, scores / 2 + weights) + 40;
}

std::optional<GpuBlocks>
attnfuse::choosePortableBlocks(const GpuProblem &problem, int64_t sharedMemory,
                               std::string *considered) {
  // In order of speed on an H200 where both fit.
  static constexpr GpuBlocks table[] = {
      {128, 64, 4, 2}, {128, 64, 4, 1}, {64, 64, 4, 2}, {64, 64, 4, 1},
      {64, 32, 4, 1},  {64, 16, 4, 1},  {32, 32, 2, 1}, {32, 16, 2, 1}};
  for (const GpuBlocks &blocks : table) {
    int64_t shared = portableSharedBytes(blocks, problem);
    int64_t registers = portableRegisters(blocks, problem);
    std::string reason;
    if (shared > sharedMemory) {
      reason = std::to_string(shared) + " bytes of shared memory, " +
               std::to_string(sharedMemory) + " available";
    } else if (registers > 255) {
      reason = std::to_string(registers) + " registers, 255 available";
    } else {
      return blocks;
    }
    if (considered) {
      *considered += std::to_string(blocks.blockM) + "x" +
                     std::to_string(blocks.blockN) + ", " +
                     std::to_string(blocks.stages) + " stages: needs " +
                     reason + "\n";
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// sm_90a
//===----------------------------------------------------------------------===//

int64_t attnfuse::hopperSharedBytes(const HopperBlocks &blocks,
                                    const GpuProblem &problem) {
  int64_t rows = 64 * blocks.consumers;
  int64_t bytes =
      1024 + slotBytes(rows, problem.width, problem.element) +
      blocks.stages * slotBytes(blocks.blockN, problem.width, problem.element);
  if (problem.valueWidth) {
    bytes += blocks.stages *
             slotBytes(blocks.blockN, problem.valueWidth, problem.value);
    if (!blocks.sharedResult) {
      bytes += slotBytes(rows, problem.valueWidth, problem.value);
    }
  }
  return bytes;
}

std::pair<int64_t, int64_t> attnfuse::hopperBudgets(int64_t consumers) {
  // A launch gives 256, 168, 128 and 96 to each thread.
  static constexpr std::pair<int64_t, int64_t> budgets[] = {
      {256, 24}, {240, 24}, {160, 32}, {112, 24}};
  return budgets[std::clamp<int64_t>(consumers, 1, 4) - 1];
}

bool attnfuse::hopperRegistersFit(const HopperBlocks &blocks) {
  // setmaxnreg beyond what is left never returns, and consumers cannot give
  // back nor the producer take.
  int64_t threads = 128 * (blocks.consumers + 1);
  int64_t share = tile::launchRegisters(threads);
  return blocks.registers >= share && blocks.producerRegisters <= share &&
         128 * (blocks.producerRegisters +
                blocks.consumers * blocks.registers) <=
             share * threads;
}

std::optional<HopperBlocks>
attnfuse::chooseHopperBlocks(const GpuProblem &problem, bool uneven,
                             int64_t sharedMemory, std::string *reason) {
  // Measured on an H200 (docs/performance.md).
  int64_t widest = std::max(problem.width, problem.valueWidth);
  HopperBlocks blocks;
  if (widest <= 64) {
    blocks = HopperBlocks{4, 64};
  } else if (widest <= 128) {
    // Small query tiles balance the rows of an uneven mask.
    blocks = uneven ? HopperBlocks{2, 128} : HopperBlocks{3, 64};
  } else if (widest <= 256) {
    blocks = HopperBlocks{2, 64};
  } else {
    if (reason) {
      *reason =
          "widths up to 256 have a schedule, got " + std::to_string(widest);
    }
    return std::nullopt;
  }
  std::tie(blocks.registers, blocks.producerRegisters) =
      hopperBudgets(blocks.consumers);
  if (hopperSharedBytes(blocks, problem) > sharedMemory) {
    blocks.sharedResult = resultsTakeQuerySlot(problem);
  }
  while (hopperSharedBytes(blocks, problem) > sharedMemory) {
    if (blocks.blockN <= 32) {
      if (reason) {
        *reason = std::to_string(hopperSharedBytes(blocks, problem)) +
                  " bytes of shared memory, " + std::to_string(sharedMemory) +
                  " available";
      }
      return std::nullopt;
    }
    blocks.blockN /= 2;
  }
  return blocks;
}
