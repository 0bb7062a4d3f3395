/*===- attnfuse-c/Runtime.h - run compiled programs on a GPU -------*- C
-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads a compiled program (PTX or cubin, and a manifest: docs/runtime.md) and
// launches it on the caller's device and stream. Needs neither MLIR nor CUDA
// headers; the driver's libcuda.so.1 is opened at run time.
//
// Every function that can fail returns a status; attnfuse_last_error() has
// one message (what failed, with which code, what to do) for the calling
// thread. Functions are safe to call from several threads; one program may be
// launched on several streams, each launch with a workspace of its own.
//
//===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_RUNTIME_H
#define ATTNFUSE_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ATTNFUSE_OK = 0,
  ATTNFUSE_INVALID_ARGUMENT = 1, /* shapes, strides, types, devices */
  ATTNFUSE_NO_DRIVER = 2,
  ATTNFUSE_NO_DEVICE = 3,
  ATTNFUSE_DRIVER_TOO_OLD = 4, /* the code's PTX version is above its own */
  ATTNFUSE_WRONG_CHIP = 5,
  ATTNFUSE_COMPILE_ERROR = 6, /* attnfuse_last_error() has the JIT's log */
  ATTNFUSE_OUT_OF_MEMORY = 7,
  ATTNFUSE_LAUNCH_FAILED = 8,
  ATTNFUSE_DRIVER_ERROR = 9
} attnfuse_status;

typedef enum {
  ATTNFUSE_F32 = 0,
  ATTNFUSE_BF16 = 1,
  ATTNFUSE_F16 = 2,
  ATTNFUSE_I64 = 3,
  ATTNFUSE_I32 = 4,
  ATTNFUSE_I8 = 5,
  ATTNFUSE_I1 = 6 /* a byte each */
} attnfuse_dtype;

/* A strided array. Strides are in elements and may be 0 or negative (an
   output's not 0 along an extent above 1); data points at element (0, ..., 0)
   in memory of the program's device, aligned to its elements. A scalar
   argument is an array of rank 0 in host memory, read during the call. */
typedef struct {
  void *data;
  attnfuse_dtype dtype;
  int32_t rank;
  const int64_t *shape;
  const int64_t *strides;
} attnfuse_tensor;

typedef struct attnfuse_program attnfuse_program;

/* The message of this thread's last failure, "" if there was none. */
const char *attnfuse_last_error(void);

typedef struct {
  char name[128];
  int32_t major, minor;  /* compute capability */
  int32_t units;         /* streaming multiprocessors */
  int64_t memory;        /* bytes */
  int64_t shared_memory; /* bytes a block may opt in to */
  int32_t clock_khz, memory_clock_khz, memory_bus_bits;
  int64_t l2_bytes;
  int32_t driver_version; /* of the CUDA driver, 13000 for 13.0 */
  int32_t ptx_version;    /* highest it loads, 90 for 9.0 */
} attnfuse_device_info;

/* How many GPUs there are; ATTNFUSE_NO_DRIVER says why none can be asked. */
attnfuse_status attnfuse_device_count(int32_t *count);
attnfuse_status attnfuse_device_describe(int32_t device,
                                         attnfuse_device_info *info);

/* Loads a program for a device. `code` is PTX text (JIT-compiled, the result
   kept on disk: see docs/runtime.md) or a cubin. The program retains the
   device's primary context, the one that CUDA's runtime and torch use. */
attnfuse_status attnfuse_program_load(const char *code, size_t code_size,
                                      const char *manifest,
                                      size_t manifest_size, int32_t device,
                                      attnfuse_program **program);
void attnfuse_program_destroy(attnfuse_program *program);

int32_t attnfuse_program_num_inputs(const attnfuse_program *program);
int32_t attnfuse_program_num_outputs(const attnfuse_program *program);
/* Rank and dtype of an output; rank extents are written to shape, computed
   from the inputs'. */
attnfuse_status
attnfuse_program_output_shape(const attnfuse_program *program,
                              const attnfuse_tensor *inputs, int32_t num_inputs,
                              int32_t output, attnfuse_dtype *dtype,
                              int32_t *rank, int64_t *shape /* [8] */);

/* Bytes of device memory that a launch on these inputs needs beside them. */
attnfuse_status attnfuse_program_workspace(const attnfuse_program *program,
                                           const attnfuse_tensor *inputs,
                                           int32_t num_inputs, size_t *bytes);

/* Launches on `stream` (a CUstream; NULL is the default stream). Nothing is
   allocated and nothing waits: it may be called while a CUDA graph is being
   captured. `workspace` has to be 256-byte aligned and belongs to the launch
   until it has run. */
attnfuse_status attnfuse_program_launch(attnfuse_program *program,
                                        const attnfuse_tensor *inputs,
                                        int32_t num_inputs,
                                        const attnfuse_tensor *outputs,
                                        int32_t num_outputs, void *workspace,
                                        size_t workspace_bytes, void *stream);

/* The kernels of a program as the driver loaded them. */
typedef struct {
  const char *name;
  int32_t threads, registers, spill_bytes, blocks_per_unit;
  int64_t shared_bytes;
} attnfuse_kernel_info;
int32_t attnfuse_program_num_kernels(const attnfuse_program *program);
attnfuse_status attnfuse_program_kernel(const attnfuse_program *program,
                                        int32_t index,
                                        attnfuse_kernel_info *info);
/* What the JIT said while loading; "" for a cubin. */
const char *attnfuse_program_log(const attnfuse_program *program);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_RUNTIME_H */
