//===- GpuSession.cpp - run compiled programs on a GPU ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Target/NVPTX/GpuSession.h"

#include "Runtime/Device.h"

using namespace attnfuse;

static llvm::Error toError(const runtime::Status &status) {
  return status.ok() ? llvm::Error::success()
                     : llvm::createStringError(status.message);
}

static llvm::Error toError(attnfuse_status status) {
  return status == ATTNFUSE_OK ? llvm::Error::success()
                               : llvm::createStringError(attnfuse_last_error());
}

static attnfuse_dtype toC(DType type) {
  switch (type) {
  case DType::BF16:
    return ATTNFUSE_BF16;
  case DType::F16:
    return ATTNFUSE_F16;
  case DType::I64:
    return ATTNFUSE_I64;
  case DType::I32:
    return ATTNFUSE_I32;
  case DType::I8:
    return ATTNFUSE_I8;
  case DType::I1:
    return ATTNFUSE_I1;
  default:
    return ATTNFUSE_F32;
  }
}

static DType fromC(attnfuse_dtype type) {
  switch (type) {
  case ATTNFUSE_BF16:
    return DType::BF16;
  case ATTNFUSE_F16:
    return DType::F16;
  case ATTNFUSE_I64:
    return DType::I64;
  case ATTNFUSE_I32:
    return DType::I32;
  case ATTNFUSE_I8:
    return DType::I8;
  case ATTNFUSE_I1:
    return DType::I1;
  default:
    return DType::F32;
  }
}

struct GpuSession::State {
  std::unique_ptr<runtime::Device> device;
  attnfuse_program *program = nullptr;

  /// An argument or result: device memory, shape and strides.
  struct Array {
    void *memory = nullptr;
    size_t bytes = 0;
    llvm::SmallVector<int64_t> shape, strides;
    attnfuse_tensor tensor = {};
    HostTensor scalar; // keeps a scalar argument alive
  };
  std::vector<Array> inputs, outputs;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;

  void release() {
    for (std::vector<Array> *arrays : {&inputs, &outputs}) {
      for (Array &array : *arrays) {
        device->free(array.memory);
      }
      arrays->clear();
    }
    device->free(workspace);
    workspace = nullptr;
  }
  ~State() {
    if (device) {
      release();
    }
    attnfuse_program_destroy(program);
  }

  std::vector<attnfuse_tensor> tensors(const std::vector<Array> &arrays) {
    std::vector<attnfuse_tensor> list;
    for (const Array &array : arrays) {
      list.push_back(array.tensor);
    }
    return list;
  }

  runtime::Status launch(void *stream) {
    std::vector<attnfuse_tensor> in = tensors(inputs), out = tensors(outputs);
    attnfuse_status code =
        attnfuse_program_launch(program, in.data(), in.size(), out.data(),
                                out.size(), workspace, workspaceBytes, stream);
    return {code, code == ATTNFUSE_OK ? "" : attnfuse_last_error()};
  }
};

GpuSession::GpuSession(std::unique_ptr<State> state)
    : state(std::move(state)) {}

GpuSession::~GpuSession() = default;

llvm::Expected<std::unique_ptr<GpuSession>> GpuSession::open(int ordinal) {
  runtime::Status status;
  auto device = runtime::Device::open(ordinal, status);
  if (!device) {
    return toError(status);
  }
  auto state = std::make_unique<State>();
  state->device = std::move(device);
  return std::unique_ptr<GpuSession>(new GpuSession(std::move(state)));
}

const attnfuse_device_info &GpuSession::device() const {
  return state->device->info();
}

llvm::Expected<std::string> GpuSession::chip() const {
  return chipForDevice(device());
}

llvm::Expected<std::string>
attnfuse::chipForDevice(const attnfuse_device_info &device) {
  int capability = device.major * 10 + device.minor;
  if (capability == 90) {
    return "sm_90a";
  }
  for (int known : {120, 100, 89, 86, 80}) {
    // Code for one generation runs on later ones, but for 10.0's on 12.0.
    if (capability >= known) {
      return "sm_" + std::to_string(known);
    }
  }
  return llvm::createStringError(
      std::string(device.name) + " has compute capability " +
      std::to_string(device.major) + "." + std::to_string(device.minor) +
      "; AttnFuse needs 8.0 or newer: use --device=cpu");
}

llvm::Error GpuSession::load(llvm::StringRef code, llvm::StringRef manifest) {
  attnfuse_program_destroy(state->program);
  state->program = nullptr;
  return toError(attnfuse_program_load(
      code.data(), code.size(), manifest.data(), manifest.size(),
      state->device->ordinal(), &state->program));
}

