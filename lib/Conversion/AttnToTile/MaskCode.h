//===- MaskCode.h - code that a mask becomes -------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_MASKCODE_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_MASKCODE_H

#include "KernelContext.h"

#include "AttnFuse/Analysis/MaskModel.h"

namespace attnfuse {

/// Where a query tile stands: rows [i0, i1) of a batch entry and head.
struct QueryTile {
  mlir::Value batch, head, i0, i1, queries, keys;
};

/// A half-open interval of keys, as index values.
struct KeyInterval {
  mlir::Value lower, upper;
};

/// Emits, for one query tile of a kernel, what a mask's normal form needs: the
/// interval of keys that may be read, the interval in which all are, the class
/// of a single tile of keys, and the test of a single pair.
class MaskCode {
public:
  MaskCode(KernelContext &context, const MaskModel &model,
           const QueryTile &tile, int64_t rows, int64_t columns);

  /// Whether the bounds of a mask alone find every tile that is empty or
  /// whole, whatever the query tile.
  static bool boundsSuffice(const MaskModel &model);

  /// True if bounds alone find every tile that is empty or whole, so that no
  /// tile has to be classified on its own.
  bool isAnalytic() const { return analytic; }
  /// True if the keys that are read start at 0 whatever the query tile, with
  /// nothing partial below the whole ones.
  bool startsAtZero() const { return fromZero; }

  /// Keys outside of the first interval are read by no row of the tile; keys
  /// inside the second by every row. Both lie within [0, keys).
  std::pair<KeyInterval, KeyInterval> bounds();

  /// Whether any, and whether every, pair of a key tile is kept. `any` may be
  /// true and `all` false for want of knowledge.
  std::pair<mlir::Value, mlir::Value> classify(mlir::Value j0, mlir::Value j1);

  /// Tiles that the test of a pair reads, given the first key of a tile; they
  /// become operands of the `tile.map` that holds the test.
  llvm::SmallVector<mlir::Value> operands(mlir::Value j0);

  /// The test of pair (i, j), inside a map whose scalars for `operands` are
  /// given.
  mlir::Value test(IndexMath m, mlir::ValueRange scalars, mlir::Value i,
                   mlir::Value j);

private:
  struct Document {
    mlir::Value queryIds, keyView; // column tile; view of key ids
    mlir::Value low, high;         // of the query tile's ids
  };
  struct Classes {
    mlir::Value any, all;
  };

  void prepareDocument(attn::DocumentOp op, Document &document);
  mlir::Value keyIds(const Document &document, mlir::Value j0);
  mlir::Value base(int family);
  mlir::Value length(attn::PrefixOp op);
  KeyInterval touchedBy(const MaskTerm &term);
  KeyInterval filledBy(const MaskTerm &term);
  Classes classifyAtom(int atom, mlir::Value j0, mlir::Value j1);
  Classes classifyTable(attn::BlockSparseOp op, mlir::Value j0, mlir::Value j1);
  Classes classifyDocument(const Document &document, mlir::Value j0);
  mlir::Value testAtom(int atom, IndexMath m, mlir::ValueRange scalars,
                       mlir::Value i, mlir::Value j);

  KernelContext &context;
  const MaskModel &model;
  QueryTile tile;
  int64_t rows, columns;
  bool analytic = true, fromZero = true;
  llvm::DenseMap<int, Document> documents;
  llvm::DenseMap<int, mlir::Value> bases, lengths;
};

/// Clones the body of a score_mod or mask_mod into a map: tensors of the
/// function are read by `tile.read`. Returns what the region yields.
mlir::Value inlineScalarRegion(KernelContext &context, IndexMath m,
                               mlir::Region &region,
                               mlir::ValueRange arguments);

/// Makes sure that every value of the function that the region uses has its
/// counterpart in the kernel, ahead of any map.
void captureRegion(KernelContext &context, mlir::Region &region);

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_MASKCODE_H
