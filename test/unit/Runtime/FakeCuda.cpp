//===- FakeCuda.cpp - a stand-in for libcuda.so.1 --------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "Runtime/CudaTypes.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace attnfuse::runtime::cuda;

// Handles point at these.
namespace attnfuse::runtime::cuda {
struct CUctx_st {
  int device;
};
struct CUmod_st {
  int unused;
};
struct CUfunc_st {
  std::string name;
};
struct CUlinkState_st {
  std::string ptx, cubin;
  char *errors = nullptr;
  char *info = nullptr;
};
struct CUstream_st {
  bool capturing = false;
  std::vector<FakeLaunch> captured;
};
struct CUevent_st {
  int unused;
};
struct CUgraph_st {
  std::vector<FakeLaunch> launches;
};
struct CUgraphExec_st {
  std::vector<FakeLaunch> launches;
};
} // namespace attnfuse::runtime::cuda

namespace {
struct Block {
  size_t bytes;
  int device;
  bool host;
};
struct Contexts {
  CUctx_st all[8];
  Contexts() {
    for (int i = 0; i < 8; ++i) {
      all[i].device = i;
    }
  }
};
} // namespace

static std::recursive_mutex mutex;
static std::map<uint64_t, Block> blocks;
static Contexts contexts;
/// Without heap memory: launches must not seem to allocate.
static thread_local CUcontext contextStack[16];
static thread_local int contextDepth = 0;

extern "C" FakeCuda *fakeCuda() {
  static FakeCuda state;
  return &state;
}

extern "C" void fakeCudaAddMemory(uint64_t address, size_t bytes, bool host) {
  blocks[address] = {bytes, 0, host};
}

static CUresult failing(const char *call) {
  std::map<std::string, int> &failures = fakeCuda()->failures;
  if (failures.empty()) {
    return CUDA_SUCCESS;
  }
  auto it = failures.find(call);
  if (it == failures.end()) {
    return CUDA_SUCCESS;
  }
  auto result = static_cast<CUresult>(it->second);
  failures.erase(it);
  return result;
}

#define ENTER(call)                                                            \
  std::lock_guard<std::recursive_mutex> lock(mutex);                           \
  if (CUresult failure = failing(call)) {                                      \
    return failure;                                                            \
  }

static const Block *blockAt(uint64_t address) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) {
    return nullptr;
  }
  --it;
  return address < it->first + it->second.bytes ? &it->second : nullptr;
}

static char *bytesAt(CUdeviceptr address) {
  return reinterpret_cast<char *>(address);
}

