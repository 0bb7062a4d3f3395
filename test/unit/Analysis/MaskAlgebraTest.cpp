//===- MaskAlgebraTest.cpp - the normal form of masks -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/MaskAlgebra.h"

#include "gtest/gtest.h"

#include <bitset>
#include <map>
#include <random>

using namespace attnfuse;

namespace {
constexpr int kReach = 6, kSteps = 2 * kReach + 1;
constexpr int kPoints = kSteps * kSteps * 4;
/// The value at every d0, d1 in -6..6 and all values of two atoms.
using Table = std::bitset<kPoints>;

template <class Mask> Table tabulate(const Mask &mask) {
  Table table;
  for (int point = 0; point < kPoints; ++point) {
    int64_t d[2] = {point / 4 % kSteps - kReach, point / 4 / kSteps - kReach};
    auto diagonal = [&](int family) { return d[family]; };
    auto atom = [&](int id) { return (point >> id & 1) != 0; };
    if constexpr (std::is_same_v<Mask, MaskExpr>) {
      table[point] = mask.evaluate(diagonal, atom);
    } else {
      table[point] = evaluate(mask, diagonal, atom);
    }
  }
  return table;
}

std::vector<MaskExpr> leaves() {
  std::vector<MaskExpr> all;
  for (int64_t c = -2; c <= 2; ++c) {
    all.push_back(MaskExpr::band(0, kMinusInfinity, c));
  }
  all.push_back(MaskExpr::band(0, -1, 1));
  all.push_back(MaskExpr::band(0, 0, 2));
  all.push_back(MaskExpr::band(1, kMinusInfinity, 0));
  all.push_back(MaskExpr::atom(0));
  all.push_back(MaskExpr::atom(1));
  return all;
}

bool sameForm(const MaskNormalForm &a, const MaskNormalForm &b) {
  return a.exact == b.exact && a.terms == b.terms && a.primes == b.primes;
}

MaskExpr toExpr(const std::vector<MaskTerm> &terms) {
  std::vector<MaskExpr> parts;
  for (const MaskTerm &term : terms) {
    std::vector<MaskExpr> constraints;
    for (const Band &band : term.bands) {
      constraints.push_back(MaskExpr::band(band.family, band.lo, band.hi));
    }
    for (int id : term.positive) {
      constraints.push_back(MaskExpr::atom(id));
    }
    for (int id : term.negative) {
      constraints.push_back(MaskExpr::negation(MaskExpr::atom(id)));
    }
    parts.push_back(MaskExpr::conjunction(constraints));
  }
  return MaskExpr::disjunction(parts);
}

/// An expression that can be rewritten.
struct Tree {
  enum Kind { Leaf, Not, And, Or } kind;
  int leaf = 0;
  std::vector<Tree> children;
};

MaskExpr toExpr(const Tree &tree, const std::vector<MaskExpr> &leaves) {
  if (tree.kind == Tree::Leaf) {
    return leaves[tree.leaf];
  }
  std::vector<MaskExpr> operands;
  for (const Tree &child : tree.children) {
    operands.push_back(toExpr(child, leaves));
  }
  return tree.kind == Tree::Not   ? MaskExpr::negation(operands[0])
         : tree.kind == Tree::And ? MaskExpr::conjunction(operands)
                                  : MaskExpr::disjunction(operands);
}

class RandomTrees {
public:
  RandomTrees(unsigned seed, int leaves) : random(seed), leaves(leaves) {}

  int below(int n) { return static_cast<int>(random() % n); }

  Tree make(int depth) {
    int choice = depth == 0 ? 0 : below(8);
    if (choice == 0) {
      return {Tree::Leaf, below(leaves), {}};
    }
    if (choice == 1) {
      return {Tree::Not, 0, {make(depth - 1)}};
    }
    Tree tree{choice % 2 ? Tree::And : Tree::Or, 0, {}};
    for (int n = 2 + below(2); n > 0; --n) {
      tree.children.push_back(make(depth - 1));
    }
    return tree;
  }

