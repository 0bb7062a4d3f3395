//===- GpuSchedule.cpp - tiling for GPUs -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/GpuSchedule.h"

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include <algorithm>

using namespace attnfuse;

static int64_t roundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

int64_t attnfuse::portableSharedBytes(const GpuBlocks &blocks,
                                      const GpuProblem &problem) {
  int64_t width = tile::paddedWidth(problem.width, problem.elementBytes);
  int64_t query = blocks.blockM * width * problem.elementBytes;
  int64_t keys = blocks.blockN * width * problem.elementBytes;
  int64_t bytes = roundUp(query, 1024) + roundUp(keys * blocks.stages, 1024);
  if (problem.valueWidth) {
    int64_t valueWidth =
        tile::paddedWidth(problem.valueWidth, problem.valueBytes);
    bytes += roundUp(
        blocks.blockN * valueWidth * problem.valueBytes * blocks.stages, 1024);
    // Results leave through the queries' slot where they fit it exactly.
    if (valueWidth != width || problem.resultBytes != problem.elementBytes) {
      bytes += roundUp(
          blocks.blockM *
              tile::paddedWidth(problem.valueWidth, problem.resultBytes) *
              problem.resultBytes,
          1024);
    }
  }
  return bytes;
}

int64_t attnfuse::portableRegisters(const GpuBlocks &blocks,
                                    const GpuProblem &problem) {
  int64_t rowTiles = blocks.blockM / blocks.warps / 16;
  int64_t accumulator =
      rowTiles * tile::paddedWidth(problem.valueWidth, problem.valueBytes) / 2;
  int64_t scores = rowTiles * blocks.blockN / 2;
  // Weights in the values' type, fragments in flight, addresses.
  int64_t weights = problem.valueBytes == 4 ? 0 : scores / 2;
  return accumulator + std::max(scores, scores / 2 + weights) + 40;
}

std::optional<GpuBlocks>
attnfuse::choosePortableBlocks(const GpuProblem &problem, int64_t sharedMemory,
                               std::string *considered) {
  // In order of speed on an H200 where both fit.
  static constexpr GpuBlocks narrow[] = {{128, 64, 4, 2}, {128, 64, 4, 1},
                                         {64, 64, 4, 2},  {64, 64, 4, 1},
                                         {64, 32, 4, 1},  {64, 16, 4, 1}};
  for (const GpuBlocks &blocks : narrow) {
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
  int64_t width = tile::paddedWidth(problem.width, problem.elementBytes);
  int64_t rows = 64 * blocks.consumers;
  int64_t bytes = 1024 + rows * width * problem.elementBytes +
                  blocks.stages * blocks.blockN * width * problem.elementBytes;
  if (problem.valueWidth) {
    int64_t valueWidth =
        tile::paddedWidth(problem.valueWidth, problem.valueBytes);
    bytes += blocks.stages * blocks.blockN * valueWidth * problem.valueBytes;
    if (!blocks.sharedResult) {
      bytes += rows * valueWidth * problem.resultBytes;
    }
  }
  return bytes;
}

bool attnfuse::hopperRegistersFit(const HopperBlocks &blocks) {
  // A launch allocates equal parts, in units of 8; setmaxnreg beyond what is
  // left never returns.
  int64_t threads = 128 * (blocks.consumers + 1);
  int64_t allocated = 65536 / threads / 8 * 8 * threads;
  return 128 *
             (blocks.producerRegisters + blocks.consumers * blocks.registers) <=
         allocated;
}

std::optional<HopperBlocks>
attnfuse::chooseHopperBlocks(const GpuProblem &problem, bool uneven,
                             int64_t sharedMemory, std::string *reason) {
  // Measured on an H200 (docs/performance.md).
  int64_t widest = std::max(problem.width, problem.valueWidth);
  HopperBlocks blocks;
  if (widest <= 64) {
    blocks = HopperBlocks{4, 64, 2, 112, 24};
  } else if (widest <= 128) {
    // Small query tiles balance the rows of an uneven mask.
    blocks = uneven ? HopperBlocks{2, 128, 2, 240, 24}
                    : HopperBlocks{3, 64, 2, 160, 32};
  } else if (widest <= 256) {
    blocks = HopperBlocks{2, 64, 2, 240, 24};
  } else {
    if (reason) {
      *reason =
          "widths up to 256 have a schedule, got " + std::to_string(widest);
    }
    return std::nullopt;
  }
  if (hopperSharedBytes(blocks, problem) > sharedMemory &&
      problem.width == problem.valueWidth &&
      problem.elementBytes == problem.resultBytes) {
    blocks.sharedResult = true;
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
