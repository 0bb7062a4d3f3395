//===- DiskCache.h - blobs kept on disk by key ------------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Any number of threads and processes may use one folder. Whatever goes wrong
// (a folder that cannot be written, a full disk, a damaged entry) means that
// nothing is found or kept, never an error.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_DISKCACHE_H
#define ATTNFUSE_LIB_RUNTIME_DISKCACHE_H

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace attnfuse::runtime {

class DiskCache {
public:
  static constexpr uint64_t kDefaultLimit = uint64_t(1) << 30;

  /// With an empty folder nothing is kept. Beyond `limit` bytes the entries
  /// that were used least recently are removed.
  explicit DiskCache(std::string folder = defaultFolder(),
                     uint64_t limit = kDefaultLimit);

  /// $ATTNFUSE_CACHE_DIR, where set (to "": no cache), else
  /// $XDG_CACHE_HOME/attnfuse, else ~/.cache/attnfuse.
  static std::string defaultFolder();

  /// A key that depends on every text and on where one ends and the next
  /// begins. Include whatever the blob depends on: versions, chips, options.
  static std::string key(std::initializer_list<std::string_view> texts);

  /// The blob kept under a key. An entry that is damaged is removed.
  std::optional<std::string> get(const std::string &key) const;
  /// True if it was kept. Readers see the old entry or the new, nothing else.
  bool put(const std::string &key, std::string_view blob) const;
  void remove(const std::string &key) const;

  const std::string &folder() const { return path; }

private:
  std::string fileFor(const std::string &key) const;
  void trim() const;

  std::string path;
  uint64_t limit;
};

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_DISKCACHE_H
