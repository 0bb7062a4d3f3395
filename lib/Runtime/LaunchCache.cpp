//===- LaunchCache.cpp - what repeated launches skip ----- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "LaunchCache.h"

#include <algorithm>
#include <cstring>

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

static bool operator==(const TensorMapRequest &a, const TensorMapRequest &b) {
  return a.address == b.address && a.type == b.type && a.swizzle == b.swizzle &&
         std::equal(a.extents, a.extents + 4, b.extents) &&
         std::equal(a.strides, a.strides + 3, b.strides) &&
         std::equal(a.box, a.box + 4, b.box);
}

LaunchCache::LaunchCache(int tensorMaps) : maps(tensorMaps) {}

static std::string hex(uint64_t number) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[number % 16]);
    number /= 16;
  } while (number);
  return "0x" + text;
}

static Status askWhere(const Driver &driver, int device, uint64_t address) {
  int type = 0;
  CUresult result = driver.cuPointerGetAttribute(
      &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  // The driver does not know memory that malloc gave.
  if (result == CUDA_ERROR_INVALID_VALUE) {
    return invalid("at ", hex(address), " is not in memory of a GPU");
  }
  if (result != CUDA_SUCCESS) {
    return driver.fail(result, "cuPointerGetAttribute");
  }
  unsigned managed = 0;
  driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                               address);
  if (managed & 1) {
    return {};
  }
  if (type != CU_MEMORYTYPE_DEVICE) {
    return invalid("at ", hex(address), " is in host memory, not in a GPU's");
  }
  int ordinal = -1;
  result = driver.cuPointerGetAttribute(
      &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  if (result != CUDA_SUCCESS) {
    return driver.fail(result, "cuPointerGetAttribute");
  }
  if (ordinal != device) {
    return invalid("is in memory of GPU ", ordinal,
                   ", the program was loaded for GPU ", device);
  }
  return {};
}

Status LaunchCache::checkAddress(const Driver &driver, int device,
                                 uint64_t address) {
  // Fibonacci hashing.
  Addresses &known =
      addresses[(address * 0x9e3779b97f4a7c15) >> (64 - kHashBits)];
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (uint64_t way : known.ways) {
      if (way == address) {
        return {};
      }
    }
  }
  Status status = askWhere(driver, device, address);
  if (status.ok()) {
    std::lock_guard<std::mutex> lock(mutex);
    known.ways[known.next] = address;
    known.next = (known.next + 1) % kWays;
  }
  return status;
}

Status LaunchCache::tensorMap(const Driver &driver, int index,
                              const TensorMapRequest &request,
                              CUtensorMap &map) {
  Maps &known = maps[index];
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (const Map &way : known.ways) {
      if (way.used && way.request == request) {
        map = way.map;
        return {};
      }
    }
  }
  Status status = encodeTensorMap(driver, request, map);
  if (status.ok()) {
    std::lock_guard<std::mutex> lock(mutex);
    Map &way = known.ways[known.next];
    known.next = (known.next + 1) % kWays;
    way.used = true;
    way.request = request;
    way.map = map;
  }
  return status;
}
