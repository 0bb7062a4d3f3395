//===- TensorMap.h - maps for the tensor memory accelerator -- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_TENSORMAP_H
#define ATTNFUSE_LIB_RUNTIME_TENSORMAP_H

#include "Driver.h"
#include "Manifest.h"

namespace attnfuse::runtime {

/// A tensor as a launch sees it. Shape and strides belong to somebody else.
struct TensorView {
  uint64_t address;
  attnfuse_dtype dtype;
  int rank;
  const int64_t *shape;
  const int64_t *strides;
};

/// What cuTensorMapEncodeTiled is given, innermost dimension first.
struct TensorMapRequest {
  cuda::CUtensorMapDataType type;
  uint64_t address;
  uint64_t extents[4];
  /// In bytes; that of the innermost dimension is implied.
  uint64_t strides[3];
  uint32_t box[4];
  cuda::CUtensorMapSwizzle swizzle;
};

/// Whether the accelerator can serve a tensor of rank 4 through a map, and
/// with which one. If it cannot, and `reason` is given, it says why: "has
/// stride 3 in dimension 2, ...". An empty tensor is mapped to one element at
/// `zeros`, 16 bytes of device memory that are zero, which reads like it.
bool describeTensorMap(const TensorView &tensor, const Extra &map,
                       uint64_t zeros, TensorMapRequest &request,
                       std::string *reason);

Status encodeTensorMap(const Driver &driver, const TensorMapRequest &request,
                       cuda::CUtensorMap &map);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_TENSORMAP_H
