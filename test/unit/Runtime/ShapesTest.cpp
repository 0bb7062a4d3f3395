//===- ShapesTest.cpp - checks of a launch's tensors ------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <climits>

using testing::HasSubstr;

namespace {

/// q (2, ?) and k (?, 3) of f32, offset, and out (q's 1, k's 0); q's 1 and k's
/// 1 have to agree; a temporary of q's 1 x 5 in bf16.
const char *const kManifest = R"({
  "version": 1, "chip": "sm_80", "ptx": 80, "entry": "f",
  "arguments": [{"name": "q", "dtype": "f32", "shape": [2, null]},
                {"name": "k", "dtype": "f32", "shape": [null, 3]},
                {"name": "offset", "dtype": "i32"}],
  "results": [{"dtype": "f16", "shape": [{"argument": 0, "dimension": 1},
                                         {"argument": 1, "dimension": 0}]}],
  "equal": [[{"argument": 0, "dimension": 1}, {"argument": 1, "dimension": 1}]],
  "temporaries": [{"dtype": "bf16",
                   "shape": [{"argument": 0, "dimension": 1}, 5]},
                  {"dtype": "f32", "shape": [64]}],
  "steps": [{"kernel": "f", "threads": 32,
             "grid": [{"operand": 0, "dimension": 1, "divisor": 2}],
             "operands": [{"argument": 0}, {"argument": 1}, {"argument": 2},
                          {"temporary": 0}, {"temporary": 1}, {"result": 0}]}]})";

class ShapesTest : public RuntimeTest {
protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    program = load(kManifest);
    void *memory = alloc(4096);
    q.data = memory;
    k.data = memory;
    out.data = memory;
    workspace = alloc(4096);
  }
  void TearDown() override {
    program.reset();
    RuntimeTest::TearDown();
  }

  attnfuse_status run() {
    return launch(program, {q, k, scalar}, {out}, workspace, 4096);
  }
  std::string refusal() {
    EXPECT_EQ(run(), ATTNFUSE_INVALID_ARGUMENT);
    EXPECT_EQ(fake().numLaunches, 0);
    return error();
  }

  ProgramHandle program;
  int32_t offset = 0;
  Tensor q{nullptr, ATTNFUSE_F32, {2, 3}};
  Tensor k{nullptr, ATTNFUSE_F32, {7, 3}};
  Tensor scalar{&offset, ATTNFUSE_I32, {}};
  Tensor out{nullptr, ATTNFUSE_F16, {3, 7}};
  void *workspace = nullptr;
};

TEST_F(ShapesTest, Good) {
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  EXPECT_EQ(fake().numLaunches, 1);
}

