//===- LaunchTest.cpp - launches ------------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

using testing::ElementsAre;
using testing::HasSubstr;

// Counts what is taken from the heap, except where a sanitizer wants to.
static std::atomic<size_t> heapBlocks = 0;

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if !__has_feature(thread_sanitizer)
void *operator new(size_t bytes) {
  ++heapBlocks;
  void *memory = std::malloc(bytes ? bytes : 1);
  if (!memory) {
    std::abort();
  }
  return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

namespace {

using LaunchTest = RuntimeTest;

/// Every kind of operand, scalar and extra, in two steps.
const char *const kManifest = R"({
  "version": 1, "chip": "sm_80", "ptx": 80, "entry": "f",
  "arguments": [{"name": "q", "dtype": "bf16", "shape": [1, 2, null, 64]},
                {"name": "scale", "dtype": "f32"},
                {"name": "offset", "dtype": "i32"},
                {"name": "flag", "dtype": "i1"},
                {"name": "small", "dtype": "i8"},
                {"name": "large", "dtype": "i64"},
                {"name": "one", "dtype": "f32", "shape": []}],
  "results": [{"dtype": "bf16",
               "shape": [1, 2, {"argument": 0, "dimension": 2}, 64]}],
  "temporaries": [{"dtype": "f32",
                   "shape": [2, {"argument": 0, "dimension": 2}]},
                  {"dtype": "f32", "shape": [3]}],
  "constants": [{"dtype": "i8", "shape": [3], "data": "Zm9v"},
                {"dtype": "i32", "shape": [1, 2], "data": "AQAAAP////8="}],
  "steps": [
    {"kernel": "first", "threads": 128,
     "grid": [{"operand": 0, "dimension": 2, "divisor": 64},
              {"operand": 0, "dimension": 1, "divisor": 1}],
     "operands": [{"argument": 0}, {"argument": 1}, {"argument": 2},
                  {"argument": 3}, {"argument": 4}, {"argument": 5},
                  {"argument": 6}, {"temporary": 0}, {"temporary": 1},
                  {"constant": 0}, {"constant": 1}],
     "extras": [{"counter": true},
                {"tensor_map": 0, "box": [64, 32], "swizzle": 128},
                {"counter": true}]},
    {"kernel": "second", "threads": 256, "shared": 1024, "persistent": 2,
     "grid": [{"operand": 0, "dimension": 1, "divisor": 1}],
     "operands": [{"temporary": 0}, {"result": 0}]}]})";

/// q is cut from (1, 2, 100, 192), so that its rows are 192 apart.
class ParametersTest : public RuntimeTest {
protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    program = load(kManifest);
    q.data = alloc(2 * 100 * 192 * 2);
    one.data = alloc(4);
    out.data = alloc(2 * 100 * 64 * 2);
    workspace = alloc(4096);
  }
  void TearDown() override {
    program.reset();
    RuntimeTest::TearDown();
  }
  std::vector<attnfuse_tensor> inputs() const {
    return {q, scale, offset, flag, small, large, one};
  }
  attnfuse_status run() {
    return launch(program, inputs(), {out}, workspace, 4096, stream);
  }

  ProgramHandle program;
  float scaleValue = 0.125f;
  int32_t offsetValue = -5;
  uint8_t flagValue = 255;
  int8_t smallValue = -3;
  int64_t largeValue = int64_t(1) << 40;
  Tensor q{nullptr, ATTNFUSE_BF16, {1, 2, 100, 64}, {38400, 19200, 192, 1}};
  Tensor scale{&scaleValue, ATTNFUSE_F32, {}};
  Tensor offset{&offsetValue, ATTNFUSE_I32, {}};
  Tensor flag{&flagValue, ATTNFUSE_I1, {}};
  Tensor small{&smallValue, ATTNFUSE_I8, {}};
  Tensor large{&largeValue, ATTNFUSE_I64, {}};
  Tensor one{nullptr, ATTNFUSE_F32, {}};
  Tensor out{nullptr, ATTNFUSE_BF16, {1, 2, 100, 64}};
  void *workspace = nullptr;
  void *stream = nullptr;
};

