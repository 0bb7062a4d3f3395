//===- RopeCost.h - the Rotation Calculus -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a rotation of keys costs at the two places where it can run:
//
//   T_inloop = pairs * Bn * R/2 * (c_angle + c_pair) * (1 - hidden)
//              / (units * clock)
//   pairs    = rho * B * Hq * ceil(Nq / Bm) * ceil(Nk / Bn)
//   T_once   = launch + memory "+" arithmetic
//   memory     = B * Hk * Nk * D * (bytes read + bytes written) / bandwidth
//   arithmetic = B * Hk * Nk * R/2 * (c_angle + c_pair) / (units * clock)
//
// The first grows with the square of the length and the second with the length
// itself, so there is one length at which the second becomes the better.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_ROPECOST_H
#define ATTNFUSE_ANALYSIS_ROPECOST_H

#include "AttnFuse/Analysis/Chip.h"

namespace attnfuse {

/// A product of queries and rotated keys.
struct RopeProblem {
  int64_t batch = 1, queryHeads = 1, keyHeads = 1;
  int64_t queries = 1, keys = 1;
  /// Of a row: dimensions, and those among them that are rotated.
  int64_t width = 128, rotary = 128;
  int64_t bytesPerElement = 2;
  /// Rows of queries and of keys per tile.
  int64_t blockM = 128, blockN = 128;
  /// The share of pairs of tiles that the mask leaves; above 1 if several
  /// products read the rotated keys.
  double visited = 1;
};

struct RopeCost {
  double inLoop = 0; ///< seconds
  double once = 0;   ///< seconds
  /// The length Nq = Nk, all else equal, from which on `once` is the faster: 0
  /// if it always is, INT64_MAX if it never is.
  int64_t crossover = 0;

  bool onceIsFaster() const { return once <= inLoop; }
};

RopeCost estimate(const RopeProblem &problem, const ChipDescription &chip);

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_ROPECOST_H
