//===- MaskAlgebra.cpp - the normal form of masks --------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/MaskAlgebra.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PointerIntPair.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <optional>
#include <tuple>

using namespace attnfuse;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

struct MaskExpr::Node {
  enum Kind { Full, None, Band, Atom, And, Or, Not } kind;
  attnfuse::Band range{0, 0, 0};
  int id = 0;
  std::vector<MaskExpr> operands;

  ~Node();
};

/// Expressions are as deep as the program that they come from is long, so
/// nothing here recurses along them, and that includes their release.
MaskExpr::Node::~Node() {
  std::vector<MaskExpr> released = std::move(operands);
  while (!released.empty()) {
    std::shared_ptr<const Node> last = std::move(released.back().shared);
    released.pop_back();
    if (last.use_count() == 1) {
      // Nodes are made as mutable objects, and no one else sees this one.
      std::vector<MaskExpr> &below = const_cast<Node &>(*last).operands;
      released.insert(released.end(), below.begin(), below.end());
      below.clear();
    }
  }
}

MaskExpr MaskExpr::full() {
  return MaskExpr(std::make_shared<Node>(Node{Node::Full, {}, 0, {}}));
}
MaskExpr MaskExpr::none() {
  return MaskExpr(std::make_shared<Node>(Node{Node::None, {}, 0, {}}));
}
MaskExpr MaskExpr::band(int family, int64_t lo, int64_t hi) {
  if (lo > hi) {
    return none();
  }
  if (lo == kMinusInfinity && hi == kPlusInfinity) {
    return full();
  }
  return MaskExpr(std::make_shared<Node>(
      Node{Node::Band, attnfuse::Band{family, lo, hi}, 0, {}}));
}
MaskExpr MaskExpr::atom(int id) {
  return MaskExpr(std::make_shared<Node>(Node{Node::Atom, {}, id, {}}));
}
MaskExpr MaskExpr::conjunction(llvm::ArrayRef<MaskExpr> operands) {
  return MaskExpr(
      std::make_shared<Node>(Node{Node::And, {}, 0, operands.vec()}));
}
MaskExpr MaskExpr::disjunction(llvm::ArrayRef<MaskExpr> operands) {
  return MaskExpr(
      std::make_shared<Node>(Node{Node::Or, {}, 0, operands.vec()}));
}
MaskExpr MaskExpr::negation(const MaskExpr &operand) {
  return MaskExpr(std::make_shared<Node>(Node{Node::Not, {}, 0, {operand}}));
}

/// An expression, or its negation.
using Literal = llvm::PointerIntPair<const MaskExpr::Node *, 1, bool>;

/// The operands of one that is neither a leaf nor a constant. De Morgan: a
/// negated conjunction is a disjunction of negations.
static llvm::SmallVector<Literal> operandsOf(Literal literal) {
  const MaskExpr::Node &node = *literal.getPointer();
  bool negated = literal.getInt() != (node.kind == MaskExpr::Node::Not);
  return llvm::map_to_vector(node.operands, [&](const MaskExpr &operand) {
    return Literal(&operand.node(), negated);
  });
}

/// All parts of an expression, each once and behind its operands. `uses` is how
/// often each is an operand; the root counts as one. Parts are shared, so there
/// can be exponentially more paths than parts.
static std::vector<Literal>
operandsFirst(const MaskExpr &mask, llvm::DenseMap<Literal, unsigned> &uses) {
  std::vector<Literal> order;
  std::vector<std::pair<Literal, bool>> stack{
      {Literal(&mask.node(), false), false}};
  while (!stack.empty()) {
    auto [literal, isDone] = stack.back();
    stack.pop_back();
    if (isDone) {
      order.push_back(literal);
    } else if (uses[literal]++ == 0) {
      stack.push_back({literal, true});
      for (Literal operand : operandsOf(literal)) {
        stack.push_back({operand, false});
      }
    }
  }
  return order;
}

