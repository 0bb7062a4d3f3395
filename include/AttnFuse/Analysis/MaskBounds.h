//===- MaskBounds.h - key intervals of a mask in numbers --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_MASKBOUNDS_H
#define ATTNFUSE_ANALYSIS_MASKBOUNDS_H

#include "AttnFuse/Analysis/MaskAlgebra.h"

namespace attnfuse {

/// Keys `lower <= j < upper`; none if the two are not in order.
struct KeyBounds {
  int64_t lower = 0, upper = 0;

  bool isEmpty() const { return upper <= lower; }
};

/// For a tile of query rows: no row reads a key outside of `touched`, and every
/// row reads every key in `full`. Both lie within the keys there are.
struct TileBounds {
  KeyBounds touched, full;
  /// False if there are gaps between the terms' parts of `touched`: tiles of
  /// keys within it may then have nothing to read.
  bool isExactHull = true;
};

/// Where the diagonal d = 0 of a family runs: d = j - i - base.
using FamilyBaseFn = llvm::function_ref<int64_t(int family)>;
/// The length of an atom that is true for keys before that length; nothing for
/// an atom of another kind.
using PrefixLengthFn = llvm::function_ref<std::optional<int64_t>(int atom)>;

/// The bounds for rows `i0 <= i < i1` and keys `0 <= j < keys`. Kernels compute
/// the same at run time.
TileBounds computeBounds(const MaskNormalForm &form, FamilyBaseFn base,
                         PrefixLengthFn length, int64_t i0, int64_t i1,
                         int64_t keys);

/// The share of pairs of tiles that kernels visit. Atoms other than prefixes
/// count as if they kept every pair. Blocks have at least one row and key.
double visitedFraction(const MaskNormalForm &form, FamilyBaseFn base,
                       PrefixLengthFn length, int64_t queries, int64_t keys,
                       int64_t blockM, int64_t blockN);

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_MASKBOUNDS_H
