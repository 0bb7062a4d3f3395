//===- OnDeviceTest.cpp - the runtime on a GPU, where there is one --------===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// With the real driver; skipped on machines without one.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"

#include "Runtime/Device.h"
#include "attnfuse-c/Runtime.h"

#include "gtest/gtest.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <vector>

using namespace attnfuse::runtime;

#define ASSERT_GOOD(status)                                                    \
  do {                                                                         \
    Status outcome = (status);                                                 \
    ASSERT_TRUE(outcome.ok()) << outcome.message;                              \
  } while (false)
#define ASSERT_C_GOOD(call)                                                    \
  ASSERT_EQ(call, ATTNFUSE_OK) << attnfuse_last_error()

namespace {

class OnDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("ATTNFUSE_CACHE_DIR", "", 1);
    int32_t count = 0;
    if (attnfuse_device_count(&count) != ATTNFUSE_OK || count == 0) {
      GTEST_SKIP() << "no GPU: " << attnfuse_last_error();
    }
    Status status;
    device = Device::open(0, status);
    ASSERT_TRUE(device) << status.message;
  }

  void load(const char *code, const char *manifest,
            attnfuse_program *&program) {
    ASSERT_C_GOOD(attnfuse_program_load(code, std::strlen(code), manifest,
                                        std::strlen(manifest), 0, &program));
  }

  template <typename T> T *upload(const std::vector<T> &values) {
    void *memory = nullptr;
    Status status = device->allocate(values.size() * sizeof(T), memory);
    if (status.ok()) {
      status = device->copyIn(memory, values.data(), values.size() * sizeof(T));
    }
    EXPECT_TRUE(status.ok()) << status.message;
    return static_cast<T *>(memory);
  }
  template <typename T> std::vector<T> download(const T *memory, size_t count) {
    std::vector<T> values(count);
    Status status =
        device->copyOut(values.data(), memory, values.size() * sizeof(T));
    EXPECT_TRUE(status.ok()) << status.message;
    return values;
  }

  std::unique_ptr<Device> device;
};

class ScaleTest : public OnDeviceTest {
protected:
  static constexpr int64_t kCount = 1000;

  void SetUp() override {
    OnDeviceTest::SetUp();
    if (!device) {
      return;
    }
    load(kScalePtx, kScaleManifest, program);
    std::vector<float> values(2 * kCount);
    std::iota(values.begin(), values.end(), 0.0f);
    inputs[0] = {upload(values), ATTNFUSE_F32, 1, &count, &two};
    inputs[1] = {&factor, ATTNFUSE_F32, 0, nullptr, nullptr};
    output = {upload(std::vector<float>(kCount, -1)), ATTNFUSE_F32, 1, &count,
              &one};
    workspace = upload(std::vector<char>(256, 77));
  }
  void TearDown() override { attnfuse_program_destroy(program); }

  attnfuse_status run(void *stream) {
    return attnfuse_program_launch(program, inputs, 2, &output, 1, workspace,
                                   256, stream);
  }
  void check() {
    std::vector<float> found =
        download(static_cast<float *>(output.data), kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(found[i], 0.5f * static_cast<float>(2 * i)) << i;
    }
  }

  attnfuse_program *program = nullptr;
  int64_t count = kCount, one = 1, two = 2;
  float factor = 0.5f;
  attnfuse_tensor inputs[2] = {};
  attnfuse_tensor output = {};
  char *workspace = nullptr;
};

TEST_F(ScaleTest, StridesScalarsAndCounters) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_GOOD(device->fill(output.data, 0xff, kCount * sizeof(float)));
    ASSERT_C_GOOD(run(device->stream()));
    check();
  }
  attnfuse_kernel_info info;
  ASSERT_C_GOOD(attnfuse_program_kernel(program, 0, &info));
  EXPECT_GT(info.registers, 0);
  EXPECT_GT(info.blocks_per_unit, 0);
  std::printf("%s: %d registers, log: %s\n", info.name, info.registers,
              attnfuse_program_log(program));
}

TEST_F(ScaleTest, DefaultStream) {
  ASSERT_C_GOOD(run(nullptr));
  // The device's stream does not wait for it.
  Status status;
  const Driver *driver = Driver::get(status);
  ASSERT_GOOD(driver->check(driver->cuStreamSynchronize(nullptr), "waiting"));
  check();
}

TEST_F(ScaleTest, Graphs) {
  std::unique_ptr<Graph> graph;
  // The first launch of addresses asks the driver, during the capture too.
  ASSERT_GOOD(device->capture(
      [&](void *stream) -> Status {
        attnfuse_status code = run(stream);
        return {code, code ? attnfuse_last_error() : ""};
      },
      graph, 10));
  for (int i = 0; i < 2; ++i) {
    ASSERT_GOOD(device->fill(output.data, 0xff, kCount * sizeof(float)));
    ASSERT_GOOD(device->replay(*graph));
    check();
  }
  std::vector<double> seconds;
  ASSERT_GOOD(device->timeReplays(*graph, 20, /*flush=*/true, seconds));
  for (double one : seconds) {
    EXPECT_GT(one, 0);
    EXPECT_LT(one, 0.1);
  }
  std::printf("10 launches in a graph: %.2f us\n", 1e6 * seconds[10]);
}