bool MaskExpr::evaluate(llvm::function_ref<int64_t(int)> diagonal,
                        llvm::function_ref<bool(int)> atom) const {
  llvm::DenseMap<Literal, unsigned> uses;
  llvm::DenseMap<Literal, bool> values;
  bool value = false;
  for (Literal literal : operandsFirst(*this, uses)) {
    const Node &node = *literal.getPointer();
    bool negated = literal.getInt();
    auto valueOf = [&](Literal operand) { return values.lookup(operand); };
    switch (node.kind) {
    case Node::Full:
    case Node::None:
      value = (node.kind == Node::Full) != negated;
      break;
    case Node::Band: {
      int64_t d = diagonal(node.range.family);
      value = (node.range.lo <= d && d <= node.range.hi) != negated;
      break;
    }
    case Node::Atom:
      value = atom(node.id) != negated;
      break;
    case Node::Not:
      value = valueOf(operandsOf(literal).front());
      break;
    case Node::And:
    case Node::Or:
      value = (node.kind == Node::And) != negated
                  ? llvm::all_of(operandsOf(literal), valueOf)
                  : llvm::any_of(operandsOf(literal), valueOf);
      break;
    }
    values[literal] = value;
  }
  // The root comes last.
  return value;
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

static auto key(const Band &band) {
  return std::tuple(band.family, band.lo, band.hi);
}

/// A total order: terms with fewer constraints first.
static bool before(const MaskTerm &a, const MaskTerm &b) {
  auto size = [](const MaskTerm &term) {
    return term.bands.size() + term.positive.size() + term.negative.size();
  };
  if (size(a) != size(b)) {
    return size(a) < size(b);
  }
  if (!(a.bands == b.bands)) {
    return std::lexicographical_compare(
        a.bands.begin(), a.bands.end(), b.bands.begin(), b.bands.end(),
        [](const Band &x, const Band &y) { return key(x) < key(y); });
  }
  return std::tie(a.positive, a.negative) < std::tie(b.positive, b.negative);
}

static Band bandOf(const MaskTerm &term, int family) {
  for (const Band &band : term.bands) {
    if (band.family == family) {
      return band;
    }
  }
  return {family, kMinusInfinity, kPlusInfinity};
}

/// Sets the band of a family; one without ends is left out.
static void setBand(MaskTerm &term, const Band &band) {
  llvm::erase_if(term.bands,
                 [&](const Band &old) { return old.family == band.family; });
  if (band.lo != kMinusInfinity || band.hi != kPlusInfinity) {
    term.bands.insert(llvm::upper_bound(term.bands, band,
                                        [](const Band &x, const Band &y) {
                                          return x.family < y.family;
                                        }),
                      band);
  }
}

static void insertSorted(llvm::SmallVectorImpl<int> &ids, int id) {
  auto place = llvm::lower_bound(ids, id);
  if (place == ids.end() || *place != id) {
    ids.insert(place, id);
  }
}

/// The conjunction of two terms; nothing if it can never be true.
static std::optional<MaskTerm> meet(const MaskTerm &a, const MaskTerm &b) {
  MaskTerm result = a;
  for (const Band &band : b.bands) {
    Band mine = bandOf(result, band.family);
    Band both{band.family, std::max(mine.lo, band.lo),
              std::min(mine.hi, band.hi)};
    if (both.lo > both.hi) {
      return std::nullopt;
    }
    setBand(result, both);
  }
  for (int id : b.positive) {
    insertSorted(result.positive, id);
  }
  for (int id : b.negative) {
    insertSorted(result.negative, id);
  }
  for (int id : result.positive) {
    if (llvm::is_contained(result.negative, id)) {
      return std::nullopt;
    }
  }
  return result;
}

/// True if `term` implies `other`.
static bool implies(const MaskTerm &term, const MaskTerm &other) {
  for (const Band &band : other.bands) {
    Band mine = bandOf(term, band.family);
    if (mine.lo < band.lo || mine.hi > band.hi) {
      return false;
    }
  }
  return std::includes(term.positive.begin(), term.positive.end(),
                       other.positive.begin(), other.positive.end()) &&
         std::includes(term.negative.begin(), term.negative.end(),
                       other.negative.begin(), other.negative.end());
}

/// Adds a term to terms of which none implies another, and keeps them so.
/// Returns the number of comparisons.
static size_t addTerm(std::vector<MaskTerm> &terms, MaskTerm term) {
  size_t known = terms.size();
  for (size_t n = 0; n < known; ++n) {
    if (implies(term, terms[n])) {
      return n + 1;
    }
  }
  llvm::erase_if(terms,
                 [&](const MaskTerm &other) { return implies(other, term); });
  terms.push_back(std::move(term));
  return 2 * known + 1;
}

//===----------------------------------------------------------------------===//
// Disjunctive form
//===----------------------------------------------------------------------===//

namespace {
/// Multiplies an expression out into terms of which none implies another.
class Expander {
public:
  using Node = MaskExpr::Node;
  using Terms = std::vector<MaskTerm>;

  explicit Expander(unsigned maxTerms)
      : limit(size_t(maxTerms) * 16), work(size_t(maxTerms) << 20) {}

  /// Nothing if there would be more terms than the limit, or too many steps
  /// on the way.
  std::optional<Terms> expand(const MaskExpr &mask) {
    for (Literal literal : operandsFirst(mask, uses)) {
      Terms terms;
      const Node &node = *literal.getPointer();
      bool isConnective = node.kind == Node::And || node.kind == Node::Or;
      if (isConnective) {
        if (!combine(literal, terms)) {
          return std::nullopt;
        }
      } else {
        terms = node.kind == Node::Not ? take(operandsOf(literal).front())
                                       : leaf(node, literal.getInt());
      }
      values[literal] = std::move(terms);
    }
    return take(Literal(&mask.node(), false));
  }

private:
  static Terms leaf(const Node &node, bool negated) {
    Terms terms;
    if (node.kind == Node::Full || node.kind == Node::None) {
      if ((node.kind == Node::Full) != negated) {
        terms.emplace_back();
      }
      return terms;
    }
    if (node.kind == Node::Atom) {
      MaskTerm term;
      (negated ? term.negative : term.positive).push_back(node.id);
      terms.push_back(term);
      return terms;
    }
    auto add = [&](int64_t lo, int64_t hi) {
      MaskTerm term;
      term.bands.push_back({node.range.family, lo, hi});
      terms.push_back(term);
    };
    if (!negated) {
      add(node.range.lo, node.range.hi);
      return terms;
    }
    // The outside of an interval: what is below and what is above.
    if (node.range.lo != kMinusInfinity) {
      add(kMinusInfinity, node.range.lo - 1);
    }
    if (node.range.hi != kPlusInfinity) {
      add(node.range.hi + 1, kPlusInfinity);
    }
    return terms;
  }

  /// The terms of an operand, which are dropped at its last use.
  Terms take(Literal operand) {
    auto place = values.find(operand);
    if (--uses[operand] > 0) {
      return place->second;
    }
    Terms terms = std::move(place->second);
    values.erase(place);
    return terms;
  }

  bool combine(Literal literal, Terms &terms) {
    bool isProduct =
        (literal.getPointer()->kind == Node::And) != literal.getInt();
    if (isProduct) {
      terms.emplace_back();
    }
    for (Literal operand : operandsOf(literal)) {
      Terms part = take(operand);
      if (!isProduct) {
        for (MaskTerm &term : part) {
          if (!add(terms, std::move(term))) {
            return false;
          }
        }
      } else {
        Terms product;
        for (const MaskTerm &a : terms) {
          for (const MaskTerm &b : part) {
            std::optional<MaskTerm> both = meet(a, b);
            if (!spend(1) || (both && !add(product, std::move(*both)))) {
              return false;
            }
          }
        }
        terms = std::move(product);
      }
      if (terms.size() > limit) {
        return false;
      }
    }
    return true;
  }

  /// Halfway through an operand there may be more terms than after it.
  bool add(Terms &terms, MaskTerm term) {
    return spend(addTerm(terms, std::move(term))) && terms.size() <= 2 * limit;
  }

  bool spend(size_t steps) {
    work -= std::min(work, steps);
    return work > 0;
  }

  size_t limit, work;
  llvm::DenseMap<Literal, unsigned> uses;
  llvm::DenseMap<Literal, Terms> values;
};
} // namespace

//===----------------------------------------------------------------------===//
// Prime implicants
//===----------------------------------------------------------------------===//

/// Every consensus of two terms: what both imply together and neither alone.
static void consensus(const MaskTerm &a, const MaskTerm &b,
                      std::vector<MaskTerm> &found) {
  // On a family: intervals that touch or overlap, and of which neither holds
  // the other, join.
  llvm::SmallVector<int> families;
  for (const Band &band : a.bands) {
    families.push_back(band.family);
  }
  for (int family : families) {
    Band x = bandOf(a, family), y = bandOf(b, family);
    if (y.lo == kMinusInfinity && y.hi == kPlusInfinity) {
      continue;
    }
    if (x.lo > y.lo) {
      std::swap(x, y);
    }
    bool joins = x.hi == kPlusInfinity || y.lo <= x.hi + 1;
    if (!joins || y.hi <= x.hi || x.lo == y.lo) {
      continue;
    }
    MaskTerm left = a, right = b;
    Band everywhere{family, kMinusInfinity, kPlusInfinity};
    setBand(left, everywhere);
    setBand(right, everywhere);
    if (std::optional<MaskTerm> both = meet(left, right)) {
      setBand(*both, {family, x.lo, y.hi});
      found.push_back(*both);
    }
  }
  // On an atom: true in one and false in the other.
  auto onAtoms = [&](const MaskTerm &with, const MaskTerm &without) {
    for (int id : with.positive) {
      if (!llvm::is_contained(without.negative, id)) {
        continue;
      }
      MaskTerm left = with, right = without;
      llvm::erase(left.positive, id);
      llvm::erase(right.negative, id);
      if (std::optional<MaskTerm> both = meet(left, right)) {
        found.push_back(*both);
      }
    }
  };
  onAtoms(a, b);
  onAtoms(b, a);
}

/// Closes terms of which none implies another under consensus. False if there
/// are more than the limit on the way.
static bool closeUnderConsensus(std::vector<MaskTerm> &terms, size_t limit) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<MaskTerm> found;
    for (size_t n = 0; n < terms.size(); ++n) {
      for (size_t other = n + 1; other < terms.size(); ++other) {
        consensus(terms[n], terms[other], found);
      }
    }
    for (MaskTerm &term : found) {
      if (llvm::none_of(terms, [&](const MaskTerm &known) {
            return implies(term, known);
          })) {
        addTerm(terms, std::move(term));
        changed = true;
      }
      // Terms found later in the round may absorb some of these.
      if (terms.size() > 16 * limit) {
        return false;
      }
    }
    if (terms.size() > limit) {
      return false;
    }
  }
  return true;
}

