//===- AttentionTest.cpp - the oracle against loops ------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"

using namespace attnfuse;
using namespace attnfuse::reference;
using namespace attnfuse::reference::test;

/// An attention of 4 query and 2 key heads; `body` makes %t from the scores %s.
static std::string attention(const std::string &body,
                             const std::string &extra = "",
                             const std::string &softmax = "") {
  return "func.func @f(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, "
         "%v: tensor<2x2x?x6xf32>" +
         extra +
         ") -> (tensor<2x4x?x6xf32>, tensor<2x4x?xf32>) {\n"
         "%s = attn.scaled_dot_product %q, %k : tensor<2x4x?x8xf32>, "
         "tensor<2x2x?x8xf32>\n" +
         body + "\n%w, %l = attn.softmax %t " + softmax +
         " lse : !attn.scores<2x4x?x?>\n"
         "%o = attn.aggregate %w, %v : !attn.weights<2x4x?x?>, "
         "tensor<2x2x?x6xf32>\n"
         "return %o, %l : tensor<2x4x?x6xf32>, tensor<2x4x?xf32>\n}";
}

static const char *const kFull =
    "%m = attn.full\n%t = attn.mask %s, %m : !attn.scores<2x4x?x?>";
static const char *const kCausal =
    "%m = attn.causal\n%t = attn.mask %s, %m : !attn.scores<2x4x?x?>";

namespace {
struct AttentionTest : testing::Test {
  HostTensor q = randomTensor({2, 4, 5, 8}, 1);
  HostTensor k = randomTensor({2, 2, 7, 8}, 2);
  HostTensor v = randomTensor({2, 2, 7, 6}, 3);

  void check(const std::string &text, const Naive &want,
             llvm::ArrayRef<HostTensor> extra = {}) {
    std::vector<HostTensor> inputs = {q, k, v};
    inputs.insert(inputs.end(), extra.begin(), extra.end());
    std::vector<Result> results = run(text, inputs);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].values.dtype(), DType::F64);
    EXPECT_TRUE(results[0].computed.empty());
    expectNear(results[0].values.toDouble(), want.output);
    expectNear(results[1].values.toDouble(), want.lse);
  }
};
} // namespace

static double same(double s, int64_t, int64_t, int64_t, int64_t) { return s; }
static bool every(int64_t, int64_t, int64_t, int64_t) { return true; }
static bool causal(int64_t, int64_t, int64_t i, int64_t j) {
  return j <= i + 2;
}

TEST_F(AttentionTest, Softmax) {
  check(attention(kFull), Naive(q, k, v, same, every));
}

TEST_F(AttentionTest, Causal) {
  check(attention(kCausal), Naive(q, k, v, same, causal));
}

TEST_F(AttentionTest, Scale) {
  std::string text = attention(kFull);
  text.replace(text.find("%q, %k :"), 8, "%q, %k scale 0.5 :");
  check(text,
        Naive(
            q, k, v, [](double s, auto...) { return s * std::sqrt(8.0) * 0.5; },
            every));
}

TEST_F(AttentionTest, ScoreOperationsInOrder) {
  HostTensor bias = randomTensor({1, 4, 5, 1}, 4);
  std::string body =
      "%a = attn.softcap %s cap 1.5 : !attn.scores<2x4x?x?>\n"
      "%t = attn.additive_bias %a, %bias : !attn.scores<2x4x?x?>, "
      "tensor<1x4x?x1xf32>";
  auto score = [&](double s, int64_t, int64_t h, int64_t i, int64_t) {
    return 1.5 * std::tanh(s / 1.5) + bias.at({0, h, i, 0});
  };
  check(attention(body, ", %bias: tensor<1x4x?x1xf32>"),
        Naive(q, k, v, score, every), {bias});
}

TEST_F(AttentionTest, ScoreModReadsPlace) {
  HostTensor table = randomTensor({4, 16}, 5);
  std::string body = R"mlir(
    %t = attn.score_mod %s : !attn.scores<2x4x?x?> {
    ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
      %c8 = arith.constant 8 : index
      %d = arith.subi %i, %j : index
      %p = arith.addi %d, %c8 : index
      %y = tensor.extract %table[%h, %p] : tensor<4x16xf32>
      %z = math.fma %x, %g, %y : f32
      attn.yield %z : f32
    })mlir";
  auto score = [&](double s, int64_t, int64_t h, int64_t i, int64_t j) {
    return s * 0.25 + table.at({h, i - j + 8});
  };
  check(attention(body, ", %table: tensor<4x16xf32>, %g: f32"),
        Naive(q, k, v, score, every), {table, scalarTensor(DType::F32, 0.25)});
}

TEST_F(AttentionTest, Sinks) {
  std::vector<double> sinks = {0.5, -1, 3, -kInfinity};
  check(attention(kFull, ", %z: tensor<4xf32>", "sinks(%z : tensor<4xf32>)"),
        Naive(q, k, v, same, every, sinks),
        {makeTensor(DType::F32, {4}, sinks)});
}