TEST_F(ShapesTest, Counts) {
  EXPECT_EQ(launch(program, {q, k}, {out}), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the program has 3 inputs, 2 were given");
  EXPECT_EQ(launch(program, {q, k, scalar}, {}), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the program has 1 outputs, 0 were given");
}

TEST_F(ShapesTest, Types) {
  k.dtype = ATTNFUSE_BF16;
  EXPECT_EQ(refusal(),
            "argument 1 ('k') is of type bf16, the program needs f32");
  k.dtype = ATTNFUSE_F32;
  // From C, where any number may be there.
  attnfuse_tensor odd = k;
  int32_t number = 77;
  std::memcpy(&odd.dtype, &number, sizeof(number));
  EXPECT_EQ(launch(program, {q, odd, scalar}, {out}),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(),
            "argument 1 ('k') is of type number 77, the program needs f32");
  out.dtype = ATTNFUSE_F32;
  EXPECT_EQ(refusal(), "output 0 is of type f32, the program needs f16");
}

TEST_F(ShapesTest, Ranks) {
  q = Tensor(q.data, ATTNFUSE_F32, {2, 3, 1});
  EXPECT_EQ(refusal(), "argument 0 ('q') has rank 3, the program needs 2");
  q = Tensor(q.data, ATTNFUSE_F32, {2, 3});
  scalar = Tensor(&offset, ATTNFUSE_I32, {1});
  EXPECT_EQ(refusal(), "argument 2 ('offset') has rank 1, the program needs 0 "
                       "(a scalar)");
}

TEST_F(ShapesTest, StaticExtents) {
  q = Tensor(q.data, ATTNFUSE_F32, {4, 3});
  EXPECT_EQ(refusal(), "argument 0 ('q') has extent 4 in dimension 0, the "
                       "program needs 2");
}

TEST_F(ShapesTest, EqualExtents) {
  q = Tensor(q.data, ATTNFUSE_F32, {2, 4});
  EXPECT_EQ(refusal(),
            "dimension 1 of argument 0 ('q') is 4, dimension 1 of argument 1 "
            "('k') is 3; they have to agree");
}

TEST_F(ShapesTest, LargeAndNegativeExtents) {
  k.shape[0] = int64_t(1) << 31;
  EXPECT_EQ(refusal(), "argument 1 ('k') has extent 2147483648 in dimension 0; "
                       "extents are from 0 to 2^31 - 1");
  k.shape[0] = -1;
  EXPECT_THAT(refusal(), HasSubstr("has extent -1 in dimension 0"));
}

TEST_F(ShapesTest, OutputShape) {
  out = Tensor(out.data, ATTNFUSE_F16, {3, 8});
  EXPECT_EQ(refusal(),
            "output 0 has extent 8 in dimension 1, the program needs 7");
  out = Tensor(out.data, ATTNFUSE_F16, {3, 7}, {7, 0});
  EXPECT_EQ(refusal(), "output 0 has stride 0 in dimension 1; its elements "
                       "have to be different ones");
}

TEST_F(ShapesTest, MissingShapeOrStrides) {
  attnfuse_tensor bare = q;
  bare.shape = nullptr;
  EXPECT_EQ(launch(program, {bare, k, scalar}, {out}, workspace, 4096),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "argument 0 ('q') has no shape");
  bare = q;
  bare.strides = nullptr;
  EXPECT_EQ(launch(program, {bare, k, scalar}, {out}, workspace, 4096),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "argument 0 ('q') has no strides");
}

TEST_F(ShapesTest, Addresses) {
  void *memory = q.data;
  q.data = nullptr;
  EXPECT_EQ(refusal(), "argument 0 ('q') is a null pointer");
  q.data = static_cast<char *>(memory) + 2;
  EXPECT_EQ(refusal(),
            "argument 0 ('q') is not aligned to its elements of 4 bytes");
  q.data = memory;
  scalar.data = nullptr;
  EXPECT_EQ(refusal(), "argument 2 ('offset') is a null pointer");
  scalar.data = &offset;
  q.strides = {INT64_MIN, 1};
  EXPECT_THAT(refusal(), HasSubstr("leads out of 64-bit addresses"));
  q.strides = {INT64_MAX / 2, 1};
  EXPECT_THAT(refusal(), HasSubstr("leads out of 64-bit addresses"));
  // Negative and overlapping strides of inputs are as good as others.
  q.strides = {-3, 0};
  EXPECT_EQ(run(), ATTNFUSE_OK) << error();
}

TEST_F(ShapesTest, MemoryOfAnotherDevice) {
  k.data = alloc(4096, 1);
  EXPECT_EQ(refusal(), "argument 1 ('k') is in memory of GPU 1, the program "
                       "was loaded for GPU 0");
}

TEST_F(ShapesTest, HostMemory) {
  std::vector<float> host(100);
  void *memory = k.data;
  k.data = host.data();
  EXPECT_THAT(refusal(), HasSubstr("argument 1 ('k') at 0x"));
  EXPECT_THAT(error(), HasSubstr("is not in memory of a GPU"));
  addMemory(reinterpret_cast<uint64_t>(host.data()), 400, /*host=*/true);
  EXPECT_THAT(refusal(), HasSubstr("is in host memory, not in a GPU's"));
  k.data = memory;
  out.data = host.data();
  EXPECT_THAT(refusal(), HasSubstr("output 0 at 0x"));
}

TEST_F(ShapesTest, WorkspaceSizeAndAlignment) {
  attnfuse_tensor inputs[] = {q, k, scalar};
  size_t bytes = 0;
  ASSERT_EQ(attnfuse_program_workspace(program.get(), inputs, 3, &bytes),
            ATTNFUSE_OK);
  // 3 x 5 of bf16, then 64 of f32, each from a multiple of 256 bytes on.
  EXPECT_EQ(bytes, 512u);
  inputs[0].dtype = ATTNFUSE_I8;
  EXPECT_EQ(attnfuse_program_workspace(program.get(), inputs, 3, &bytes),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, 0u);

  EXPECT_EQ(launch(program, {q, k, scalar}, {out}, workspace, 511),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the workspace has 511 bytes, the launch needs 512");
  EXPECT_EQ(launch(program, {q, k, scalar}, {out}, nullptr, 512),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the workspace has 0 bytes, the launch needs 512");
  EXPECT_EQ(launch(program, {q, k, scalar}, {out},
                   static_cast<char *>(workspace) + 128, 512),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the workspace is not 256-byte aligned");
  EXPECT_EQ(launch(program, {q, k, scalar}, {out}, alloc(512, 1), 512),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the workspace is in memory of GPU 1, the program was "
                     "loaded for GPU 0");
  EXPECT_EQ(launch(program, {q, k, scalar}, {out}, workspace, 512),
            ATTNFUSE_OK);
}

TEST_F(ShapesTest, ResultShapes) {
  attnfuse_tensor inputs[] = {q, k, scalar};
  attnfuse_dtype dtype;
  int32_t rank;
  int64_t shape[8];
  // Neither data nor strides are needed.
  inputs[0].data = nullptr;
  inputs[1].strides = nullptr;
  ASSERT_EQ(attnfuse_program_output_shape(program.get(), inputs, 3, 0, &dtype,
                                          &rank, shape),
            ATTNFUSE_OK)
      << error();
  EXPECT_EQ(dtype, ATTNFUSE_F16);
  ASSERT_EQ(rank, 2);
  EXPECT_EQ(shape[0], 3);
  EXPECT_EQ(shape[1], 7);
  EXPECT_EQ(attnfuse_program_output_shape(program.get(), inputs, 3, 1, &dtype,
                                          &rank, shape),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "there is no output 1; the program has 1");
  EXPECT_EQ(attnfuse_program_output_shape(program.get(), inputs, 2, 0, &dtype,
                                          &rank, shape),
            ATTNFUSE_INVALID_ARGUMENT);
}

/// Kernels add and subtract two positions in 32 bits.
TEST_F(ShapesTest, PositionsOfRank4) {
  ProgramHandle program = load(R"({"version": 1, "chip": "sm_80", "ptx": 80,
    "arguments": [{"name": "q", "dtype": "bf16", "shape": [1, 1, null, 8]}]})");
  int64_t shape[] = {1, 1, int64_t(1) << 30, 8};
  int64_t strides[] = {8, 8, 8, 1};
  attnfuse_tensor input = {nullptr, ATTNFUSE_BF16, 4, shape, strides};
  size_t bytes;
  EXPECT_EQ(attnfuse_program_workspace(program.get(), &input, 1, &bytes),
            ATTNFUSE_OK);
  ++shape[2];
  EXPECT_EQ(attnfuse_program_workspace(program.get(), &input, 1, &bytes),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "argument 0 ('q') has extent 1073741825 in dimension 2; "
                     "extents of tensors of rank 4 are from 0 to 2^30");
}

TEST_F(ShapesTest, HugeTemporary) {
  ProgramHandle huge = load(R"({"version": 1, "chip": "sm_80", "ptx": 80,
    "arguments": [{"dtype": "f32", "shape": [null]}],
    "temporaries": [{"dtype": "f32",
      "shape": [{"argument": 0, "dimension": 0}, {"argument": 0, "dimension": 0},
                {"argument": 0, "dimension": 0}]}]})");
  int64_t extent = INT32_MAX;
  int64_t stride = 1;
  attnfuse_tensor input = {nullptr, ATTNFUSE_F32, 1, &extent, &stride};
  size_t bytes;
  EXPECT_EQ(attnfuse_program_workspace(huge.get(), &input, 1, &bytes),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "temporary 0 of the program has more bytes than can be "
                     "addressed");
}

} // namespace
