//===- Program.cpp - loading programs --------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "DeviceInfo.h"
#include "Jit.h"

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

void runtime::denseStrides(int rank, const int64_t *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
}

Program::Program(const Driver &driver, Manifest manifest)
    : driver(driver), plan(std::move(manifest)), cache(plan.tensorMaps) {}

Program::~Program() {
  if (!context) {
    return;
  }
  {
    // Failures are of no interest: at the end of a process the driver may have
    // ended before.
    ContextScope scope(driver, context);
    if (constantMemory) {
      driver.cuMemFree(constantMemory);
    }
    if (module) {
      driver.cuModuleUnload(module);
    }
  }
  driver.cuDevicePrimaryCtxRelease(device);
}

std::unique_ptr<Program> Program::load(std::string_view code,
                                       std::string_view manifest, int ordinal,
                                       Status &status) {
  Manifest plan;
  status = Manifest::parse(manifest, plan);
  if (!status.ok()) {
    return nullptr;
  }
  const Driver *driver = Driver::get(status);
  if (!driver) {
    return nullptr;
  }
  std::unique_ptr<Program> program(new Program(*driver, std::move(plan)));
  program->ordinal = ordinal;
  status =
      describeDevice(*driver, ordinal, program->device, program->deviceInfo);
  if (status.ok()) {
    status = checkCode(program->plan, code, ordinal, program->deviceInfo);
  }
  if (!status.ok()) {
    return nullptr;
  }
  status = driver->check(
      driver->cuDevicePrimaryCtxRetain(&program->context, program->device),
      "cuDevicePrimaryCtxRetain");
  if (!status.ok()) {
    program->context = nullptr;
    return nullptr;
  }
  ContextScope scope(*driver, program->context);
  status = scope.status();
  if (status.ok()) {
    LoadedModule loaded;
    status = loadModule(*driver, program->plan, code, program->deviceInfo,
                        DiskCache(), loaded);
    program->module = loaded.module;
    program->jitLog = std::move(loaded.log);
  }
  if (status.ok()) {
    status = program->loadKernels();
  }
  if (status.ok()) {
    status = program->loadConstants();
  }
  return status.ok() ? std::move(program) : nullptr;
}

Status Program::loadKernels() {
  if (plan.tensorMaps && !driver.cuTensorMapEncodeTiled) {
    return failure(ATTNFUSE_DRIVER_TOO_OLD,
                   "the program uses the tensor memory accelerator, for which "
                   "the driver has to be 12.0 or newer: update it");
  }
  for (const Step &step : plan.steps) {
    int index = 0;
    Status status = loadKernel(step, index);
    if (!status.ok()) {
      return status;
    }
    kernelOfStep.push_back(index);
  }
  return {};
}

Status Program::loadKernel(const Step &step, int &index) {
  for (index = 0; index < numKernels(); ++index) {
    const Kernel &known = kernels[index];
    if (known.name != step.kernel) {
      continue;
    }
    if (known.info.threads != step.threads) {
      return invalid("manifest: kernel '", step.kernel, "' is launched with ",
                     known.info.threads, " and with ", step.threads,
                     " threads");
    }
    break;
  }
  bool isNew = index == numKernels();
  Kernel kernel = isNew ? Kernel() : kernels[index];
  kernel.name = step.kernel;
  std::string what = concat("kernel '", step.kernel, "'");
  CUresult result = CUDA_SUCCESS;
  if (isNew) {
    result = driver.cuModuleGetFunction(&kernel.function, module,
                                        step.kernel.c_str());
    if (result == CUDA_ERROR_NOT_FOUND) {
      return invalid("the code has no ", what,
                     ": it does not belong to the manifest");
    }
    if (result != CUDA_SUCCESS) {
      return driver.fail(result, "cuModuleGetFunction", what);
    }
  }
  auto ask = [&](CUfunction_attribute attribute) {
    int value = 0;
    CUresult asked =
        driver.cuFuncGetAttribute(&value, attribute, kernel.function);
    result = result == CUDA_SUCCESS ? asked : result;
    return value;
  };
  int fixed = ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  int mostThreads = ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  kernel.info.registers = ask(CU_FUNC_ATTRIBUTE_NUM_REGS);
  kernel.info.spill_bytes = ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  if (result != CUDA_SUCCESS) {
    return driver.fail(result, "cuFuncGetAttribute", what);
  }
  int64_t shared = step.shared + fixed;
  if (shared > deviceInfo.shared_memory) {
    return invalid(
        what, " needs ", shared, " bytes of shared memory, a block may have ",
        deviceInfo.shared_memory, " on GPU ", ordinal, " (", deviceInfo.name,
        "): compile the program for this chip, or with smaller "
        "tiles");
  }
  if (step.threads > mostThreads) {
    return invalid(what, " has ", step.threads, " threads; with its ",
                   kernel.info.registers, " registers a block may have ",
                   mostThreads, " on GPU ", ordinal, " (", deviceInfo.name,
                   ")");
  }
  // The largest of the steps' sizes is the limit that all of them need.
  if (isNew || shared > kernel.info.shared_bytes) {
    result = driver.cuFuncSetAttribute(
        kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        static_cast<int>(step.shared));
    if (result != CUDA_SUCCESS) {
      return driver.fail(
          result, "cuFuncSetAttribute",
          concat(what, ", ", step.shared, " bytes of shared memory beside ",
                 fixed, "; a block may have ", deviceInfo.shared_memory));
    }
    kernel.info.shared_bytes = shared;
    kernel.info.threads = step.threads;
    int blocks = 0;
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel.function, step.threads,
        static_cast<size_t>(step.shared));
    kernel.info.blocks_per_unit = blocks;
  }
  Status status = checkParameters(step, kernel);
  if (isNew) {
    kernels.push_back(std::move(kernel));
  } else {
    kernels[index] = std::move(kernel);
  }
  return status;
}