TEST_F(ScaleTest, HostMemoryIsRefused) {
  std::vector<float> host(2 * kCount);
  inputs[0].data = host.data();
  EXPECT_EQ(run(device->stream()), ATTNFUSE_INVALID_ARGUMENT);
  std::printf("%s\n", attnfuse_last_error());
}

TEST_F(ScaleTest, EmptyTensors) {
  count = 0;
  inputs[0].data = nullptr;
  output.data = nullptr;
  ASSERT_C_GOOD(run(device->stream()));
}

TEST_F(ScaleTest, TimeOfALaunch) {
  constexpr int kLaunches = 500;
  for (int i = 0; i < 3; ++i) {
    ASSERT_C_GOOD(run(device->stream()));
    ASSERT_GOOD(device->synchronize());
    auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < kLaunches; ++j) {
      ASSERT_C_GOOD(run(device->stream()));
    }
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    std::printf("a launch, with its memset: %.2f us\n",
                1e6 * seconds / kLaunches);
    ASSERT_GOOD(device->synchronize());
  }
}

TEST_F(OnDeviceTest, TheCubinIsKeptOnDisk) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "attnfuse-XXXXXX").string();
  std::string folder = mkdtemp(pattern.data());
  setenv("ATTNFUSE_CACHE_DIR", folder.c_str(), 1);
  attnfuse_program *program = nullptr;
  for (int i = 0; i < 2; ++i) {
    auto start = std::chrono::steady_clock::now();
    load(kScalePtx, kScaleManifest, program);
    std::printf("loading: %.2f ms\n",
                std::chrono::duration<double, std::milli>(
                    std::chrono::steady_clock::now() - start)
                    .count());
    attnfuse_program_destroy(program);
    int entries = 0;
    for (auto &entry : std::filesystem::directory_iterator(folder)) {
      entries += entry.path().extension() == ".blob";
    }
    EXPECT_EQ(entries, 1);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

TEST_F(OnDeviceTest, PtxThatDoesNotCompile) {
  std::string code = kScalePtx;
  code.replace(code.find("mul.f32"), 7, "mul.f77");
  attnfuse_program *program = nullptr;
  EXPECT_EQ(attnfuse_program_load(code.data(), code.size(), kScaleManifest,
                                  std::strlen(kScaleManifest), 0, &program),
            ATTNFUSE_COMPILE_ERROR);
  std::printf("%s\n", attnfuse_last_error());
}

TEST_F(OnDeviceTest, ManifestOfOtherParameters) {
  std::string manifest = kScaleManifest;
  manifest.replace(manifest.find("\"name\": \"factor\", \"dtype\": \"f32\""),
                   32, "\"name\": \"factor\", \"dtype\": \"i64\"");
  attnfuse_program *program = nullptr;
  attnfuse_status status =
      attnfuse_program_load(kScalePtx, std::strlen(kScalePtx), manifest.data(),
                            manifest.size(), 0, &program);
  // Drivers before 12.4 cannot tell.
  if (device->info().driver_version >= 12040) {
    EXPECT_EQ(status, ATTNFUSE_INVALID_ARGUMENT);
    std::printf("%s\n", attnfuse_last_error());
  }
  attnfuse_program_destroy(program);
}

TEST_F(OnDeviceTest, TensorMaps) {
  if (device->info().major != 9) {
    GTEST_SKIP() << "not a Hopper GPU";
  }
  attnfuse_program *program = nullptr;
  load(kTensorMapPtx, kTensorMapManifest, program);
  constexpr int64_t kRows = 40, kOutRows = 64, kStride = 72;
  std::vector<uint16_t> values(kRows * kStride);
  std::iota(values.begin(), values.end(), 1);
  int64_t shape[4] = {1, 1, kRows, 64}, strides[4] = {5, 7, kStride, 1};
  int64_t outShape[4] = {1, 1, kOutRows, 64}, outStrides[4] = {0, 0, 64, 1};
  int64_t rows = kOutRows, one = 1;
  uint16_t *memory = upload(std::vector<uint16_t>(kOutRows * 64, 0xffff));
  attnfuse_tensor inputs[2] = {
      {upload(values), ATTNFUSE_BF16, 4, shape, strides},
      {upload(std::vector<int8_t>(kOutRows)), ATTNFUSE_I8, 1, &rows, &one}};
  attnfuse_tensor output = {memory, ATTNFUSE_BF16, 4, outShape, outStrides};
  auto run = [&] {
    return attnfuse_program_launch(program, inputs, 2, &output, 1, nullptr, 0,
                                   device->stream());
  };
  ASSERT_C_GOOD(run());
  std::vector<uint16_t> found = download(memory, kOutRows * 64);
  for (int64_t i = 0; i < kOutRows * 64; ++i) {
    int64_t row = i / 64;
    // Beyond the tensor there are zeros.
    ASSERT_EQ(found[i], row < kRows ? values[row * kStride + i % 64] : 0) << i;
  }
  // So there are where there is no tensor.
  shape[2] = 0;
  inputs[0].data = nullptr;
  ASSERT_C_GOOD(run());
  for (uint16_t value : download(memory, kOutRows * 64)) {
    ASSERT_EQ(value, 0);
  }
  attnfuse_program_destroy(program);
}

} // namespace
