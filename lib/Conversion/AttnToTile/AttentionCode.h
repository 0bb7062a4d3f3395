//===- AttentionCode.h - what every attention kernel computes ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parts of a kernel that do not depend on how it is scheduled. Softmax is
// online (Milakov and Gimelshein 2018; Dao et al. 2022): with x the scores in
// the kernel's unit and c the factor such that the weight is 2^(c (x - m)),
// each key tile does
//
//   m' = max(m, rowmax x)            p = 2^(c (x - m'))     a = 2^(c (m - m'))
//   l' = a l + rowsum p              O' = a O + p V
//
// and the end is O / l and lse = (c ln 2) m + ln l.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_ATTENTIONCODE_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_ATTENTIONCODE_H

#include "MaskCode.h"
#include "ScoreCode.h"

#include <optional>

namespace attnfuse {

/// Running values of a query tile, carried by the loop over key tiles.
struct AttentionState {
  mlir::Value maximum, sum, accumulator;

  llvm::SmallVector<mlir::Value> values() const;
  /// The same members, taken from a loop's arguments or results.
  AttentionState with(mlir::ValueRange range) const;
};

class AttentionCode {
public:
  AttentionCode(KernelContext &context, const AttentionProgram &program,
                tile::ScheduleAttr schedule, mlir::Value rotatedKey)
      : context(context), program(program), rows(schedule.getBlockM()),
        columns(schedule.getBlockN()), rotatedKey(rotatedKey) {}

protected:
  /// Places the query tile in the grid: batch, head, rows, extents.
  void placeTile();
  /// The same from the number of a tile, for blocks that take several: tiles
  /// with the most keys first, within groups of heads whose keys and values
  /// fit the L2 cache together.
  void placeTile(mlir::Value number, int64_t cacheBytes);
  /// The number of tiles of the whole grid.
  mlir::Value countTiles();
  /// Reads the masks and score operations; fails with an error emitted.
  mlir::LogicalResult prepare();

  /// Where the visited tiles of keys start and end, and those among them that
  /// need no test (for masks whose bounds say it all).
  struct KeyTiles {
    mlir::Value first, last, wholeFirst, wholeLast;
  };
  KeyTiles keyTiles();

  AttentionState initialState(int64_t valueWidth);
  /// Scores of a tile of keys from the raw products; `tested`: with masks.
  mlir::Value scores(mlir::Value j0, mlir::Value products, bool tested);
  /// Scores with those of pairs that the masks drop replaced.
  mlir::Value masked(mlir::Value j0, mlir::Value x);
  /// Maximum, what is taken off (in the unit of `raw`), rescaling factor.
  llvm::SmallVector<mlir::Value> updateRows(mlir::Value maximum,
                                            mlir::Value top);
  /// The same where the maximum stays: a factor of 1.
  llvm::SmallVector<mlir::Value> keepRows(mlir::Value maximum);
  mlir::Value weightsOf(mlir::Value x, mlir::Value taken);
  mlir::Value reluOf(mlir::Value x);
  mlir::Value scaledBy(mlir::Value tile, mlir::Value column);
  mlir::Value updateSum(mlir::Value sum, mlir::Value factor, mlir::Value added);
  /// Factor on the accumulator and log-sum-exp, sinks included.
  llvm::SmallVector<mlir::Value> finishRows(const AttentionState &state);
  /// The accumulator as it leaves the kernel.
  mlir::Value finishResult(mlir::Value accumulator, mlir::ValueRange row);

  /// i1 per row: whether an accumulator is not finite.
  mlir::Value notFinite(mlir::Value accumulator);
  void readExtents();
  void placeHeads();
  mlir::Value headOf(mlir::Value tensor);
  int64_t width(mlir::Value tensor) {
    return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getDimSize(3);
  }

  KernelContext &context;
  AttentionProgram program;
  int64_t rows, columns;
  mlir::Value rotatedKey;

  QueryTile tile;
  mlir::Value keyHead, valueHead;
  MaskModel model;
  std::optional<MaskCode> mask;
  std::optional<ScoreCode> scoreCode;
  /// True if scores stay raw products, with the scale in `unit`.
  bool raw = false;
  double unit = 0;
  /// True if a weight may be exactly 0 beside a value that is not finite.
  bool guardAll = false;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_ATTENTIONCODE_H
