//===- MaskTest.cpp - masks of the oracle ----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"

using namespace attnfuse;
using namespace attnfuse::reference;
using namespace attnfuse::reference::test;

namespace {
constexpr int64_t kBatch = 2, kHeads = 2, kQueries = 5, kKeys = 7;
} // namespace

/// The program whose output at (b, h, i, j) is not 0 if the mask %m keeps the
/// pair: queries are 0, so that the weights are even, and V is the identity.
static std::string maskProgram(const std::string &mask,
                               const std::string &extra) {
  return "func.func @f(%q: tensor<?x2x?x4xf32>, %k: tensor<?x1x?x4xf32>, "
         "%v: tensor<?x1x?x7xf32>" +
         extra +
         ") -> tensor<?x2x?x7xf32> {\n"
         "%s = attn.scaled_dot_product %q, %k : tensor<?x2x?x4xf32>, "
         "tensor<?x1x?x4xf32>\n" +
         mask +
         "\n%t = attn.mask %s, %m : !attn.scores<?x2x?x?>\n"
         "%w = attn.softmax %t : !attn.scores<?x2x?x?>\n"
         "%o = attn.aggregate %w, %v : !attn.weights<?x2x?x?>, "
         "tensor<?x1x?x7xf32>\nreturn %o : tensor<?x2x?x7xf32>\n}";
}

static std::vector<HostTensor> maskInputs(llvm::ArrayRef<HostTensor> extra) {
  HostTensor v = makeTensor(DType::F32, {kBatch, 1, kKeys, kKeys},
                            std::vector<double>(kBatch * kKeys * kKeys, 0));
  for (int64_t n = 0; n < kBatch * kKeys; ++n) {
    v.set({n / kKeys, 0, n % kKeys, n % kKeys}, 1);
  }
  std::vector<HostTensor> inputs = {
      makeTensor(DType::F32, {kBatch, kHeads, kQueries, 4},
                 std::vector<double>(kBatch * kHeads * kQueries * 4, 0)),
      makeTensor(DType::F32, {kBatch, 1, kKeys, 4},
                 std::vector<double>(kBatch * kKeys * 4, 0)),
      v};
  inputs.insert(inputs.end(), extra.begin(), extra.end());
  return inputs;
}

static void expectMask(
    const std::string &mask,
    llvm::function_ref<bool(int64_t b, int64_t h, int64_t i, int64_t j)> want,
    const std::string &extra = "", llvm::ArrayRef<HostTensor> inputs = {}) {
  auto results = run(maskProgram(mask, extra), maskInputs(inputs));
  ASSERT_EQ(results.size(), 1u);
  for (int64_t n = 0; n < kBatch * kHeads * kQueries * kKeys; ++n) {
    int64_t j = n % kKeys, i = n / kKeys % kQueries;
    int64_t h = n / kKeys / kQueries % kHeads;
    int64_t b = n / kKeys / kQueries / kHeads;
    EXPECT_EQ(results[0].values.at({b, h, i, j}) != 0, want(b, h, i, j))
        << b << " " << h << " " << i << " " << j;
  }
}

TEST(MaskTest, Causal) {
  expectMask("%m = attn.causal",
             [](auto, auto, auto i, auto j) { return j <= i + 2; });
  expectMask("%m = attn.causal top_left",
             [](auto, auto, auto i, auto j) { return j <= i; });
  expectMask("%m = attn.causal shift -1",
             [](auto, auto, auto i, auto j) { return j <= i + 1; });
  expectMask("%m = attn.causal offset(%p : index)",
             [](auto, auto, auto i, auto j) { return j <= i - 3; },
             ", %p: index", {scalarTensor(DType::I64, -3)});
  expectMask("%m = attn.causal offset(%p : tensor<2xi32>) shift 1",
             [](auto b, auto, auto i, auto j) { return j <= i + 2 * b + 1; },
             ", %p: tensor<2xi32>", {makeTensor(DType::I32, {2}, {0, 2})});
}

TEST(MaskTest, ExtremeOffsetsDoNotWrap) {
  for (int64_t offset : {INT64_MAX, INT64_MIN}) {
    expectMask("%m = attn.causal offset(%p : i64)",
               [&](auto, auto, auto, auto) { return offset > 0; }, ", %p: i64",
               {longTensor({}, {offset})});
    expectMask("%m = attn.sliding_window left 9223372036854775807 right "
               "9223372036854775807",
               [&](auto, auto, auto, auto) { return true; });
  }
}

TEST(MaskTest, SlidingWindow) {
  // The key beside query i is i + 2.
  expectMask(
      "%m = attn.sliding_window left 2 right 1",
      [](auto, auto, auto i, auto j) { return j == i + 1 || j == i + 2; });
  expectMask("%m = attn.sliding_window left 2",
             [](auto, auto, auto i, auto j) { return j > i; });
  expectMask("%m = attn.sliding_window right 2 top_left",
             [](auto, auto, auto i, auto j) { return j <= i + 1; });
  expectMask("%m = attn.sliding_window left 1 right 1 offset(%p : i32)",
             [](auto, auto, auto i, auto j) { return j == i + 1; }, ", %p: i32",
             {scalarTensor(DType::I32, 1)});
}

TEST(MaskTest, Prefix) {
  expectMask("%m = attn.prefix 3",
             [](auto, auto, auto, auto j) { return j < 3; });
  expectMask("%m = attn.prefix lengths(%n : tensor<2xi64>)",
             [](auto b, auto, auto, auto j) { return j < (b ? 0 : 5); },
             ", %n: tensor<2xi64>", {longTensor({2}, {5, 0})});
  expectMask("%m = attn.prefix lengths(%n : tensor<1xi32>)",
             [](auto, auto, auto, auto j) { return j < 4; },
             ", %n: tensor<1xi32>", {makeTensor(DType::I32, {1}, {4})});
}

