//===- RopeTest.cpp - rotations of the oracle ------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"

using namespace attnfuse;
using namespace attnfuse::reference;
using namespace attnfuse::reference::test;

/// A rotation of a tensor of the given shape; the attributes go before the
/// colon of its type.
static std::string rope(const std::string &shape, const std::string &rest,
                        const std::string &extra = "") {
  std::string type = "tensor<" + shape + "xf32>";
  return "func.func @f(%x: " + type + extra + ") -> " + type +
         " {\n%r = attn.rope %x " + rest + " : " + type +
         "\nreturn %r : " + type + "\n}";
}

/// Frequency and magnitude of each pair, from what a rotation makes of (1, 0)
/// at position 1.
static std::vector<std::pair<double, double>>
frequencies(int64_t width, const std::string &attributes) {
  std::vector<double> row(width, 0);
  std::fill_n(row.begin(), width / 2, 1);
  std::vector<double> y =
      runOne(rope("1x1x1x" + std::to_string(width),
                  "{position = 1 : i64, " + attributes + "}"),
             {makeTensor(DType::F32, {1, 1, 1, width}, row)});
  std::vector<std::pair<double, double>> result;
  for (int64_t t = 0; t < width / 2 && !y.empty(); ++t) {
    double c = y[t], s = y[t + width / 2];
    result.emplace_back(std::atan2(s, c), std::hypot(s, c));
  }
  return result;
}

TEST(RopeTest, HalfSplitAtAPosition) {
  // Base 100 and width 4 have frequencies 1 and 0.1.
  const double c1 = 0.7539022543433046, s1 = 0.6569865987187891;
  const double c2 = 0.7648421872844884, s2 = 0.6442176872376911;
  expectNear(runOne(rope("1x1x1x4", "{base = 100.0, position = 7 : i64}"),
                    {makeTensor(DType::F32, {1, 1, 1, 4}, {1, 2, 3, 4})}),
             {c1 - 3 * s1, 2 * c2 - 4 * s2, 3 * c1 + s1, 4 * c2 + 2 * s2});
}

TEST(RopeTest, InterleavedAtAPosition) {
  const double c1 = 0.7539022543433046, s1 = 0.6569865987187891;
  const double c2 = 0.7648421872844884, s2 = 0.6442176872376911;
  expectNear(
      runOne(rope("1x1x1x4", "interleaved {base = 100.0, position = 7 : i64}"),
             {makeTensor(DType::F32, {1, 1, 1, 4}, {1, 2, 3, 4})}),
      {c1 - 2 * s1, 2 * c1 + s1, 3 * c2 - 4 * s2, 4 * c2 + 3 * s2});
}

TEST(RopeTest, PartialWidthCopiesTheRest) {
  // Frequency 1 alone: the rotary width is 2.
  expectNear(
      runOne(rope("1x1x2x4", "{rotary_dim = 2 : i64}"),
             {makeTensor(DType::F32, {1, 1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4})}),
      {1, 2, 3, 4, std::cos(1.0) - 2 * std::sin(1.0),
       2 * std::cos(1.0) + std::sin(1.0), 3, 4});
}

TEST(RopeTest, OffsetsPerBatchEntryAddToThePosition) {
  std::vector<double> got =
      runOne(rope("2x2x3x2", "at %p : tensor<2xi32> {position = 10 : i64}",
                  ", %p: tensor<2xi32>"),
             {makeTensor(DType::F32, {2, 2, 3, 2}, std::vector<double>(24, 1)),
              makeTensor(DType::I32, {2}, {5, 100})});
  std::vector<double> want;
  for (int b : {0, 1}) {
    for (int row = 0; row < 6; ++row) {
      double angle = row % 3 + 10 + (b ? 100 : 5);
      want.push_back(std::cos(angle) - std::sin(angle));
      want.push_back(std::cos(angle) + std::sin(angle));
    }
  }
  expectNear(got, want);
}

TEST(RopeTest, FarPositionsAreExact) {
  // The angle at 2^20 for frequency 10000^(-1/2) is 10485.76.
  std::vector<double> got =
      runOne(rope("1x1x1x4", "at %p : index", ", %p: index"),
             {makeTensor(DType::F32, {1, 1, 1, 4}, {0, 1, 0, 0}),
              scalarTensor(DType::I64, 1 << 20)});
  expectNear(got, {0, std::cos(10485.76), 0, std::sin(10485.76)}, 1e-10);
}

TEST(RopeTest, Tables) {
  std::string extra = ", %c: tensor<?x1xf32>, %s: tensor<?x1xf32>";
  std::string text = rope("1x1x2x2",
                          "tables(%c, %s : tensor<?x1xf32>, tensor<?x1xf32>) "
                          "{position = 1 : i64}",
                          extra);
  HostTensor x = makeTensor(DType::F32, {1, 1, 2, 2}, {1, 2, 3, 4});
  HostTensor c = makeTensor(DType::F32, {3, 1}, {9, 2, 3});
  HostTensor s = makeTensor(DType::F32, {3, 1}, {9, 5, 7});
  expectNear(runOne(text, {x, c, s}),
             {1 * 2 - 2 * 5, 2 * 2 + 1 * 5, 3 * 3 - 4 * 7, 4 * 3 + 3 * 7});
  HostTensor few = makeTensor(DType::F32, {2, 1}, {9, 2});
  EXPECT_THAT(errorOf(text, {x, few, few}),
              testing::HasSubstr("a row for each of the 3 positions that are "
                                 "used, got 2"));
}

