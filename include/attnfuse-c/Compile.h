/*===- attnfuse-c/Compile.h - compile attention programs -----------*- C
-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From the text of an attention program to code and a manifest that
// attnfuse-c/Runtime.h loads. Needs no GPU.
//
//===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_COMPILE_H
#define ATTNFUSE_C_COMPILE_H

#include "attnfuse-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attnfuse_artifact attnfuse_artifact;

/* Compiles a function of a module to PTX for `chip` ("sm_80", "sm_90a", ...).
   `entry` may be NULL: the first public function. `options` may be NULL or is
   those of the pipeline attnfuse-to-ptx, e.g. "block-m=64 rope=in-loop". The
   result comes from the disk cache where the same was compiled before. On
   failure attnfuse_last_error() has the diagnostics, with their locations. */
attnfuse_status attnfuse_compile(const char *text, size_t text_size,
                                 const char *entry, const char *chip,
                                 const char *options,
                                 attnfuse_artifact **artifact);
void attnfuse_artifact_destroy(attnfuse_artifact *artifact);

/* PTX text, manifest (JSON), and a line per choice (as --explain prints). */
const char *attnfuse_artifact_code(const attnfuse_artifact *artifact,
                                   size_t *size);
const char *attnfuse_artifact_manifest(const attnfuse_artifact *artifact,
                                       size_t *size);
const char *attnfuse_artifact_explanation(const attnfuse_artifact *artifact,
                                          size_t *size);

/* The chip name to compile for on a device: "sm_90a" for 9.0, else "sm_NN" for
   the greatest supported NN that it runs; ATTNFUSE_WRONG_CHIP before sm_80. */
attnfuse_status attnfuse_chip_for_device(int32_t device, char name[16]);

/* "0.1.0 (LLVM 22.1.8)" */
const char *attnfuse_version(void);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_COMPILE_H */
