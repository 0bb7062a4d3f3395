//===- Jit.h - code into the driver -------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_JIT_H
#define ATTNFUSE_LIB_RUNTIME_JIT_H

#include "DiskCache.h"
#include "Driver.h"
#include "Manifest.h"

namespace attnfuse::runtime {

struct LoadedModule {
  cuda::CUmodule module = nullptr;
  /// What the compiler of PTX said.
  std::string log;
};

/// A cubin (or a fat binary), not PTX text.
bool isBinary(std::string_view code);

/// Whether a chip runs the code; an error that says why not, and whether the
/// driver reads its PTX.
Status checkCode(const Manifest &manifest, std::string_view code, int ordinal,
                 const attnfuse_device_info &device);

/// Loads code into the current context. PTX is compiled, or taken from `cache`
/// where the same was compiled before.
Status loadModule(const Driver &driver, const Manifest &manifest,
                  std::string_view code, const attnfuse_device_info &device,
                  const DiskCache &cache, LoadedModule &loaded);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_JIT_H