  /// An equal tree, by laws of the algebra applied here and there.
  Tree rewrite(Tree tree) {
    for (Tree &child : tree.children) {
      child = rewrite(std::move(child));
    }
    auto dual = [](Tree::Kind kind) {
      return kind == Tree::And ? Tree::Or : Tree::And;
    };
    auto negate = [](Tree operand) {
      return Tree{Tree::Not, 0, {std::move(operand)}};
    };
    bool isProduct = tree.kind == Tree::And || tree.kind == Tree::Or;
    switch (below(6)) {
    case 0: // Commutation.
      std::shuffle(tree.children.begin(), tree.children.end(), random);
      return tree;
    case 1: // De Morgan.
      if (isProduct) {
        Tree inner{dual(tree.kind), 0, {}};
        for (Tree &child : tree.children) {
          inner.children.push_back(negate(std::move(child)));
        }
        return negate(std::move(inner));
      }
      return tree;
    case 2: // Absorption: a = a and (a or b).
    {
      Tree::Kind kind = below(2) ? Tree::And : Tree::Or;
      Tree inner{dual(kind), 0, {tree, make(1)}};
      return {kind, 0, {std::move(tree), std::move(inner)}};
    }
    case 3: // Distribution of the last operand over the first.
      if (isProduct && tree.children.size() == 2 &&
          tree.children[0].kind == dual(tree.kind)) {
        Tree sum{dual(tree.kind), 0, {}};
        for (const Tree &part : tree.children[0].children) {
          sum.children.push_back({tree.kind, 0, {part, tree.children[1]}});
        }
        return sum;
      }
      return tree;
    case 4:
      return negate(negate(std::move(tree)));
    default:
      return tree;
    }
  }

private:
  std::mt19937 random;
  int leaves;
};
} // namespace

/// Every tree of depth 2 and less. Its form has its values, and two trees have
/// one form if and only if they have the same values (the points suffice: every
/// bound is within -3..3).
TEST(MaskAlgebra, EverySmallTree) {
  std::vector<std::pair<MaskExpr, Table>> trees;
  auto add = [&](const MaskExpr &expr, const Table &table) {
    trees.push_back({expr, table});
  };
  for (const MaskExpr &leaf : leaves()) {
    add(leaf, tabulate(leaf));
  }
  auto grow = [&](size_t count, auto visit) {
    for (size_t a = 0; a < count; ++a) {
      auto [left, leftTable] = trees[a];
      visit(MaskExpr::negation(left), ~leftTable);
      for (size_t b = a + 1; b < count; ++b) {
        auto [right, rightTable] = trees[b];
        visit(MaskExpr::conjunction({left, right}), leftTable & rightTable);
        visit(MaskExpr::disjunction({left, right}), leftTable | rightTable);
      }
    }
  };
  auto less = [](const Table &a, const Table &b) {
    for (int i = 0; i < kPoints; ++i) {
      if (a[i] != b[i]) {
        return b[i];
      }
    }
    return false;
  };
  std::map<Table, MaskNormalForm, decltype(less)> forms(less);
  size_t checked = 0;
  auto check = [&](const MaskExpr &expr, const Table &table) {
    std::optional<MaskNormalForm> form = normalize(expr);
    ASSERT_TRUE(form && form->exact);
    auto [known, isNew] = forms.try_emplace(table, *form);
    if (isNew) {
      // Equal tables have equal forms, so one of each has to be evaluated.
      ASSERT_EQ(tabulate(*form), table);
    }
    ASSERT_TRUE(sameForm(known->second, *form));
    ++checked;
  };
  for (const auto &[expr, table] : trees) {
    check(expr, table);
  }
  grow(trees.size(), [&](const MaskExpr &expr, const Table &table) {
    ASSERT_EQ(tabulate(expr), table);
    check(expr, table);
    add(expr, table);
  });
  grow(trees.size(), check);
  EXPECT_GT(checked, 10000u);
}

TEST(MaskAlgebra, FullAndNone) {
  EXPECT_TRUE(normalize(MaskExpr::full())->isFull());
  EXPECT_TRUE(normalize(MaskExpr::none())->isEmpty());
  MaskExpr causal = MaskExpr::band(0, kMinusInfinity, 0);
  EXPECT_TRUE(
      normalize(MaskExpr::disjunction({causal, MaskExpr::negation(causal)}))
          ->isFull());
  EXPECT_TRUE(
      normalize(MaskExpr::conjunction({causal, MaskExpr::band(0, 1, 5)}))
          ->isEmpty());
  // Adjacent bands are one.
  EXPECT_TRUE(normalize(MaskExpr::disjunction(
                            {causal, MaskExpr::band(0, 1, kPlusInfinity)}))
                  ->isFull());
}

TEST(MaskAlgebra, RewritingKeepsTheForm) {
  std::vector<MaskExpr> atoms = leaves();
  int exact = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomTrees random(seed, static_cast<int>(atoms.size()));
    Tree tree = random.make(3);
    Tree other = tree;
    for (int round = 0; round < 2; ++round) {
      other = random.rewrite(std::move(other));
    }
    std::optional<MaskNormalForm> a = normalize(toExpr(tree, atoms));
    std::optional<MaskNormalForm> b = normalize(toExpr(other, atoms));
    if (a && b && a->exact && b->exact) {
      EXPECT_EQ(a->terms, b->terms);
      ++exact;
    }
  }
  EXPECT_GT(exact, 300);
}

