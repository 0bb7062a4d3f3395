//===- ShapeCheckTest.cpp - do inputs fit a program? -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"

using namespace attnfuse;
using namespace attnfuse::reference;
using namespace attnfuse::reference::test;

using Shape = llvm::SmallVector<int64_t>;

/// An attention over dynamic batch and lengths, with %t made by `body`.
static std::string attention(const std::string &body = "",
                             const std::string &extra = "",
                             const std::string &softmax = "") {
  std::string scores = body.empty() ? "%s" : "%t";
  return "func.func @f(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, "
         "%v: tensor<?x2x?x6xf32>" +
         extra +
         ") -> (tensor<?x4x?x6xf32>, tensor<?x4x?xf32>) {\n"
         "%s = attn.scaled_dot_product %q, %k : tensor<?x4x?x8xf32>, "
         "tensor<?x2x?x8xf32>\n" +
         body + "\n%w, %l = attn.softmax " + scores + " " + softmax +
         " lse : !attn.scores<?x4x?x?>\n"
         "%o = attn.aggregate %w, %v : !attn.weights<?x4x?x?>, "
         "tensor<?x2x?x6xf32>\n"
         "return %o, %l : tensor<?x4x?x6xf32>, tensor<?x4x?xf32>\n}";
}

static std::string mask(const std::string &mask) {
  return mask + "\n%t = attn.mask %s, %m : !attn.scores<?x4x?x?>";
}

static std::string inferenceError(const std::string &text,
                                  llvm::ArrayRef<Shape> shapes) {
  Program program(text);
  if (!program.parsed()) {
    return "the program does not parse";
  }
  auto results = inferResultShapes(program.function(), shapes);
  return results ? "" : llvm::toString(results.takeError());
}

static std::string checkError(const std::string &text,
                              llvm::ArrayRef<HostTensor> inputs) {
  Program program(text);
  if (!program.parsed()) {
    return "the program does not parse";
  }
  llvm::Error error = checkInputs(program.function(), inputs);
  return error ? llvm::toString(std::move(error)) : "";
}

static const Shape kQuery = {2, 4, 5, 8}, kKey = {2, 2, 7, 8},
                   kValue = {2, 2, 7, 6};

TEST(ShapeCheckTest, ResultShapes) {
  Program program(attention());
  auto results = inferResultShapes(program.function(), {kQuery, kKey, kValue});
  ASSERT_TRUE(static_cast<bool>(results));
  EXPECT_EQ((*results)[0], (Shape{2, 4, 5, 6}));
  EXPECT_EQ((*results)[1], (Shape{2, 4, 5}));
}

TEST(ShapeCheckTest, ResultShapesThroughCallsAndElementwiseOperations) {
  Program program(R"mlir(
    func.func @f(%x: tensor<?x?xf16>, %n: index) -> (tensor<?x?xf32>, index) {
      %y = func.call @g(%x) : (tensor<?x?xf16>) -> tensor<?x?xf32>
      return %y, %n : tensor<?x?xf32>, index
    }
    func.func private @g(%x: tensor<?x?xf16>) -> tensor<?x?xf32> {
      %z = arith.addf %x, %x : tensor<?x?xf16>
      %y = arith.extf %z : tensor<?x?xf16> to tensor<?x?xf32>
      return %y : tensor<?x?xf32>
    })mlir");
  auto results = inferResultShapes(program.function(), {{3, 9}, {}});
  ASSERT_TRUE(static_cast<bool>(results));
  EXPECT_EQ((*results)[0], (Shape{3, 9}));
  EXPECT_EQ((*results)[1], Shape());
}

