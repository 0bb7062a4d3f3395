//===- Layout.cpp - fragments and shared memory ----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include <algorithm>

using namespace attnfuse::tile;

FragmentLayout::Place FragmentLayout::place(int64_t value) const {
  Place place;
  place.pair = value % columnValues();
  value /= columnValues();
  place.half = value % rowValues();
  value /= rowValues();
  place.columnTile = value % columnTiles();
  place.rowTile = value / columnTiles();
  return place;
}

int64_t FragmentLayout::value(const Place &place) const {
  int64_t tile = place.rowTile * columnTiles() + place.columnTile;
  return (tile * rowValues() + place.half) * columnValues() + place.pair;
}

FragmentLayout::Element FragmentLayout::element(int64_t warp, int64_t lane,
                                                int64_t value) const {
  Place at = place(value);
  Element element{0, 0};
  if (rows != 1) {
    element.row =
        warp * rowsPerWarp() + at.rowTile * 16 + lane / 4 + at.half * 8;
  }
  if (columns != 1) {
    element.column = at.columnTile * 8 + lane % 4 * 2 + at.pair;
  }
  return element;
}

bool FragmentLayout::isLegal() const {
  return warps > 0 && (rows == 1 || rows % (16 * warps) == 0) &&
         (columns == 1 || columns % 8 == 0);
}

int64_t SlotLayout::offset(int64_t row, int64_t column) const {
  int64_t panel = column / panelColumns();
  int64_t chunk = column % panelColumns() / chunkColumns();
  chunk ^= row >> rowShift() & chunkMask();
  return panel * panelBytes() + row * swizzle + chunk * 16 +
         column % chunkColumns() * elementBytes;
}

bool SlotLayout::isLegal() const {
  return (swizzle == 32 || swizzle == 64 || swizzle == 128) && rows > 0 &&
         rows % 8 == 0 && columns > 0 && columns % panelColumns() == 0;
}

int64_t SlotLayout::widestSwizzle(int64_t columns, int64_t elementBytes) {
  for (int64_t swizzle = 128; swizzle >= 32; swizzle /= 2) {
    if (columns * elementBytes % swizzle == 0) {
      return swizzle;
    }
  }
  return 0;
}

int64_t attnfuse::tile::paddedWidth(int64_t columns, int64_t elementBytes) {
  int64_t step = 32 / elementBytes;
  return (columns + step - 1) / step * step;
}

int64_t attnfuse::tile::launchRegisters(int64_t threads) {
  return std::min<int64_t>(65536 / threads / 8 * 8, 256);
}
