//===- TensorMapTest.cpp - tensor maps ------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include "Runtime/TensorMap.h"

using namespace attnfuse::runtime;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// What is described for a tensor of bf16; the reason if nothing can be.
struct Description {
  explicit Description(std::vector<int64_t> shape, std::vector<int64_t> strides,
                       uint64_t address = 0x1000,
                       attnfuse_dtype dtype = ATTNFUSE_BF16) {
    TensorView view = {address, dtype, static_cast<int>(shape.size()),
                       shape.data(), strides.data()};
    Extra extra;
    extra.box[0] = 32;
    extra.box[1] = 64;
    extra.swizzle = dtype == ATTNFUSE_F32 ? 128 : 64;
    good = describeTensorMap(view, extra, 0x9000, request, &reason);
    EXPECT_EQ(good, reason.empty());
    EXPECT_EQ(describeTensorMap(view, extra, 0x9000, request, nullptr), good);
  }
  bool good;
  std::string reason;
  TensorMapRequest request;
};

TEST(TensorMapTest, InnermostFirst) {
  Description it({2, 3, 100, 64}, {24000, 8000, 72, 1});
  ASSERT_TRUE(it.good) << it.reason;
  EXPECT_THAT(it.request.extents, ElementsAre(64, 100, 3, 2));
  EXPECT_THAT(it.request.strides, ElementsAre(144, 16000, 48000));
  EXPECT_THAT(it.request.box, ElementsAre(32, 64, 1, 1));
  EXPECT_EQ(it.request.address, 0x1000u);
  EXPECT_EQ(it.request.type, cuda::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(it.request.swizzle, cuda::CU_TENSOR_MAP_SWIZZLE_64B);
}

TEST(TensorMapTest, Transposed) {
  // (B, N, H, D) in memory.
  Description it({2, 3, 100, 64}, {19200, 64, 192, 1});
  ASSERT_TRUE(it.good) << it.reason;
  EXPECT_THAT(it.request.strides, ElementsAre(384, 128, 38400));
}

TEST(TensorMapTest, StridesOfSingleExtentsDoNotMatter) {
  Description it({1, 1, 100, 1}, {-7, 3, 72, 5});
  ASSERT_TRUE(it.good) << it.reason;
  EXPECT_THAT(it.request.strides, ElementsAre(144, 16, 16));
}

TEST(TensorMapTest, EmptyTensorsReadZeros) {
  Description it({2, 3, 0, 64}, {0, 0, 3, 9}, /*address=*/0);
  ASSERT_TRUE(it.good) << it.reason;
  EXPECT_EQ(it.request.address, 0x9000u);
  EXPECT_THAT(it.request.extents, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(it.request.strides, ElementsAre(16, 16, 16));
}

TEST(TensorMapTest, Limits) {
  using Strides = std::vector<int64_t>;
  std::vector<int64_t> shape = {2, 3, 100, 64};
  EXPECT_EQ(Description(shape, {24000, 8000, 72, 2}).reason,
            "has stride 2 in dimension 3; the tensor memory accelerator needs "
            "1 there");
  EXPECT_EQ(Description(shape, {24000, 8000, 68, 1}).reason,
            "has stride 68 (136 bytes) in dimension 2; the tensor memory "
            "accelerator needs a multiple of 16 bytes");
  EXPECT_EQ(Description(shape, {24000, 0, 72, 1}).reason,
            "has stride 0 in dimension 1; the tensor memory accelerator needs "
            "positive strides");
  EXPECT_THAT(Description(shape, {-24000, 8000, 72, 1}).reason,
              HasSubstr("stride -24000 in dimension 0"));
  EXPECT_EQ(Description(shape, Strides{int64_t(1) << 39, 8000, 72, 1}).reason,
            "has stride 549755813888 in dimension 0; the tensor memory "
            "accelerator needs strides below 2^40 bytes");
  EXPECT_TRUE(
      Description(shape, Strides{(int64_t(1) << 39) - 8, 8000, 72, 1}).good);
  EXPECT_FALSE(Description(shape, Strides{INT64_MAX, 8000, 72, 1}).good);
  EXPECT_EQ(Description(shape, {24000, 8000, 72, 1}, 0x1008).reason,
            "is not 16-byte aligned, which the tensor memory accelerator "
            "needs");
  EXPECT_FALSE(Description({2, 3, int64_t(1) << 32, 64}, {8, 8, 8, 1}).good);
  EXPECT_TRUE(
      Description({2, 3, (int64_t(1) << 32) - 1, 64}, {8, 8, 8, 1}).good);
  EXPECT_EQ(Description({3, 100, 64}, {8000, 72, 1}).reason,
            "has rank 3; tensor maps are of rank 4");
  EXPECT_TRUE(
      Description(shape, {24000, 8000, 68, 1}, 0x1000, ATTNFUSE_F32).good);
}

TEST(TensorMapTest, Boxes) {
  int64_t shape[] = {2, 3, 100, 64};
  int64_t strides[] = {24000, 8000, 72, 1};
  TensorView view = {0x1000, ATTNFUSE_BF16, 4, shape, strides};
  auto good = [&](int columns, int rows, int swizzle) {
    Extra extra;
    extra.box[0] = columns;
    extra.box[1] = rows;
    extra.swizzle = swizzle;
    TensorMapRequest request;
    return describeTensorMap(view, extra, 0, request, nullptr);
  };
  EXPECT_TRUE(good(64, 256, 128));
  EXPECT_TRUE(good(256, 1, 0));
  EXPECT_FALSE(good(64, 257, 128));
  EXPECT_FALSE(good(264, 1, 0));
  EXPECT_FALSE(good(72, 64, 128));
  EXPECT_FALSE(good(12, 64, 32));
  EXPECT_FALSE(good(0, 64, 32));
}

/// As a part of launches.
class TensorMapLaunchTest : public RuntimeTest {
protected:
  static constexpr const char *kMap =
      R"("extras": [{"tensor_map": 0, "box": [64, 64], "swizzle": 128}],)";
};

TEST_F(TensorMapLaunchTest, TensorThatCannotBeServed) {
  ProgramHandle program = load(copyManifest(kMap));
  Tensor q(alloc(4096), ATTNFUSE_BF16, {1, 2, 8, 64}, {1056, 528, 66, 1});
  Tensor out(alloc(4096), ATTNFUSE_BF16, {1, 2, 8, 64});
  EXPECT_EQ(launch(program, {q}, {out}), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(),
            "argument 0 ('q') has stride 66 (132 bytes) in dimension 2; the "
            "tensor memory accelerator needs a multiple of 16 bytes: make it "
            "contiguous");
  EXPECT_EQ(fake().numLaunches, 0);
}

TEST_F(TensorMapLaunchTest, OtherwiseIsTaken) {
  ProgramHandle program = load(copyManifest(std::string(kMap) + R"(
    "otherwise": {"kernel": "plain", "threads": 64,
      "grid": [{"operand": 1, "dimension": 2, "divisor": 2}],
      "operands": [{"argument": 0}, {"result": 0}]},)"));
  EXPECT_EQ(attnfuse_program_num_kernels(program.get()), 2);
  Tensor q(alloc(4096), ATTNFUSE_BF16, {1, 2, 8, 64}, {1056, 528, 66, 1});
  Tensor out(alloc(4096), ATTNFUSE_BF16, {1, 2, 8, 64});
  ASSERT_EQ(launch(program, {q}, {out}), ATTNFUSE_OK) << error();
  ASSERT_EQ(launch(program, {out}, {out}), ATTNFUSE_OK) << error();
  ASSERT_EQ(fake().launches.size(), 2u);
  EXPECT_EQ(fake().launches[0].kernel, "plain");
  EXPECT_EQ(fake().launches[0].grid, 4u);
  EXPECT_EQ(fake().launches[0].parameters, std::string(Bytes() << q << out));
  EXPECT_EQ(fake().launches[1].kernel, "copy_kernel");
  EXPECT_EQ(fake().launches[1].grid, 2u);
}

TEST_F(TensorMapLaunchTest, OtherwiseThatCannotBeServedEither) {
  ProgramHandle program = load(copyManifest(std::string(kMap) + R"(
    "otherwise": {"kernel": "narrow", "threads": 64,
      "operands": [{"result": 0}, {"argument": 0}],
      "extras": [{"tensor_map": 0, "box": [32, 64], "swizzle": 64}]},)"));
  Tensor odd(alloc(4096), ATTNFUSE_BF16, {1, 2, 8, 64}, {1056, 528, 66, 1});
  Tensor even(alloc(4096), ATTNFUSE_BF16, {1, 2, 8, 64});
  ASSERT_EQ(launch(program, {odd}, {even}), ATTNFUSE_OK) << error();
  EXPECT_EQ(fake().launches[0].kernel, "narrow");
  EXPECT_EQ(launch(program, {odd}, {odd}), ATTNFUSE_INVALID_ARGUMENT);
  // The last alternative's reason.
  EXPECT_THAT(error(), HasSubstr("output 0 has stride 66"));
}

/// A step that leaves marks, and one that computes again what is marked.
static const char *const kMarks = R"({
  "version": 1, "chip": "sm_90a", "ptx": 80, "entry": "f",
  "arguments": [{"name": "q", "dtype": "bf16", "shape": [1, 2, null, 64]}],
  "results": [{"dtype": "bf16",
               "shape": [1, 2, {"argument": 0, "dimension": 2}, 64]}],
  "temporaries": [
    {"dtype": "f32", "shape": [3]},
    {"dtype": "i8", "shape": [1, 2, {"argument": 0, "dimension": 2}]}],
  "steps": [
    {"kernel": "main", "threads": 384,
     "grid": [{"operand": 0, "dimension": 2, "divisor": 128}],
     "operands": [{"argument": 0}, {"result": 0}, {"temporary": 1}],
     "extras": [{"tensor_map": 0, "box": [64, 64], "swizzle": 128}],
     "otherwise_fill": {"temporary": 1}},
    {"kernel": "again", "threads": 128,
     "grid": [{"operand": 0, "dimension": 2, "divisor": 64}],
     "operands": [{"argument": 0}, {"temporary": 1}, {"result": 0}]}]})";

TEST_F(TensorMapLaunchTest, MarksAreFilledInForAStepThatCannotBeServed) {
  ProgramHandle program = load(kMarks);
  Tensor odd(alloc(1 << 20), ATTNFUSE_BF16, {1, 2, 200, 64},
             {26400, 13200, 66, 1});
  Tensor even(alloc(1 << 20), ATTNFUSE_BF16, {1, 2, 200, 64});
  Tensor out(alloc(1 << 20), ATTNFUSE_BF16, {1, 2, 200, 64});
  size_t bytes = 0;
  attnfuse_tensor input = odd;
  ASSERT_EQ(attnfuse_program_workspace(program.get(), &input, 1, &bytes),
            ATTNFUSE_OK);
  void *workspace = alloc(bytes);
  ASSERT_EQ(launch(program, {even}, {out}, workspace, bytes), ATTNFUSE_OK)
      << error();
  EXPECT_EQ(fake().numMemsets, 0);
  ASSERT_EQ(fake().launches.size(), 2u);
  EXPECT_EQ(fake().launches[0].kernel, "main");
  EXPECT_EQ(fake().launches[1].kernel, "again");
  // Where the second step finds the marks: behind q's address, 4 extents and 4
  // strides.
  uint64_t marks;
  std::memcpy(&marks, fake().launches[1].parameters.data() + 72, 8);

  fake().launches.clear();
  ASSERT_EQ(launch(program, {odd}, {out}, workspace, bytes), ATTNFUSE_OK)
      << error();
  ASSERT_EQ(fake().launches.size(), 1u);
  EXPECT_EQ(fake().launches[0].kernel, "again");
  EXPECT_EQ(fake().launches[0].grid, 4u);
  ASSERT_EQ(fake().memsets.size(), 1u);
  EXPECT_EQ(fake().memsets[0].address, marks);
  EXPECT_EQ(fake().memsets[0].value, 0xffu);
  EXPECT_EQ(fake().memsets[0].bytes, 2u * 200u);
  EXPECT_GE(marks, reinterpret_cast<uint64_t>(workspace));
  EXPECT_LE(marks + 400, reinterpret_cast<uint64_t>(workspace) + bytes);
}

TEST_F(TensorMapLaunchTest, NothingIsFilledInForNoRows) {
  ProgramHandle program = load(kMarks);
  Tensor none(nullptr, ATTNFUSE_BF16, {1, 2, 0, 64}, {0, 0, 66, 1});
  size_t bytes = 0;
  attnfuse_tensor input = none;
  ASSERT_EQ(attnfuse_program_workspace(program.get(), &input, 1, &bytes),
            ATTNFUSE_OK);
  ASSERT_EQ(launch(program, {none}, {none}, alloc(bytes + 256), bytes + 256),
            ATTNFUSE_OK)
      << error();
  EXPECT_EQ(fake().numLaunches, 0);
  EXPECT_EQ(fake().numMemsets, 0);
}

TEST_F(TensorMapLaunchTest, MarksThatCannotBeFilledIn) {
  ProgramHandle program = load(kMarks);
  Tensor odd(alloc(1 << 20), ATTNFUSE_BF16, {1, 2, 200, 64},
             {26400, 13200, 66, 1});
  Tensor out(alloc(1 << 20), ATTNFUSE_BF16, {1, 2, 200, 64});
  fake().failures["cuMemsetD8Async"] = 1;
  EXPECT_EQ(launch(program, {odd}, {out}, alloc(4096), 4096),
            ATTNFUSE_DRIVER_ERROR);
  EXPECT_EQ(error(), "cuMemsetD8Async (marks of rows to compute) failed with "
                     "CUDA_ERROR_INVALID_VALUE");
  // The step that reads them has not run.
  EXPECT_EQ(fake().numLaunches, 0);
}

TEST_F(TensorMapLaunchTest, EmptyKeysStillLaunch) {
  ProgramHandle program = load(R"({
    "version": 1, "chip": "sm_90a", "ptx": 80, "entry": "f",
    "arguments": [{"name": "q", "dtype": "bf16", "shape": [1, 1, null, 64]},
                  {"name": "k", "dtype": "bf16", "shape": [1, 1, null, 64]}],
    "results": [{"dtype": "bf16",
                 "shape": [1, 1, {"argument": 0, "dimension": 2}, 64]}],
    "steps": [{"kernel": "f", "threads": 128,
      "grid": [{"operand": 0, "dimension": 2, "divisor": 64}],
      "operands": [{"argument": 0}, {"argument": 1}, {"result": 0}],
      "extras": [{"tensor_map": 1, "box": [64, 64], "swizzle": 128}]}]})");
  Tensor q(alloc(4096), ATTNFUSE_BF16, {1, 1, 8, 64});
  Tensor k(nullptr, ATTNFUSE_BF16, {1, 1, 0, 64});
  ASSERT_EQ(launch(program, {q, k}, {q}), ATTNFUSE_OK) << error();
  ASSERT_EQ(fake().launches.size(), 1u);
  // 27 parameters of 8 bytes end at 216; the map begins at 256.
  FakeTensorMap map = mapIn(fake().launches[0], 256);
  EXPECT_THAT(map.extents, ElementsAre(1, 1, 1, 1));
  // Zeros are there to be read.
  ASSERT_NE(map.address, 0u);
  const char zeros[16] = {};
  EXPECT_EQ(std::memcmp(reinterpret_cast<void *>(map.address), zeros, 16), 0);
}

} // namespace
