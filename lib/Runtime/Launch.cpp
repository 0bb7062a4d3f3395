//===- Launch.cpp - launching programs -------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a launch needs is on the stack, so that nothing is allocated. First
// everything is checked, then everything is launched: a launch that is refused
// has done nothing.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Shapes.h"

#include <algorithm>
#include <cstring>

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

/// Not initialised: it is large, and little of it is used.
struct Program::Frame {
  TensorView arguments[kMaxArguments];
  TensorView results[kMaxResults];
  TensorView temporaries[kMaxTemporaries];
  int64_t temporaryShapes[kMaxTemporaries][kMaxRank];
  int64_t temporaryStrides[kMaxTemporaries][kMaxRank];
  const TensorView *constants;
  uint64_t counters;
  struct {
    int step;
    unsigned blocks;
  } launches[kMaxSteps];
  int numLaunches;

  const TensorView &view(Operand operand) const {
    switch (operand.kind) {
    case Operand::Kind::Argument:
      return arguments[operand.index];
    case Operand::Kind::Temporary:
      return temporaries[operand.index];
    case Operand::Kind::Constant:
      return constants[operand.index];
    case Operand::Kind::Result:
      break;
    }
    return results[operand.index];
  }
};

std::string Program::describeOperand(Operand operand) const {
  switch (operand.kind) {
  case Operand::Kind::Argument:
    return describeArgument(plan, operand.index);
  case Operand::Kind::Temporary:
    return concat("temporary ", operand.index);
  case Operand::Kind::Constant:
    return concat("constant ", operand.index);
  case Operand::Kind::Result:
    break;
  }
  return describeOutput(operand.index);
}

/// In device memory.
Status Program::bindTensor(const attnfuse_tensor &tensor, TensorView &view) {
  Status status = checkData(tensor);
  view = {reinterpret_cast<uint64_t>(tensor.data), tensor.dtype, tensor.rank,
          tensor.shape, tensor.strides};
  if (status.ok() && !isEmpty(tensor)) {
    status = cache.checkAddress(driver, ordinal, view.address);
  }
  return status;
}

static Status prefixed(std::string name, Status status) {
  status.message = concat(name, " ", status.message);
  return status;
}

Status Program::bindAll(const attnfuse_tensor *inputs, int numInputs,
                        const attnfuse_tensor *outputs, int numOutputs,
                        void *workspace, size_t workspaceBytes, Frame &frame) {
  for (int i = 0; i < numInputs; ++i) {
    if (plan.arguments[i].scalar) {
      if (!inputs[i].data) {
        return invalid(describeArgument(plan, i), " is a null pointer");
      }
      // Read when the parameters are packed.
      frame.arguments[i] = {reinterpret_cast<uint64_t>(inputs[i].data),
                            inputs[i].dtype, 0, nullptr, nullptr};
      continue;
    }
    Status status = bindTensor(inputs[i], frame.arguments[i]);
    if (!status.ok()) {
      return prefixed(describeArgument(plan, i), std::move(status));
    }
  }
  for (int i = 0; i < numOutputs; ++i) {
    Status status = bindTensor(outputs[i], frame.results[i]);
    if (!status.ok()) {
      return prefixed(describeOutput(i), std::move(status));
    }
  }
  frame.constants = constants.data();

  WorkspaceLayout layout;
  Status status = layOutWorkspace(plan, inputs, layout);
  if (!status.ok()) {
    return status;
  }
  auto base = reinterpret_cast<uint64_t>(workspace);
  if (layout.bytes) {
    if (!workspace || workspaceBytes < layout.bytes) {
      return invalid("the workspace has ", workspace ? workspaceBytes : 0,
                     " bytes, the launch needs ", layout.bytes);
    }
    if (base % kWorkspaceAlignment) {
      return invalid("the workspace is not ", kWorkspaceAlignment,
                     "-byte aligned");
    }
    status = cache.checkAddress(driver, ordinal, base);
    if (!status.ok()) {
      return prefixed("the workspace", std::move(status));
    }
  }
  frame.counters = base;
  for (size_t i = 0; i < plan.temporaries.size(); ++i) {
    const TensorSpec &spec = plan.temporaries[i];
    int64_t *shape = frame.temporaryShapes[i];
    for (int d = 0; d < spec.rank; ++d) {
      shape[d] = resolve(spec.shape[d], inputs);
    }
    denseStrides(spec.rank, shape, frame.temporaryStrides[i]);
    frame.temporaries[i] = {base + layout.temporaries[i], spec.dtype, spec.rank,
                            shape, frame.temporaryStrides[i]};
  }
  return {};
}

