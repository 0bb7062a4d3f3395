//===- FragmentLayoutTest.cpp - which lane holds what -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Against the tables of the PTX ISA, written out here once more in its words:
// groupID is laneid / 4, threadID_in_group laneid % 4.
//
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include "gtest/gtest.h"

#include <map>
#include <ostream>
#include <set>
#include <tuple>
#include <vector>

using namespace attnfuse::tile;

namespace {
using Pair = std::pair<int64_t, int64_t>;

Pair at(const FragmentLayout &layout, int64_t warp, int64_t lane,
        int64_t value) {
  FragmentLayout::Element element = layout.element(warp, lane, value);
  return {element.row, element.column};
}

/// "Matrix fragments for mma.m16n8k16": accumulator c_i.
Pair mmaAccumulator(int64_t lane, int64_t i) {
  int64_t groupID = lane / 4, threadIDInGroup = lane % 4;
  return {i < 2 ? groupID : groupID + 8, threadIDInGroup * 2 + (i & 1)};
}

/// The same section: a_i of a left factor of 16 bits.
Pair mmaLeftFactor(int64_t lane, int64_t i) {
  int64_t groupID = lane / 4, threadIDInGroup = lane % 4;
  bool upper = i < 2 || (4 <= i && i < 6);
  return {upper ? groupID : groupID + 8,
          threadIDInGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}

/// "Register fragments and shared memory matrix layouts" of wgmma m64nN:
/// accumulator d_i of a thread of the warpgroup.
Pair wgmmaAccumulator(int64_t warp, int64_t lane, int64_t i) {
  return {warp * 16 + lane / 4 + (i % 4 < 2 ? 0 : 8),
          i / 4 * 8 + lane % 4 * 2 + i % 2};
}

/// Matrices of every number of warps, with one and several tiles of rows.
std::vector<FragmentLayout> matrices() {
  std::vector<FragmentLayout> all;
  for (int64_t warps : {1, 2, 4, 8, 12, 16}) {
    for (int64_t rowTiles : {1, 2, 3}) {
      for (int64_t columns : {8, 16, 24, 64, 128, 256}) {
        all.push_back({16 * rowTiles * warps, columns, warps});
      }
    }
  }
  return all;
}
} // namespace

namespace attnfuse::tile {
static std::ostream &operator<<(std::ostream &stream,
                                const FragmentLayout &layout) {
  return stream << layout.rows << "x" << layout.columns << " over "
                << layout.warps << " warps";
}
} // namespace attnfuse::tile

TEST(FragmentLayout, AMatrixIsHeldOnce) {
  for (const FragmentLayout &layout : matrices()) {
    SCOPED_TRACE(testing::Message() << layout);
    ASSERT_TRUE(layout.isLegal());
    ASSERT_EQ(layout.values() * 32 * layout.warps,
              layout.rows * layout.columns);
    std::vector<int> holders(layout.rows * layout.columns);
    for (int64_t warp = 0; warp < layout.warps; ++warp) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (int64_t n = 0; n < layout.values(); ++n) {
          auto [row, column] = at(layout, warp, lane, n);
          ASSERT_TRUE(0 <= row && row < layout.rows);
          ASSERT_TRUE(0 <= column && column < layout.columns);
          ++holders[row * layout.columns + column];
        }
      }
    }
    ASSERT_EQ(holders, std::vector<int>(holders.size(), 1));
  }
}

TEST(FragmentLayout, WarpsHoldContiguousRows) {
  for (const FragmentLayout &layout : matrices()) {
    SCOPED_TRACE(testing::Message() << layout);
    for (int64_t warp = 0; warp < layout.warps; ++warp) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (int64_t n = 0; n < layout.values(); ++n) {
          ASSERT_EQ(at(layout, warp, lane, n).first / layout.rowsPerWarp(),
                    warp);
        }
      }
    }
  }
}