/// True if `term` implies the disjunction of `others`.
static bool impliesUnion(const MaskTerm &term,
                         llvm::ArrayRef<MaskTerm> others) {
  // Split on the first term that meets it: what lies outside that one has to
  // be covered by the rest.
  for (size_t n = 0; n < others.size(); ++n) {
    const MaskTerm &other = others[n];
    if (!meet(term, other)) {
      continue;
    }
    if (implies(term, other)) {
      return true;
    }
    llvm::ArrayRef<MaskTerm> rest = others.drop_front(n + 1);
    // The parts of `term` outside `other`, one constraint at a time.
    MaskTerm inside = term;
    for (const Band &band : other.bands) {
      Band mine = bandOf(inside, band.family);
      if (mine.lo < band.lo) {
        MaskTerm below = inside;
        setBand(below, {band.family, mine.lo, band.lo - 1});
        if (!impliesUnion(below, rest)) {
          return false;
        }
      }
      if (mine.hi > band.hi) {
        MaskTerm above = inside;
        setBand(above, {band.family, band.hi + 1, mine.hi});
        if (!impliesUnion(above, rest)) {
          return false;
        }
      }
      setBand(inside, {band.family, std::max(mine.lo, band.lo),
                       std::min(mine.hi, band.hi)});
    }
    auto outside = [&](int id, bool positive) {
      auto &mine = positive ? inside.positive : inside.negative;
      if (llvm::is_contained(mine, id)) {
        return true;
      }
      MaskTerm without = inside;
      insertSorted(positive ? without.negative : without.positive, id);
      insertSorted(mine, id);
      return impliesUnion(without, rest);
    };
    for (int id : other.positive) {
      if (!outside(id, true)) {
        return false;
      }
    }
    for (int id : other.negative) {
      if (!outside(id, false)) {
        return false;
      }
    }
    return true;
  }
  return false;
}

