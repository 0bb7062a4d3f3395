//===- MemoryPool.h - device memory that is used again ---- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_MEMORYPOOL_H
#define ATTNFUSE_LIB_RUNTIME_MEMORYPOOL_H

#include "Driver.h"

#include <map>
#include <unordered_map>

namespace attnfuse::runtime {

/// Keeps freed blocks of the current context's memory for later requests.
/// Knows nothing of streams: a block may be handed out again while what was
/// launched on it before still runs, which is right within one stream.
class MemoryPool {
public:
  explicit MemoryPool(const Driver &driver) : driver(driver) {}

  Status allocate(size_t bytes, cuda::CUdeviceptr &address);
  /// False if the address is none of the pool's.
  bool free(cuda::CUdeviceptr address);
  /// Gives free blocks back to the driver.
  void trim();
  /// Gives all blocks back.
  void clear();

private:
  const Driver &driver;
  /// By size.
  std::multimap<size_t, cuda::CUdeviceptr> unused;
  std::unordered_map<cuda::CUdeviceptr, size_t> used;
};

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_MEMORYPOOL_H