TEST(FragmentLayout, TilesAreAccumulatorsOfMma) {
  for (const FragmentLayout &layout : matrices()) {
    SCOPED_TRACE(testing::Message() << layout);
    for (int64_t warp = 0; warp < layout.warps; ++warp) {
      for (int64_t mt = 0; mt < layout.rowTiles(); ++mt) {
        for (int64_t nt = 0; nt < layout.columnTiles(); ++nt) {
          // The four of an m16n8 tile are adjacent, in the order of c_0..c_3.
          int64_t first = layout.value({mt, nt, 0, 0});
          for (int64_t lane = 0; lane < 32; ++lane) {
            for (int64_t i = 0; i < 4; ++i) {
              auto [row, column] = mmaAccumulator(lane, i);
              row += warp * layout.rowsPerWarp() + mt * 16;
              column += nt * 8;
              ASSERT_EQ(at(layout, warp, lane, first + i), Pair(row, column));
            }
          }
        }
      }
    }
  }
}

TEST(FragmentLayout, WarpgroupsHoldAccumulatorsOfWgmma) {
  for (int64_t columns = 8; columns <= 256; columns += 8) {
    FragmentLayout layout{64, columns, 4};
    ASSERT_EQ(layout.values(), columns / 2);
    for (int64_t warp = 0; warp < 4; ++warp) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (int64_t i = 0; i < layout.values(); ++i) {
          ASSERT_EQ(at(layout, warp, lane, i), wgmmaAccumulator(warp, lane, i))
              << layout << ", warp " << warp << ", lane " << lane;
        }
      }
    }
  }
}

/// Weights are accumulators of one product and the left factor of the next:
/// two neighbouring tiles of 8 columns are one step of 16.
TEST(FragmentLayout, AccumulatorsAreLeftFactors) {
  for (const FragmentLayout &layout : matrices()) {
    if (layout.columns % 16) {
      continue;
    }
    SCOPED_TRACE(testing::Message() << layout);
    for (int64_t mt = 0; mt < layout.rowTiles(); ++mt) {
      for (int64_t step = 0; step < layout.columns / 16; ++step) {
        for (int64_t lane = 0; lane < 32; ++lane) {
          for (int64_t i = 0; i < 8; ++i) {
            int64_t value =
                layout.value({mt, step * 2 + i / 4, i / 2 % 2, i % 2});
            auto [row, column] = mmaLeftFactor(lane, i);
            ASSERT_EQ(at(layout, 0, lane, value),
                      Pair(row + mt * 16, column + step * 16));
            // Two halves of one register are neighbouring values.
            ASSERT_EQ(value % 2, i % 2);
          }
        }
      }
    }
  }
}

TEST(FragmentLayout, AColumnIsHeldByEveryLaneOfItsRow) {
  for (const FragmentLayout &matrix : matrices()) {
    FragmentLayout column{matrix.rows, 1, matrix.warps};
    SCOPED_TRACE(testing::Message() << column);
    ASSERT_TRUE(column.isLegal());
    ASSERT_EQ(column.values(), 2 * column.rowTiles());
    std::map<int64_t, std::multiset<Pair>> holders;
    for (int64_t warp = 0; warp < column.warps; ++warp) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (int64_t n = 0; n < column.values(); ++n) {
          auto [row, none] = at(column, warp, lane, n);
          ASSERT_EQ(none, 0);
          holders[row].insert({warp, lane});
        }
      }
    }
    ASSERT_EQ(holders.size(), static_cast<size_t>(column.rows));
    for (const auto &[row, lanes] : holders) {
      int64_t first = row % 8 * 4, warp = row / column.rowsPerWarp();
      ASSERT_EQ(lanes, (std::multiset<Pair>{{warp, first},
                                            {warp, first + 1},
                                            {warp, first + 2},
                                            {warp, first + 3}}))
          << "row " << row;
    }
  }
}