TEST_F(ParametersTest, BytesAreAsDocumented) {
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  ASSERT_EQ(fake().launches.size(), 2u);
  const FakeLaunch &first = fake().launches[0];
  EXPECT_EQ(first.kernel, "first");
  EXPECT_EQ(first.grid, 4u);
  EXPECT_EQ(first.threads, 128u);
  EXPECT_EQ(first.shared, 0u);

  // Counters, then the temporaries: 256 bytes, 2 x 100 x 4 bytes, 12 bytes.
  char *base = static_cast<char *>(workspace);
  Tensor temporary(base + 256, ATTNFUSE_F32, {2, 100});
  Tensor last(base + 256 + 1024, ATTNFUSE_F32, {3});

  Bytes head;
  head << q << scaleValue << int64_t(-5) << int64_t(1) << int64_t(-3)
       << largeValue << one.data << temporary << last;
  std::string start = head;
  ASSERT_EQ(first.parameters.substr(0, start.size()), start);

  // The constants' addresses are the program's affair; look at what is there.
  uint64_t address;
  std::memcpy(&address, first.parameters.data() + start.size(), 8);
  EXPECT_EQ(address % 256, 0u);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void *>(address), "foo", 3), 0);
  int32_t numbers[2];
  std::memcpy(numbers, reinterpret_cast<void *>(address + 256), 8);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], -1);
  Bytes all = head;
  all << Tensor(reinterpret_cast<void *>(address), ATTNFUSE_I8, {3})
      << Tensor(reinterpret_cast<void *>(address + 256), ATTNFUSE_I32, {1, 2});

  all << workspace;
  FakeTensorMap map = {};
  map.address = reinterpret_cast<uint64_t>(q.data);
  uint64_t extents[4] = {64, 100, 2, 1};
  // An extent of 1 has any stride.
  uint64_t strides[3] = {384, 38400, 16};
  uint32_t box[4] = {64, 32, 1, 1};
  std::memcpy(map.extents, extents, sizeof(extents));
  std::memcpy(map.strides, strides, sizeof(strides));
  std::memcpy(map.box, box, sizeof(box));
  map.type = 9;      // bf16
  map.swizzle = 3;   // 128 bytes
  map.promotion = 2; // 128 bytes
  struct alignas(64) Aligned {
    FakeTensorMap map;
  };
  all << Aligned{map} << static_cast<void *>(base + 4);
  EXPECT_EQ(first.parameters, std::string(all));

  const FakeLaunch &second = fake().launches[1];
  EXPECT_EQ(second.kernel, "second");
  EXPECT_EQ(second.threads, 256u);
  EXPECT_EQ(second.shared, 1024u);
  EXPECT_EQ(second.grid, 100u); // fewer than 2 x 132
  EXPECT_EQ(second.parameters, std::string(Bytes() << temporary << out));
}

TEST_F(ParametersTest, CountersAreZeroedOnTheStream) {
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  ASSERT_EQ(fake().memsets.size(), 1u);
  EXPECT_EQ(fake().memsets[0].address, reinterpret_cast<uint64_t>(workspace));
  EXPECT_EQ(fake().memsets[0].value, 0u);
  EXPECT_EQ(fake().memsets[0].bytes, 8u);
}

TEST_F(ParametersTest, PersistentGrid) {
  q = Tensor(alloc(2 * 1000 * 64 * 2), ATTNFUSE_BF16, {1, 2, 1000, 64});
  out = Tensor(alloc(2 * 1000 * 64 * 2), ATTNFUSE_BF16, {1, 2, 1000, 64});
  workspace = alloc(16384);
  ASSERT_EQ(launch(program, inputs(), {out}, workspace, 16384), ATTNFUSE_OK)
      << error();
  EXPECT_EQ(fake().launches[0].grid, 32u);
  EXPECT_EQ(fake().launches[1].grid, 264u); // 2 x 132 multiprocessors
}

TEST_F(ParametersTest, EmptyTensorsLaunchNothing) {
  q = Tensor(nullptr, ATTNFUSE_BF16, {1, 2, 0, 64});
  out = Tensor(nullptr, ATTNFUSE_BF16, {1, 2, 0, 64});
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  EXPECT_EQ(fake().numLaunches, 0);
  EXPECT_EQ(fake().numMemsets, 0);
}