TEST(MaskAlgebra, EqualFormsAreEqualMasks) {
  std::vector<MaskExpr> atoms = leaves();
  RandomTrees random(7, static_cast<int>(atoms.size()));
  std::vector<std::pair<Table, MaskNormalForm>> seen;
  int equal = 0;
  for (int n = 0; n < 250; ++n) {
    MaskExpr expr = toExpr(random.make(2), atoms);
    Table table = tabulate(expr);
    std::optional<MaskNormalForm> form = normalize(expr);
    ASSERT_TRUE(form && form->exact);
    for (const auto &[otherTable, otherForm] : seen) {
      ASSERT_EQ(table == otherTable, sameForm(*form, otherForm));
      equal += table == otherTable;
    }
    seen.push_back({table, *form});
  }
  EXPECT_GT(equal, 0);
}

/// Holds the primes against all terms that there are with bounds as far out as
/// those of the leaves, by their values alone.
TEST(MaskAlgebra, PrimesAreAllThereAre) {
  std::vector<std::vector<Band>> intervals(2);
  for (int family = 0; family < 2; ++family) {
    // The leaves' bounds and those of their complements.
    int64_t first = family == 0 ? -2 : 1, last = family == 0 ? 3 : 1;
    std::vector<int64_t> starts{kMinusInfinity}, ends{kPlusInfinity};
    for (int64_t start = first; start <= last; ++start) {
      starts.push_back(start);
      ends.push_back(start - 1);
    }
    for (int64_t lo : starts) {
      for (int64_t hi : ends) {
        if (lo <= hi) {
          intervals[family].push_back({family, lo, hi});
        }
      }
    }
  }
  std::vector<std::pair<MaskTerm, Table>> candidates;
  auto isFinite = [](const Band &band) {
    return band.lo != kMinusInfinity || band.hi != kPlusInfinity;
  };
  for (const Band &a : intervals[0]) {
    for (const Band &b : intervals[1]) {
      for (int literals = 0; literals < 9; ++literals) {
        MaskTerm term;
        for (const Band &band : {a, b}) {
          if (isFinite(band)) {
            term.bands.push_back(band);
          }
        }
        int choices[2] = {literals % 3, literals / 3};
        for (int id = 0; id < 2; ++id) {
          if (choices[id] == 1) {
            term.positive.push_back(id);
          } else if (choices[id] == 2) {
            term.negative.push_back(id);
          }
        }
        MaskNormalForm form;
        form.terms.push_back(term);
        candidates.push_back({term, tabulate(form)});
      }
    }
  }

  std::vector<MaskExpr> atoms = leaves();
  RandomTrees random(11, static_cast<int>(atoms.size()));
  size_t most = 0;
  for (int n = 0; n < 120; ++n) {
    MaskExpr expr = toExpr(random.make(4), atoms);
    std::optional<MaskNormalForm> form = normalize(expr);
    ASSERT_TRUE(form);
    if (!form->exact) {
      continue;
    }
    Table table = tabulate(expr);
    std::vector<std::pair<MaskTerm, Table>> implicants;
    for (const auto &candidate : candidates) {
      if ((candidate.second & ~table).none()) {
        implicants.push_back(candidate);
      }
    }
    size_t primes = 0;
    for (const auto &[term, values] : implicants) {
      bool isPrime = llvm::none_of(implicants, [&, &values = values](auto &of) {
        return of.second != values && (values & ~of.second).none();
      });
      ASSERT_EQ(llvm::is_contained(form->primes, term), isPrime);
      primes += isPrime;
    }
    ASSERT_EQ(form->primes.size(), primes);
    most = std::max(most, primes);
  }
  EXPECT_GT(most, 4u);
}

TEST(MaskAlgebra, TermsSufficeAndAreNeeded) {
  std::vector<MaskExpr> atoms = leaves();
  RandomTrees random(5, static_cast<int>(atoms.size()));
  int thinned = 0;
  for (int n = 0; n < 200; ++n) {
    MaskExpr expr = toExpr(random.make(3), atoms);
    std::optional<MaskNormalForm> form = normalize(expr);
    ASSERT_TRUE(form);
    Table table = tabulate(expr);
    ASSERT_EQ(tabulate(*form), table);
    if (!form->exact) {
      continue;
    }
    thinned += form->terms.size() < form->primes.size();
    for (size_t without = 0; without < form->terms.size(); ++without) {
      ASSERT_TRUE(llvm::is_contained(form->primes, form->terms[without]));
      MaskNormalForm rest = *form;
      rest.terms.erase(rest.terms.begin() + without);
      ASSERT_NE(tabulate(rest), table);
    }
    // The form of a form is itself, by the terms and by the primes.
    ASSERT_TRUE(sameForm(*normalize(toExpr(form->terms)), *form));
    ASSERT_TRUE(sameForm(*normalize(toExpr(form->primes)), *form));
  }
  EXPECT_GT(thinned, 0);
}

