//===- SlotLayoutTest.cpp - where an element of a slot lies -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <vector>

using namespace attnfuse::tile;

namespace attnfuse::tile {
static std::ostream &operator<<(std::ostream &stream,
                                const SlotLayout &layout) {
  return stream << layout.rows << "x" << layout.columns << " of "
                << layout.elementBytes << " bytes in panels of "
                << layout.swizzle;
}
} // namespace attnfuse::tile

namespace {
/// Every legal slot of rows up to 256 columns wide.
std::vector<SlotLayout> slots() {
  std::vector<SlotLayout> all;
  for (int64_t swizzle : {32, 64, 128}) {
    for (int64_t bytes : {2, 4}) {
      for (int64_t columns = 8; columns <= 256; columns += 8) {
        for (int64_t rows : {8, 16, 24, 64, 128}) {
          SlotLayout slot{rows, columns, bytes, swizzle};
          if (slot.isLegal()) {
            all.push_back(slot);
          }
        }
      }
    }
  }
  return all;
}

/// How the hardware's modes map the address of a byte within rows of `swizzle`
/// bytes that start at a multiple of 1024: bits from 4 on are combined with
/// bits from 7 on, 3 of them for 128 bytes, 2 for 64, 1 for 32.
int64_t hardware(int64_t address, int64_t swizzle) {
  int64_t mask = swizzle == 128 ? 0x70 : swizzle == 64 ? 0x30 : 0x10;
  return address ^ (address >> 3 & mask);
}

/// The most lanes of a group that ask for different words of one bank.
int64_t worstBank(const std::vector<int64_t> &addresses) {
  std::map<int64_t, std::map<int64_t, int>> words;
  for (int64_t address : addresses) {
    ++words[address / 4 % 32][address / 4];
  }
  size_t worst = 0;
  for (const auto &[bank, distinct] : words) {
    worst = std::max(worst, distinct.size());
  }
  return static_cast<int64_t>(worst);
}
} // namespace

TEST(SlotLayout, OffsetsAreABijection) {
  for (const SlotLayout &slot : slots()) {
    SCOPED_TRACE(testing::Message() << slot);
    ASSERT_EQ(slot.bytes(), slot.rows * slot.columns * slot.elementBytes);
    std::vector<int> used(slot.bytes());
    for (int64_t row = 0; row < slot.rows; ++row) {
      for (int64_t column = 0; column < slot.columns; ++column) {
        int64_t offset = slot.offset(row, column);
        ASSERT_TRUE(0 <= offset && offset < slot.bytes());
        ASSERT_EQ(offset % slot.elementBytes, 0);
        for (int64_t byte = 0; byte < slot.elementBytes; ++byte) {
          ++used[offset + byte];
        }
      }
    }
    ASSERT_EQ(used, std::vector<int>(used.size(), 1));
  }
}

TEST(SlotLayout, ChunksOfSixteenBytesStayWhole) {
  for (const SlotLayout &slot : slots()) {
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; ++row) {
      for (int64_t column = 0; column < slot.columns; ++column) {
        int64_t inChunk = column % slot.chunkColumns();
        int64_t first = slot.offset(row, column - inChunk);
        ASSERT_EQ(first % 16, 0);
        ASSERT_EQ(slot.offset(row, column),
                  first + inChunk * slot.elementBytes);
      }
    }
  }
}

TEST(SlotLayout, AgreesWithTheHardwaresModes) {
  for (const SlotLayout &slot : slots()) {
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; ++row) {
      for (int64_t column = 0; column < slot.columns; ++column) {
        int64_t byte = column * slot.elementBytes;
        int64_t panel = byte / slot.swizzle;
        int64_t plain = row * slot.swizzle + byte % slot.swizzle;
        ASSERT_EQ(slot.offset(row, column), panel * slot.rows * slot.swizzle +
                                                hardware(plain, slot.swizzle));
      }
    }
  }
}

