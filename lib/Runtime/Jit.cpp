//===- Jit.cpp - code into the driver ------------------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX is compiled through cuLink*, which gives the cubin, so that it can be
// kept on disk; the driver's own cache is small and off in many containers.
//
//===----------------------------------------------------------------------===//

#include "Jit.h"

#include "PtxVersion.h"

#include <cstring>
#include <vector>

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

/// Goes up when what is kept on disk, or how it is made, changes.
static constexpr const char *kCacheVersion = "cubin 1";
static constexpr size_t kLogBytes = 1 << 14;

bool runtime::isBinary(std::string_view code) {
  static constexpr std::string_view kElf("\x7f"
                                         "ELF",
                                         4);
  static constexpr std::string_view kFatBinary("\x50\xed\x55\xba", 4);
  std::string_view start = code.substr(0, 4);
  return start == kElf || start == kFatBinary;
}

Status runtime::checkCode(const Manifest &manifest, std::string_view code,
                          int ordinal, const attnfuse_device_info &device) {
  int number = 10 * device.major + device.minor;
  bool binary = isBinary(code);
  bool runs = number >= manifest.chipNumber;
  if (manifest.chipSpecific) {
    runs = number == manifest.chipNumber;
  } else if (binary) {
    // A cubin runs within its major version alone.
    runs = runs && device.major == manifest.chipNumber / 10;
  }
  if (!runs) {
    return failure(ATTNFUSE_WRONG_CHIP, "the program was compiled for ",
                   manifest.chip, binary ? " (a cubin)" : "", ", GPU ", ordinal,
                   " (", device.name, ") is sm_", number,
                   ": compile it for that chip");
  }
  if (!binary && manifest.ptx > device.ptx_version) {
    return failure(
        ATTNFUSE_DRIVER_TOO_OLD, "the code needs PTX ",
        ptxVersionText(manifest.ptx), " (driver ",
        driverVersionText(driverVersionForPtx(manifest.ptx)),
        " or newer), the driver ", driverVersionText(device.driver_version),
        " loads up to ", ptxVersionText(device.ptx_version),
        ": update the NVIDIA driver, or compile for an older PTX version");
  }
  return {};
}

namespace {
/// Options of a compilation, and its logs.
struct JitOptions {
  std::vector<char> info = std::vector<char>(kLogBytes);
  std::vector<char> errors = std::vector<char>(kLogBytes);
  std::vector<CUjit_option> keys;
  std::vector<void *> values;

  JitOptions() {
    add(CU_JIT_INFO_LOG_BUFFER, info.data());
    // One byte less keeps the texts terminated, whatever the driver does.
    addNumber(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, kLogBytes - 1);
    add(CU_JIT_ERROR_LOG_BUFFER, errors.data());
    addNumber(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, kLogBytes - 1);
    addNumber(CU_JIT_LOG_VERBOSE, 1);
  }
  void add(CUjit_option key, void *value) {
    keys.push_back(key);
    values.push_back(value);
  }
  void addNumber(CUjit_option key, uintptr_t value) {
    add(key, reinterpret_cast<void *>(value));
  }
  unsigned size() const { return static_cast<unsigned>(keys.size()); }
  std::string log() const {
    std::string text = errors.data();
    if (!text.empty() && text.back() != '\n') {
      text += '\n';
    }
    return text + info.data();
  }
};
} // namespace

