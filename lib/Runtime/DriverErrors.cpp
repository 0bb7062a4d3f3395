//===- DriverErrors.cpp - what the driver's errors mean --- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "PtxVersion.h"

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

static attnfuse_status statusOf(CUresult result) {
  switch (result) {
  case CUDA_ERROR_STUB_LIBRARY:
  case CUDA_ERROR_SYSTEM_NOT_READY:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return ATTNFUSE_NO_DRIVER;
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return ATTNFUSE_NO_DEVICE;
  case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return ATTNFUSE_DRIVER_TOO_OLD;
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
    return ATTNFUSE_WRONG_CHIP;
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    return ATTNFUSE_COMPILE_ERROR;
  case CUDA_ERROR_OUT_OF_MEMORY:
    return ATTNFUSE_OUT_OF_MEMORY;
  case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ASSERT:
    return ATTNFUSE_LAUNCH_FAILED;
  default:
    return ATTNFUSE_DRIVER_ERROR;
  }
}

/// What a user can do about it; empty where nothing general helps.
static const char *remedyFor(CUresult result) {
  switch (result) {
  case CUDA_ERROR_STUB_LIBRARY:
    return "this libcuda.so.1 is the toolkit's stub for linking; take its "
           "folder out of LD_LIBRARY_PATH, or install the NVIDIA driver";
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return "libcuda.so.1 and the kernel's module come from different driver "
           "versions; reboot, or reinstall the driver";
  case CUDA_ERROR_SYSTEM_NOT_READY:
    return "start what the system needs first, e.g. nvidia-fabricmanager";
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return "CUDA's forward compatibility package does not serve this GPU; take "
           "it out of LD_LIBRARY_PATH";
  case CUDA_ERROR_NO_DEVICE:
    return "there is no GPU, or CUDA_VISIBLE_DEVICES hides it; use "
           "--device=cpu";
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return "another process holds the GPU exclusively; see nvidia-smi";
  case CUDA_ERROR_NOT_INITIALIZED:
    return "a process forked after CUDA was initialised cannot use it; start "
           "it by spawn";
  case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return "update the NVIDIA driver";
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
    return "compile the program for this chip";
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    return "libnvidia-ptxjitcompiler.so.1, a part of the driver, is missing; "
           "install it, or load a cubin";
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    return "unset CUDA_DISABLE_PTX_JIT, or load a cubin";
  case CUDA_ERROR_OUT_OF_MEMORY:
    return "free memory of the GPU, or use smaller tensors";
  case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    return "the kernel needs more registers or shared memory than a block may "
           "have; compile with smaller tiles";
  case CUDA_ERROR_LAUNCH_TIMEOUT:
    return "the GPU also drives a display, which limits a kernel's time";
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ASSERT:
    return "a kernel launched before, not necessarily one of AttnFuse's, "
           "failed while it ran; this process can use the GPU no more; "
           "compute-sanitizer finds the kernel";
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_INVALID_CONTEXT:
    return "the device was reset while the program was loaded; load it again";
  case CUDA_ERROR_ECC_UNCORRECTABLE:
    return "the GPU's memory is faulty; see nvidia-smi -q";
  case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
  case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    return "something that a CUDA graph cannot hold was called while one was "
           "captured";
  default:
    return "";
  }
}

Status Driver::fail(CUresult result, std::string_view call,
                    std::string_view doing) const {
  const char *name = nullptr;
  if (!cuGetErrorName || cuGetErrorName(result, &name) != CUDA_SUCCESS) {
    name = nullptr;
  }
  const char *text = nullptr;
  if (!cuGetErrorString || cuGetErrorString(result, &text) != CUDA_SUCCESS) {
    text = nullptr;
  }
  std::string message = std::string(call);
  if (!doing.empty()) {
    message += concat(" (", doing, ")");
  }
  message += concat(" failed with ",
                    name ? std::string(name)
                         : concat("error ", static_cast<int>(result)));
  if (text) {
    message += concat(" (", text, ")");
  }
  std::string_view remedy = remedyFor(result);
  if (!remedy.empty()) {
    message += concat(": ", remedy);
  }
  return {statusOf(result), std::move(message)};
}