TEST(SlotLayout, ChunksByRow) {
  // The same in the words of the documentation: chunk ^= row & 7, and so on.
  SlotLayout wide{16, 64, 2, 128}, half{16, 32, 2, 64}, narrow{16, 16, 2, 32};
  for (int64_t row = 0; row < 16; ++row) {
    for (int64_t chunk = 0; chunk < 8; ++chunk) {
      EXPECT_EQ(wide.offset(row, chunk * 8),
                row * 128 + (chunk ^ (row & 7)) * 16);
    }
    for (int64_t chunk = 0; chunk < 4; ++chunk) {
      EXPECT_EQ(half.offset(row, chunk * 8),
                row * 64 + (chunk ^ (row / 2 & 3)) * 16);
    }
    for (int64_t chunk = 0; chunk < 2; ++chunk) {
      EXPECT_EQ(narrow.offset(row, chunk * 8),
                row * 32 + (chunk ^ (row / 4 & 1)) * 16);
    }
  }
}

/// The lowering adds constants for whole 8 rows and whole panels to one
/// address per lane.
TEST(SlotLayout, RepeatsEveryEightRowsAndPanel) {
  for (const SlotLayout &slot : slots()) {
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; ++row) {
      for (int64_t column = 0; column < slot.columns; ++column) {
        int64_t panel = column / slot.panelColumns();
        ASSERT_EQ(slot.offset(row, column),
                  slot.offset(row % 8, column % slot.panelColumns()) +
                      row / 8 * 8 * slot.swizzle + panel * slot.panelBytes());
      }
    }
  }
}

/// ldmatrix reads 8 rows of 16 bytes at a time.
TEST(SlotLayout, LdmatrixMeetsEveryBankOnce) {
  for (const SlotLayout &slot : slots()) {
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; row += 8) {
      for (int64_t column = 0; column < slot.columns;
           column += slot.chunkColumns()) {
        std::vector<int64_t> addresses;
        for (int64_t n = 0; n < 8; ++n) {
          for (int64_t word = 0; word < 4; ++word) {
            addresses.push_back(slot.offset(row + n, column) + word * 4);
          }
        }
        ASSERT_EQ(worstBank(addresses), 1) << row << ", " << column;
      }
    }
  }
}

/// Eight threads of a copy move 8 chunks of a row, or of several, with the
/// swizzle that rings of this width have.
TEST(SlotLayout, CopiesMeetEveryBankOnce) {
  for (const SlotLayout &slot : slots()) {
    SCOPED_TRACE(testing::Message() << slot);
    int64_t perRow = slot.columns / slot.chunkColumns();
    bool isWidest = slot.swizzle ==
                    SlotLayout::widestSwizzle(slot.columns, slot.elementBytes);
    if (!isWidest || (8 % perRow && perRow % 8)) {
      continue;
    }
    for (int64_t first = 0; first + 8 <= slot.rows * perRow; first += 8) {
      std::vector<int64_t> addresses;
      for (int64_t chunk = first; chunk < first + 8; ++chunk) {
        for (int64_t word = 0; word < 4; ++word) {
          addresses.push_back(
              slot.offset(chunk / perRow,
                          chunk % perRow * slot.chunkColumns()) +
              word * 4);
        }
      }
      ASSERT_EQ(worstBank(addresses), 1) << "chunk " << first;
    }
  }
}

/// Where a warp's lanes store a tile of 16 x 8 of accumulators: its 8 rows at
/// a time, a pair of columns per lane.
static std::vector<int64_t> accumulatorStores(const SlotLayout &slot,
                                              int64_t row, int64_t column,
                                              int64_t pair) {
  FragmentLayout fragment{16, 8, 1};
  std::vector<int64_t> addresses;
  for (int64_t lane = 0; lane < 32; ++lane) {
    auto at = fragment.element(0, lane, fragment.value({0, 0, 0, pair}));
    addresses.push_back(slot.offset(row + at.row, column + at.column));
  }
  return addresses;
}

TEST(SlotLayout, StoresOfSixteenBitPairsMeetEveryBankOnce) {
  for (const SlotLayout &slot : slots()) {
    if (slot.elementBytes != 2) {
      continue;
    }
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; row += 8) {
      for (int64_t column = 0; column < slot.columns; column += 8) {
        std::vector<int64_t> addresses =
            accumulatorStores(slot, row, column, 0);
        ASSERT_EQ(worstBank(addresses), 1) << row << ", " << column;
      }
    }
  }
}

