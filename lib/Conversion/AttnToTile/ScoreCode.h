//===- ScoreCode.h - code that score operations become ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_SCORECODE_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_SCORECODE_H

#include "MaskCode.h"

namespace attnfuse {

/// Emits the score operations of a program inside one `tile.map`, applied to
/// raw products: scale, then alibi, bias, softcap and score_mod in order.
class ScoreCode {
public:
  ScoreCode(KernelContext &context, const AttentionProgram &program,
            const QueryTile &tile, int64_t rows, int64_t columns);

  /// Tiles that the operations read, given the first key of a tile.
  llvm::SmallVector<mlir::Value> operands(mlir::Value j0);

  /// The score of pair (i, j), in natural units, from its raw product.
  mlir::Value apply(IndexMath m, mlir::Value product, mlir::ValueRange scalars,
                    mlir::Value i, mlir::Value j);

private:
  mlir::Value alibiSlope(attn::AlibiOp op);

  KernelContext &context;
  AttentionProgram program;
  QueryTile tile;
  int64_t rows, columns;
  /// Per-head slopes of alibi operations, read once per query tile.
  llvm::DenseMap<mlir::Operation *, mlir::Value> slopes;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_SCORECODE_H