TEST(ShapeCheckTest, Arguments) {
  EXPECT_THAT(inferenceError(attention(), {kQuery, kKey}),
              testing::HasSubstr("'f' takes 3 arguments, got 2"));
  EXPECT_THAT(inferenceError(attention(), {kQuery, kKey, {2, 2, 7, 5}}),
              testing::HasSubstr("argument 2 is tensor<?x2x?x6xf32>, got shape "
                                 "2x2x7x5"));
  EXPECT_THAT(inferenceError(attention(), {kQuery, {2, 7, 8}, kValue}),
              testing::HasSubstr("argument 1 is"));
  EXPECT_THAT(inferenceError(attention(), {kQuery, {2, 2, -7, 8}, kValue}),
              testing::HasSubstr("argument 1 is"));
  EXPECT_THAT(checkError("func.func @f(%x: tensor<2xf32>) { return }",
                         {makeTensor(DType::F16, {2})}),
              testing::HasSubstr("argument 0 is tensor<2xf32>, got f16 of "
                                 "shape 2"));
  EXPECT_THAT(checkError("func.func @f(%x: index) { return }",
                         {makeTensor(DType::I64, {1})}),
              testing::HasSubstr("argument 0 is index, got i64 of shape 1"));
  EXPECT_EQ(checkError("func.func @f(%x: index) { return }",
                       {scalarTensor(DType::I64, 5)}),
            "");
}

TEST(ShapeCheckTest, Products) {
  EXPECT_THAT(inferenceError(attention(), {kQuery, {3, 2, 7, 8}, kValue}),
              testing::HasSubstr("'attn.scaled_dot_product' expected key batch "
                                 "of 2, got 3"));
  EXPECT_THAT(inferenceError(attention(), {kQuery, kKey, {1, 2, 7, 6}}),
              testing::HasSubstr("'attn.aggregate' expected value batch of 2, "
                                 "got 1"));
  EXPECT_THAT(inferenceError(attention(), {kQuery, kKey, {2, 2, 6, 6}}),
              testing::HasSubstr("expected one value row per key, a length of "
                                 "7, got 6"));
}

TEST(ShapeCheckTest, Scores) {
  std::string biased =
      attention("%t = attn.additive_bias %s, %b : !attn.scores<?x4x?x?>, "
                "tensor<?x1x?x?xf32>",
                ", %b: tensor<?x1x?x?xf32>");
  EXPECT_EQ(inferenceError(biased, {kQuery, kKey, kValue, {1, 1, 5, 7}}), "");
  EXPECT_EQ(inferenceError(biased, {kQuery, kKey, kValue, {2, 1, 1, 7}}), "");
  EXPECT_THAT(inferenceError(biased, {kQuery, kKey, kValue, {1, 1, 5, 6}}),
              testing::HasSubstr("the bias in dimension 3 of 7, got 6"));
  EXPECT_THAT(
      inferenceError(
          attention("", ", %z: tensor<?xf32>", "sinks(%z : tensor<?xf32>)"),
          {kQuery, kKey, kValue, {3}}),
      testing::HasSubstr("'attn.softmax' expected sinks for a number of heads "
                         "of 4, got 3"));
  EXPECT_THAT(
      inferenceError(attention("%t = attn.alibi %s slopes(%z : tensor<?xf32>) "
                               ": !attn.scores<?x4x?x?>",
                               ", %z: tensor<?xf32>"),
                     {kQuery, kKey, kValue, {5}}),
      testing::HasSubstr("'attn.alibi' expected slopes for a number of heads "
                         "of 4, got 5"));
}

TEST(ShapeCheckTest, Masks) {
  std::string table = attention(
      mask("%a = attn.block_sparse %b blocks [2, 4] : tensor<?x?x?x?xi1>\n"
           "%m = attn.not %a"),
      ", %b: tensor<?x?x?x?xi1>");
  EXPECT_EQ(inferenceError(table, {kQuery, kKey, kValue, {1, 4, 3, 2}}), "");
  EXPECT_THAT(inferenceError(table, {kQuery, kKey, kValue, {1, 2, 3, 2}}),
              testing::HasSubstr("the table in dimension 1 of 4, got 2"));
  EXPECT_THAT(inferenceError(table, {kQuery, kKey, kValue, {1, 1, 2, 2}}),
              testing::HasSubstr("expected 3 blocks of 2 for 5 queries, got a "
                                 "table with 2"));
  std::string ids =
      attention(mask("%m = attn.document %x, %y : tensor<?x?xi32>, "
                     "tensor<?x?xi32>"),
                ", %x: tensor<?x?xi32>, %y: tensor<?x?xi32>");
  EXPECT_EQ(inferenceError(ids, {kQuery, kKey, kValue, {1, 5}, {2, 7}}), "");
  EXPECT_THAT(inferenceError(ids, {kQuery, kKey, kValue, {1, 5}, {2, 5}}),
              testing::HasSubstr("expected ids for a length of 7, got 5"));
  EXPECT_THAT(inferenceError(ids, {kQuery, kKey, kValue, {3, 5}, {2, 7}}),
              testing::HasSubstr("expected ids for a batch of 2, got 3"));
  std::string lengths =
      attention(mask("%m = attn.prefix lengths(%n : tensor<?xi32>)"),
                ", %n: tensor<?xi32>");
  EXPECT_THAT(inferenceError(lengths, {kQuery, kKey, kValue, {3}}),
              testing::HasSubstr("expected one position per batch entry, a "
                                 "number of 2, got 3"));
}

