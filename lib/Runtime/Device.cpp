//===- Device.cpp - a GPU, for tools ---------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "DeviceInfo.h"

#include <algorithm>
#include <cassert>

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

static CUdeviceptr toDevice(const void *address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

std::unique_ptr<Device> Device::open(int ordinal, Status &status) {
  const Driver *driver = Driver::get(status);
  if (!driver) {
    return nullptr;
  }
  std::unique_ptr<Device> device(new Device(*driver));
  status = device->setUp(ordinal);
  return status.ok() ? std::move(device) : nullptr;
}

Status Device::setUp(int ordinal) {
  number = ordinal;
  Status status = describeDevice(driver, ordinal, device, description);
  if (!status.ok()) {
    return status;
  }
  CUresult result = driver.cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) {
    context = nullptr;
    return driver.fail(result, "cuDevicePrimaryCtxRetain");
  }
  ContextScope scope(driver, context);
  status = scope.status();
  return status.ok() ? driver.check(driver.cuStreamCreate(
                                        &queue, CU_STREAM_NON_BLOCKING),
                                    "cuStreamCreate")
                     : status;
}

Device::~Device() {
  if (!context) {
    return;
  }
  {
    ContextScope scope(driver, context);
    if (queue) {
      driver.cuStreamSynchronize(queue);
      driver.cuStreamDestroy(queue);
    }
    if (flushed) {
      driver.cuMemFree(flushed);
    }
    pool.clear();
  }
  driver.cuDevicePrimaryCtxRelease(device);
}

Status Device::allocate(size_t bytes, void *&address) {
  ContextScope scope(driver, context);
  CUdeviceptr block = 0;
  Status status = pool.allocate(bytes, block);
  address = status.ok() ? reinterpret_cast<void *>(block) : nullptr;
  return status;
}

void Device::free(void *address) {
  [[maybe_unused]] bool known = !address || pool.free(toDevice(address));
  assert(known && "freed twice, or not allocated here");
}

void Device::trim() {
  ContextScope scope(driver, context);
  pool.trim();
}

Status Device::copyIn(void *to, const void *from, size_t bytes) {
  if (bytes == 0) {
    return {};
  }
  ContextScope scope(driver, context);
  Status status =
      driver.check(driver.cuMemcpyHtoDAsync(toDevice(to), from, bytes, queue),
                   "cuMemcpyHtoDAsync");
  return status.ok() ? synchronize() : status;
}

Status Device::copyOut(void *to, const void *from, size_t bytes) {
  if (bytes == 0) {
    return {};
  }
  ContextScope scope(driver, context);
  Status status =
      driver.check(driver.cuMemcpyDtoHAsync(to, toDevice(from), bytes, queue),
                   "cuMemcpyDtoHAsync");
  return status.ok() ? synchronize() : status;
}

Status Device::fill(void *to, uint8_t byte, size_t bytes) {
  if (bytes == 0) {
    return {};
  }
  ContextScope scope(driver, context);
  return driver.check(driver.cuMemsetD8Async(toDevice(to), byte, bytes, queue),
                      "cuMemsetD8Async");
}

Status Device::flushL2() {
  ContextScope scope(driver, context);
  if (!flushed) {
    // Twice the cache: what it holds need not be what was used last.
    flushedBytes = 2 * std::max<size_t>(description.l2_bytes, 32 << 20);
    Status status =
        driver.allocate(flushedBytes, "flushing the L2 cache", flushed);
    if (!status.ok()) {
      flushed = 0;
      return status;
    }
  }
  return driver.check(
      driver.cuMemsetD32Async(flushed, 0, flushedBytes / 4, queue),
      "cuMemsetD32Async");
}

Status Device::synchronize() {
  ContextScope scope(driver, context);
  return driver.check(driver.cuStreamSynchronize(queue), "cuStreamSynchronize");
}

