//===- MaskBoundsTest.cpp - key intervals of masks -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/MaskBounds.h"

#include "gtest/gtest.h"

#include <random>

using namespace attnfuse;

namespace {
/// Atoms 0 and 1 are prefixes of these lengths, atom 2 is something else.
struct Problem {
  int64_t queries, keys;
  int64_t lengths[2];

  int64_t base(int family) const {
    return family == 0 ? keys - queries : family == 1 ? 0 : 3;
  }
  std::optional<int64_t> length(int atom) const {
    return atom < 2 ? std::optional(lengths[atom]) : std::nullopt;
  }
  bool atom(int id, int64_t i, int64_t j) const {
    return id < 2 ? j < lengths[id] : (i * 7 + j * 3) % 5 < 2;
  }
  bool keeps(const MaskNormalForm &form, int64_t i, int64_t j) const {
    return evaluate(
        form, [&](int family) { return j - i - base(family); },
        [&](int id) { return atom(id, i, j); });
  }
  TileBounds bounds(const MaskNormalForm &form, int64_t i0, int64_t i1) const {
    return computeBounds(
        form, [&](int family) { return base(family); },
        [&](int id) { return length(id); }, i0, i1, keys);
  }
};

void forEachTile(
    llvm::function_ref<void(const Problem &, int64_t, int64_t)> f) {
  for (int64_t queries = 1; queries <= 12; ++queries) {
    for (int64_t keys = 0; keys <= 12; ++keys) {
      Problem problem{queries, keys, {keys / 2, keys / 3 + 1}};
      for (int64_t rows = 1; rows <= 4; ++rows) {
        for (int64_t i0 = 0; i0 < queries; i0 += rows) {
          f(problem, i0, std::min(i0 + rows, queries));
        }
      }
    }
  }
}

void checkSound(const MaskNormalForm &form, const Problem &problem, int64_t i0,
                int64_t i1) {
  TileBounds bounds = problem.bounds(form, i0, i1);
  ASSERT_GE(bounds.touched.lower, 0);
  ASSERT_LE(bounds.touched.upper, problem.keys);
  if (!bounds.full.isEmpty()) {
    ASSERT_LE(bounds.touched.lower, bounds.full.lower);
    ASSERT_LE(bounds.full.upper, bounds.touched.upper);
  }
  auto in = [](KeyBounds interval, int64_t j) {
    return interval.lower <= j && j < interval.upper;
  };
  for (int64_t i = i0; i < i1; ++i) {
    for (int64_t j = 0; j < problem.keys; ++j) {
      bool keeps = problem.keeps(form, i, j);
      ASSERT_TRUE(!keeps || in(bounds.touched, j)) << i << " " << j;
      ASSERT_TRUE(keeps || !in(bounds.full, j)) << i << " " << j;
    }
  }
}

MaskExpr randomMask(std::mt19937 &random, int depth) {
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  if (depth == 0) {
    switch (below(4)) {
    case 0:
      return MaskExpr::atom(below(3));
    case 1:
      return MaskExpr::band(below(3), -below(4), below(4));
    case 2:
      return MaskExpr::band(below(3), below(7) - 3, kPlusInfinity);
    default:
      return MaskExpr::band(below(3), kMinusInfinity, below(7) - 3);
    }
  }
  MaskExpr a = randomMask(random, depth - 1), b = randomMask(random, depth - 1);
  int choice = below(5);
  return choice == 0  ? MaskExpr::negation(a)
         : choice < 3 ? MaskExpr::conjunction({a, b})
                      : MaskExpr::disjunction({a, b});
}
} // namespace

TEST(MaskBounds, HoldForRandomMasks) {
  std::mt19937 random(1);
  for (int n = 0; n < 60; ++n) {
    std::optional<MaskNormalForm> form = normalize(randomMask(random, n % 3));
    ASSERT_TRUE(form);
    forEachTile([&](const Problem &problem, int64_t i0, int64_t i1) {
      checkSound(*form, problem, i0, i1);
    });
  }
}

/// One band: the bounds are the best there are.
TEST(MaskBounds, TightForBands) {
  for (int64_t lo : {kMinusInfinity, int64_t(-2), int64_t(0), int64_t(1)}) {
    for (int64_t hi : {int64_t(-1), int64_t(0), int64_t(2), kPlusInfinity}) {
      if (lo > hi || (lo == kMinusInfinity && hi == kPlusInfinity)) {
        continue;
      }
      MaskNormalForm form = *normalize(MaskExpr::band(0, lo, hi));
      forEachTile([&](const Problem &problem, int64_t i0, int64_t i1) {
        TileBounds bounds = problem.bounds(form, i0, i1);
        int64_t touched = 0, full = 0;
        for (int64_t j = 0; j < problem.keys; ++j) {
          int64_t count = 0;
          for (int64_t i = i0; i < i1; ++i) {
            count += problem.keeps(form, i, j);
          }
          touched += count > 0;
          full += count == i1 - i0;
        }
        auto length = [](KeyBounds keys) {
          return std::max<int64_t>(keys.upper - keys.lower, 0);
        };
        ASSERT_EQ(length(bounds.touched), touched);
        ASSERT_EQ(length(bounds.full), full);
      });
    }
  }
}

TEST(MaskBounds, FarBounds) {
  // No overflow, wherever the ends are.
  for (int64_t end : {kMinusInfinity + 1, -(int64_t(1) << 61), int64_t(1) << 61,
                      kPlusInfinity - 1}) {
    MaskNormalForm form = *normalize(MaskExpr::band(0, kMinusInfinity, end));
    Problem problem{5, 7, {0, 0}};
    checkSound(form, problem, 1, 4);
  }
}