/// Holds the manifest's parameters against those of the code, where the driver
/// can tell them.
Status Program::checkParameters(const Step &step, const Kernel &kernel) const {
  if (!driver.cuFuncGetParamInfo) {
    return {};
  }
  Status status;
  size_t count = 0;
  bool known = true;
  layOutParameters(plan, step, [&](int, int size) {
    size_t itsOffset = 0;
    size_t itsSize = 0;
    if (!known || !status.ok()) {
      return;
    }
    CUresult result =
        driver.cuFuncGetParamInfo(kernel.function, count, &itsOffset, &itsSize);
    if (result == CUDA_ERROR_INVALID_VALUE) {
      status = invalid("the code's kernel '", step.kernel, "' has ", count,
                       " parameters, the manifest more: they do not belong "
                       "together");
    } else if (result != CUDA_SUCCESS) {
      known = false;
    } else if (itsSize != static_cast<size_t>(size)) {
      status =
          invalid("parameter ", count, " of the code's kernel '", step.kernel,
                  "' has ", itsSize, " bytes, that of the manifest ", size,
                  ": they do not belong together");
    }
    ++count;
  });
  size_t offset;
  size_t size;
  if (status.ok() && known &&
      driver.cuFuncGetParamInfo(kernel.function, count, &offset, &size) ==
          CUDA_SUCCESS) {
    status = invalid("the code's kernel '", step.kernel,
                     "' has more parameters than the manifest's ", count,
                     ": they do not belong together");
  }
  return status;
}

Status Program::loadConstants() {
  if (plan.constants.empty() && plan.tensorMaps == 0) {
    return {};
  }
  std::string bytes(kWorkspaceAlignment, '\0');
  std::vector<size_t> offsets;
  for (const TensorSpec &constant : plan.constants) {
    offsets.push_back(bytes.size());
    bytes += constant.data;
    bytes.resize((bytes.size() + kWorkspaceAlignment - 1) /
                 kWorkspaceAlignment * kWorkspaceAlignment);
  }
  Status status =
      driver.allocate(bytes.size(), "the program's constants", constantMemory);
  if (!status.ok()) {
    constantMemory = 0;
    return status;
  }
  constantShapes.resize(plan.constants.size());
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    const TensorSpec &spec = plan.constants[i];
    DenseShape &dense = constantShapes[i];
    for (int d = 0; d < spec.rank; ++d) {
      dense.shape[d] = spec.shape[d].value;
    }
    denseStrides(spec.rank, dense.shape.data(), dense.strides.data());
    constants.push_back({constantMemory + offsets[i], spec.dtype, spec.rank,
                         dense.shape.data(), dense.strides.data()});
  }
  return driver.check(
      driver.cuMemcpyHtoD(constantMemory, bytes.data(), bytes.size()),
      "cuMemcpyHtoD", "the program's constants");
}

attnfuse_kernel_info Program::kernelInfo(int index) const {
  attnfuse_kernel_info info = kernels[index].info;
  info.name = kernels[index].name.c_str();
  return info;
}