TEST(RopeTest, NegativePositionsAreRefused) {
  EXPECT_THAT(errorOf(rope("1x1x1x2", "at %p : index", ", %p: index"),
                      {makeTensor(DType::F32, {1, 1, 1, 2}, {0, 0}),
                       scalarTensor(DType::I64, -3)}),
              testing::HasSubstr("expected positions of at least 0, got -3"));
}

TEST(RopeTest, LinearScaling) {
  auto got =
      frequencies(8, "scaling = #attn.rope_scaling<linear, factor = 4.0>");
  ASSERT_EQ(got.size(), 4u);
  for (int t = 0; t < 4; ++t) {
    EXPECT_NEAR(got[t].first, std::pow(10, -t) / 4, 1e-12);
    EXPECT_NEAR(got[t].second, 1, 1e-12);
  }
}

TEST(RopeTest, NtkScaling) {
  // Chosen so that the last frequency is divided by the factor and the first
  // stays.
  auto got = frequencies(8, "scaling = #attn.rope_scaling<ntk, factor = 4.0>");
  ASSERT_EQ(got.size(), 4u);
  EXPECT_NEAR(got[0].first, 1, 1e-12);
  EXPECT_NEAR(got[1].first, 0.1 / std::pow(4, 1. / 3), 1e-12);
  EXPECT_NEAR(got[3].first, 0.001 / 4, 1e-12);
}

TEST(RopeTest, Llama3Scaling) {
  // Llama 3.1: values from a transcription of the model's published code.
  auto got = frequencies(128, "base = 500000.0, scaling = "
                              "#attn.rope_scaling<llama3, factor = 8.0, "
                              "original = 8192, low = 1.0, high = 4.0>");
  ASSERT_EQ(got.size(), 64u);
  for (auto [t, theta] : {std::pair(0, 1.0), std::pair(16, 0.03760603093086393),
                          std::pair(28, 0.0032114459947525913),
                          std::pair(29, 0.002166570763503359),
                          std::pair(31, 0.0008567514129196321),
                          std::pair(34, 0.00017850781276799638),
                          std::pair(35, 9.556212353964683e-05),
                          std::pair(63, 3.068925988914511e-07)}) {
    EXPECT_NEAR(got[t].first, theta, theta * 1e-9) << t;
    EXPECT_NEAR(got[t].second, 1, 1e-12) << t;
  }
}

TEST(RopeTest, YarnScaling) {
  // Factor 16 from 4096: the ramp runs from pair 20 to pair 46.
  auto got = frequencies(128, "scaling = #attn.rope_scaling<yarn, factor = "
                              "16.0, original = 4096>");
  ASSERT_EQ(got.size(), 64u);
  for (auto [t, theta] :
       {std::pair(0, 1.0), std::pair(20, 0.056234132519034905),
        std::pair(24, 0.027061799207210167),
        std::pair(31, 0.006967554763390721),
        std::pair(40, 0.000881788962931567),
        std::pair(45, 0.00015177160473182487),
        std::pair(46, 8.334508951020775e-05),
        std::pair(63, 7.217387404309114e-06)}) {
    EXPECT_NEAR(got[t].first, theta, theta * 1e-9) << t;
    // 0.1 ln 16 + 1
    EXPECT_NEAR(got[t].second, 1.2772588722239782, 1e-12) << t;
  }
}

TEST(RopeTest, YarnAttentionFactor) {
  auto got = frequencies(128, "scaling = #attn.rope_scaling<yarn, factor = "
                              "16.0, original = 4096, attention = 2.5>");
  ASSERT_EQ(got.size(), 64u);
  EXPECT_NEAR(got[10].second, 2.5, 1e-12);
}

TEST(RopeTest, ProductsDependOnDistanceAlone) {
  std::string type = "tensor<1x1x6x8xf32>";
  std::string text = "func.func @f(%q: " + type + ", %k: " + type +
                     ", %v: " + type + ", %p: index) -> " + type +
                     " {\n%rq = attn.rope %q at "
                     "%p : index : " +
                     type + "\n%rk = attn.rope %k at %p : index : " + type +
                     "\n%s = attn.scaled_dot_product %rq, %rk : " + type +
                     ", " + type +
                     "\n%w = attn.softmax %s : !attn.scores<1x1x6x6>\n"
                     "%o = attn.aggregate %w, %v : !attn.weights<1x1x6x6>, " +
                     type + "\nreturn %o : " + type + "\n}";
  HostTensor q = randomTensor({1, 1, 6, 8}, 1);
  HostTensor k = randomTensor({1, 1, 6, 8}, 2);
  HostTensor v = randomTensor({1, 1, 6, 8}, 3);
  std::vector<double> here =
      runOne(text, {q, k, v, scalarTensor(DType::I64, 0)});
  std::vector<double> there =
      runOne(text, {q, k, v, scalarTensor(DType::I64, 1000)});
  expectNear(here, there, 1e-11);
}
