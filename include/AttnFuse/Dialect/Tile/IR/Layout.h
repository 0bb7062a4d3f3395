//===- Layout.h - fragments and shared memory -------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The arithmetic of layouts, free of IR: which lane holds which element of a
// tile, and where an element of a ring's slot lies in shared memory. PTX ISA,
// "Matrix fragments for mma.m16n8k16", "ldmatrix", "Swizzling modes".
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_TILE_IR_LAYOUT_H
#define ATTNFUSE_DIALECT_TILE_IR_LAYOUT_H

#include <cstdint>

namespace attnfuse::tile {

/// The accumulators of m16n8 products: the rows of a tile shared out among
/// warps in contiguous parts, 16 at a time.
struct FragmentLayout {
  int64_t rows, columns, warps;

  int64_t rowsPerWarp() const { return rows / warps; }
  /// Tiles of 16 rows and of 8 columns that a warp holds.
  int64_t rowTiles() const { return rows == 1 ? 1 : rowsPerWarp() / 16; }
  int64_t columnTiles() const { return columns == 1 ? 1 : columns / 8; }
  /// Values of a lane per tile of 16 x 8: two of each in a matrix, one where
  /// an extent of 1 is held by every lane.
  int64_t rowValues() const { return rows == 1 ? 1 : 2; }
  int64_t columnValues() const { return columns == 1 ? 1 : 2; }
  int64_t values() const {
    return rowTiles() * columnTiles() * rowValues() * columnValues();
  }

  /// Value n of a lane, taken apart: accumulators of one m16n8 tile are
  /// adjacent, columns varying fastest.
  struct Place {
    int64_t rowTile, columnTile, half, pair;
  };
  Place place(int64_t value) const;
  int64_t value(const Place &place) const;

  /// The element that lane `lane` of warp `warp` holds as its value n.
  struct Element {
    int64_t row, column;
  };
  Element element(int64_t warp, int64_t lane, int64_t value) const;

  /// Whether every warp holds whole tiles of 16 rows and 8 columns.
  bool isLegal() const;
};

/// A slot of a ring: panels of `swizzle` bytes of every row, one after the
/// other; 16-byte chunks permuted within a panel.
struct SlotLayout {
  int64_t rows, columns, elementBytes, swizzle;

  int64_t panelColumns() const { return swizzle / elementBytes; }
  int64_t panels() const { return columns / panelColumns(); }
  int64_t panelBytes() const { return rows * swizzle; }
  int64_t bytes() const { return panels() * panelBytes(); }
  int64_t chunkColumns() const { return 16 / elementBytes; }

  /// Byte offset of an element.
  int64_t offset(int64_t row, int64_t column) const;
  /// What the chunk's number is combined with: bits of the row, from
  /// `rowShift()` on, `swizzle / 16` values.
  int64_t rowShift() const {
    return swizzle == 128 ? 0 : swizzle == 64 ? 1 : 2;
  }
  int64_t chunkMask() const { return swizzle / 16 - 1; }

  bool isLegal() const;

  /// The widest swizzle whose panels divide the columns.
  static int64_t widestSwizzle(int64_t columns, int64_t elementBytes);
};

/// The width to which rows are padded in shared memory: whole k-steps of the
/// matrix instructions (16 columns of 16 bits, 8 of 32).
int64_t paddedWidth(int64_t columns, int64_t elementBytes);

/// Registers of each thread of a block that has a multiprocessor to itself and
/// whose roles have budgets of their own (setmaxnreg): equal parts of 65536 in
/// units of 8, 256 at most.
int64_t launchRegisters(int64_t threads);

} // namespace attnfuse::tile

#endif // ATTNFUSE_DIALECT_TILE_IR_LAYOUT_H
