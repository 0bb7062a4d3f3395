//===- MaskBounds.cpp - key intervals of a mask in numbers -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules are those of MaskCode.cpp in the conversion to tiles, which emits
// code for them; a change of one needs a change of the other.
//
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/MaskBounds.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace attnfuse;

/// Bounds beyond this are as good as infinite, and sums of three of them fit.
static constexpr int64_t kFar = int64_t(1) << 60;

static int64_t sum(int64_t a, int64_t b, int64_t c) {
  return std::clamp(a, -kFar, kFar) + std::clamp(b, -kFar, kFar) +
         std::clamp(c, -kFar, kFar);
}

namespace {
struct TermBounds {
  FamilyBaseFn base;
  PrefixLengthFn length;
  int64_t i0, i1, keys;

  /// lo <= j - i - base <= hi for some row i of the tile.
  KeyBounds touchedBy(const MaskTerm &term) const {
    KeyBounds bounds{0, keys};
    for (const Band &band : term.bands) {
      if (band.lo != kMinusInfinity) {
        bounds.lower =
            std::max(bounds.lower, sum(i0, base(band.family), band.lo));
      }
      if (band.hi != kPlusInfinity) {
        bounds.upper =
            std::min(bounds.upper, sum(i1, base(band.family), band.hi));
      }
    }
    for (int atom : term.positive) {
      if (std::optional<int64_t> end = length(atom)) {
        bounds.upper = std::min(bounds.upper, *end);
      }
    }
    for (int atom : term.negative) {
      if (std::optional<int64_t> end = length(atom)) {
        bounds.lower = std::max(bounds.lower, *end);
      }
    }
    return bounds;
  }

  /// The same for every row of the tile.
  KeyBounds filledBy(const MaskTerm &term) const {
    KeyBounds bounds{0, keys};
    for (const Band &band : term.bands) {
      if (band.lo != kMinusInfinity) {
        bounds.lower =
            std::max(bounds.lower, sum(i1 - 1, base(band.family), band.lo));
      }
      if (band.hi != kPlusInfinity) {
        bounds.upper =
            std::min(bounds.upper, sum(i0 + 1, base(band.family), band.hi));
      }
    }
    for (int atom : term.positive) {
      std::optional<int64_t> end = length(atom);
      bounds.upper = end ? std::min(bounds.upper, *end) : 0;
    }
    for (int atom : term.negative) {
      if (std::optional<int64_t> end = length(atom)) {
        bounds.lower = std::max(bounds.lower, *end);
      } else {
        bounds.upper = 0;
      }
    }
    return bounds;
  }
};
} // namespace

static KeyBounds hull(KeyBounds a, KeyBounds b) {
  if (a.isEmpty()) {
    return b;
  }
  if (b.isEmpty()) {
    return a;
  }
  return {std::min(a.lower, b.lower), std::max(a.upper, b.upper)};
}

/// The union where the two meet, else the longer one.
static KeyBounds merge(KeyBounds a, KeyBounds b) {
  bool meet =
      b.lower <= a.upper && a.lower <= b.upper && !a.isEmpty() && !b.isEmpty();
  if (meet) {
    return {std::min(a.lower, b.lower), std::max(a.upper, b.upper)};
  }
  return a.upper - a.lower < b.upper - b.lower ? b : a;
}

/// True if the intervals, as one set, have no gap. Sorts them.
static bool isConvex(llvm::MutableArrayRef<KeyBounds> intervals) {
  llvm::sort(intervals, [](const KeyBounds &a, const KeyBounds &b) {
    return a.lower < b.lower;
  });
  for (size_t n = 1; n < intervals.size(); ++n) {
    if (intervals[n].lower > intervals[n - 1].upper) {
      return false;
    }
    intervals[n].upper = std::max(intervals[n].upper, intervals[n - 1].upper);
  }
  return true;
}

TileBounds attnfuse::computeBounds(const MaskNormalForm &form,
                                   FamilyBaseFn base, PrefixLengthFn length,
                                   int64_t i0, int64_t i1, int64_t keys) {
  TermBounds rules{base, length, i0, i1, keys};
  TileBounds bounds;
  llvm::SmallVector<KeyBounds> parts;
  for (const MaskTerm &term : form.terms) {
    bool isFirst = &term == &form.terms.front();
    KeyBounds some = rules.touchedBy(term), every = rules.filledBy(term);
    bounds.touched = isFirst ? some : hull(bounds.touched, some);
    bounds.full = isFirst ? every : merge(bounds.full, every);
    if (!some.isEmpty()) {
      parts.push_back(some);
    }
  }
  auto within = [&](int64_t bound) {
    return std::clamp<int64_t>(bound, 0, std::max<int64_t>(keys, 0));
  };
  bounds.touched = {within(bounds.touched.lower), within(bounds.touched.upper)};
  bounds.full = {std::max(bounds.touched.lower, within(bounds.full.lower)),
                 std::min(bounds.touched.upper, within(bounds.full.upper))};
  bounds.isExactHull = isConvex(parts);
  return bounds;
}

double attnfuse::visitedFraction(const MaskNormalForm &form, FamilyBaseFn base,
                                 PrefixLengthFn length, int64_t queries,
                                 int64_t keys, int64_t blockM, int64_t blockN) {
  if (queries <= 0 || keys <= 0) {
    return 0;
  }
  // A block without extent would never get through the queries.
  blockM = std::max<int64_t>(blockM, 1);
  blockN = std::max<int64_t>(blockN, 1);
  double visited = 0, all = 0;
  for (int64_t i0 = 0; i0 < queries; i0 += blockM) {
    KeyBounds touched = computeBounds(form, base, length, i0,
                                      std::min(i0 + blockM, queries), keys)
                            .touched;
    all += static_cast<double>(llvm::divideCeil(keys, blockN));
    if (!touched.isEmpty()) {
      visited += static_cast<double>(llvm::divideCeil(touched.upper, blockN) -
                                     touched.lower / blockN);
    }
  }
  return visited / all;
}
