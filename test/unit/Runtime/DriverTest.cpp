//===- DriverTest.cpp - opening the driver; its errors ---- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace attnfuse::runtime;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using DriverTest = RuntimeTest;
using DriverDeathTest = RuntimeTest;

/// Prints a failure's message and ends the process with its code.
[[noreturn]] void exitWith(attnfuse_status status) {
  std::fprintf(stderr, "%s\n", status ? attnfuse_last_error() : "success");
  std::exit(status);
}

[[noreturn]] void exitWithLoad(const std::string &manifest) {
  attnfuse_program *program = nullptr;
  exitWith(attnfuse_program_load("// PTX", 6, manifest.data(), manifest.size(),
                                 0, &program));
}

// The process's driver is opened once, so these need processes of their own.

TEST_F(DriverDeathTest, NoDriver) {
  EXPECT_EXIT(
      {
        setenv("ATTNFUSE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
        int32_t count;
        exitWith(attnfuse_device_count(&count));
      },
      testing::ExitedWithCode(ATTNFUSE_NO_DRIVER),
      "cannot open CUDA's driver, /nowhere/libcuda.so.1 .*: install the NVIDIA "
      "driver, or use --device=cpu");
}

TEST_F(DriverDeathTest, LoadWithoutDriver) {
  EXPECT_EXIT(
      {
        setenv("ATTNFUSE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
        exitWithLoad(copyManifest());
      },
      testing::ExitedWithCode(ATTNFUSE_NO_DRIVER), "--device=cpu");
}

TEST_F(DriverDeathTest, DriverTooOldForThePtx) {
  EXPECT_EXIT(
      {
        fake().version = 11080;
        exitWithLoad(copyManifest());
      },
      testing::ExitedWithCode(ATTNFUSE_DRIVER_TOO_OLD),
      "the code needs PTX 8.0 .driver 12.0 or newer., the driver 11.8 loads up "
      "to 7.8: update the NVIDIA driver");
}

TEST_F(DriverDeathTest, NoDevice) {
  EXPECT_EXIT(
      {
        fake().failures["cuInit"] = 100;
        exitWithLoad(copyManifest());
      },
      testing::ExitedWithCode(ATTNFUSE_NO_DEVICE),
      "cuInit failed with CUDA_ERROR_NO_DEVICE: there is no GPU, or "
      "CUDA_VISIBLE_DEVICES hides it; use --device=cpu");
}

TEST_F(DriverDeathTest, NoDeviceCountsAsNone) {
  EXPECT_EXIT(
      {
        fake().failures["cuInit"] = 100;
        int32_t count = 7;
        attnfuse_status status = attnfuse_device_count(&count);
        std::exit(status == ATTNFUSE_OK && count == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(DriverDeathTest, MismatchedDriver) {
  EXPECT_EXIT(
      {
        fake().failures["cuInit"] = 803;
        int32_t count;
        exitWith(attnfuse_device_count(&count));
      },
      testing::ExitedWithCode(ATTNFUSE_NO_DRIVER),
      "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH.*reboot");
}

TEST_F(DriverTest, LibraryThatIsNoDriver) {
  Status status;
  EXPECT_EQ(Driver::open("libm.so.6", status), nullptr);
  EXPECT_EQ(status.code, ATTNFUSE_DRIVER_TOO_OLD);
  EXPECT_THAT(status.message,
              HasSubstr("libm.so.6 has no cuInit: the runtime needs the driver "
                        "of CUDA 11.0"));
}

TEST_F(DriverTest, Devices) {
  int32_t count = 0;
  EXPECT_EQ(attnfuse_device_count(&count), ATTNFUSE_OK);
  EXPECT_EQ(count, 2);
  attnfuse_device_info info;
  ASSERT_EQ(attnfuse_device_describe(1, &info), ATTNFUSE_OK) << error();
  EXPECT_STREQ(info.name, "Fake H100");
  EXPECT_EQ(info.major, 9);
  EXPECT_EQ(info.units, 132);
  EXPECT_EQ(info.shared_memory, 232448);
  EXPECT_EQ(info.l2_bytes, 50 << 20);
  // What a driver cannot tell is 0.
  EXPECT_EQ(info.clock_khz, 0);
  EXPECT_EQ(info.driver_version, 13000);
  EXPECT_EQ(info.ptx_version, 90);

  EXPECT_EQ(attnfuse_device_describe(2, &info), ATTNFUSE_NO_DEVICE);
  EXPECT_EQ(error(), "there is no GPU 2; there are 2, numbered from 0");
  EXPECT_EQ(attnfuse_device_describe(-1, &info), ATTNFUSE_NO_DEVICE);
}

TEST_F(DriverTest, MessagesAreOfTheThread) {
  attnfuse_device_info info;
  EXPECT_EQ(attnfuse_device_describe(2, &info), ATTNFUSE_NO_DEVICE);
  std::string other = "unset";
  std::thread([&] { other = attnfuse_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_NE(error(), "");
}

TEST_F(DriverTest, FailuresNameCallCodeAndRemedy) {
  fake().failures["cuDevicePrimaryCtxRetain"] = 2;
  load(copyManifest(), ATTNFUSE_OUT_OF_MEMORY);
  EXPECT_EQ(error(), "cuDevicePrimaryCtxRetain failed with "
                     "CUDA_ERROR_OUT_OF_MEMORY (out of memory): free memory of "
                     "the GPU, or use smaller tensors");
  // A code that neither we nor the driver know.
  fake().failures["cuDeviceGetCount"] = 12345;
  load(copyManifest(), ATTNFUSE_DRIVER_ERROR);
  EXPECT_EQ(error(), "cuDeviceGetCount failed with error 12345");
}

TEST_F(DriverTest, OutOfMemoryTellsSizes) {
  Status status;
  auto device = Device::open(0, status);
  ASSERT_TRUE(status.ok()) << status.message;
  fake().failures["cuMemAlloc"] = 2;
  void *address = &address;
  status = device->allocate(5000, address);
  EXPECT_EQ(status.code, ATTNFUSE_OUT_OF_MEMORY);
  EXPECT_EQ(address, nullptr);
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("5120 bytes, 1000 of 80000 are free"),
                    HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
}

} // namespace
