//===- TileTerm.h - key intervals of one term of a mask ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_TILETERM_H
#define ATTNFUSE_DIALECT_ATTN_IR_TILETERM_H

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/Hashing.h"

namespace attnfuse::attn {

/// Kinds of operations that are asked pair by pair; a set of bits.
enum class TileTest : unsigned {
  Document = 1,
  BlockSparse = 2,
  MaskMod = 4,
  Prefix = 8
};

/// Part of #attn.tile_map. The maps take (i0, i1)[Nq, Nk, symbols...]; the
/// lower bound of an interval is the greatest of its map's results, the upper
/// one the least. Without a full interval its maps are null.
struct TileTerm {
  mlir::AffineMap touchedLower, touchedUpper, fullLower, fullUpper;
  unsigned tests = 0;

  bool hasFull() const { return static_cast<bool>(fullLower); }
  bool operator==(const TileTerm &other) const {
    return touchedLower == other.touchedLower &&
           touchedUpper == other.touchedUpper && fullLower == other.fullLower &&
           fullUpper == other.fullUpper && tests == other.tests;
  }
};

inline llvm::hash_code hash_value(const TileTerm &term) {
  return llvm::hash_combine(term.touchedLower, term.touchedUpper,
                            term.fullLower, term.fullUpper, term.tests);
}

} // namespace attnfuse::attn

#endif // ATTNFUSE_DIALECT_ATTN_IR_TILETERM_H
