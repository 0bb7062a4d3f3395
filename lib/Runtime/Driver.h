//===- Driver.h - CUDA's driver, opened at run time ------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_DRIVER_H
#define ATTNFUSE_LIB_RUNTIME_DRIVER_H

#include "CudaTypes.h"
#include "Status.h"

#include <memory>
#include <string>

// X(name of the member, symbol, parameters): every driver since 11.0 has them.
#define ATTNFUSE_REQUIRED_DRIVER_FUNCTIONS(X)                                  \
  X(cuInit, "cuInit", (unsigned))                                              \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *))                         \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                             \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int))                             \
  X(cuDeviceGetName, "cuDeviceGetName", (char *, int, CUdevice))               \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, CUdevice))             \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute",                              \
    (int *, CUdevice_attribute, CUdevice))                                     \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                      \
    (CUcontext *, CUdevice))                                                   \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))     \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                         \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                      \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                      \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                  \
    (CUmodule *, const void *, unsigned, CUjit_option *, void **))             \
  X(cuModuleGetFunction, "cuModuleGetFunction",                                \
    (CUfunction *, CUmodule, const char *))                                    \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule))                              \
  X(cuFuncSetAttribute, "cuFuncSetAttribute",                                  \
    (CUfunction, CUfunction_attribute, int))                                   \
  X(cuFuncGetAttribute, "cuFuncGetAttribute",                                  \
    (int *, CUfunction_attribute, CUfunction))                                 \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                               \
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",                             \
    (int *, CUfunction, int, size_t))                                          \
  X(cuLaunchKernel, "cuLaunchKernel",                                          \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
     unsigned, CUstream, void **, void **))                                    \
  X(cuLinkCreate, "cuLinkCreate_v2",                                           \
    (unsigned, CUjit_option *, void **, CUlinkState *))                        \
  X(cuLinkAddData, "cuLinkAddData_v2",                                         \
    (CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned,      \
     CUjit_option *, void **))                                                 \
  X(cuLinkComplete, "cuLinkComplete", (CUlinkState, void **, size_t *))        \
  X(cuLinkDestroy, "cuLinkDestroy", (CUlinkState))                             \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                     \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                      \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                  \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))      \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                 \
    (CUdeviceptr, const void *, size_t, CUstream))                             \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                 \
    (void *, CUdeviceptr, size_t, CUstream))                                   \
  X(cuMemsetD8Async, "cuMemsetD8Async",                                        \
    (CUdeviceptr, unsigned char, size_t, CUstream))                            \
  X(cuMemsetD32Async, "cuMemsetD32Async",                                      \
    (CUdeviceptr, unsigned, size_t, CUstream))                                 \
  X(cuPointerGetAttribute, "cuPointerGetAttribute",                            \
    (void *, CUpointer_attribute, CUdeviceptr))                                \
  X(cuStreamCreate, "cuStreamCreate", (CUstream *, unsigned))                  \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                         \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                    \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2",                           \
    (CUstream, CUstreamCaptureMode))                                           \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))           \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                   \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph))                               \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                   \
  X(cuEventCreate, "cuEventCreate", (CUevent *, unsigned))                     \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent))                            \
  X(cuEventRecord, "cuEventRecord", (CUevent, CUstream))                       \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent))                       \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *, CUevent, CUevent))     \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))               \
  X(cuGetErrorString, "cuGetErrorString", (CUresult, const char **))

// Those that came later, or went; null where the driver has none.
#define ATTNFUSE_OPTIONAL_DRIVER_FUNCTIONS(X)                                  \
  /* 12.0 */                                                                   \
  X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                          \
    (CUtensorMap *, CUtensorMapDataType, uint32_t, void *, const uint64_t *,   \
     const uint64_t *, const uint32_t *, const uint32_t *,                     \
     CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,        \
     CUtensorMapFloatOOBfill))                                                 \
  /* 12.4 */                                                                   \
  X(cuFuncGetParamInfo, "cuFuncGetParamInfo",                                  \
    (CUfunction, size_t, size_t *, size_t *))                                  \
  /* 11.4 */                                                                   \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                \
    (CUgraphExec *, CUgraph, unsigned long long))                              \
  /* 11.0 */                                                                   \
  X(cuGraphInstantiate, "cuGraphInstantiate_v2",                               \
    (CUgraphExec *, CUgraph, void **, char *, size_t))

namespace attnfuse::runtime::cuda {

struct Functions {
#define ATTNFUSE_DECLARE_DRIVER_FUNCTION(member, symbol, parameters)           \
  CUresult(*member) parameters = nullptr;
  ATTNFUSE_REQUIRED_DRIVER_FUNCTIONS(ATTNFUSE_DECLARE_DRIVER_FUNCTION)
  ATTNFUSE_OPTIONAL_DRIVER_FUNCTIONS(ATTNFUSE_DECLARE_DRIVER_FUNCTION)
#undef ATTNFUSE_DECLARE_DRIVER_FUNCTION
};

} // namespace attnfuse::runtime::cuda

namespace attnfuse::runtime {

/// The functions of libcuda.so.1 that the runtime uses, initialised.
class Driver : public cuda::Functions {
public:
  /// The process's driver: libcuda.so.1, or what ATTNFUSE_LIBCUDA names.
  /// Opened once; a failure is tried anew by the next call.
  static const Driver *get(Status &status);

  /// A driver of one's own, for tests.
  static std::unique_ptr<Driver> open(const std::string &path, Status &status);

  /// As cuDriverGetVersion gives it: 12040 for 12.4.
  int version() const { return driverVersion; }

  /// Success, or a failure that names the call, its code and a remedy.
  Status check(cuda::CUresult result, std::string_view call,
               std::string_view doing = {}) const {
    return result == cuda::CUDA_SUCCESS ? Status() : fail(result, call, doing);
  }
  Status fail(cuda::CUresult result, std::string_view call,
              std::string_view doing = {}) const;

  /// Allocates; a failure tells the bytes wanted, free and in all.
  Status allocate(size_t bytes, std::string_view purpose,
                  cuda::CUdeviceptr &address) const;

private:
  int driverVersion = 0;
};

/// Makes a context current for a scope, at the price of a look where it
/// already is.
class ContextScope {
public:
  ContextScope(const Driver &driver, cuda::CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

  Status status() const;

private:
  const Driver &driver;
  cuda::CUresult result = cuda::CUDA_SUCCESS;
  bool pushed = false;
};

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_DRIVER_H