TEST(FragmentLayout, ARowIsHeldByEveryLaneOfItsColumnInEveryWarp) {
  for (const FragmentLayout &matrix : matrices()) {
    FragmentLayout row{1, matrix.columns, matrix.warps};
    SCOPED_TRACE(testing::Message() << row);
    ASSERT_TRUE(row.isLegal());
    ASSERT_EQ(row.values(), 2 * row.columnTiles());
    std::map<int64_t, std::multiset<Pair>> holders;
    for (int64_t warp = 0; warp < row.warps; ++warp) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (int64_t n = 0; n < row.values(); ++n) {
          auto [none, column] = at(row, warp, lane, n);
          ASSERT_EQ(none, 0);
          holders[column].insert({warp, lane});
        }
      }
    }
    ASSERT_EQ(holders.size(), static_cast<size_t>(row.columns));
    for (const auto &[column, lanes] : holders) {
      std::multiset<Pair> expected;
      for (int64_t warp = 0; warp < row.warps; ++warp) {
        for (int64_t lane = column % 8 / 2; lane < 32; lane += 4) {
          expected.insert({warp, lane});
        }
      }
      ASSERT_EQ(lanes, expected) << "column " << column;
    }
  }
}

/// What tile.map relies on: a lane that holds (r, c) of a matrix holds row r of
/// a column vector and column c of a row vector, at the same place.
TEST(FragmentLayout, VectorsBroadcastWithinALane) {
  for (const FragmentLayout &matrix : matrices()) {
    FragmentLayout column{matrix.rows, 1, matrix.warps};
    FragmentLayout row{1, matrix.columns, matrix.warps};
    int64_t warp = matrix.warps - 1;
    for (int64_t lane = 0; lane < 32; ++lane) {
      for (int64_t n = 0; n < matrix.values(); ++n) {
        FragmentLayout::Place place = matrix.place(n);
        Pair element = at(matrix, warp, lane, n);
        int64_t ofRow = column.value({place.rowTile, 0, place.half, 0});
        int64_t ofColumn = row.value({0, place.columnTile, 0, place.pair});
        ASSERT_EQ(at(column, warp, lane, ofRow).first, element.first);
        ASSERT_EQ(at(row, warp, lane, ofColumn).second, element.second);
      }
    }
  }
}

TEST(FragmentLayout, AScalarIsHeldByEveryLane) {
  FragmentLayout scalar{1, 1, 4};
  EXPECT_TRUE(scalar.isLegal());
  EXPECT_EQ(scalar.values(), 1);
  for (int64_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(at(scalar, 3, lane, 0), Pair(0, 0));
  }
}

TEST(FragmentLayout, PlacesAndValuesAreInverse) {
  std::vector<FragmentLayout> all = matrices();
  for (const FragmentLayout &matrix : matrices()) {
    all.push_back({matrix.rows, 1, matrix.warps});
    all.push_back({1, matrix.columns, matrix.warps});
  }
  for (const FragmentLayout &layout : all) {
    SCOPED_TRACE(testing::Message() << layout);
    std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>> places;
    for (int64_t n = 0; n < layout.values(); ++n) {
      FragmentLayout::Place place = layout.place(n);
      ASSERT_LT(place.rowTile, layout.rowTiles());
      ASSERT_LT(place.columnTile, layout.columnTiles());
      ASSERT_LT(place.half, layout.rowValues());
      ASSERT_LT(place.pair, layout.columnValues());
      ASSERT_EQ(layout.value(place), n);
      places.insert({place.rowTile, place.columnTile, place.half, place.pair});
    }
    ASSERT_EQ(places.size(), static_cast<size_t>(layout.values()));
  }
}

TEST(FragmentLayout, PartsOfTilesAreIllegal) {
  EXPECT_FALSE((FragmentLayout{64, 64, 0}).isLegal());
  EXPECT_FALSE((FragmentLayout{64, 64, -4}).isLegal());
  EXPECT_FALSE((FragmentLayout{32, 64, 4}).isLegal());
  EXPECT_FALSE((FragmentLayout{72, 64, 4}).isLegal());
  EXPECT_FALSE((FragmentLayout{64, 12, 4}).isLegal());
  EXPECT_FALSE((FragmentLayout{64, 4, 1}).isLegal());
  EXPECT_TRUE((FragmentLayout{48, 8, 3}).isLegal());
}
