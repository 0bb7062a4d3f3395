//===- FakeCuda.h - a stand-in for libcuda.so.1 ----------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// FakeCuda.cpp is a shared library with the driver's symbols. Its memory is the
// host's, its kernels do nothing but be recorded. Tests control and inspect it
// through the state that fakeCuda() gives.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TEST_UNIT_RUNTIME_FAKECUDA_H
#define ATTNFUSE_TEST_UNIT_RUNTIME_FAKECUDA_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

struct FakeDevice {
  std::string name = "Fake H100";
  int major = 9, minor = 0;
  int units = 132;
  int sharedMemory = 232448;
  size_t memory = size_t(80) << 30;
};

/// Attributes of a kernel; any name is a kernel of any module.
struct FakeKernel {
  int registers = 32, local = 0, shared = 0, maxThreads = 1024;
  bool missing = false;
  /// Offsets and sizes; empty where the driver cannot tell.
  std::vector<std::pair<size_t, size_t>> parameters;
};

struct FakeLaunch {
  std::string kernel;
  unsigned grid, threads, shared;
  void *stream;
  std::string parameters;
};

struct FakeMemset {
  uint64_t address;
  unsigned value;
  size_t bytes;
};

/// What the 128 bytes of a fake tensor map say.
struct FakeTensorMap {
  uint64_t address;
  uint64_t extents[4];
  uint64_t strides[3];
  uint32_t box[4];
  uint32_t type, swizzle, promotion, fill;
  uint64_t rest[4];
};
static_assert(sizeof(FakeTensorMap) == 128);

struct FakeCuda {
  int version = 13000;
  std::vector<FakeDevice> devices = {FakeDevice(), FakeDevice()};
  std::map<std::string, FakeKernel> kernels;
  /// The next call of a function fails with a code.
  std::map<std::string, int> failures;
  /// The log of the next compilation.
  std::string jitLog;

  // What was done. Launches and memsets are counted always, recorded if wanted:
  // recording allocates memory.
  bool record = true;
  std::vector<FakeLaunch> launches;
  std::vector<FakeMemset> memsets;
  std::map<std::string, int> functionAttributes;
  /// The options of cuLinkCreate that are numbers.
  std::map<int, uint64_t> linkOptions;
  int numLaunches = 0, numMemsets = 0, numPointerQueries = 0, numEncodings = 0,
      numCompilations = 0, numAllocations = 0, numFrees = 0, numContexts = 0,
      numModules = 0;
};

/// The library's state; setting it to FakeCuda() starts anew.
extern "C" FakeCuda *fakeCuda();
/// Has the library know memory, which nobody reads, as a device's or the
/// host's.
extern "C" void fakeCudaAddMemory(uint64_t address, size_t bytes, bool host);

#endif // ATTNFUSE_TEST_UNIT_RUNTIME_FAKECUDA_H