TEST(MaskAlgebra, EndsOfTheIntegers) {
  for (auto [lo, hi] : {std::pair(kMinusInfinity, kMinusInfinity),
                        std::pair(kMinusInfinity, kMinusInfinity + 1),
                        std::pair(kPlusInfinity, kPlusInfinity),
                        std::pair(kPlusInfinity - 1, kPlusInfinity),
                        std::pair(kMinusInfinity + 1, kPlusInfinity - 1)}) {
    MaskExpr band = MaskExpr::band(0, lo, hi);
    MaskExpr outside = MaskExpr::negation(band);
    EXPECT_TRUE(normalize(MaskExpr::disjunction({band, outside}))->isFull());
    EXPECT_TRUE(normalize(MaskExpr::conjunction({band, outside}))->isEmpty());
    EXPECT_TRUE(
        sameForm(*normalize(MaskExpr::negation(outside)), *normalize(band)));
  }
  EXPECT_TRUE(normalize(MaskExpr::band(0, 1, 0))->isEmpty());
  EXPECT_TRUE(normalize(MaskExpr::conjunction({}))->isFull());
  EXPECT_TRUE(normalize(MaskExpr::disjunction({}))->isEmpty());
}

/// Programs reuse masks, and they can be long. The time and the depth of the
/// stack follow the number of operations, not that of the paths.
TEST(MaskAlgebra, SharedAndDeepExpressions) {
  MaskExpr shared = MaskExpr::atom(0), deep = MaskExpr::atom(0);
  for (int n = 0; n < 5000; ++n) {
    shared = MaskExpr::conjunction(
        {shared, MaskExpr::disjunction({shared, MaskExpr::atom(1)})});
  }
  for (int n = 0; n < 100001; ++n) {
    deep = MaskExpr::negation(deep);
  }
  auto diagonal = [](int) -> int64_t { return 0; };
  auto isZero = [](int id) { return id == 0; };
  EXPECT_TRUE(shared.evaluate(diagonal, isZero));
  EXPECT_FALSE(deep.evaluate(diagonal, isZero));
  EXPECT_TRUE(sameForm(*normalize(shared), *normalize(MaskExpr::atom(0))));
  EXPECT_TRUE(sameForm(*normalize(deep),
                       *normalize(MaskExpr::negation(MaskExpr::atom(0)))));
}

/// (a0 or b0) and (a1 or b1) and ...: 2^n terms.
static MaskExpr productOfSums(int n) {
  std::vector<MaskExpr> sums;
  for (int i = 0; i < n; ++i) {
    sums.push_back(MaskExpr::disjunction(
        {MaskExpr::atom(2 * i), MaskExpr::atom(2 * i + 1)}));
  }
  return MaskExpr::conjunction(sums);
}

TEST(MaskAlgebra, BeyondTheLimit) {
  std::optional<MaskNormalForm> form = normalize(productOfSums(3), 8);
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->exact);
  EXPECT_EQ(form->terms.size(), 8u);

  form = normalize(productOfSums(5), 8);
  ASSERT_TRUE(form);
  EXPECT_FALSE(form->exact);
  MaskExpr expr = productOfSums(5);
  for (unsigned values = 0; values < 1024; ++values) {
    auto diagonal = [](int) -> int64_t { return 0; };
    auto atom = [&](int id) { return (values >> id & 1) != 0; };
    ASSERT_EQ(evaluate(*form, diagonal, atom), expr.evaluate(diagonal, atom));
  }

  EXPECT_FALSE(normalize(productOfSums(10), 8));
  EXPECT_FALSE(normalize(productOfSums(20)));

  // Nor does a product of two long sums take long.
  std::vector<MaskExpr> sums[2];
  for (int n = 0; n < 2000; ++n) {
    sums[n % 2].push_back(MaskExpr::atom(n));
  }
  EXPECT_FALSE(normalize(MaskExpr::conjunction(
      {MaskExpr::disjunction(sums[0]), MaskExpr::disjunction(sums[1])})));
  form = normalize(MaskExpr::disjunction(sums[0]));
  ASSERT_TRUE(form);
  EXPECT_FALSE(form->exact);
  EXPECT_TRUE(form->primes.empty());
  EXPECT_EQ(form->terms.size(), 1000u);
}