/// Compiles PTX for the current context's chip.
static Status compile(const Driver &driver, const Manifest &manifest,
                      const std::string &ptx, std::string &cubin,
                      std::string &log) {
  JitOptions options;
  if (manifest.chipSpecific) {
    options.addNumber(CU_JIT_TARGET,
                      CU_COMPUTE_ACCELERATED_TARGET_BASE + manifest.chipNumber);
  }
  CUlinkState state = nullptr;
  const char *call = "cuLinkCreate";
  CUresult result = driver.cuLinkCreate(options.size(), options.keys.data(),
                                        options.values.data(), &state);
  if (result != CUDA_SUCCESS) {
    return driver.fail(result, call);
  }
  call = "cuLinkAddData";
  result = driver.cuLinkAddData(state, CU_JIT_INPUT_PTX,
                                const_cast<char *>(ptx.c_str()), ptx.size() + 1,
                                manifest.entry.c_str(), 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS) {
    call = "cuLinkComplete";
    void *data = nullptr;
    size_t size = 0;
    result = driver.cuLinkComplete(state, &data, &size);
    if (result == CUDA_SUCCESS) {
      cubin.assign(static_cast<const char *>(data), size);
    }
  }
  driver.cuLinkDestroy(state);
  log = options.log();
  return driver.check(result, call);
}

/// Hands code to the driver as it is.
static Status loadDirectly(const Driver &driver, const std::string &code,
                           CUmodule &module, std::string &log) {
  JitOptions options;
  CUresult result =
      driver.cuModuleLoadDataEx(&module, code.c_str(), options.size(),
                                options.keys.data(), options.values.data());
  log = options.log();
  return driver.check(result, "cuModuleLoadDataEx");
}

static Status withLog(Status status, const std::string &log) {
  if (!log.empty()) {
    status.message += concat("\nthe driver's compiler said:\n", log);
  }
  return status;
}

// An entry on disk: the log, a zero byte, the cubin.
static std::string pack(const std::string &log, const std::string &cubin) {
  std::string entry = log;
  entry += '\0';
  return entry + cubin;
}

static bool unpack(const std::string &entry, std::string &log,
                   std::string &cubin) {
  size_t end = entry.find('\0');
  if (end == std::string::npos) {
    return false;
  }
  log = entry.substr(0, end);
  cubin = entry.substr(end + 1);
  return isBinary(cubin);
}

Status runtime::loadModule(const Driver &driver, const Manifest &manifest,
                           std::string_view code,
                           const attnfuse_device_info &device,
                           const DiskCache &cache, LoadedModule &loaded) {
  std::string unused;
  if (isBinary(code)) {
    return loadDirectly(driver, std::string(code), loaded.module, unused);
  }
  while (!code.empty() && code.back() == '\0') {
    code.remove_suffix(1);
  }
  std::string ptx(code);
  if (manifest.chipSpecific) {
    // The linker compiles for separate compilation, in which setmaxnreg is
    // ignored: kernels with roles would spill and serialise their products. The
    // driver keeps what it compiles in a cache of its own.
    std::string log;
    Status direct = loadDirectly(driver, ptx, loaded.module, log);
    if (direct.ok()) {
      loaded.log = std::move(log);
      return {};
    }
    return withLog(std::move(direct), log);
  }
  std::string key =
      DiskCache::key({kCacheVersion, ptx, manifest.chip,
                      concat("sm_", 10 * device.major + device.minor),
                      std::to_string(driver.version())});
  std::string cubin;
  if (std::optional<std::string> entry = cache.get(key)) {
    if (unpack(*entry, loaded.log, cubin) &&
        loadDirectly(driver, cubin, loaded.module, unused).ok()) {
      return {};
    }
    cache.remove(key);
  }
  std::string log;
  Status status = compile(driver, manifest, ptx, cubin, log);
  if (status.ok()) {
    status = loadDirectly(driver, cubin, loaded.module, unused);
    if (status.ok()) {
      cache.put(key, pack(log, cubin));
      loaded.log = std::move(log);
      return {};
    }
  }
  // A driver may refuse to link what it can load (a target that it does not
  // know by number).
  std::string directLog;
  Status direct = loadDirectly(driver, ptx, loaded.module, directLog);
  if (direct.ok()) {
    loaded.log = std::move(directLog);
    return {};
  }
  return withLog(std::move(direct), directLog.empty() ? log : directLog);
}