TEST_F(ParametersTest, FailedLaunch) {
  fake().failures["cuLaunchKernel"] = 701;
  EXPECT_EQ(run(), ATTNFUSE_LAUNCH_FAILED);
  EXPECT_EQ(error(),
            "cuLaunchKernel (kernel 'first', 4 blocks of 128 threads, 0 bytes "
            "of shared memory) failed with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: "
            "the kernel needs more registers or shared memory than a block may "
            "have; compile with smaller tiles");
  EXPECT_EQ(fake().numLaunches, 0);
  fake().failures["cuLaunchKernel"] = 1;
  EXPECT_EQ(run(), ATTNFUSE_LAUNCH_FAILED);
  fake().failures["cuMemsetD32Async"] = 700;
  EXPECT_EQ(run(), ATTNFUSE_LAUNCH_FAILED);
  EXPECT_THAT(error(), HasSubstr("a kernel launched before"));
  fake().failures["cuTensorMapEncodeTiled"] = 1;
  q = Tensor(q.data, ATTNFUSE_BF16, {1, 2, 100, 64});
  EXPECT_EQ(run(), ATTNFUSE_DRIVER_ERROR);
  EXPECT_EQ(error(), "argument 0 ('q'): cuTensorMapEncodeTiled failed with "
                     "CUDA_ERROR_INVALID_VALUE");
}

TEST_F(ParametersTest, RepeatedLaunchesUseNoHeapAndAskTheDriverLittle) {
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  fake().record = false;
  fake().launches.clear();
  int queries = fake().numPointerQueries;
  int encodings = fake().numEncodings;
  std::vector<attnfuse_tensor> given = inputs();
  attnfuse_tensor results[] = {out};
  size_t before = heapBlocks;
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    good += attnfuse_program_launch(program.get(), given.data(), 7, results, 1,
                                    workspace, 4096, stream) == ATTNFUSE_OK;
  }
  EXPECT_EQ(heapBlocks - before, 0u);
  EXPECT_EQ(good, 100);
  EXPECT_EQ(fake().numLaunches, 202);
  EXPECT_EQ(fake().numPointerQueries, queries);
  EXPECT_EQ(fake().numEncodings, encodings);
}

TEST_F(LaunchTest, AddressesOfAFewTensorsStayKnown) {
  constexpr int kTensors = 16;
  std::string arguments, operands;
  for (int i = 0; i < kTensors; ++i) {
    std::string comma = i ? "," : "";
    arguments += comma + R"({"dtype": "f32", "shape": [null]})";
    operands += comma + R"({"argument": )" + std::to_string(i) + "}";
  }
  ProgramHandle program =
      load(R"({"version": 1, "chip": "sm_80", "ptx": 80, "arguments": [)" +
           arguments + R"(], "steps": [{"kernel": "f", "threads": 32,
           "operands": [)" +
           operands + "]}]}");
  // Chosen, so that the test does the same each time.
  constexpr uint64_t kMemory = uint64_t(0x7f0) << 32;
  addMemory(kMemory, 1 << 22, /*host=*/false);
  unsigned seed = 1;
  for (int i = 0; i < 50; ++i) {
    std::vector<Tensor> tensors;
    for (int j = 0; j < kTensors; ++j) {
      seed = seed * 1664525 + 1013904223;
      tensors.emplace_back(
          reinterpret_cast<void *>(kMemory + seed % (1 << 22) / 512 * 512),
          ATTNFUSE_F32, std::vector<int64_t>{8});
    }
    std::vector<attnfuse_tensor> inputs(tensors.begin(), tensors.end());
    // Tensors of the rounds before may have to make room.
    for (int j = 0; j < 4; ++j) {
      ASSERT_EQ(launch(program, inputs, {}), ATTNFUSE_OK) << error();
    }
    int queries = fake().numPointerQueries;
    ASSERT_EQ(launch(program, inputs, {}), ATTNFUSE_OK) << error();
    EXPECT_EQ(fake().numPointerQueries, queries);
  }
}

TEST_F(ParametersTest, NewTensorsUseNoHeapEither) {
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  fake().record = false;
  fake().launches.clear();
  // Along the rows of a larger tensor, a new address each time.
  char *memory = static_cast<char *>(alloc(2 * 300 * 192 * 2));
  size_t before = heapBlocks;
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    q.data = memory + 384 * i;
    attnfuse_tensor given[] = {q, scale, offset, flag, small, large, one};
    attnfuse_tensor results[] = {out};
    good += attnfuse_program_launch(program.get(), given, 7, results, 1,
                                    workspace, 4096, stream) == ATTNFUSE_OK;
  }
  EXPECT_EQ(heapBlocks - before, 0u);
  EXPECT_EQ(good, 100);
  EXPECT_EQ(fake().numEncodings, 101);
}

