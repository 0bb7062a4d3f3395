//===- PtxVersionTest.cpp - PTX versions and drivers ------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Runtime/PtxVersion.h"

#include "gtest/gtest.h"

using namespace attnfuse::runtime;

namespace {

struct Release {
  int driver, ptx;
};

constexpr Release kReleases[] = {
    {9000, 60},  {9010, 61},  {9020, 62},  {10000, 63}, {10010, 64},
    {10020, 65}, {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73},
    {11040, 74}, {11050, 75}, {11060, 76}, {11070, 77}, {11080, 78},
    {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
    {12050, 85}, {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88},
    {13000, 90}, {13010, 91}};

TEST(PtxVersionTest, OfReleases) {
  for (auto [driver, ptx] : kReleases) {
    EXPECT_EQ(ptxVersionOfDriver(driver), ptx) << driver;
  }
  EXPECT_EQ(ptxVersionOfDriver(8000), 0);
}

TEST(PtxVersionTest, InverseIsTheFirstRelease) {
  int last = 0;
  for (auto [driver, ptx] : kReleases) {
    if (ptx != last) {
      EXPECT_EQ(driverVersionForPtx(ptx), driver) << ptx;
    }
    last = ptx;
  }
}

TEST(PtxVersionTest, NeverFallsWithTheDriver) {
  for (int driver = 9000; driver < 20000; driver += 10) {
    EXPECT_LE(ptxVersionOfDriver(driver), ptxVersionOfDriver(driver + 10))
        << driver;
    if (driver % 1000 == 80) {
      driver = driver / 1000 * 1000 + 990;
    }
  }
}

TEST(PtxVersionTest, Texts) {
  EXPECT_EQ(driverVersionText(12040), "12.4");
  EXPECT_EQ(ptxVersionText(80), "8.0");
}

} // namespace