TEST_F(AttentionTest, RowsWithNothingLeft) {
  // Seven queries, five keys: the first two rows see nothing.
  q = randomTensor({2, 4, 7, 8}, 6);
  k = randomTensor({2, 2, 5, 8}, 7);
  v = randomTensor({2, 2, 5, 6}, 8);
  auto results = run(attention(kCausal), {q, k, v});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].values.at({1, 3, 1, 2}), 0);
  EXPECT_NE(results[0].values.at({1, 3, 2, 2}), 0);
  EXPECT_EQ(results[1].values.at({1, 3, 1}), -kInfinity);
  EXPECT_TRUE(std::isfinite(results[1].values.at({1, 3, 2})));
}

TEST_F(AttentionTest, EmptyRowWithSink) {
  std::string body = "%n = attn.full\n%m = attn.not %n\n"
                     "%t = attn.mask %s, %m : !attn.scores<2x4x?x?>";
  auto results =
      run(attention(body, ", %z: tensor<4xf32>", "sinks(%z : tensor<4xf32>)"),
          {q, k, v, makeTensor(DType::F32, {4}, {0.5, -1, 3, 0})});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].values.at({0, 0, 0, 0}), 0);
  EXPECT_DOUBLE_EQ(results[1].values.at({0, 2, 0}), 3);
}

TEST_F(AttentionTest, NoKeys) {
  k = makeTensor(DType::F32, {2, 2, 0, 8});
  v = makeTensor(DType::F32, {2, 2, 0, 6});
  auto results = run(attention(kFull), {q, k, v});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].values.at({1, 3, 4, 5}), 0);
  EXPECT_EQ(results[1].values.at({1, 3, 4}), -kInfinity);
}

TEST_F(AttentionTest, NoQueries) {
  q = makeTensor(DType::F32, {2, 4, 0, 8});
  auto results = run(attention(kFull), {q, k, v});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].values.numElements(), 0);
}

TEST_F(AttentionTest, WhatARemovedKeyHoldsIsNotSeen) {
  Naive want(q, k, v, same, [](auto, auto, auto, int64_t j) { return j != 3; });
  for (int64_t h : {0, 1}) {
    for (int64_t b : {0, 1}) {
      k.set({b, h, 3, 1}, kNaN);
      v.set({b, h, 3, 4}, kNaN);
    }
  }
  // Operations on scores stand before the mask as well as after it.
  std::string body = R"mlir(
    %m = attn.mask_mod {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c3 = arith.constant 3 : index
      %c = arith.cmpi ne, %j, %c3 : index
      attn.yield %c : i1
    }
    %a = attn.softcap %s cap 1.0e+09 : !attn.scores<2x4x?x?>
    %c = attn.mask %a, %m : !attn.scores<2x4x?x?>
    %t = attn.score_mod %c : !attn.scores<2x4x?x?> {
    ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
      attn.yield %x : f32
    })mlir";
  check(attention(body), want);
}

TEST_F(AttentionTest, MinusInfinityInABiasGivesNoWeight) {
  HostTensor bias =
      makeTensor(DType::F32, {1, 1, 1, 7}, {0, 0, -kInfinity, 0, 0, 0, 0});
  v.set({0, 0, 2, 0}, kNaN);
  v.set({0, 1, 2, 0}, kInfinity);
  std::string body =
      "%t = attn.additive_bias %s, %bias : !attn.scores<2x4x?x?>, "
      "tensor<1x1x1x?xf32>";
  check(
      attention(body, ", %bias: tensor<1x1x1x?xf32>"),
      Naive(q, k, v, same, [](auto, auto, auto, int64_t j) { return j != 2; }),
      {bias});
}

TEST_F(AttentionTest, RowOfMinusInfinity) {
  HostTensor bias =
      makeTensor(DType::F32, {1, 1, 1, 7}, std::vector<double>(7, -kInfinity));
  std::string body =
      "%t = attn.additive_bias %s, %bias : !attn.scores<2x4x?x?>, "
      "tensor<1x1x1x?xf32>";
  auto results =
      run(attention(body, ", %bias: tensor<1x1x1x?xf32>"), {q, k, v, bias});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].values.at({0, 0, 0, 0}), 0);
  EXPECT_EQ(results[1].values.at({0, 0, 0}), -kInfinity);
}

TEST_F(AttentionTest, AKeptNaNReachesItsRow) {
  k.set({0, 0, 0, 0}, kNaN);
  auto results = run(attention(kFull), {q, k, v});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(std::isnan(results[0].values.at({0, 1, 2, 3})));
  EXPECT_TRUE(std::isnan(results[1].values.at({0, 1, 2})));
  EXPECT_FALSE(std::isnan(results[0].values.at({0, 2, 2, 3})));
}

TEST_F(AttentionTest, ASampleOfRows) {
  Options options;
  options.maxRowsPerHead = 3;
  options.threads = 2;
  auto some = run(attention(kCausal), {q, k, v}, options);
  auto all = run(attention(kCausal), {q, k, v});
  ASSERT_EQ(some.size(), 2u);
  ASSERT_EQ(some[0].computed.size(), 40u);
  for (int64_t row = 0; row < 40; ++row) {
    EXPECT_EQ(some[0].computed[row], row % 5 % 2 == 0) << row;
    int64_t b = row / 20, h = row / 5 % 4, i = row % 5;
    EXPECT_EQ(some[0].values.at({b, h, i, 1}),
              some[0].computed[row] ? all[0].values.at({b, h, i, 1}) : 0);
  }
  EXPECT_EQ(some[1].computed, some[0].computed);
}