namespace {
/// A pair of events around work in a stream.
class Stopwatch {
public:
  explicit Stopwatch(const Driver &driver) : driver(driver) {}
  ~Stopwatch() {
    for (CUevent event : events) {
      if (event) {
        driver.cuEventDestroy(event);
      }
    }
  }
  Stopwatch(Stopwatch &&other) : driver(other.driver) {
    std::swap(events, other.events);
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

  Status setUp() {
    for (CUevent &event : events) {
      CUresult result = driver.cuEventCreate(&event, 0);
      if (result != CUDA_SUCCESS) {
        event = nullptr;
        return driver.fail(result, "cuEventCreate");
      }
    }
    return {};
  }
  Status start(CUstream stream) { return record(0, stream); }
  Status stop(CUstream stream) { return record(1, stream); }
  /// Waits for the work.
  Status read(double &seconds) {
    float milliseconds = 0;
    Status status = driver.check(driver.cuEventSynchronize(events[1]),
                                 "cuEventSynchronize");
    if (status.ok()) {
      status = driver.check(
          driver.cuEventElapsedTime(&milliseconds, events[0], events[1]),
          "cuEventElapsedTime");
    }
    seconds = double(milliseconds) / 1000;
    return status;
  }

private:
  Status record(int which, CUstream stream) {
    return driver.check(driver.cuEventRecord(events[which], stream),
                        "cuEventRecord");
  }

  const Driver &driver;
  CUevent events[2] = {nullptr, nullptr};
};
} // namespace

Status Device::time(const Work &work, double &seconds) {
  ContextScope scope(driver, context);
  Stopwatch stopwatch(driver);
  Status status = stopwatch.setUp();
  if (status.ok()) {
    status = stopwatch.start(queue);
  }
  if (status.ok()) {
    status = work(queue);
  }
  if (status.ok()) {
    status = stopwatch.stop(queue);
  }
  return status.ok() ? stopwatch.read(seconds) : status;
}

Graph::~Graph() {
  ContextScope scope(driver, context);
  if (executable) {
    driver.cuGraphExecDestroy(executable);
  }
  if (graph) {
    driver.cuGraphDestroy(graph);
  }
}

Status Device::capture(const Work &work, std::unique_ptr<Graph> &graph,
                       int times) {
  ContextScope scope(driver, context);
  Status status = driver.check(
      driver.cuStreamBeginCapture(queue, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      "cuStreamBeginCapture");
  if (!status.ok()) {
    return status;
  }
  for (int i = 0; i < times && status.ok(); ++i) {
    status = work(queue);
  }
  std::unique_ptr<Graph> captured(new Graph(driver, context));
  // Ends the capture in any case; the first failure is the one to tell.
  CUresult result = driver.cuStreamEndCapture(queue, &captured->graph);
  if (result != CUDA_SUCCESS) {
    captured->graph = nullptr;
  }
  if (status.ok()) {
    status = driver.check(result, "cuStreamEndCapture");
  }
  if (!status.ok()) {
    return status;
  }
  if (driver.cuGraphInstantiateWithFlags) {
    result = driver.cuGraphInstantiateWithFlags(&captured->executable,
                                                captured->graph, 0);
  } else if (driver.cuGraphInstantiate) {
    result = driver.cuGraphInstantiate(&captured->executable, captured->graph,
                                       nullptr, nullptr, 0);
  } else {
    result = CUDA_ERROR_NOT_SUPPORTED;
  }
  if (result != CUDA_SUCCESS) {
    captured->executable = nullptr;
    return driver.fail(result, "cuGraphInstantiate");
  }
  graph = std::move(captured);
  return {};
}

Status Device::replay(const Graph &graph) {
  ContextScope scope(driver, context);
  return driver.check(driver.cuGraphLaunch(graph.executable, queue),
                      "cuGraphLaunch");
}

Status Device::timeReplays(const Graph &graph, int replays, bool flush,
                           std::vector<double> &seconds) {
  ContextScope scope(driver, context);
  std::vector<Stopwatch> stopwatches;
  Status status;
  for (int i = 0; i < replays && status.ok(); ++i) {
    status = stopwatches.emplace_back(driver).setUp();
  }
  // All are in the queue before the first is waited for, so that the GPU does
  // not wait for the host.
  for (int i = 0; i < replays && status.ok(); ++i) {
    if (flush) {
      status = flushL2();
    }
    if (status.ok()) {
      status = stopwatches[i].start(queue);
    }
    if (status.ok()) {
      status = replay(graph);
    }
    if (status.ok()) {
      status = stopwatches[i].stop(queue);
    }
  }
  seconds.assign(replays, 0);
  for (int i = 0; i < replays && status.ok(); ++i) {
    status = stopwatches[i].read(seconds[i]);
  }
  return status;
}
