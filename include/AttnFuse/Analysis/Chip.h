//===- Chip.h - what cost models know of a chip ------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_CHIP_H
#define ATTNFUSE_ANALYSIS_CHIP_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace attnfuse {

/// A processor as cost models and schedules see it. SI units.
struct ChipDescription {
  enum Kind { CPU, GPU };

  std::string name;
  Kind kind = CPU;
  /// Cores, or streaming multiprocessors.
  int64_t units = 1;
  double clock = 0;     ///< Hz
  double bandwidth = 0; ///< bytes per second that a copy reaches, in and out
  /// f32 multiply-adds per unit and cycle, and per second what the matrix
  /// units reach on bf16 (0 where there are none).
  double lanes = 0;
  double matrixFlops = 0;
  /// Seconds that a kernel of its own costs.
  double launch = 0;

  /// CPUs: width of a vector register and their number.
  int64_t vectorBits = 0, vectorRegisters = 0;
  /// GPUs: bytes of shared memory a block may have, registers of a unit.
  int64_t sharedMemory = 0, registers = 0;

  /// Cycles of a unit to form the angle of one pair, cosine and sine, and to
  /// rotate one pair of one row, all operands on chip; and the share of these
  /// that runs beside the products.
  double cyclesPerAngle = 0, cyclesPerPair = 0, hidden = 0;
};

/// The description of `cpu` (this machine), `cpu-avx2`, `cpu-avx512`, or a GPU
/// by compute capability (`sm_80` ... `sm_120`). An error names the known.
llvm::Expected<ChipDescription> lookupChip(llvm::StringRef name);

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_CHIP_H
