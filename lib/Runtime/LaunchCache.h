//===- LaunchCache.h - what a repeated launch need not redo -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_LAUNCHCACHE_H
#define ATTNFUSE_LIB_RUNTIME_LAUNCHCACHE_H

#include "TensorMap.h"

#include <mutex>
#include <vector>

namespace attnfuse::runtime {

/// Addresses known to be the device's, and tensor maps, of the launches before.
/// An address stays known when its memory is freed, so that of memory that
/// another GPU got later at the same address nothing is said. Its functions may
/// be called from several threads; finding something allocates nothing.
class LaunchCache {
public:
  /// For a program with so many tensor maps.
  explicit LaunchCache(int tensorMaps);

  /// Whether an address is in memory of a device; an error says where it is.
  Status checkAddress(const Driver &driver, int device, uint64_t address);

  /// The map of a request, for the program's tensor map number `index`.
  Status tensorMap(const Driver &driver, int index,
                   const TensorMapRequest &request, cuda::CUtensorMap &map);

private:
  /// Of addresses with one hash, and of each tensor map, so many are kept.
  static constexpr int kWays = 4;
  static constexpr int kHashBits = 7;

  struct Map {
    bool used = false;
    TensorMapRequest request;
    cuda::CUtensorMap map;
  };
  struct Maps {
    Map ways[kWays];
    int next = 0;
  };
  struct Addresses {
    uint64_t ways[kWays] = {};
    int next = 0;
  };

  std::mutex mutex;
  Addresses addresses[1 << kHashBits];
  std::vector<Maps> maps;
};

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_LAUNCHCACHE_H
