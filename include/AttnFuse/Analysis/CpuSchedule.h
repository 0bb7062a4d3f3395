//===- CpuSchedule.h - tiling for CPUs ---------------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_CPUSCHEDULE_H
#define ATTNFUSE_ANALYSIS_CPUSCHEDULE_H

#include <cstdint>

namespace attnfuse {

/// What a schedule depends on of a CPU.
struct CpuVectors {
  int64_t lanes;     ///< f32 values in a vector register
  int64_t registers; ///< architectural vector registers
};

/// The register block of a product: `vectors` vectors of query rows times
/// `columns` key rows (or value dimensions) are accumulated in registers, one
/// broadcast and `vectors` loads feeding `vectors` multiply-adds per column.
struct CpuMicroTile {
  int64_t vectors;
  int64_t columns;
};

/// The largest block of `rowVectors` vectors of rows that fits the registers
/// (accumulators, one vector of each row group, one broadcast), the one with
/// the fewest loads per multiply-add; `vectors` divides `rowVectors`.
CpuMicroTile chooseMicroTile(const CpuVectors &cpu, int64_t rowVectors,
                             int64_t columns);

struct CpuBlocks {
  int64_t blockM, blockN;
};

/// Rows of queries and keys per tile. `queries` is a static length or negative;
/// `tableBlock` is the block size of query rows of a block table, or 0.
CpuBlocks chooseCpuBlocks(const CpuVectors &cpu, int64_t width,
                          int64_t valueWidth, int64_t queries,
                          int64_t tableBlock);

/// An upper estimate of the stack that a kernel with these blocks takes, and
/// what it may take: threads have 8 MiB.
int64_t stackBytes(const CpuBlocks &blocks, int64_t width, int64_t valueWidth);
inline constexpr int64_t kStackLimit = 6 << 20;

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_CPUSCHEDULE_H