Status Program::countBlocks(const Step &step, const Frame &frame,
                            int64_t &blocks) const {
  blocks = 1;
  bool tooMany = false;
  for (const GridFactor &factor : step.grid) {
    int64_t extent =
        frame.view(step.operands[factor.operand]).shape[factor.dimension];
    int64_t count = extent / factor.divisor + (extent % factor.divisor != 0);
    if (count == 0) {
      blocks = 0;
      return {};
    }
    tooMany |= __builtin_mul_overflow(blocks, count, &blocks);
  }
  if (tooMany || blocks > kMaxExtent) {
    return invalid("kernel '", step.kernel,
                   "' would have more than 2^31 - 1 blocks on these tensors: "
                   "use smaller batches");
  }
  if (step.persistent) {
    blocks =
        std::min<int64_t>(blocks, int64_t(step.persistent) * deviceInfo.units);
  }
  return {};
}

bool Program::describeMaps(const Step &step, const Frame &frame,
                           std::string *reason) const {
  for (const Extra &extra : step.extras) {
    if (extra.kind != Extra::Kind::TensorMap) {
      continue;
    }
    TensorMapRequest request;
    Operand operand = step.operands[extra.operand];
    if (!describeTensorMap(frame.view(operand), extra, constantMemory, request,
                           reason)) {
      if (reason) {
        *reason = concat(describeOperand(operand), " ", *reason);
      }
      return false;
    }
  }
  return true;
}

/// Chooses a step or what to do otherwise, and counts its blocks.
Status Program::planStep(int index, Frame &frame) {
  const Step *step = &plan.steps[index];
  int64_t blocks;
  while (true) {
    Status status = countBlocks(*step, frame, blocks);
    if (!status.ok() || blocks == 0) {
      return status;
    }
    if (describeMaps(*step, frame, nullptr)) {
      break;
    }
    if (step->otherwiseFill >= 0) {
      // No blocks: the mark of a step that is filled in for.
      frame.launches[frame.numLaunches++] = {index, 0};
      return {};
    }
    if (step->otherwise < 0) {
      std::string reason;
      describeMaps(*step, frame, &reason);
      return invalid(reason, ": make it contiguous");
    }
    index = step->otherwise;
    step = &plan.steps[index];
  }
  frame.launches[frame.numLaunches++] = {index, static_cast<unsigned>(blocks)};
  return {};
}

/// A scalar argument as the kernel's parameter.
static int64_t readInteger(const TensorView &scalar) {
  auto *data = reinterpret_cast<const void *>(scalar.address);
  switch (scalar.dtype) {
  case ATTNFUSE_I64: {
    int64_t value;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }
  case ATTNFUSE_I32: {
    int32_t value;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }
  case ATTNFUSE_I1:
    return *static_cast<const uint8_t *>(data) != 0;
  default:
    return *static_cast<const int8_t *>(data);
  }
}

