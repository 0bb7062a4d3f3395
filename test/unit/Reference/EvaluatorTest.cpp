//===- EvaluatorTest.cpp - functions, calls and tensors --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"

using namespace attnfuse;
using namespace attnfuse::reference;
using namespace attnfuse::reference::test;

TEST(EvaluatorTest, TensorsElementByElement) {
  expectNear(runOne(R"mlir(
    func.func @f(%x: tensor<?xf16>, %y: tensor<?xf16>) -> tensor<?xf32> {
      %a = arith.mulf %x, %y : tensor<?xf16>
      %b = arith.addf %a, %x : tensor<?xf16>
      %c = arith.subf %b, %y : tensor<?xf16>
      %d = arith.negf %c : tensor<?xf16>
      %e = arith.divf %d, %y : tensor<?xf16>
      %f = arith.extf %e : tensor<?xf16> to tensor<?xf32>
      return %f : tensor<?xf32>
    })mlir",
                    {makeTensor(DType::F16, {2}, {1, 2}),
                     makeTensor(DType::F16, {2}, {3, -4})}),
             {-(3. + 1 - 3) / 3, -(-8. + 2 + 4) / -4});
}

TEST(EvaluatorTest, ConstantTensors) {
  expectNear(runOne(R"mlir(
    func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %s = arith.constant dense<0.5> : tensor<2x2xf32>
      %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %a = arith.mulf %x, %s : tensor<2x2xf32>
      %b = arith.addf %a, %c : tensor<2x2xf32>
      return %b : tensor<2x2xf32>
    })mlir",
                    {makeTensor(DType::F32, {2, 2}, {2, 4, 6, 8})}),
             {2, 4, 6, 8});
}

TEST(EvaluatorTest, ExtentsAndScalars) {
  std::vector<double> got =
      runOne(R"mlir(
    func.func @f(%x: tensor<1x2x?x4xf32>, %n: i32) -> index {
      %c2 = arith.constant 2 : index
      %d = tensor.dim %x, %c2 : tensor<1x2x?x4xf32>
      %i = arith.index_cast %n : i32 to index
      %r = arith.subi %d, %i : index
      return %r : index
    })mlir",
             {randomTensor({1, 2, 9, 4}, 1), scalarTensor(DType::I32, 11)});
  expectNear(got, {-2});
}

TEST(EvaluatorTest, DimensionsOutsideATensor) {
  EXPECT_THAT(errorOf(R"mlir(
    func.func @f(%x: tensor<?xf32>, %n: index) -> index {
      %d = tensor.dim %x, %n : tensor<?xf32>
      return %d : index
    })mlir",
                      {randomTensor({3}, 1), scalarTensor(DType::I64, 1)}),
              testing::HasSubstr("'tensor.dim' expected a dimension below 1, "
                                 "got 1"));
}

TEST(EvaluatorTest, LongIntegersAreExact) {
  // 2^53 + 1 is no double; its distance to 2^53 is.
  int64_t big = int64_t(1) << 53;
  expectNear(runOne(R"mlir(
    func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
      %c = arith.constant dense<9007199254740992> : tensor<2xi64>
      %r = arith.subi %x, %c : tensor<2xi64>
      return %r : tensor<2xi64>
    })mlir",
                    {longTensor({2}, {big + 1, big + 3})}),
             {1, 3});
}

static const char *const kTwoLayers = R"mlir(
  func.func @f(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>)
      -> (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) {
    %a = func.call @layer(%q, %k)
        : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
    %b = func.call @layer(%a, %k)
        : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
    return %a, %b : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
  }
  func.func private @layer(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>)
      -> tensor<1x1x?x4xf32> {
    %s = attn.scaled_dot_product %q, %k
        : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
    %w = attn.softmax %s : !attn.scores<1x1x?x?>
    %o = attn.aggregate %w, %k : !attn.weights<1x1x?x?>, tensor<1x1x?x4xf32>
    return %o : tensor<1x1x?x4xf32>
  })mlir";