std::vector<attnfuse_kernel_info> GpuSession::kernels() const {
  std::vector<attnfuse_kernel_info> list;
  for (int n = 0; n < attnfuse_program_num_kernels(state->program); ++n) {
    attnfuse_kernel_info info = {};
    if (attnfuse_program_kernel(state->program, n, &info) == ATTNFUSE_OK) {
      list.push_back(info);
    }
  }
  return list;
}

std::string GpuSession::log() const {
  return attnfuse_program_log(state->program);
}

llvm::Error GpuSession::bind(llvm::ArrayRef<HostTensor> inputs) {
  state->release();
  runtime::Device &device = *state->device;
  state->inputs.resize(inputs.size());
  for (auto [array, input] : llvm::zip(state->inputs, inputs)) {
    array.shape.assign(input.shape().begin(), input.shape().end());
    array.strides.assign(input.strides().begin(), input.strides().end());
    array.tensor = {input.data(), toC(input.dtype()),
                    static_cast<int32_t>(input.rank()), array.shape.data(),
                    array.strides.data()};
    if (input.rank() == 0) {
      array.scalar = input;
      continue;
    }
    // From the lowest to the highest element, whatever the strides.
    int64_t low = 0, high = 0;
    for (auto [extent, stride] : llvm::zip(array.shape, array.strides)) {
      int64_t reach = extent > 0 ? (extent - 1) * stride : 0;
      low += std::min<int64_t>(reach, 0);
      high += std::max<int64_t>(reach, 0);
    }
    int64_t size = dtypeSize(input.dtype());
    array.bytes = input.numElements() ? (high - low + 1) * size : 0;
    if (auto error = toError(device.allocate(array.bytes, array.memory))) {
      return error;
    }
    auto *first = static_cast<char *>(input.data()) + low * size;
    if (auto error = toError(device.copyIn(array.memory, first, array.bytes))) {
      return error;
    }
    array.tensor.data = static_cast<char *>(array.memory) - low * size;
  }
  std::vector<attnfuse_tensor> in = state->tensors(state->inputs);
  int count = attnfuse_program_num_outputs(state->program);
  state->outputs.resize(count);
  for (int n = 0; n < count; ++n) {
    State::Array &array = state->outputs[n];
    attnfuse_dtype dtype;
    int32_t rank;
    int64_t shape[8];
    if (auto error = toError(attnfuse_program_output_shape(
            state->program, in.data(), in.size(), n, &dtype, &rank, shape))) {
      return error;
    }
    array.shape.assign(shape, shape + rank);
    array.strides = contiguousStrides(array.shape);
    array.bytes = dtypeSize(fromC(dtype));
    for (int64_t extent : array.shape) {
      array.bytes *= extent;
    }
    if (auto error = toError(device.allocate(array.bytes, array.memory))) {
      return error;
    }
    array.tensor = {array.memory, dtype, rank, array.shape.data(),
                    array.strides.data()};
  }
  if (auto error = toError(attnfuse_program_workspace(
          state->program, in.data(), in.size(), &state->workspaceBytes))) {
    return error;
  }
  return toError(device.allocate(state->workspaceBytes, state->workspace));
}

llvm::Error GpuSession::run(bool poison) {
  runtime::Device &device = *state->device;
  if (poison) {
    for (State::Array &array : state->outputs) {
      if (auto error = toError(device.fill(array.memory, 0xff, array.bytes))) {
        return error;
      }
    }
    if (auto error = toError(
            device.fill(state->workspace, 0xff, state->workspaceBytes))) {
      return error;
    }
  }
  if (auto error = toError(state->launch(device.stream()))) {
    return error;
  }
  return toError(device.synchronize());
}

llvm::Expected<std::vector<HostTensor>> GpuSession::results() {
  std::vector<HostTensor> list;
  for (State::Array &array : state->outputs) {
    auto tensor = HostTensor::allocate(fromC(array.tensor.dtype), array.shape);
    if (!tensor) {
      return tensor.takeError();
    }
    if (auto error = toError(state->device->copyOut(
            tensor->data(), array.memory, array.bytes))) {
      return std::move(error);
    }
    list.push_back(*tensor);
  }
  return list;
}

llvm::Expected<std::vector<double>> GpuSession::time(int repetitions,
                                                     bool flush) {
  std::unique_ptr<runtime::Graph> graph;
  auto work = [&](void *stream) { return state->launch(stream); };
  std::vector<double> seconds;
  if (auto error = toError(state->device->capture(work, graph))) {
    return std::move(error);
  }
  if (auto error = toError(
          state->device->timeReplays(*graph, repetitions, flush, seconds))) {
    return std::move(error);
  }
  return seconds;
}
