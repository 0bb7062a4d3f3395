//===- MaskAlgebra.h - the normal form of masks -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A mask is a Boolean function of a pair (i, j). Its leaves are bands,
// `lo <= j - i - base <= hi` with `base` that of a family of diagonals, and
// atoms, of which nothing is known but whether two are the same. Families and
// atoms vary independently; that is the theory in which two masks are equal.
//
// The normal form is the Blake canonical form, generalised to a many-valued
// variable per family: the set of all prime implicants, found by iterated
// consensus and absorption (Blake 1937; Quine 1955; Tison 1967), thinned to
// an irredundant cover in a fixed order. Both depend on the function alone.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_MASKALGEBRA_H
#define ATTNFUSE_ANALYSIS_MASKALGEBRA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace attnfuse {

inline constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kPlusInfinity = std::numeric_limits<int64_t>::max();

/// `lo <= d <= hi` for the diagonal variable d of a family; at least one end
/// is finite.
struct Band {
  int family;
  int64_t lo, hi;

  bool operator==(const Band &other) const {
    return family == other.family && lo == other.lo && hi == other.hi;
  }
};

/// A conjunction: bands (at most one per family, sorted by family) and atoms
/// that are true and false (sorted).
struct MaskTerm {
  llvm::SmallVector<Band> bands;
  llvm::SmallVector<int> positive, negative;

  bool operator==(const MaskTerm &other) const {
    return bands == other.bands && positive == other.positive &&
           negative == other.negative;
  }
};

/// A disjunction of terms. No term: nothing is kept. A term without
/// constraints: everything is.
struct MaskNormalForm {
  std::vector<MaskTerm> terms;
  /// All prime implicants, of which `terms` are some that suffice; none if not
  /// `exact`.
  std::vector<MaskTerm> primes;
  /// False if the limit on terms was met; the terms are then those of the
  /// expression, multiplied out and absorbed, equal to it but not unique.
  bool exact = true;

  bool isEmpty() const { return terms.empty(); }
  bool isFull() const;
};

/// An expression over leaves; immutable, parts are shared.
class MaskExpr {
public:
  static MaskExpr full();
  static MaskExpr none();
  static MaskExpr band(int family, int64_t lo, int64_t hi);
  static MaskExpr atom(int id);
  static MaskExpr conjunction(llvm::ArrayRef<MaskExpr> operands);
  static MaskExpr disjunction(llvm::ArrayRef<MaskExpr> operands);
  static MaskExpr negation(const MaskExpr &operand);

  /// The value for given diagonal variables and atoms.
  bool evaluate(llvm::function_ref<int64_t(int)> diagonal,
                llvm::function_ref<bool(int)> atom) const;

  struct Node;
  const Node &node() const { return *shared; }

private:
  explicit MaskExpr(std::shared_ptr<const Node> node)
      : shared(std::move(node)) {}
  std::shared_ptr<const Node> shared;
};

/// The normal form. `maxTerms` bounds the work: beyond it `exact` is false, and
/// beyond 16 times as many terms, or a number of steps in proportion to it,
/// nothing is returned.
std::optional<MaskNormalForm> normalize(const MaskExpr &mask,
                                        unsigned maxTerms = 64);

/// The value of a normal form; as MaskExpr::evaluate.
bool evaluate(const MaskNormalForm &form,
              llvm::function_ref<int64_t(int)> diagonal,
              llvm::function_ref<bool(int)> atom);

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_MASKALGEBRA_H
