/* Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
   SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

   A stand-in for libattnfuse.so that needs neither MLIR nor a GPU: its "compiler"
   takes the manifest for the program's text, its launches only write down what
   they were given. The manifest's fake_* keys steer it:
     fake_inputs, fake_outputs   how many there are
     fake_rank                   of every input that is no scalar; checked
     fake_workspace              bytes
     fake_status                 of each launch
   Output 0 is like input 0; the others are too, less the last dimension, in f32.
   It is also the CUDA driver (ATTNFUSE_LIBCUDA), over malloc. */

#include "attnfuse-c/Compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct attnfuse_artifact {
  char *code, *manifest, *explanation;
};
struct attnfuse_program {
  int inputs, outputs, rank, workspace, status, device;
};

/* What the last launch was given; a copy, the caller's structs change. */
typedef struct {
  void *data;
  int32_t dtype, rank;
  int64_t shape[8], strides[8], scalar;
} fake_tensor;
typedef struct {
  int32_t launches, inputs, outputs, device;
  fake_tensor input[16], output[16];
  void *workspace, *stream;
  int64_t workspace_bytes;
  int32_t compiles, loads, destroyed, plans, allocated, freed, synchronized;
} fake_log;
fake_log fake_record;

static char message[512];
const char *attnfuse_last_error(void) { return message; }
const char *attnfuse_version(void) { return "0.0.0 (fake)"; }

static int number(const char *text, const char *key, int fallback) {
  const char *found = strstr(text, key);
  return found ? atoi(strchr(found, ':') + 1) : fallback;
}

attnfuse_status attnfuse_compile(const char *text, size_t size,
                                 const char *entry, const char *chip,
                                 const char *options,
                                 attnfuse_artifact **artifact) {
  ++fake_record.compiles;
  if (strstr(text, "nonsense")) {
    snprintf(message, sizeof message, "<program>:1:1: error: nonsense");
    return ATTNFUSE_COMPILE_ERROR;
  }
  *artifact = calloc(1, sizeof **artifact);
  (*artifact)->code = strdup("// ptx");
  (*artifact)->manifest = calloc(1, size + 1);
  memcpy((*artifact)->manifest, text, size);
  char line[256];
  snprintf(line, sizeof line, "entry=%s chip=%s options=%s",
           entry ? entry : "NULL", chip, options ? options : "NULL");
  (*artifact)->explanation = strdup(line);
  return ATTNFUSE_OK;
}
void attnfuse_artifact_destroy(attnfuse_artifact *artifact) {
  free(artifact->code);
  free(artifact->manifest);
  free(artifact->explanation);
  free(artifact);
}
static const char *with_size(const char *text, size_t *size) {
  *size = strlen(text);
  return text;
}
const char *attnfuse_artifact_code(const attnfuse_artifact *a, size_t *size) {
  return with_size(a->code, size);
}
const char *attnfuse_artifact_manifest(const attnfuse_artifact *a,
                                       size_t *size) {
  return with_size(a->manifest, size);
}
const char *attnfuse_artifact_explanation(const attnfuse_artifact *a,
                                          size_t *size) {
  return with_size(a->explanation, size);
}
attnfuse_status attnfuse_chip_for_device(int32_t device, char name[16]) {
  if (device > 1) {
    snprintf(message, sizeof message, "there is no device %d", device);
    return ATTNFUSE_NO_DEVICE;
  }
  snprintf(name, 16, device ? "sm_80" : "sm_90a");
  return ATTNFUSE_OK;
}

