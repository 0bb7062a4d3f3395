//===- DiskCache.cpp - blobs kept on disk by key ---------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An entry is the file <key>.blob: a magic number, the blob's length, the
// SHA-256 of key and blob, the blob. It is written under another name and
// renamed, which is atomic. Its time of modification is that of its last use.
//
//===----------------------------------------------------------------------===//

#include "DiskCache.h"

#include "Sha256.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attnfuse::runtime;
namespace fs = std::filesystem;

static constexpr char kMagic[8] = {'A', 'T', 'N', 'F', 'B', 'L', 'B', '1'};
static constexpr std::string_view kEntrySuffix = ".blob";
static constexpr std::string_view kTemporarySuffix = ".tmp";
/// A temporary file this old was left by a process that died.
static constexpr time_t kStaleSeconds = 3600;

namespace {
struct Header {
  char magic[8];
  uint64_t length;
  Sha256::Digest digest;
};
static_assert(sizeof(Header) == 48);

/// A file descriptor that closes itself.
struct File {
  int descriptor;
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
};
} // namespace

static bool readAll(int file, void *data, size_t size) {
  auto *next = static_cast<char *>(data);
  while (size) {
    ssize_t count = read(file, next, size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    next += count;
    size -= count;
  }
  return true;
}

static bool writeAll(int file, const void *data, size_t size) {
  auto *next = static_cast<const char *>(data);
  while (size) {
    ssize_t count = write(file, next, size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    next += count;
    size -= count;
  }
  return true;
}

static Sha256::Digest digestOf(const std::string &key, std::string_view blob) {
  Sha256 hash;
  hash.update(key);
  hash.update(blob);
  return hash.finish();
}

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

DiskCache::DiskCache(std::string folder, uint64_t limit)
    : path(std::move(folder)), limit(limit) {}

std::string DiskCache::defaultFolder() {
  if (const char *folder = std::getenv("ATTNFUSE_CACHE_DIR")) {
    return folder;
  }
  // The XDG specification has relative paths ignored.
  const char *caches = std::getenv("XDG_CACHE_HOME");
  if (caches && *caches == '/') {
    return std::string(caches) + "/attnfuse";
  }
  const char *home = std::getenv("HOME");
  if (home && *home == '/') {
    return std::string(home) + "/.cache/attnfuse";
  }
  return "";
}

std::string DiskCache::key(std::initializer_list<std::string_view> texts) {
  Sha256 hash;
  for (std::string_view text : texts) {
    uint64_t length = text.size();
    hash.update({reinterpret_cast<const char *>(&length), sizeof(length)});
    hash.update(text);
  }
  return Sha256::hex(hash.finish());
}

std::string DiskCache::fileFor(const std::string &key) const {
  return path + "/" + key + std::string(kEntrySuffix);
}

std::optional<std::string> DiskCache::get(const std::string &key) const {
  if (path.empty()) {
    return std::nullopt;
  }
  File file(open(fileFor(key).c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor < 0) {
    return std::nullopt;
  }
  Header header;
  struct stat about;
  std::string blob;
  bool whole = fstat(file.descriptor, &about) == 0 &&
               readAll(file.descriptor, &header, sizeof(header)) &&
               std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
               header.length == about.st_size - sizeof(header);
  if (whole) {
    blob.resize(header.length);
    whole = readAll(file.descriptor, blob.data(), blob.size()) &&
            digestOf(key, blob) == header.digest;
  }
  if (!whole) {
    remove(key);
    return std::nullopt;
  }
  futimens(file.descriptor, nullptr);
  return blob;
}

bool DiskCache::put(const std::string &key, std::string_view blob) const {
  if (path.empty() || blob.size() + sizeof(Header) > limit) {
    return false;
  }
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  // Only the user may write what is loaded into the user's processes.
  mkdir(path.c_str(), 0700);

  // Processes of other machines and containers may have the same number.
  static std::atomic<unsigned> count = 0;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  std::string temporary = path + "/" + key;
  for (uint64_t part :
       {uint64_t(getpid()), uint64_t(now.tv_nsec), uint64_t(count++)}) {
    temporary += "." + std::to_string(part);
  }
  temporary += kTemporarySuffix;
  {
    File file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.descriptor < 0) {
      return false;
    }
    Header header;
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.length = blob.size();
    header.digest = digestOf(key, blob);
    if (!writeAll(file.descriptor, &header, sizeof(header)) ||
        !writeAll(file.descriptor, blob.data(), blob.size())) {
      unlink(temporary.c_str());
      return false;
    }
  }
  if (rename(temporary.c_str(), fileFor(key).c_str()) != 0) {
    unlink(temporary.c_str());
    return false;
  }
  trim();
  return true;
}

void DiskCache::remove(const std::string &key) const {
  if (!path.empty()) {
    unlink(fileFor(key).c_str());
  }
}

void DiskCache::trim() const {
  struct Entry {
    timespec used;
    uint64_t size;
    std::string file;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::string file = it->path().string();
    struct stat about;
    if (stat(file.c_str(), &about) != 0) {
      continue;
    }
    if (endsWith(file, kTemporarySuffix) &&
        about.st_mtim.tv_sec + kStaleSeconds < time(nullptr)) {
      unlink(file.c_str());
    } else if (endsWith(file, kEntrySuffix)) {
      uint64_t size = about.st_size;
      entries.push_back({about.st_mtim, size, std::move(file)});
      total += size;
    }
  }
  if (total <= limit) {
    return;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) <
           std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry &entry : entries) {
    if (total <= limit) {
      break;
    }
    unlink(entry.file.c_str());
    total -= entry.size;
  }
}