TEST(MaskBounds, EmptyAndFull) {
  Problem problem{4, 9, {0, 0}};
  TileBounds none = problem.bounds(*normalize(MaskExpr::none()), 0, 4);
  EXPECT_TRUE(none.touched.isEmpty());
  EXPECT_TRUE(none.full.isEmpty());
  TileBounds all = problem.bounds(*normalize(MaskExpr::full()), 0, 4);
  EXPECT_EQ(all.full.lower, 0);
  EXPECT_EQ(all.full.upper, 9);
}

TEST(MaskBounds, VisitedFraction) {
  auto visited = [](const MaskExpr &mask, int64_t queries, int64_t keys) {
    return visitedFraction(
        *normalize(mask),
        [&](int family) { return family == 0 ? keys - queries : 0; },
        [](int) { return std::nullopt; }, queries, keys, 128, 128);
  };
  MaskExpr causal = MaskExpr::band(0, kMinusInfinity, 0);
  // Tiles on the diagonal count whole: (n + 1) / 2n of n * n tiles.
  EXPECT_DOUBLE_EQ(visited(causal, 4096, 4096), 33.0 / 64);
  EXPECT_DOUBLE_EQ(visited(causal, 1, 4096), 1);
  EXPECT_DOUBLE_EQ(visited(MaskExpr::full(), 1000, 1000), 1);
  EXPECT_DOUBLE_EQ(visited(MaskExpr::none(), 1000, 1000), 0);
  EXPECT_DOUBLE_EQ(visited(causal, 0, 1000), 0);
  EXPECT_DOUBLE_EQ(visited(MaskExpr::atom(0), 1000, 1000), 1);
  // A block of no extent counts as one row or key, and does not hang.
  MaskNormalForm form = *normalize(causal);
  EXPECT_DOUBLE_EQ(visitedFraction(
                       form, [](int) { return 0; },
                       [](int) { return std::nullopt; }, 4, 4, 0, -1),
                   10.0 / 16);
  // A window of 256 keys reads at most 3 of 512 tiles.
  EXPECT_LT(visited(MaskExpr::band(0, -255, 0), 65536, 65536), 3.01 / 512);
}

TEST(MaskBounds, FractionCountsTiles) {
  std::mt19937 random(3);
  for (int n = 0; n < 40; ++n) {
    std::optional<MaskNormalForm> form = normalize(randomMask(random, n % 3));
    ASSERT_TRUE(form);
    Problem problem{11, 12, {5, 8}};
    for (int64_t rows = 1; rows <= 4; ++rows) {
      for (int64_t columns = 1; columns <= 4; ++columns) {
        int visited = 0, all = 0;
        for (int64_t i0 = 0; i0 < problem.queries; i0 += rows) {
          KeyBounds touched =
              problem.bounds(*form, i0, std::min(i0 + rows, problem.queries))
                  .touched;
          for (int64_t j0 = 0; j0 < problem.keys; j0 += columns) {
            ++all;
            visited += touched.lower < touched.upper && j0 < touched.upper &&
                       touched.lower < j0 + columns;
          }
        }
        ASSERT_DOUBLE_EQ(visitedFraction(
                             *form,
                             [&](int family) { return problem.base(family); },
                             [&](int id) { return problem.length(id); },
                             problem.queries, problem.keys, rows, columns),
                         double(visited) / all);
      }
    }
  }
}

TEST(MaskBounds, GapsAreTold) {
  // The window of each row, and four keys in front that every row reads.
  MaskExpr window = MaskExpr::band(1, -2, 0);
  MaskNormalForm form =
      *normalize(MaskExpr::disjunction({window, MaskExpr::atom(0)}));
  Problem problem{12, 12, {4, 0}};
  for (int64_t i0 = 0; i0 < 12; ++i0) {
    TileBounds bounds = problem.bounds(form, i0, i0 + 1);
    EXPECT_EQ(bounds.isExactHull, i0 - 2 <= 4) << i0;
    EXPECT_EQ(bounds.touched.lower, 0);
    EXPECT_EQ(bounds.touched.upper, std::max<int64_t>(i0 + 1, 4));
  }
  EXPECT_TRUE(problem.bounds(*normalize(MaskExpr::none()), 0, 4).isExactHull);
}

/// Of one row, with bands and prefixes alone, the flag says whether some key in
/// between is not read.
TEST(MaskBounds, GapsAreThoseOfOneRow) {
  std::mt19937 random(2);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  auto leaf = [&] {
    return below(3) ? MaskExpr::band(below(3), -below(5), below(5))
                    : MaskExpr::atom(below(2));
  };
  int gaps = 0;
  for (int n = 0; n < 200; ++n) {
    MaskNormalForm form = *normalize(MaskExpr::disjunction(
        {MaskExpr::conjunction({leaf(), leaf()}), leaf(), leaf(), leaf()}));
    Problem problem{12, 12, {below(13), below(13)}};
    for (int64_t i = 0; i < problem.queries; ++i) {
      TileBounds bounds = problem.bounds(form, i, i + 1);
      bool isConvex = true;
      for (int64_t j = bounds.touched.lower; j < bounds.touched.upper; ++j) {
        isConvex &= problem.keeps(form, i, j);
      }
      ASSERT_EQ(bounds.isExactHull, isConvex);
      gaps += !isConvex;
    }
  }
  EXPECT_GT(gaps, 0);
}
