//===- Driver.cpp - opening CUDA's driver ----------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include "PtxVersion.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

static Status missingFunction(const std::string &path, const char *symbol) {
  return failure(ATTNFUSE_DRIVER_TOO_OLD, path, " has no ", symbol,
                 ": the runtime needs the driver of CUDA 11.0 (450) or newer; "
                 "update the NVIDIA driver, or use --device=cpu");
}

std::unique_ptr<Driver> Driver::open(const std::string &path, Status &status) {
  status = Status();
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    status = failure(ATTNFUSE_NO_DRIVER, "cannot open CUDA's driver, ", path,
                     " (", reason ? reason : "no reason given",
                     "): install the NVIDIA driver, or use --device=cpu");
    return nullptr;
  }
  // The library is never closed: the driver does not survive it.
  auto driver = std::make_unique<Driver>();
#define ATTNFUSE_RESOLVE(member, symbol, parameters)                           \
  driver->member =                                                             \
      reinterpret_cast<decltype(driver->member)>(dlsym(library, symbol));
  ATTNFUSE_REQUIRED_DRIVER_FUNCTIONS(ATTNFUSE_RESOLVE)
  ATTNFUSE_OPTIONAL_DRIVER_FUNCTIONS(ATTNFUSE_RESOLVE)
#undef ATTNFUSE_RESOLVE
#define ATTNFUSE_REQUIRE(member, symbol, parameters)                           \
  if (!driver->member) {                                                       \
    status = missingFunction(path, symbol);                                    \
    return nullptr;                                                            \
  }
  ATTNFUSE_REQUIRED_DRIVER_FUNCTIONS(ATTNFUSE_REQUIRE)
#undef ATTNFUSE_REQUIRE

  // The version can be asked before, and whether or not, cuInit succeeds.
  driver->cuDriverGetVersion(&driver->driverVersion);
  status = driver->check(driver->cuInit(0), "cuInit");
  if (!status.ok()) {
    if (status.code == ATTNFUSE_DRIVER_ERROR) {
      status.code = ATTNFUSE_NO_DRIVER;
    }
    return nullptr;
  }
  return driver;
}

const Driver *Driver::get(Status &status) {
  static std::atomic<const Driver *> opened = nullptr;
  static std::mutex mutex;
  status = Status();
  if (const Driver *driver = opened.load(std::memory_order_acquire)) {
    return driver;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (!opened) {
    const char *path = std::getenv("ATTNFUSE_LIBCUDA");
    opened =
        Driver::open(path && *path ? path : "libcuda.so.1", status).release();
  }
  return opened;
}

Status Driver::allocate(size_t bytes, std::string_view purpose,
                        CUdeviceptr &address) const {
  CUresult result = cuMemAlloc(&address, bytes);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) {
    return check(result, "cuMemAlloc", purpose);
  }
  size_t free = 0;
  size_t total = 0;
  std::string room;
  if (cuMemGetInfo(&free, &total) == CUDA_SUCCESS) {
    room = concat(", ", free, " of ", total, " are free");
  }
  return fail(result, "cuMemAlloc",
              concat(purpose, ", ", bytes, " bytes", room));
}

ContextScope::ContextScope(const Driver &driver, CUcontext context)
    : driver(driver) {
  CUcontext current = nullptr;
  if (driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) {
    return;
  }
  result = driver.cuCtxPushCurrent(context);
  pushed = result == CUDA_SUCCESS;
}

ContextScope::~ContextScope() {
  if (pushed) {
    CUcontext popped;
    driver.cuCtxPopCurrent(&popped);
  }
}

Status ContextScope::status() const {
  return driver.check(result, "cuCtxPushCurrent");
}
