//===- DiskCacheTest.cpp - blobs on disk ------------------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include "Runtime/DiskCache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace attnfuse::runtime;
namespace fs = std::filesystem;

namespace {

std::string fileIn(const TemporaryFolder &folder, const std::string &key) {
  return folder.path() + "/" + key + ".blob";
}

std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void overwrite(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(DiskCacheTest, KeepsBlobs) {
  TemporaryFolder folder;
  DiskCache cache(folder.path() + "/a/b");
  std::string key = DiskCache::key({"one", "two"});
  EXPECT_EQ(cache.get(key), std::nullopt);
  std::string blob("with\0zero", 9);
  EXPECT_TRUE(cache.put(key, blob));
  EXPECT_EQ(cache.get(key), blob);
  EXPECT_TRUE(cache.put(key, ""));
  EXPECT_EQ(cache.get(key), "");
  cache.remove(key);
  EXPECT_EQ(cache.get(key), std::nullopt);
}

TEST(DiskCacheTest, KeysDependOnWhereTextsEnd) {
  EXPECT_EQ(DiskCache::key({"ab", "c"}), DiskCache::key({"ab", "c"}));
  EXPECT_NE(DiskCache::key({"ab", "c"}), DiskCache::key({"a", "bc"}));
  EXPECT_NE(DiskCache::key({"ab"}), DiskCache::key({"ab", ""}));
}

TEST(DiskCacheTest, DamagedEntriesAreDropped) {
  TemporaryFolder folder;
  DiskCache cache(folder.path());
  std::string key = DiskCache::key({"k"});
  ASSERT_TRUE(cache.put(key, "some blob"));
  std::string path = fileIn(folder, key);
  std::string good = contents(path);

  std::string flipped = good;
  flipped.back() ^= 1;
  std::string longer = good + "x";
  std::string header = good;
  header[9] ^= 1;
  for (const std::string &bad :
       {flipped, longer, header, good.substr(0, good.size() - 1),
        good.substr(0, 20), std::string()}) {
    overwrite(path, bad);
    EXPECT_EQ(cache.get(key), std::nullopt);
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE(cache.put(key, "some blob"));
    EXPECT_EQ(cache.get(key), "some blob");
  }
  // An entry under another's name is none.
  std::string other = DiskCache::key({"other"});
  fs::copy_file(path, fileIn(folder, other));
  EXPECT_EQ(cache.get(other), std::nullopt);
}

TEST(DiskCacheTest, FolderThatCannotBeWritten) {
  TemporaryFolder folder;
  // A file where the folder would be stops root too.
  overwrite(folder.path() + "/file", "");
  DiskCache cache(folder.path() + "/file/cache");
  EXPECT_FALSE(cache.put(DiskCache::key({"k"}), "blob"));
  EXPECT_EQ(cache.get(DiskCache::key({"k"})), std::nullopt);
}

TEST(DiskCacheTest, NoFolder) {
  DiskCache cache("");
  EXPECT_FALSE(cache.put(DiskCache::key({"k"}), "blob"));
  EXPECT_EQ(cache.get(DiskCache::key({"k"})), std::nullopt);
}

TEST(DiskCacheTest, RemovesWhatWasUsedLeastRecently) {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), 3000);
  std::string blob(900, 'b');
  std::vector<std::string> keys;
  for (const char *name : {"a", "b", "c", "d"}) {
    keys.push_back(DiskCache::key({name}));
  }
  auto age = [&](const std::string &key, int hours) {
    fs::last_write_time(fileIn(folder, key), fs::file_time_type::clock::now() -
                                                 std::chrono::hours(hours));
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cache.put(keys[i], blob));
    age(keys[i], 10 - i);
  }
  // The oldest is used now.
  EXPECT_EQ(cache.get(keys[0]), blob);
  ASSERT_TRUE(cache.put(keys[3], blob));
  EXPECT_EQ(cache.get(keys[0]), blob);
  EXPECT_EQ(cache.get(keys[1]), std::nullopt);
  EXPECT_EQ(cache.get(keys[2]), blob);
  EXPECT_EQ(cache.get(keys[3]), blob);
  // What is larger than the whole is not kept, and nothing is removed for it.
  EXPECT_FALSE(cache.put(DiskCache::key({"huge"}), std::string(3000, 'h')));
  EXPECT_EQ(cache.get(keys[3]), blob);
}

TEST(DiskCacheTest, RemovesWhatDeadProcessesLeft) {
  TemporaryFolder folder;
  DiskCache cache(folder.path());
  std::string old = folder.path() + "/k.1.0.tmp";
  std::string fresh = folder.path() + "/k.1.1.tmp";
  overwrite(old, "x");
  overwrite(fresh, "x");
  fs::last_write_time(old,
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(cache.put(DiskCache::key({"k"}), "blob"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

/// Every reader sees nothing or one of the blobs, whole.
void hammer(const std::string &folder, int seed, bool &good) {
  DiskCache cache(folder, 1 << 20);
  for (int i = 0; i < 200; ++i) {
    std::string key = DiskCache::key({"shared", std::to_string(i % 3)});
    std::string blob(1000 + 500 * ((seed + i) % 5),
                     static_cast<char>('a' + (seed + i) % 5));
    cache.put(key, blob);
    std::optional<std::string> found = cache.get(key);
    if (found && (found->empty() ||
                  found->find_first_not_of((*found)[0]) != std::string::npos ||
                  found->size() != 1000 + 500 * size_t((*found)[0] - 'a'))) {
      good = false;
    }
  }
}

TEST(DiskCacheTest, ManyThreads) {
  TemporaryFolder folder;
  bool good[4] = {true, true, true, true};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { hammer(folder.path(), i, good[i]); });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  for (bool one : good) {
    EXPECT_TRUE(one);
  }
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".blob") << entry.path();
  }
}

TEST(DiskCacheTest, ManyProcesses) {
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool good = true;
      hammer(folder.path(), i, good);
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(DiskCacheTest, DefaultFolder) {
  auto keep = [](const char *name) {
    const char *value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  std::optional<std::string> home = keep("HOME"), xdg = keep("XDG_CACHE_HOME");

  setenv("HOME", "/home/me", 1);
  setenv("XDG_CACHE_HOME", "/caches", 1);
  setenv("ATTNFUSE_CACHE_DIR", "/mine", 1);
  EXPECT_EQ(DiskCache::defaultFolder(), "/mine");
  setenv("ATTNFUSE_CACHE_DIR", "", 1);
  EXPECT_EQ(DiskCache::defaultFolder(), "");
  unsetenv("ATTNFUSE_CACHE_DIR");
  EXPECT_EQ(DiskCache::defaultFolder(), "/caches/attnfuse");
  setenv("XDG_CACHE_HOME", "", 1);
  EXPECT_EQ(DiskCache::defaultFolder(), "/home/me/.cache/attnfuse");
  unsetenv("HOME");
  EXPECT_EQ(DiskCache::defaultFolder(), "");

  setenv("ATTNFUSE_CACHE_DIR", "", 1);
  if (home) {
    setenv("HOME", home->c_str(), 1);
  }
  xdg ? setenv("XDG_CACHE_HOME", xdg->c_str(), 1) : unsetenv("XDG_CACHE_HOME");
}

} // namespace