/// f32 accumulators are stored one column at a time, every other word of two
/// chunks: two lanes per bank, no more.
TEST(SlotLayout, StoresOfF32MeetEveryBankTwice) {
  for (const SlotLayout &slot : slots()) {
    if (slot.elementBytes != 4) {
      continue;
    }
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; row += 8) {
      for (int64_t column = 0; column < slot.columns; column += 8) {
        for (int64_t pair : {0, 1}) {
          std::vector<int64_t> addresses =
              accumulatorStores(slot, row, column, pair);
          ASSERT_EQ(worstBank(addresses), 2) << row << ", " << column;
        }
      }
    }
  }
}

/// Right factors of tf32 products that are not transposed: rows 2(l % 4),
/// columns l / 4.
TEST(SlotLayout, ReadsOfF32ValuesMeetEveryBankOnce) {
  for (const SlotLayout &slot : slots()) {
    if (slot.elementBytes != 4 || slot.swizzle != 128) {
      continue;
    }
    SCOPED_TRACE(testing::Message() << slot);
    for (int64_t row = 0; row < slot.rows; row += 8) {
      for (int64_t column = 0; column < slot.columns; column += 8) {
        for (int64_t pair : {0, 1}) {
          std::vector<int64_t> addresses;
          for (int64_t lane = 0; lane < 32; ++lane) {
            addresses.push_back(
                slot.offset(row + lane % 4 * 2 + pair, column + lane / 4));
          }
          ASSERT_EQ(worstBank(addresses), 1) << row << ", " << column;
        }
      }
    }
  }
}

TEST(SlotLayout, WhatIsLegal) {
  EXPECT_TRUE((SlotLayout{8, 64, 2, 128}).isLegal());
  EXPECT_TRUE((SlotLayout{8, 16, 2, 32}).isLegal());
  EXPECT_FALSE((SlotLayout{8, 32, 2, 128}).isLegal()) << "half a panel";
  EXPECT_FALSE((SlotLayout{8, 96, 2, 128}).isLegal()) << "panel and a half";
  EXPECT_FALSE((SlotLayout{4, 64, 2, 128}).isLegal()) << "half a period";
  EXPECT_FALSE((SlotLayout{0, 64, 2, 128}).isLegal());
  EXPECT_FALSE((SlotLayout{8, 0, 2, 128}).isLegal());
  EXPECT_FALSE((SlotLayout{8, 64, 2, 256}).isLegal());
  EXPECT_FALSE((SlotLayout{8, 64, 2, 16}).isLegal());
  EXPECT_FALSE((SlotLayout{8, 64, 2, 0}).isLegal());
}

TEST(SlotLayout, WidestSwizzle) {
  for (int64_t bytes : {2, 4}) {
    for (int64_t columns = 1; columns <= 256; ++columns) {
      int64_t swizzle = SlotLayout::widestSwizzle(columns, bytes);
      if (columns * bytes % 32) {
        ASSERT_EQ(swizzle, 0) << columns << " of " << bytes;
        continue;
      }
      ASSERT_TRUE((SlotLayout{8, columns, bytes, swizzle}).isLegal());
      ASSERT_FALSE((SlotLayout{8, columns, bytes, 2 * swizzle}).isLegal());
    }
  }
  EXPECT_EQ(SlotLayout::widestSwizzle(16, 2), 32);
  EXPECT_EQ(SlotLayout::widestSwizzle(32, 2), 64);
  EXPECT_EQ(SlotLayout::widestSwizzle(80, 2), 32);
  EXPECT_EQ(SlotLayout::widestSwizzle(96, 2), 64);
  EXPECT_EQ(SlotLayout::widestSwizzle(128, 2), 128);
  EXPECT_EQ(SlotLayout::widestSwizzle(8, 4), 32);
}

TEST(SlotLayout, PaddedWidth) {
  for (int64_t bytes : {2, 4}) {
    int64_t step = bytes == 2 ? 16 : 8;
    for (int64_t columns = 1; columns <= 4096; ++columns) {
      int64_t padded = paddedWidth(columns, bytes);
      ASSERT_EQ(padded % step, 0);
      ASSERT_GE(padded, columns);
      ASSERT_LT(padded, columns + step);
      // A ring of this width exists.
      ASSERT_NE(SlotLayout::widestSwizzle(padded, bytes), 0);
    }
  }
}
