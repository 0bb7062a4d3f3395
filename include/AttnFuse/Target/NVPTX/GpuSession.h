//===- GpuSession.h - run compiled programs on a GPU ------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_NVPTX_GPUSESSION_H
#define ATTNFUSE_TARGET_NVPTX_GPUSESSION_H

#include "AttnFuse/Support/HostTensor.h"

#include "attnfuse-c/Runtime.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace attnfuse {

/// A GPU, a loaded program and its arguments in device memory: host tensors
/// in, host tensors out. Over attnfuse-c/Runtime.h.
class GpuSession {
public:
  static llvm::Expected<std::unique_ptr<GpuSession>> open(int ordinal);
  ~GpuSession();

  const attnfuse_device_info &device() const;
  /// The chip to compile for on this device.
  llvm::Expected<std::string> chip() const;

  /// Loads code (PTX or a cubin) and its manifest.
  llvm::Error load(llvm::StringRef code, llvm::StringRef manifest);
  /// What the driver says of the kernels: registers, occupancy.
  std::vector<attnfuse_kernel_info> kernels() const;

  /// What the driver's compiler said of the code.
  std::string log() const;

  /// Copies the arguments to the device as they are, strides included, and
  /// makes room for results and workspace.
  llvm::Error bind(llvm::ArrayRef<HostTensor> inputs);
  /// Runs the program once and waits; with `poison` the results and the
  /// workspace hold NaN before.
  llvm::Error run(bool poison);
  llvm::Expected<std::vector<HostTensor>> results();

  /// Seconds of each of `repetitions` runs, by replays of a CUDA graph; with
  /// `flush` other data is put into the L2 cache before each.
  llvm::Expected<std::vector<double>> time(int repetitions, bool flush);

private:
  struct State;
  explicit GpuSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// The name of the chip that programs for a device are compiled for, or why it
/// is not supported.
llvm::Expected<std::string> chipForDevice(const attnfuse_device_info &device);

} // namespace attnfuse

#endif // ATTNFUSE_TARGET_NVPTX_GPUSESSION_H