TEST(ShapeCheckTest, ElementwiseOperations) {
  std::string text = "func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> "
                     "tensor<?xf32> {\n%r = arith.addf %x, %y : tensor<?xf32>\n"
                     "return %r : tensor<?xf32>\n}";
  EXPECT_EQ(inferenceError(text, {{3}, {3}}), "");
  EXPECT_THAT(inferenceError(text, {{3}, {4}}),
              testing::HasSubstr("expected tensors of one shape, dimension 0 "
                                 "of 3, got 4"));
}

static const char *const kComputedPosition = R"mlir(
  func.func @f(%x: tensor<1x1x?x4xf32>, %c: tensor<?x2xf32>, %past: index)
      -> tensor<1x1x?x4xf32> {
    %c2 = arith.constant 2 : index
    %n = tensor.dim %x, %c2 : tensor<1x1x?x4xf32>
    %p = arith.subi %past, %n : index
    %r = attn.rope %x at %p : index
        tables(%c, %c : tensor<?x2xf32>, tensor<?x2xf32>)
        : tensor<1x1x?x4xf32>
    return %r : tensor<1x1x?x4xf32>
  })mlir";

TEST(ShapeCheckTest, PositionsThatAreComputed) {
  HostTensor x = randomTensor({1, 1, 3, 4}, 1), c = randomTensor({8, 2}, 2);
  EXPECT_EQ(checkError(kComputedPosition, {x, c, scalarTensor(DType::I64, 8)}),
            "");
  EXPECT_THAT(
      checkError(kComputedPosition, {x, c, scalarTensor(DType::I64, 9)}),
      testing::HasSubstr("'attn.rope' expected tables with a row for "
                         "each of the 9 positions that are used, got "
                         "8"));
  EXPECT_THAT(
      checkError(kComputedPosition, {x, c, scalarTensor(DType::I64, 2)}),
      testing::HasSubstr("expected positions of at least 0, got -1"));
  // From shapes alone the position is not known.
  EXPECT_EQ(inferenceError(kComputedPosition, {{1, 1, 3, 4}, {8, 2}, {}}), "");
}

TEST(ShapeCheckTest, CalledFunctionsAreChecked) {
  std::string text = attention();
  text.replace(text.find("@f"), 2, "@g");
  EXPECT_THAT(
      inferenceError("func.func @f(%q: tensor<?x4x?x8xf32>, %k: "
                     "tensor<?x2x?x8xf32>, %v: tensor<?x2x?x6xf32>) -> "
                     "tensor<?x4x?xf32> {\n"
                     "%o, %l = func.call @g(%q, %k, %v) : "
                     "(tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, "
                     "tensor<?x2x?x6xf32>) -> (tensor<?x4x?x6xf32>, "
                     "tensor<?x4x?xf32>)\nreturn %l : tensor<?x4x?xf32>\n}\n" +
                         text,
                     {kQuery, kKey, {2, 2, 6, 6}}),
      testing::HasSubstr("'attn.aggregate' expected one value row per key"));
}

TEST(ShapeCheckTest, ShapesThatCannotBeInferred) {
  EXPECT_THAT(inferenceError("func.func @f(%n: index) -> tensor<?xf32> {\n"
                             "%r = tensor.empty(%n) : tensor<?xf32>\n"
                             "return %r : tensor<?xf32>\n}",
                             {{}}),
              testing::HasSubstr("cannot infer the shape of the result of "
                                 "'tensor.empty' (tensor<?xf32>)"));
}
