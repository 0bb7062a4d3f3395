//===- MemoryPool.cpp - device memory that is used again -- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "MemoryPool.h"

using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

static constexpr size_t kSmall = size_t(1) << 20;
static constexpr size_t kGrain = 512;
static constexpr size_t kLargeGrain = size_t(1) << 21;

static size_t rounded(size_t bytes) {
  size_t grain = bytes <= kSmall ? kGrain : kLargeGrain;
  return bytes > SIZE_MAX - grain ? bytes : (bytes + grain - 1) / grain * grain;
}

Status MemoryPool::allocate(size_t bytes, CUdeviceptr &address) {
  size_t size = rounded(bytes ? bytes : 1);
  // A block that is up to a quarter larger will do.
  auto it = unused.lower_bound(size);
  if (it != unused.end() && it->first - size <= size / 4) {
    address = it->second;
    used.emplace(address, it->first);
    unused.erase(it);
    return {};
  }
  Status status = driver.allocate(size, "a tensor", address);
  if (status.code == ATTNFUSE_OUT_OF_MEMORY && !unused.empty()) {
    trim();
    status = driver.allocate(size, "a tensor", address);
  }
  if (status.ok()) {
    used.emplace(address, size);
  }
  return status;
}

bool MemoryPool::free(CUdeviceptr address) {
  auto it = used.find(address);
  if (it == used.end()) {
    return false;
  }
  unused.emplace(it->second, address);
  used.erase(it);
  return true;
}

void MemoryPool::trim() {
  for (auto [size, address] : unused) {
    driver.cuMemFree(address);
  }
  unused.clear();
}

void MemoryPool::clear() {
  trim();
  for (auto [address, size] : used) {
    driver.cuMemFree(address);
  }
  used.clear();
}
