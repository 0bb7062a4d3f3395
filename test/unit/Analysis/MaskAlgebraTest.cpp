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
  return a.exact == b.exact && a.terms == b.terms;
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
}
