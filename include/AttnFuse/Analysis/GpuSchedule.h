//===- GpuSchedule.h - tiling for GPUs --------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_GPUSCHEDULE_H
#define ATTNFUSE_ANALYSIS_GPUSCHEDULE_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace attnfuse {

/// What matrix units take.
enum class GpuElement { F16, BF16, F32 };

inline int64_t bytesOf(GpuElement element) {
  return element == GpuElement::F32 ? 4 : 2;
}

/// What a schedule depends on of a program.
struct GpuProblem {
  int64_t width = 0;                     ///< of queries and keys, unpadded
  int64_t valueWidth = 0;                ///< 0: no values are read
  GpuElement element = GpuElement::BF16; ///< of queries and keys
  GpuElement value = GpuElement::BF16;   ///< of values and results
  /// Keys are visited one after the other (a block table, say): the place of
  /// only the next tile is known.
  bool classified = false;
};

/// Whether results leave through the queries' slot, which has to hold them
/// exactly, type included; else they have a slot of their own. Both the count
/// of bytes and the kernels that allocate them go by this.
bool resultsTakeQuerySlot(const GpuProblem &problem);

/// A portable schedule: `warps` warps of which each has its share of `blockM`
/// query rows; rings of `stages` slots.
struct GpuBlocks {
  int64_t blockM = 0, blockN = 0, warps = 0, stages = 0;
};

/// Bytes of shared memory that the rings of a portable schedule take, and an
/// estimate of registers per thread.
int64_t portableSharedBytes(const GpuBlocks &blocks, const GpuProblem &problem);
int64_t portableRegisters(const GpuBlocks &blocks, const GpuProblem &problem);

/// The first schedule of the table for the program's width that fits shared
/// memory and registers; nothing if none does. `considered` gets a line per
/// schedule that was passed over, with the reason.
std::optional<GpuBlocks> choosePortableBlocks(const GpuProblem &problem,
                                              int64_t sharedMemory,
                                              std::string *considered);

/// A schedule for sm_90a: `consumers` warpgroups of 64 query rows each beside
/// one that copies.
struct HopperBlocks {
  int64_t consumers = 0, blockN = 0, stages = 2;
  int64_t registers = 0, producerRegisters = 0; ///< per thread
  int64_t rescale = 8;       ///< log2 of the growth that is let pass
  bool persistent = true;    ///< blocks take query tiles from a counter
  bool sharedResult = false; ///< results leave through the queries' slots
};

int64_t hopperSharedBytes(const HopperBlocks &blocks,
                          const GpuProblem &problem);
/// Registers per thread for so many consumers, and for the producer.
std::pair<int64_t, int64_t> hopperBudgets(int64_t consumers);
/// Whether budgets of registers fit what a launch allocates: consumers take
/// what the producer gives back.
bool hopperRegistersFit(const HopperBlocks &blocks);

/// The table for sm_90a; `uneven`: query tiles differ in the keys they read.
/// Nothing, with the reason, for widths that no schedule fits.
std::optional<HopperBlocks> chooseHopperBlocks(const GpuProblem &problem,
                                               bool uneven,
                                               int64_t sharedMemory,
                                               std::string *reason);

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_GPUSCHEDULE_H
