//===- CApi.cpp - the functions of attnfuse-c/Runtime.h --- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "DeviceInfo.h"
#include "LastError.h"
#include "Program.h"
#include "Shapes.h"

using namespace attnfuse::runtime;

/// The C type stands for the class.
static Program *unwrap(attnfuse_program *program) {
  return reinterpret_cast<Program *>(program);
}
static const Program *unwrap(const attnfuse_program *program) {
  return reinterpret_cast<const Program *>(program);
}

static Status nullPointer(const char *what) {
  return invalid("the ", what, " is a null pointer");
}

attnfuse_status attnfuse_device_count(int32_t *count) {
  if (!count) {
    return report(nullPointer("count"));
  }
  *count = 0;
  Status status;
  const Driver *driver = Driver::get(status);
  if (!driver) {
    // A driver that finds no GPU has answered.
    return report(status.code == ATTNFUSE_NO_DEVICE ? Status()
                                                    : std::move(status));
  }
  int found = 0;
  status = driver->check(driver->cuDeviceGetCount(&found), "cuDeviceGetCount");
  *count = status.ok() ? found : 0;
  return report(std::move(status));
}

attnfuse_status attnfuse_device_describe(int32_t device,
                                         attnfuse_device_info *info) {
  if (!info) {
    return report(nullPointer("info"));
  }
  Status status;
  if (const Driver *driver = Driver::get(status)) {
    cuda::CUdevice handle;
    status = describeDevice(*driver, device, handle, *info);
  }
  return report(std::move(status));
}

attnfuse_status attnfuse_program_load(const char *code, size_t codeSize,
                                      const char *manifest, size_t manifestSize,
                                      int32_t device,
                                      attnfuse_program **program) {
  if (!code || !manifest || !program) {
    return report(nullPointer(!code       ? "code"
                              : !manifest ? "manifest"
                                          : "program"));
  }
  Status status;
  *program = reinterpret_cast<attnfuse_program *>(
      Program::load({code, codeSize}, {manifest, manifestSize}, device, status)
          .release());
  return report(std::move(status));
}

void attnfuse_program_destroy(attnfuse_program *program) {
  delete unwrap(program);
}

int32_t attnfuse_program_num_inputs(const attnfuse_program *program) {
  return static_cast<int32_t>(unwrap(program)->manifest().arguments.size());
}

int32_t attnfuse_program_num_outputs(const attnfuse_program *program) {
  return static_cast<int32_t>(unwrap(program)->manifest().results.size());
}

attnfuse_status attnfuse_program_output_shape(const attnfuse_program *program,
                                              const attnfuse_tensor *inputs,
                                              int32_t numInputs, int32_t output,
                                              attnfuse_dtype *dtype,
                                              int32_t *rank, int64_t *shape) {
  if (!program || !dtype || !rank || !shape) {
    return report(nullPointer(!program ? "program"
                              : !dtype ? "dtype"
                              : !rank  ? "rank"
                                       : "shape"));
  }
  const Manifest &manifest = unwrap(program)->manifest();
  int count = static_cast<int>(manifest.results.size());
  if (output < 0 || output >= count) {
    return report(
        invalid("there is no output ", output, "; the program has ", count));
  }
  Status status = checkInputs(manifest, inputs, numInputs);
  if (status.ok()) {
    const TensorSpec &spec = manifest.results[output];
    *dtype = spec.dtype;
    *rank = spec.rank;
    for (int d = 0; d < spec.rank; ++d) {
      shape[d] = resolve(spec.shape[d], inputs);
    }
  }
  return report(std::move(status));
}

attnfuse_status attnfuse_program_workspace(const attnfuse_program *program,
                                           const attnfuse_tensor *inputs,
                                           int32_t numInputs, size_t *bytes) {
  if (!program || !bytes) {
    return report(nullPointer(!program ? "program" : "bytes"));
  }
  const Manifest &manifest = unwrap(program)->manifest();
  Status status = checkInputs(manifest, inputs, numInputs);
  WorkspaceLayout layout = {};
  if (status.ok()) {
    status = layOutWorkspace(manifest, inputs, layout);
  }
  *bytes = status.ok() ? layout.bytes : 0;
  return report(std::move(status));
}

attnfuse_status attnfuse_program_launch(attnfuse_program *program,
                                        const attnfuse_tensor *inputs,
                                        int32_t numInputs,
                                        const attnfuse_tensor *outputs,
                                        int32_t numOutputs, void *workspace,
                                        size_t workspaceBytes, void *stream) {
  if (!program) {
    return report(nullPointer("program"));
  }
  return report(unwrap(program)->launch(inputs, numInputs, outputs, numOutputs,
                                        workspace, workspaceBytes,
                                        static_cast<cuda::CUstream>(stream)));
}

int32_t attnfuse_program_num_kernels(const attnfuse_program *program) {
  return unwrap(program)->numKernels();
}

attnfuse_status attnfuse_program_kernel(const attnfuse_program *program,
                                        int32_t index,
                                        attnfuse_kernel_info *info) {
  if (!program || !info) {
    return report(nullPointer(!program ? "program" : "info"));
  }
  int count = unwrap(program)->numKernels();
  if (index < 0 || index >= count) {
    return report(
        invalid("there is no kernel ", index, "; the program has ", count));
  }
  *info = unwrap(program)->kernelInfo(index);
  return ATTNFUSE_OK;
}

const char *attnfuse_program_log(const attnfuse_program *program) {
  return unwrap(program)->log().c_str();
}
