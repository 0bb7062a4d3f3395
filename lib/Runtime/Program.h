//===- Program.h - a program loaded for a device ---------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_PROGRAM_H
#define ATTNFUSE_LIB_RUNTIME_PROGRAM_H

#include "Driver.h"
#include "LaunchCache.h"
#include "Manifest.h"
#include "TensorMap.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attnfuse::runtime {

/// Code in the primary context of a device, with the manifest that says how to
/// launch it. Behind the C type attnfuse_program.
class Program {
public:
  static std::unique_ptr<Program> load(std::string_view code,
                                       std::string_view manifest, int device,
                                       Status &status);
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  /// Checks everything before it launches anything. Allocates no memory unless
  /// it fails.
  Status launch(const attnfuse_tensor *inputs, int numInputs,
                const attnfuse_tensor *outputs, int numOutputs, void *workspace,
                size_t workspaceBytes, cuda::CUstream stream);

  const Manifest &manifest() const { return plan; }
  const std::string &log() const { return jitLog; }
  int numKernels() const { return static_cast<int>(kernels.size()); }
  attnfuse_kernel_info kernelInfo(int index) const;

private:
  struct Kernel {
    std::string name;
    cuda::CUfunction function = nullptr;
    attnfuse_kernel_info info = {};
  };
  /// A constant's dense shape and strides, for its view.
  struct DenseShape {
    std::array<int64_t, kMaxRank> shape, strides;
  };
  struct Frame;
  /// A kernel's parameters and where each begins. They go to the driver one by
  /// one: it aligns them from an offset of its own.
  struct ParameterBuffer {
    alignas(64) char bytes[kMaxParameterBytes];
    void *pointers[kMaxParameterBytes / 4 + 2];
  };

  Program(const Driver &driver, Manifest manifest);

  Status loadKernels();
  Status loadKernel(const Step &step, int &index);
  Status checkParameters(const Step &step, const Kernel &kernel) const;
  Status loadConstants();

  Status bindTensor(const attnfuse_tensor &tensor, TensorView &view);
  Status bindAll(const attnfuse_tensor *inputs, int numInputs,
                 const attnfuse_tensor *outputs, int numOutputs,
                 void *workspace, size_t workspaceBytes, Frame &frame);
  Status planStep(int index, Frame &frame);
  Status countBlocks(const Step &step, const Frame &frame,
                     int64_t &blocks) const;
  bool describeMaps(const Step &step, const Frame &frame,
                    std::string *reason) const;
  Status packParameters(const Step &step, const Frame &frame,
                        ParameterBuffer &parameters);
  std::string describeOperand(Operand operand) const;

  const Driver &driver;
  Manifest plan;
  int ordinal = 0;
  cuda::CUdevice device = 0;
  attnfuse_device_info deviceInfo = {};
  cuda::CUcontext context = nullptr;
  cuda::CUmodule module = nullptr;
  std::string jitLog;
  std::vector<Kernel> kernels;
  /// Of each of the manifest's steps, its kernel.
  std::vector<int> kernelOfStep;
  /// Holds 256 bytes that are zero, then the constants.
  cuda::CUdeviceptr constantMemory = 0;
  std::vector<DenseShape> constantShapes;
  std::vector<TensorView> constants;
  LaunchCache cache;
};

/// Row-major strides.
void denseStrides(int rank, const int64_t *shape, int64_t *strides);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_PROGRAM_H