TEST(EvaluatorTest, CallsAndAttentionOnAttention) {
  HostTensor q = randomTensor({1, 1, 3, 4}, 1);
  HostTensor k = randomTensor({1, 1, 5, 4}, 2);
  auto same = [](double s, auto...) { return s; };
  auto every = [](auto...) { return true; };
  Naive first(q, k, k, same, every);
  HostTensor middle = makeTensor(DType::F64, {1, 1, 3, 4}, first.output);
  Naive second(middle, k, k, same, every);
  auto results = run(kTwoLayers, {q, k});
  ASSERT_EQ(results.size(), 2u);
  expectNear(results[0].values.toDouble(), first.output);
  expectNear(results[1].values.toDouble(), second.output);
}

TEST(EvaluatorTest, WhatAnotherAttentionReadsIsNotSampled) {
  const char *text = R"mlir(
  func.func @f(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>)
      -> (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) {
    %s = attn.scaled_dot_product %q, %k
        : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
    %w = attn.softmax %s : !attn.scores<1x1x?x?>
    %o = attn.aggregate %w, %k : !attn.weights<1x1x?x?>, tensor<1x1x?x4xf32>
    %t = attn.scaled_dot_product %q, %o
        : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
    %x = attn.softmax %t : !attn.scores<1x1x?x?>
    %p = attn.aggregate %x, %o : !attn.weights<1x1x?x?>, tensor<1x1x?x4xf32>
    return %o, %p : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
  })mlir";
  HostTensor q = randomTensor({1, 1, 9, 4}, 1);
  HostTensor k = randomTensor({1, 1, 5, 4}, 2);
  Options options;
  options.maxRowsPerHead = 2;
  auto some = run(text, {q, k}, options);
  auto all = run(text, {q, k});
  ASSERT_EQ(some.size(), 2u);
  EXPECT_TRUE(some[0].computed.empty());
  ASSERT_EQ(some[1].computed.size(), 9u);
  EXPECT_EQ(some[1].values.at({0, 0, 8, 3}), all[1].values.at({0, 0, 8, 3}));
}

TEST(EvaluatorTest, EndlessCallsAreRefused) {
  EXPECT_THAT(errorOf("func.func @f(%x: f32) -> f32 {\n"
                      "%r = func.call @f(%x) : (f32) -> f32\n"
                      "return %r : f32\n}",
                      {scalarTensor(DType::F32, 1)}),
              testing::HasSubstr("nests too deep"));
}

TEST(EvaluatorTest, ExternalFunctionsAreRefused) {
  EXPECT_THAT(errorOf("func.func @f(%x: f32) -> f32 {\n"
                      "%r = func.call @g(%x) : (f32) -> f32\n"
                      "return %r : f32\n}\n"
                      "func.func private @g(f32) -> f32",
                      {scalarTensor(DType::F32, 1)}),
              testing::HasSubstr("'g' has no body"));
}

TEST(EvaluatorTest, UnknownOperationsAreNamed) {
  std::string error =
      errorOf("func.func @f(%x: tensor<?xf32>) -> tensor<?x1xf32> {\n"
              "%c = arith.constant 3 : index\n"
              "%r = tensor.expand_shape %x [[0, 1]] output_shape [%c, 1] : "
              "tensor<?xf32> into tensor<?x1xf32>\n"
              "return %r : tensor<?x1xf32>\n}",
              {randomTensor({3}, 1)});
  EXPECT_THAT(error, testing::HasSubstr("program.mlir\":3:6"));
  EXPECT_THAT(error, testing::HasSubstr(
                         "the oracle does not know 'tensor.expand_shape'"));
}

TEST(EvaluatorTest, TokensOfAnotherFunctionAreRefused) {
  EXPECT_THAT(errorOf("func.func @f(%x: f32) -> f32 {\n%m = attn.full\n"
                      "%r = func.call @g(%x, %m) : (f32, !attn.mask) -> f32\n"
                      "return %r : f32\n}\n"
                      "func.func private @g(%x: f32, %m: !attn.mask) -> f32 {\n"
                      "return %x : f32\n}",
                      {scalarTensor(DType::F32, 1)}),
              testing::HasSubstr("got the result of 'attn.full' (!attn.mask)"));
}
