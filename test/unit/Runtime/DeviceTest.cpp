//===- DeviceTest.cpp - a device and its memory ---------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include "Runtime/Device.h"

#include <numeric>

using namespace attnfuse::runtime;
using testing::HasSubstr;

namespace {

class DeviceTest : public RuntimeTest {
protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    Status status;
    device = Device::open(0, status);
    ASSERT_TRUE(status.ok()) << status.message;
  }
  void *block(size_t bytes) {
    void *address = nullptr;
    Status status = device->allocate(bytes, address);
    EXPECT_TRUE(status.ok()) << status.message;
    return address;
  }
  std::unique_ptr<Device> device;
};

TEST_F(DeviceTest, Open) {
  EXPECT_EQ(device->ordinal(), 0);
  EXPECT_EQ(device->info().units, 132);
  EXPECT_NE(device->stream(), nullptr);
  Status status;
  EXPECT_EQ(Device::open(9, status), nullptr);
  EXPECT_EQ(status.code, ATTNFUSE_NO_DEVICE);
  fake().failures["cuStreamCreate"] = 2;
  EXPECT_EQ(Device::open(0, status), nullptr);
  EXPECT_EQ(status.code, ATTNFUSE_OUT_OF_MEMORY);
  EXPECT_EQ(fake().numContexts, 1);
}

TEST_F(DeviceTest, BlocksAreUsedAgain) {
  void *first = block(1000);
  void *second = block(1000);
  EXPECT_NE(first, second);
  EXPECT_EQ(fake().numAllocations, 2);
  device->free(first);
  EXPECT_EQ(block(900), first);
  device->free(second);
  // Far smaller requests do not take it.
  EXPECT_NE(block(1), second);
  EXPECT_EQ(block(1024), second);
  EXPECT_EQ(fake().numAllocations, 3);
  device->free(nullptr);
  // Nothing is a block too.
  EXPECT_NE(block(0), nullptr);
  device.reset();
  EXPECT_EQ(fake().numFrees, fake().numAllocations);
}

TEST_F(DeviceTest, FreeBlocksAreGivenUpWhereMemoryIsShort) {
  device->free(block(1 << 24));
  fake().failures["cuMemAlloc"] = 2;
  EXPECT_NE(block(1 << 26), nullptr);
  EXPECT_EQ(fake().numFrees, 1);
  device->free(block(1 << 20));
  device->trim();
  EXPECT_EQ(fake().numFrees, 2);
}

TEST_F(DeviceTest, Copies) {
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  void *memory = block(4000);
  ASSERT_TRUE(device->copyIn(memory, numbers.data(), 4000).ok());
  std::vector<int> back(1000);
  ASSERT_TRUE(device->copyOut(back.data(), memory, 4000).ok());
  EXPECT_EQ(back, numbers);
  ASSERT_TRUE(device->fill(memory, 0xff, 2000).ok());
  ASSERT_TRUE(device->copyOut(back.data(), memory, 4000).ok());
  EXPECT_EQ(back[499], -1);
  EXPECT_EQ(back[500], 500);
  EXPECT_TRUE(device->copyIn(nullptr, nullptr, 0).ok());
  fake().failures["cuStreamSynchronize"] = 719;
  Status status = device->copyOut(back.data(), memory, 4000);
  EXPECT_EQ(status.code, ATTNFUSE_LAUNCH_FAILED);
  EXPECT_THAT(status.message, HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

TEST_F(DeviceTest, TimesWork) {
  double seconds = 0;
  void *given = nullptr;
  Status status = device->time(
      [&](void *stream) {
        given = stream;
        return Status();
      },
      seconds);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(given, device->stream());
  EXPECT_DOUBLE_EQ(seconds, 0.0005);
  status = device->time([](void *) { return invalid("no"); }, seconds);
  EXPECT_EQ(status.message, "no");
}

TEST_F(DeviceTest, GraphsReplayLaunches) {
  ProgramHandle program = load(copyManifest());
  Tensor q(block(8192), ATTNFUSE_BF16, {1, 2, 8, 64});
  auto work = [&](void *stream) -> Status {
    attnfuse_status code = launch(program, {q}, {q}, nullptr, 0, stream);
    return {code, code ? error() : ""};
  };
  std::unique_ptr<Graph> graph;
  Status status = device->capture(work, graph, 3);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_TRUE(fake().launches.empty());
  ASSERT_TRUE(device->replay(*graph).ok());
  EXPECT_EQ(fake().launches.size(), 3u);

  std::vector<double> seconds;
  int memsets = fake().numMemsets;
  ASSERT_TRUE(device->timeReplays(*graph, 5, /*flush=*/true, seconds).ok());
  EXPECT_EQ(seconds.size(), 5u);
  EXPECT_DOUBLE_EQ(seconds[4], 0.0005);
  EXPECT_EQ(fake().launches.size(), 18u);
  EXPECT_EQ(fake().numMemsets, memsets + 5);
}

TEST_F(DeviceTest, FailedCaptures) {
  std::unique_ptr<Graph> graph;
  Status status =
      device->capture([](void *) { return invalid("refused"); }, graph);
  EXPECT_EQ(status.message, "refused");
  EXPECT_EQ(graph, nullptr);
  fake().failures["cuGraphInstantiate"] = 2;
  status = device->capture([](void *) { return Status(); }, graph);
  EXPECT_EQ(status.code, ATTNFUSE_OUT_OF_MEMORY);
  EXPECT_EQ(graph, nullptr);
  // The stream works on.
  EXPECT_TRUE(device->capture([](void *) { return Status(); }, graph).ok());
}

} // namespace