TEST(MaskTest, BlockSparse) {
  // Three blocks of 2 queries by two blocks of 4 keys, by head.
  HostTensor table =
      makeTensor(DType::I1, {1, 2, 3, 2}, {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0});
  expectMask("%m = attn.block_sparse %b blocks [2, 4] : tensor<1x2x?x?xi1>",
             [&](auto, auto h, auto i, auto j) {
               return table.at({0, h, i / 2, j / 4}) != 0;
             },
             ", %b: tensor<1x2x?x?xi1>", {table});
  expectMask("%b = arith.constant dense<[[[[0, 1], [-1, 0]]]]> : "
             "tensor<1x1x2x2xi8>\n"
             "%m = attn.block_sparse %b blocks [3, 4] : tensor<1x1x2x2xi8>",
             [](auto, auto, auto i, auto j) { return (i < 3) == (j >= 4); });
}

TEST(MaskTest, Document) {
  // Ids beyond the integers of a double.
  int64_t big = (int64_t(1) << 53) + 1;
  HostTensor queries = longTensor({1, 5}, {1, 1, big, big - 1, 2});
  HostTensor keys = longTensor(
      {2, 7}, {1, big, big - 1, 2, 3, 1, big, 2, 2, 2, 1, 1, 1, big});
  expectMask("%m = attn.document %x, %y : tensor<1x?xi64>, tensor<?x?xi64>",
             [&](auto b, auto, auto i, auto j) {
               return queries.intAt({0, i}) == keys.intAt({b, j});
             },
             ", %x: tensor<1x?xi64>, %y: tensor<?x?xi64>", {queries, keys});
}

TEST(MaskTest, Algebra) {
  expectMask("%a = attn.causal\n%b = attn.prefix 2\n%c = attn.not %a\n"
             "%d = attn.or %c, %b\n%e = attn.full\n%m = attn.and %d, %e, %e",
             [](auto, auto, auto i, auto j) { return j > i + 2 || j < 2; });
}

TEST(MaskTest, SharedPartsAreEvaluatedOnce) {
  // Without sharing this would take 2^60 evaluations.
  std::string text = "%m0 = attn.causal\n";
  for (int n = 0; n < 60; ++n) {
    std::string from = "%m" + std::to_string(n);
    text += "%m" + std::to_string(n + 1) + " = attn.and " + from + ", " + from +
            "\n";
  }
  expectMask(text + "%m = attn.not %m60",
             [](auto, auto, auto i, auto j) { return j > i + 2; });
}

TEST(MaskTest, MaskMod) {
  expectMask(
      R"mlir(
    %m = attn.mask_mod {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %id = tensor.extract %ids[%b, %j] : tensor<2x?xi32>
      %c = arith.index_cast %id : i32 to index
      %first = arith.addi %c, %h : index
      %r = arith.cmpi sge, %i, %first : index
      attn.yield %r : i1
    })mlir",
      [](auto b, auto h, auto i, auto j) { return i >= (b ? -j : j) + h; },
      ", %ids: tensor<2x?xi32>",
      {makeTensor(DType::I32, {2, 7},
                  {0, 1, 2, 3, 4, 5, 6, 0, -1, -2, -3, -4, -5, -6})});
}

TEST(MaskTest, TwoMasksOnOneChain) {
  std::string text = maskProgram("%m = attn.prefix 4", "");
  std::string apply = "%t = attn.mask %s, %m : !attn.scores<?x2x?x?>\n";
  text.replace(text.find(apply), apply.size(),
               "%n = attn.causal top_left\n"
               "%x = attn.mask %s, %n : !attn.scores<?x2x?x?>\n"
               "%y = attn.softcap %x cap 2.0 : !attn.scores<?x2x?x?>\n"
               "%t = attn.mask %y, %m : !attn.scores<?x2x?x?>\n");
  auto results = run(text, maskInputs({}));
  ASSERT_EQ(results.size(), 1u);
  for (int64_t i = 0; i < kQueries; ++i) {
    for (int64_t j = 0; j < kKeys; ++j) {
      EXPECT_EQ(results[0].values.at({0, 0, i, j}) != 0, j <= i && j < 4);
    }
  }
}

TEST(MaskTest, IndexOutsideATensor) {
  std::string mask = R"mlir(
    %m = attn.mask_mod {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c = tensor.extract %ids[%j] : tensor<?xi1>
      attn.yield %c : i1
    })mlir";
  std::string error =
      errorOf(maskProgram(mask, ", %ids: tensor<?xi1>"),
              maskInputs({makeTensor(DType::I1, {3}, {1, 1, 1})}));
  EXPECT_THAT(error, testing::HasSubstr("program.mlir"));
  EXPECT_THAT(error,
              testing::HasSubstr("index 3 in dimension 0 lies outside argument "
                                 "3 (tensor<?xi1>), whose extent is 3"));
}

TEST(MaskTest, MaskOfAnotherFunction) {
  EXPECT_THAT(
      errorOf("func.func @f(%q: tensor<1x1x1x2xf32>, %m: !attn.mask) -> "
              "tensor<1x1x1x2xf32> {\n return %q : tensor<1x1x1x2xf32>\n}",
              {makeTensor(DType::F32, {1, 1, 1, 2}, {0, 0}),
               scalarTensor(DType::I64, 0)}),
      testing::HasSubstr("argument 1 is !attn.mask"));
}
