//===- DeviceInfo.cpp - what GPUs there are --------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "DeviceInfo.h"

#include "PtxVersion.h"

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

Status runtime::describeDevice(const Driver &driver, int ordinal,
                               CUdevice &device, attnfuse_device_info &info) {
  int count = 0;
  Status status =
      driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (!status.ok()) {
    return status;
  }
  if (ordinal < 0 || ordinal >= count) {
    return failure(ATTNFUSE_NO_DEVICE, "there is no GPU ", ordinal, "; ",
                   count == 1 ? std::string("there is 1")
                              : concat("there are ", count),
                   count ? ", numbered from 0" : "; use --device=cpu");
  }
  status = driver.check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  if (!status.ok()) {
    return status;
  }
  info = attnfuse_device_info();
  driver.cuDeviceGetName(info.name, sizeof(info.name), device);
  size_t memory = 0;
  status = driver.check(driver.cuDeviceTotalMem(&memory, device),
                        "cuDeviceTotalMem");
  info.memory = static_cast<int64_t>(memory);
  auto ask = [&](CUdevice_attribute attribute, bool required) {
    int value = 0;
    CUresult result = driver.cuDeviceGetAttribute(&value, attribute, device);
    if (required && status.ok()) {
      status = driver.check(result, "cuDeviceGetAttribute",
                            concat("attribute ", static_cast<int>(attribute)));
    }
    return result == CUDA_SUCCESS ? value : 0;
  };
  info.major = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, true);
  info.minor = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, true);
  info.units = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, true);
  info.shared_memory =
      ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, true);
  info.clock_khz = ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, false);
  info.memory_clock_khz = ask(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, false);
  info.memory_bus_bits =
      ask(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, false);
  info.l2_bytes = ask(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, false);
  info.driver_version = driver.version();
  info.ptx_version = ptxVersionOfDriver(driver.version());
  return status;
}
