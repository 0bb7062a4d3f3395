//===- Device.h - a GPU, for tools that own their tensors - -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_DEVICE_H
#define ATTNFUSE_LIB_RUNTIME_DEVICE_H

#include "Driver.h"
#include "MemoryPool.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace attnfuse::runtime {

/// Work of a device, captured so that replaying it costs one call. Destroy it
/// before its device.
class Graph {
public:
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

private:
  friend class Device;
  Graph(const Driver &driver, cuda::CUcontext context)
      : driver(driver), context(context) {}

  const Driver &driver;
  cuda::CUcontext context;
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec executable = nullptr;
};

/// A device's primary context with one stream and a pool of memory. All work is
/// in the order of that stream. For one thread at a time.
class Device {
public:
  /// Puts work into the stream that it is given (a CUstream).
  using Work = std::function<Status(void *stream)>;

  static std::unique_ptr<Device> open(int ordinal, Status &status);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const attnfuse_device_info &info() const { return description; }
  int ordinal() const { return number; }
  /// For attnfuse_program_launch.
  void *stream() const { return queue; }

  /// Memory, 512-byte aligned at least; blocks that were freed are used again.
  /// No bytes are a valid request too.
  Status allocate(size_t bytes, void *&address);
  void free(void *address);
  /// Gives the driver back what is free.
  void trim();

  /// From and to host memory; return when it is done.
  Status copyIn(void *to, const void *from, size_t bytes);
  Status copyOut(void *to, const void *from, size_t bytes);
  Status fill(void *to, uint8_t byte, size_t bytes);
  /// Puts other data into the L2 cache.
  Status flushL2();
  Status synchronize();

  /// How long the GPU took, without the start of the work.
  Status time(const Work &work, double &seconds);

  /// Captures work, `times` over.
  Status capture(const Work &work, std::unique_ptr<Graph> &graph,
                 int times = 1);
  Status replay(const Graph &graph);
  /// The time of each of a number of replays, with the L2 cache flushed before
  /// each where wanted.
  Status timeReplays(const Graph &graph, int replays, bool flush,
                     std::vector<double> &seconds);

private:
  explicit Device(const Driver &driver) : driver(driver), pool(driver) {}
  Status setUp(int ordinal);

  const Driver &driver;
  MemoryPool pool;
  int number = 0;
  cuda::CUdevice device = 0;
  cuda::CUcontext context = nullptr;
  cuda::CUstream queue = nullptr;
  attnfuse_device_info description = {};
  /// What flushL2 writes.
  cuda::CUdeviceptr flushed = 0;
  size_t flushedBytes = 0;
};

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_DEVICE_H