attnfuse_status attnfuse_program_load(const char *code, size_t code_size,
                                      const char *manifest,
                                      size_t manifest_size, int32_t device,
                                      attnfuse_program **program) {
  ++fake_record.loads;
  if (code_size != strlen(code) || manifest_size != strlen(manifest)) {
    snprintf(message, sizeof message, "wrong sizes");
    return ATTNFUSE_INVALID_ARGUMENT;
  }
  *program = calloc(1, sizeof **program);
  (*program)->inputs = number(manifest, "fake_inputs", 3);
  (*program)->outputs = number(manifest, "fake_outputs", 1);
  (*program)->rank = number(manifest, "fake_rank", 4);
  (*program)->workspace = number(manifest, "fake_workspace", 0);
  (*program)->status = number(manifest, "fake_status", 0);
  (*program)->device = device;
  return ATTNFUSE_OK;
}
void attnfuse_program_destroy(attnfuse_program *program) {
  ++fake_record.destroyed;
  free(program);
}
int32_t attnfuse_program_num_inputs(const attnfuse_program *program) {
  return program->inputs;
}
int32_t attnfuse_program_num_outputs(const attnfuse_program *program) {
  return program->outputs;
}
attnfuse_status
attnfuse_program_output_shape(const attnfuse_program *program,
                              const attnfuse_tensor *inputs, int32_t num_inputs,
                              int32_t output, attnfuse_dtype *dtype,
                              int32_t *rank, int64_t *shape) {
  *dtype = output ? ATTNFUSE_F32 : inputs[0].dtype;
  *rank = inputs[0].rank - (output ? 1 : 0);
  memcpy(shape, inputs[0].shape, *rank * sizeof *shape);
  return ATTNFUSE_OK;
}
attnfuse_status attnfuse_program_workspace(const attnfuse_program *program,
                                           const attnfuse_tensor *inputs,
                                           int32_t num_inputs, size_t *bytes) {
  ++fake_record.plans;
  for (int32_t i = 0; i < num_inputs; ++i) {
    if (inputs[i].rank && inputs[i].rank != program->rank) {
      snprintf(message, sizeof message,
               "argument %d has rank %d, the program needs %d", i,
               inputs[i].rank, program->rank);
      return ATTNFUSE_INVALID_ARGUMENT;
    }
  }
  *bytes = program->workspace * (num_inputs ? inputs[0].shape[0] : 1);
  return ATTNFUSE_OK;
}

static void copy(fake_tensor *to, const attnfuse_tensor *from, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    to[i].data = from[i].data;
    to[i].dtype = from[i].dtype;
    to[i].rank = from[i].rank;
    for (int32_t d = 0; d < from[i].rank; ++d) {
      to[i].shape[d] = from[i].shape[d];
      to[i].strides[d] = from[i].strides[d];
    }
    if (!from[i].rank) {
      static const int sizes[] = {4, 2, 2, 8, 4, 1, 1};
      to[i].scalar = 0;
      memcpy(&to[i].scalar, from[i].data, sizes[from[i].dtype]);
    }
  }
}
attnfuse_status attnfuse_program_launch(attnfuse_program *program,
                                        const attnfuse_tensor *inputs,
                                        int32_t num_inputs,
                                        const attnfuse_tensor *outputs,
                                        int32_t num_outputs, void *workspace,
                                        size_t workspace_bytes, void *stream) {
  ++fake_record.launches;
  fake_record.inputs = num_inputs;
  fake_record.outputs = num_outputs;
  fake_record.device = program->device;
  copy(fake_record.input, inputs, num_inputs);
  copy(fake_record.output, outputs, num_outputs);
  fake_record.workspace = workspace;
  fake_record.workspace_bytes = workspace_bytes;
  fake_record.stream = stream;
  if (program->status) {
    snprintf(message, sizeof message, "the launch failed");
  }
  return program->status;
}
/* For measuring: the same, and nothing done. */
attnfuse_status fake_nothing(attnfuse_program *program,
                             const attnfuse_tensor *inputs, int32_t num_inputs,
                             const attnfuse_tensor *outputs,
                             int32_t num_outputs, void *workspace,
                             size_t workspace_bytes, void *stream) {
  return ATTNFUSE_OK;
}

int32_t attnfuse_program_num_kernels(const attnfuse_program *program) {
  return 1;
}
attnfuse_status attnfuse_program_kernel(const attnfuse_program *program,
                                        int32_t index,
                                        attnfuse_kernel_info *info) {
  attnfuse_kernel_info found = {"kernel_0", 128, 168, 0, 1, 65536};
  *info = found;
  return ATTNFUSE_OK;
}
const char *attnfuse_program_log(const attnfuse_program *program) {
  return "";
}

int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
  return *context = &fake_record, 0;
}
int cuCtxPushCurrent_v2(void *context) { return context != &fake_record; }
int cuCtxPopCurrent_v2(void **context) { return *context = &fake_record, 0; }
int cuMemAlloc_v2(unsigned long long *address, size_t size) {
  ++fake_record.allocated;
  *address = (unsigned long long)malloc(size);
  return *address ? 0 : 2;
}
int cuMemFree_v2(unsigned long long address) {
  ++fake_record.freed;
  free((void *)address);
  return 0;
}
int cuStreamSynchronize(void *stream) {
  ++fake_record.synchronized;
  return 0;
}