//===----------------------------------------------------------------------===//
// ALiBi and relu attention
//===----------------------------------------------------------------------===//

/// With products of 0 the weights tell the scores.
static std::vector<double> alibiScores(int64_t heads) {
  std::string n = std::to_string(heads);
  std::string tensor = "tensor<1x" + n + "x1x2xf32>";
  std::string keys = "tensor<1x1x3x2xf32>", scores = "<1x" + n + "x1x3>";
  std::string text =
      "func.func @f(%q: " + tensor + ", %k: " + keys + ") -> tensor<1x" + n +
      "x1xf32> {\n%s = attn.scaled_dot_product %q, %k : " + tensor + ", " +
      keys + "\n%a = attn.alibi %s : !attn.scores" + scores +
      "\n%p = attn.prefix 1\n%t = attn.mask %a, %p : !attn.scores" + scores +
      "\n%w, %l = attn.softmax %t lse : !attn.scores" + scores +
      "\nreturn %l : tensor<1x" + n + "x1xf32>\n}";
  return runOne(
      text, {makeTensor(DType::F32, {1, heads, 1, 2},
                        std::vector<double>(heads * 2, 0)),
             makeTensor(DType::F32, {1, 1, 3, 2}, std::vector<double>(6, 0))});
}

TEST(AlibiTest, SlopesOfEightHeads) {
  // One query beside key 2, key 0 alone kept: the score is -2 m_h.
  std::vector<double> want;
  for (double slope : {1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64,
                       1. / 128, 1. / 256}) {
    want.push_back(-2 * slope);
  }
  expectNear(alibiScores(8), want);
}

TEST(AlibiTest, SlopesOfTwelveHeads) {
  // As published: those of 8, then 2^-0.5, 2^-1.5, 2^-2.5, 2^-3.5.
  std::vector<double> want;
  for (double slope : {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125,
                       0.00390625, 0.70710678118654752, 0.35355339059327379,
                       0.17677669529663689, 0.088388347648318447}) {
    want.push_back(-2 * slope);
  }
  expectNear(alibiScores(12), want);
}

TEST(AlibiTest, SlopesOfOneAndSixteenHeads) {
  expectNear(alibiScores(1), {-2. / 256});
  std::vector<double> want;
  for (int h = 1; h <= 16; ++h) {
    want.push_back(-2 * std::pow(2, -0.5 * h));
  }
  expectNear(alibiScores(16), want);
}

TEST_F(AttentionTest, AlibiWithSlopes) {
  std::vector<double> slopes = {0.5, 1, 0, -0.25};
  std::string body =
      "%t = attn.alibi %s slopes(%z : tensor<4xf32>) : !attn.scores<2x4x?x?>";
  auto score = [&](double s, int64_t, int64_t h, int64_t i, int64_t j) {
    return s - slopes[h] * std::abs(double(i + 2 - j));
  };
  check(attention(body, ", %z: tensor<4xf32>"), Naive(q, k, v, score, every),
        {makeTensor(DType::F32, {4}, slopes)});
}

TEST_F(AttentionTest, Relu) {
  for (bool mean : {false, true}) {
    std::string text =
        std::string("func.func @f(%q: tensor<2x4x?x8xf32>, %k: "
                    "tensor<2x2x?x8xf32>, %v: tensor<2x2x?x6xf32>) -> "
                    "tensor<2x4x?x6xf32> {\n"
                    "%s = attn.scaled_dot_product %q, %k : "
                    "tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>\n"
                    "%m = attn.causal\n"
                    "%t = attn.mask %s, %m : !attn.scores<2x4x?x?>\n"
                    "%w = attn.relu_attention %t ") +
        (mean ? "mean" : "") +
        " : !attn.scores<2x4x?x?>\n"
        "%o = attn.aggregate %w, %v : !attn.weights<2x4x?x?>, "
        "tensor<2x2x?x6xf32>\nreturn %o : tensor<2x4x?x6xf32>\n}";
    std::vector<double> want;
    for (int64_t row = 0; row < 40; ++row) {
      int64_t b = row / 20, h = row / 5 % 4, i = row % 5;
      for (int64_t e = 0; e < 6; ++e) {
        double sum = 0;
        for (int64_t j = 0; j <= i + 2; ++j) {
          double s = 0;
          for (int64_t d = 0; d < 8; ++d) {
            s += q.at({b, h, i, d}) * k.at({b, h / 2, j, d}) / std::sqrt(8.0);
          }
          sum += std::max(s, 0.0) * v.at({b, h / 2, j, e}) / (mean ? 7 : 1);
        }
        want.push_back(sum);
      }
    }
    expectNear(runOne(text, {q, k, v}), want);
  }
}
