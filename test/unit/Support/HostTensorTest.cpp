//===- HostTensorTest.cpp ---------------------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Support/HostTensor.h"

#include "llvm/ADT/APFloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace attnfuse;

namespace {

/// A 16-bit pattern read by LLVM's own arithmetic.
float exactFloat(const llvm::fltSemantics &semantics, uint16_t bits) {
  llvm::APFloat value(semantics, llvm::APInt(16, bits));
  bool lost;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven,
                &lost);
  return value.convertToFloat();
}

uint16_t exactBits(const llvm::fltSemantics &semantics, float number) {
  llvm::APFloat value(number);
  bool lost;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lost);
  return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
}

TEST(Conversion, EveryHalfAndBFloatPattern) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    auto pattern = static_cast<uint16_t>(bits);
    float half = exactFloat(llvm::APFloat::IEEEhalf(), pattern);
    float bfloat = exactFloat(llvm::APFloat::BFloat(), pattern);
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(halfToFloat(pattern)));
    } else {
      ASSERT_EQ(halfToFloat(pattern), half) << bits;
      ASSERT_EQ(floatToHalf(half), pattern);
    }
    if (std::isnan(bfloat)) {
      EXPECT_TRUE(std::isnan(bfloatToFloat(pattern)));
    } else {
      ASSERT_EQ(bfloatToFloat(pattern), bfloat) << bits;
      ASSERT_EQ(floatToBFloat(bfloat), pattern);
    }
  }
}

TEST(Conversion, RoundsToNearestEven) {
  uint64_t state = 1;
  for (int n = 0; n < 200000; ++n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    auto bits = static_cast<uint32_t>(state >> 32);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(value))));
      EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBFloat(value))));
      continue;
    }
    ASSERT_EQ(floatToHalf(value), exactBits(llvm::APFloat::IEEEhalf(), value))
        << value;
    ASSERT_EQ(floatToBFloat(value), exactBits(llvm::APFloat::BFloat(), value))
        << value;
    // The range of halves, subnormals and ties included.
    float small = std::ldexp(static_cast<float>(bits >> 8), -40);
    ASSERT_EQ(floatToHalf(small), exactBits(llvm::APFloat::IEEEhalf(), small))
        << small;
  }
}

TEST(HostTensor, AllocationIsAlignedAndChecked) {
  auto tensor = HostTensor::allocate(DType::F32, {2, 3, 4});
  ASSERT_TRUE(static_cast<bool>(tensor));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 64, 0u);
  EXPECT_EQ(tensor->strides(), (llvm::ArrayRef<int64_t>{12, 4, 1}));
  EXPECT_EQ(tensor->numElements(), 24);
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{-1, 2},
        std::vector<int64_t>{int64_t(1) << 40, int64_t(1) << 40}}) {
    auto refused = HostTensor::allocate(DType::F32, shape);
    ASSERT_FALSE(static_cast<bool>(refused));
    EXPECT_NE(llvm::toString(refused.takeError()).find("shape"),
              std::string::npos);
  }
}

TEST(HostTensor, PoisonIsNaN) {
  for (DType type : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    HostTensor tensor = llvm::cantFail(HostTensor::allocate(type, {5}));
    tensor.poison();
    for (double value : tensor.toDouble()) {
      EXPECT_TRUE(std::isnan(value));
    }
  }
}

TEST(HostTensor, StridedReadsAndCopies) {
  HostTensor tensor = llvm::cantFail(HostTensor::allocate(DType::I32, {2, 3}));
  for (int64_t n = 0; n < 6; ++n) {
    tensor.set({n / 3, n % 3}, static_cast<double>(n));
  }
  HostTensor turned =
      HostTensor::wrap(DType::I32, {3, 2}, {1, 3}, tensor.data(), nullptr);
  EXPECT_FALSE(turned.isContiguous());
  EXPECT_EQ(turned.toDouble(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  HostTensor copy = llvm::cantFail(turned.convertTo(DType::F32));
  EXPECT_TRUE(copy.isContiguous());
  EXPECT_EQ(copy.toDouble(), turned.toDouble());
}

TEST(Random, NormalIsNormalAndRepeats) {
  HostTensor a = llvm::cantFail(HostTensor::allocate(DType::F32, {100000}));
  HostTensor b = llvm::cantFail(HostTensor::allocate(DType::F32, {100000}));
  fillRandomNormal(a, 7);
  fillRandomNormal(b, 7);
  EXPECT_EQ(a.toDouble(), b.toDouble());
  double sum = 0, squares = 0;
  for (double value : a.toDouble()) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
  fillRandomNormal(b, 8);
  EXPECT_NE(a.toDouble(), b.toDouble());
}

TEST(Random, IntegersStayInRange) {
  HostTensor tensor = llvm::cantFail(HostTensor::allocate(DType::I64, {1000}));
  fillRandomInts(tensor, 3, -2, 5);
  double low = 99, high = -99;
  for (double value : tensor.toDouble()) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_EQ(low, -2);
  EXPECT_EQ(high, 4);
}

} // namespace