/// The offsets are those of layOutParameters, which held them to the buffer's
/// size when the manifest was read.
Status Program::packParameters(const Step &step, const Frame &frame,
                               ParameterBuffer &parameters) {
  char *buffer = parameters.bytes;
  size_t offset = 0, count = 0;
  auto put = [&](const auto &value) {
    constexpr size_t alignment = alignof(decltype(value));
    while (offset % alignment) {
      buffer[offset++] = 0;
    }
    parameters.pointers[count++] = buffer + offset;
    std::memcpy(buffer + offset, &value, sizeof(value));
    offset += sizeof(value);
  };
  static_assert(alignof(int64_t) == 8 && alignof(CUtensorMap) == 64);
  for (Operand operand : step.operands) {
    const TensorView &view = frame.view(operand);
    if (operand.kind == Operand::Kind::Argument &&
        plan.arguments[operand.index].scalar) {
      if (view.dtype == ATTNFUSE_F32) {
        float value;
        std::memcpy(&value, reinterpret_cast<const void *>(view.address),
                    sizeof(value));
        put(value);
      } else {
        put(readInteger(view));
      }
      continue;
    }
    put(view.address);
    for (int d = 0; d < view.rank; ++d) {
      put(view.shape[d]);
      put(view.strides[d]);
    }
  }
  for (const Extra &extra : step.extras) {
    if (extra.kind == Extra::Kind::Counter) {
      put(frame.counters + sizeof(uint32_t) * extra.index);
      continue;
    }
    TensorMapRequest request;
    CUtensorMap map;
    Operand operand = step.operands[extra.operand];
    describeTensorMap(frame.view(operand), extra, constantMemory, request,
                      nullptr);
    Status status = cache.tensorMap(driver, extra.index, request, map);
    if (!status.ok()) {
      return prefixed(concat(describeOperand(operand), ":"), std::move(status));
    }
    put(map);
  }
  // The driver reads as many pointers as the kernel has parameters; what
  // follows tells a debugger, or a test, where they end.
  parameters.pointers[count] = buffer + offset;
  parameters.pointers[count + 1] = nullptr;
  return {};
}

Status Program::launch(const attnfuse_tensor *inputs, int numInputs,
                       const attnfuse_tensor *outputs, int numOutputs,
                       void *workspace, size_t workspaceBytes,
                       CUstream stream) {
  Status status = checkInputs(plan, inputs, numInputs);
  if (status.ok()) {
    status = checkOutputs(plan, inputs, outputs, numOutputs);
  }
  if (!status.ok()) {
    return status;
  }
  ContextScope scope(driver, context);
  status = scope.status();
  Frame frame;
  frame.numLaunches = 0;
  if (status.ok()) {
    status = bindAll(inputs, numInputs, outputs, numOutputs, workspace,
                     workspaceBytes, frame);
  }
  for (size_t i = 0; i < plan.order.size() && status.ok(); ++i) {
    status = planStep(plan.order[i], frame);
  }
  if (!status.ok() || frame.numLaunches == 0) {
    return status;
  }
  if (plan.counters) {
    status = driver.check(
        driver.cuMemsetD32Async(frame.counters, 0, plan.counters, stream),
        "cuMemsetD32Async", "the kernels' counters");
  }
  ParameterBuffer parameters;
  for (int i = 0; i < frame.numLaunches && status.ok(); ++i) {
    auto [index, blocks] = frame.launches[i];
    const Step &step = plan.steps[index];
    if (blocks == 0) {
      const TensorView &view = frame.temporaries[step.otherwiseFill];
      size_t bytes = static_cast<size_t>(sizeOf(view.dtype));
      for (int d = 0; d < view.rank; ++d) {
        bytes *= static_cast<size_t>(view.shape[d]);
      }
      status = driver.check(
          driver.cuMemsetD8Async(view.address, 0xff, bytes, stream),
          "cuMemsetD8Async", "marks of rows to compute");
      continue;
    }
    status = packParameters(step, frame, parameters);
    if (!status.ok()) {
      break;
    }
    CUresult result = driver.cuLaunchKernel(
        kernels[kernelOfStep[index]].function, blocks, 1, 1, step.threads, 1, 1,
        static_cast<unsigned>(step.shared), stream, parameters.pointers,
        nullptr);
    if (result != CUDA_SUCCESS) {
      status = driver.fail(result, "cuLaunchKernel",
                           concat("kernel '", step.kernel, "', ", blocks,
                                  " blocks of ", step.threads, " threads, ",
                                  step.shared, " bytes of shared memory"));
      if (status.code == ATTNFUSE_DRIVER_ERROR) {
        status.code = ATTNFUSE_LAUNCH_FAILED;
      }
    }
  }
  return status;
}