TEST_F(ParametersTest, TensorMapsFollowTheTensor) {
  ASSERT_EQ(run(), ATTNFUSE_OK) << error();
  size_t offset = fake().launches[0].parameters.size() - 8 - 128;
  void *first = q.data;
  void *second = alloc(2 * 100 * 192 * 2);
  // Back and forth, and another stride at the same address.
  for (int i = 0; i < 6; ++i) {
    fake().launches.clear();
    q.data = i % 2 ? first : second;
    q.strides[2] = i < 3 ? 192 : 128;
    ASSERT_EQ(run(), ATTNFUSE_OK) << error();
    FakeTensorMap map = mapIn(fake().launches[0], offset);
    EXPECT_EQ(map.address, reinterpret_cast<uint64_t>(q.data));
    EXPECT_EQ(map.strides[0], uint64_t(2 * q.strides[2]));
  }
  EXPECT_EQ(fake().numEncodings, 4);
}

TEST_F(ParametersTest, ManyThreads) {
  fake().record = false;
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  std::vector<void *> workspaces;
  for (int i = 0; i < 4; ++i) {
    workspaces.push_back(alloc(4096));
  }
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::vector<attnfuse_tensor> given = inputs();
      attnfuse_tensor result = out;
      for (int j = 0; j < 200; ++j) {
        // New addresses now and then.
        given[0].data = static_cast<char *>(q.data) + 16 * ((i + j / 8) % 12);
        good += attnfuse_program_launch(program.get(), given.data(), 7, &result,
                                        1, workspaces[i], 4096,
                                        nullptr) == ATTNFUSE_OK;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  EXPECT_EQ(good, 800);
  EXPECT_EQ(fake().numLaunches, 1600);
}

TEST_F(LaunchTest, TooManyBlocks) {
  ProgramHandle program = load(R"({"version": 1, "chip": "sm_80", "ptx": 80,
    "arguments": [{"dtype": "f32", "shape": [null, null, null]}],
    "steps": [{"kernel": "f", "threads": 32, "operands": [{"argument": 0}],
      "grid": [{"operand": 0, "dimension": 0, "divisor": 1},
               {"operand": 0, "dimension": 1, "divisor": 1},
               {"operand": 0, "dimension": 2, "divisor": 1}]}]})");
  void *data = alloc(4);
  auto run = [&](std::vector<int64_t> shape) {
    return launch(
        program, {Tensor(data, ATTNFUSE_F32, std::move(shape), {0, 0, 0})}, {});
  };
  EXPECT_EQ(run({65536, 32768, 1}), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "kernel 'f' would have more than 2^31 - 1 blocks on these "
                     "tensors: use smaller batches");
  EXPECT_EQ(run({2147483647, 2147483647, 2147483647}),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(run({2147483647, 2147483647, 0}), ATTNFUSE_OK);
  EXPECT_EQ(fake().numLaunches, 0);
  EXPECT_EQ(run({65537, 32767, 1}), ATTNFUSE_OK) << error();
  EXPECT_EQ(fake().launches[0].grid, 65537u * 32767u);
}

TEST_F(LaunchTest, ProgramsOfTwoDevices) {
  ProgramHandle one = load(copyManifest());
  ProgramHandle two = load(copyManifest(), ATTNFUSE_OK, "// PTX", 1);
  Tensor a(alloc(8192), ATTNFUSE_BF16, {1, 2, 8, 64});
  Tensor b(alloc(8192, 1), ATTNFUSE_BF16, {1, 2, 8, 64});
  EXPECT_EQ(launch(one, {a}, {a}), ATTNFUSE_OK);
  EXPECT_EQ(launch(two, {b}, {b}), ATTNFUSE_OK);
  EXPECT_EQ(launch(two, {a}, {a}), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "argument 0 ('q') is in memory of GPU 0, the program was "
                     "loaded for GPU 1");
}

} // namespace