extern "C" {

CUresult cuInit(unsigned) {
  ENTER("cuInit");
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) {
  *version = fakeCuda()->version;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount");
  *count = static_cast<int>(fakeCuda()->devices.size());
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER("cuDeviceGet");
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  std::strncpy(name, fakeCuda()->devices[device].name.c_str(), size);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  *bytes = fakeCuda()->devices[device].memory;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  ENTER("cuDeviceGetAttribute");
  const FakeDevice &fake = fakeCuda()->devices[device];
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = fake.major;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = fake.minor;
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = fake.units;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = fake.sharedMemory;
    break;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    *value = 50 << 20;
    break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER("cuDevicePrimaryCtxRetain");
  ++fakeCuda()->numContexts;
  *context = &contexts.all[device];
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  --fakeCuda()->numContexts;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = contextDepth ? contextStack[contextDepth - 1] : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER("cuCtxPushCurrent");
  contextStack[contextDepth++] = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  *context = contextStack[--contextDepth];
  return CUDA_SUCCESS;
}

// Compilation: PTX is "cubin" with an ELF header before it. PTX that has the
// words SYNTAX ERROR does not compile.

static void *option(unsigned count, CUjit_option *keys, void **values,
                    CUjit_option wanted) {
  for (unsigned i = 0; i < count; ++i) {
    if (keys[i] == wanted) {
      return values[i];
    }
  }
  return nullptr;
}

static CUresult compile(const std::string &ptx, char *errors, char *info,
                        std::string &cubin) {
  ++fakeCuda()->numCompilations;
  if (ptx.find("SYNTAX ERROR") != std::string::npos) {
    std::strcpy(errors, "ptxas: line 7: SYNTAX ERROR");
    return CUDA_ERROR_INVALID_PTX;
  }
  std::strcpy(info, fakeCuda()->jitLog.c_str());
  cubin = "\x7f"
          "ELF" +
          ptx;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *keys, void **values) {
  ENTER("cuModuleLoadDataEx");
  auto *text = static_cast<const char *>(image);
  if (std::strncmp(text,
                   "\x7f"
                   "ELF",
                   4) != 0) {
    auto *errors = static_cast<char *>(
        option(count, keys, values, CU_JIT_ERROR_LOG_BUFFER));
    auto *info = static_cast<char *>(
        option(count, keys, values, CU_JIT_INFO_LOG_BUFFER));
    std::string cubin;
    if (CUresult result = compile(text, errors, info, cubin)) {
      return result;
    }
  }
  ++fakeCuda()->numModules;
  *module = new CUmod_st();
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  --fakeCuda()->numModules;
  delete module;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  ENTER("cuModuleGetFunction");
  static std::map<std::string, CUfunc_st> functions;
  if (fakeCuda()->kernels[name].missing) {
    return CUDA_ERROR_NOT_FOUND;
  }
  *function = &functions[name];
  (*function)->name = name;
  return CUDA_SUCCESS;
}
CUresult cuLinkCreate_v2(unsigned count, CUjit_option *keys, void **values,
                         CUlinkState *state) {
  ENTER("cuLinkCreate");
  for (unsigned i = 0; i < count; ++i) {
    fakeCuda()->linkOptions[keys[i]] = reinterpret_cast<uint64_t>(values[i]);
  }
  *state = new CUlinkState_st();
  (*state)->errors =
      static_cast<char *>(option(count, keys, values, CU_JIT_ERROR_LOG_BUFFER));
  (*state)->info =
      static_cast<char *>(option(count, keys, values, CU_JIT_INFO_LOG_BUFFER));
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType, void *data,
                          size_t size, const char *, unsigned, CUjit_option *,
                          void **) {
  ENTER("cuLinkAddData");
  state->ptx.assign(static_cast<char *>(data), size - 1);
  return compile(state->ptx, state->errors, state->info, state->cubin);
}
CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
  ENTER("cuLinkComplete");
  *cubin = state->cubin.data();
  *size = state->cubin.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  delete state;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  ENTER("cuFuncSetAttribute");
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    fakeCuda()->functionAttributes[function->name] = value;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function) {
  ENTER("cuFuncGetAttribute");
  const FakeKernel &kernel = fakeCuda()->kernels[function->name];
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
               ? kernel.maxThreads
           : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? kernel.shared
           : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? kernel.local
                                                             : kernel.registers;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                            size_t *size) {
  const FakeKernel &kernel = fakeCuda()->kernels[function->name];
  if (kernel.parameters.empty()) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (index >= kernel.parameters.size()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *offset = kernel.parameters[index].first;
  *size = kernel.parameters[index].second;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction,
                                                     int threads, size_t) {
  *blocks = 2048 / threads;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned, unsigned,
                        unsigned threads, unsigned, unsigned, unsigned shared,
                        CUstream stream, void **parameters, void **extra) {
  ENTER("cuLaunchKernel");
  ++fakeCuda()->numLaunches;
  if (!contextDepth || !parameters || extra) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!fakeCuda()->record) {
    return CUDA_SUCCESS;
  }
  // The runtime ends the list with where its buffer ends, and null.
  void **last = parameters;
  while (last[1]) {
    ++last;
  }
  FakeLaunch launch{function->name,
                    gridX,
                    threads,
                    shared,
                    stream,
                    std::string(static_cast<char *>(parameters[0]),
                                static_cast<char *>(*last))};
  if (stream && stream->capturing) {
    stream->captured.push_back(std::move(launch));
  } else {
    fakeCuda()->launches.push_back(std::move(launch));
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = 1000;
  *total = 80000;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  ENTER("cuMemAlloc");
  if (!contextDepth) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  ++fakeCuda()->numAllocations;
  size_t rounded = (bytes + 511) / 512 * 512;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(512, rounded));
  std::memset(bytesAt(*address), 0xcd, rounded);
  blocks[*address] = {bytes, contextStack[contextDepth - 1]->device, false};
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER("cuMemFree");
  ++fakeCuda()->numFrees;
  if (!blocks.erase(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(bytesAt(address));
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  ENTER("cuMemcpyHtoD");
  std::memcpy(bytesAt(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream) {
  ENTER("cuMemcpyHtoDAsync");
  std::memcpy(bytesAt(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream) {
  ENTER("cuMemcpyDtoHAsync");
  std::memcpy(to, bytesAt(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                         CUstream) {
  ENTER("cuMemsetD8Async");
  ++fakeCuda()->numMemsets;
  std::memset(bytesAt(to), value, bytes);
  if (fakeCuda()->record) {
    fakeCuda()->memsets.push_back({to, value, bytes});
  }
  return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream) {
  ENTER("cuMemsetD32Async");
  ++fakeCuda()->numMemsets;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(bytesAt(to) + 4 * i, &value, 4);
  }
  if (fakeCuda()->record) {
    fakeCuda()->memsets.push_back({to, value, 4 * count});
  }
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  ENTER("cuPointerGetAttribute");
  ++fakeCuda()->numPointerQueries;
  const Block *block = blockAt(address);
  if (!block) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int value = attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE
                  ? (block->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE)
              : attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED ? 0
                                                             : block->device;
  std::memcpy(data, &value, sizeof(value));
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
    const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
    const uint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  ENTER("cuTensorMapEncodeTiled");
  ++fakeCuda()->numEncodings;
  if (rank != 4 || reinterpret_cast<uint64_t>(map) % 64) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  FakeTensorMap fake = {};
  fake.address = reinterpret_cast<uint64_t>(address);
  std::memcpy(fake.extents, extents, sizeof(fake.extents));
  std::memcpy(fake.strides, strides, sizeof(fake.strides));
  std::memcpy(fake.box, box, sizeof(fake.box));
  fake.type = type;
  fake.swizzle = swizzle;
  fake.promotion = promotion;
  fake.fill = fill;
  std::memcpy(map, &fake, sizeof(fake));
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  ENTER("cuStreamCreate");
  *stream = new CUstream_st();
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) {
  ENTER("cuStreamSynchronize");
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  ENTER("cuStreamBeginCapture");
  stream->capturing = true;
  stream->captured.clear();
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  stream->capturing = false;
  ENTER("cuStreamEndCapture");
  *graph = new CUgraph_st{std::move(stream->captured)};
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                     unsigned long long) {
  ENTER("cuGraphInstantiate");
  *executable = new CUgraphExec_st{graph->launches};
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  ENTER("cuGraphLaunch");
  for (const FakeLaunch &launch : executable->launches) {
    fakeCuda()->launches.push_back(launch);
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  delete executable;
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
  ENTER("cuEventCreate");
  *event = new CUevent_st();
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent, CUstream) {
  ENTER("cuEventRecord");
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) {
  ENTER("cuEventSynchronize");
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 0.5f;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char **name) {
  switch (result) {
#define NAME(code)                                                             \
  case code:                                                                   \
    *name = #code;                                                             \
    return CUDA_SUCCESS;
    NAME(CUDA_ERROR_INVALID_VALUE)
    NAME(CUDA_ERROR_OUT_OF_MEMORY)
    NAME(CUDA_ERROR_NO_DEVICE)
    NAME(CUDA_ERROR_INVALID_PTX)
    NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    NAME(CUDA_ERROR_LAUNCH_FAILED)
    NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    NAME(CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
    NAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
  default:
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuGetErrorString(CUresult result, const char **text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : nullptr;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // extern "C"