/// Drops terms that the others cover together, those with the most constraints
/// first.
static void makeIrredundant(std::vector<MaskTerm> &terms) {
  for (size_t n = terms.size(); n-- > 0;) {
    std::vector<MaskTerm> others = terms;
    others.erase(others.begin() + n);
    if (impliesUnion(terms[n], others)) {
      terms = std::move(others);
    }
  }
}

bool MaskNormalForm::isFull() const {
  return llvm::any_of(terms, [](const MaskTerm &term) {
    return term.bands.empty() && term.positive.empty() && term.negative.empty();
  });
}

std::optional<MaskNormalForm> attnfuse::normalize(const MaskExpr &mask,
                                                  unsigned maxTerms) {
  std::optional<std::vector<MaskTerm>> terms = Expander(maxTerms).expand(mask);
  if (!terms) {
    return std::nullopt;
  }
  MaskNormalForm form;
  form.primes = *terms;
  form.exact =
      terms->size() <= maxTerms && closeUnderConsensus(form.primes, maxTerms);
  if (form.exact) {
    llvm::sort(form.primes, before);
    form.terms = form.primes;
    makeIrredundant(form.terms);
  } else {
    form.primes.clear();
    form.terms = std::move(*terms);
    llvm::sort(form.terms, before);
  }
  return form;
}

bool attnfuse::evaluate(const MaskNormalForm &form,
                        llvm::function_ref<int64_t(int)> diagonal,
                        llvm::function_ref<bool(int)> atom) {
  return llvm::any_of(form.terms, [&](const MaskTerm &term) {
    return llvm::all_of(term.bands,
                        [&](const Band &band) {
                          int64_t d = diagonal(band.family);
                          return band.lo <= d && d <= band.hi;
                        }) &&
           llvm::all_of(term.positive, [&](int id) { return atom(id); }) &&
           llvm::none_of(term.negative, [&](int id) { return atom(id); });
  });
}
