//===- TensorMap.cpp - maps for tensor memory accelerators -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "TensorMap.h"

#include <algorithm>

using namespace attnfuse;
using namespace attnfuse::runtime;
using namespace attnfuse::runtime::cuda;

static constexpr int kAlignment = 16;
static constexpr int64_t kStrideLimit = int64_t(1) << 40;
static constexpr int64_t kExtentLimit = int64_t(1) << 32;
static constexpr int64_t kBoxLimit = 256;

static CUtensorMapDataType typeOf(attnfuse_dtype dtype) {
  switch (dtype) {
  case ATTNFUSE_F32:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  case ATTNFUSE_BF16:
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  case ATTNFUSE_F16:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  case ATTNFUSE_I64:
    return CU_TENSOR_MAP_DATA_TYPE_INT64;
  case ATTNFUSE_I32:
    return CU_TENSOR_MAP_DATA_TYPE_INT32;
  case ATTNFUSE_I8:
  case ATTNFUSE_I1:
    break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

static CUtensorMapSwizzle swizzleOf(int bytes) {
  switch (bytes) {
  case 32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case 64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  case 128:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  default:
    return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

template <typename... Pieces>
static bool refuse(std::string *reason, const Pieces &...pieces) {
  if (reason) {
    *reason = concat(pieces...);
  }
  return false;
}

/// The stride of a dimension in bytes: legal, or refused.
static bool byteStride(const TensorView &tensor, int dimension, int64_t &bytes,
                       std::string *reason) {
  int64_t size = sizeOf(tensor.dtype);
  int64_t stride = tensor.strides[dimension];
  if (tensor.shape[dimension] == 1) {
    // Never stepped over.
    bytes = kAlignment;
    return true;
  }
  if (stride <= 0) {
    return refuse(reason, "has stride ", stride, " in dimension ", dimension,
                  "; the tensor memory accelerator needs positive strides");
  }
  if (stride >= kStrideLimit / size) {
    return refuse(reason, "has stride ", stride, " in dimension ", dimension,
                  "; the tensor memory accelerator needs strides below 2^40 "
                  "bytes");
  }
  bytes = stride * size;
  if (bytes % kAlignment) {
    return refuse(reason, "has stride ", stride, " (", bytes,
                  " bytes) in dimension ", dimension,
                  "; the tensor memory accelerator needs a multiple of ",
                  kAlignment, " bytes");
  }
  return true;
}

bool runtime::describeTensorMap(const TensorView &tensor, const Extra &map,
                                uint64_t zeros, TensorMapRequest &request,
                                std::string *reason) {
  int64_t size = sizeOf(tensor.dtype);
  if (tensor.rank != 4) {
    return refuse(reason, "has rank ", tensor.rank,
                  "; tensor maps are of rank 4");
  }
  int64_t columns = map.box[0] * size;
  if (map.box[0] < 1 || map.box[0] > kBoxLimit || map.box[1] < 1 ||
      map.box[1] > kBoxLimit || columns % kAlignment ||
      (map.swizzle && columns > map.swizzle)) {
    return refuse(reason, "would be read in boxes of ", map.box[0], " x ",
                  map.box[1], " with swizzle ", map.swizzle,
                  ", which the tensor memory accelerator cannot do");
  }
  request.type = typeOf(tensor.dtype);
  request.swizzle = swizzleOf(map.swizzle);
  request.address = tensor.address;
  request.box[0] = map.box[0];
  request.box[1] = map.box[1];
  request.box[2] = 1;
  request.box[3] = 1;
  const int64_t *shape = tensor.shape;
  if (std::find(shape, shape + 4, 0) != shape + 4) {
    request.address = zeros;
    std::fill_n(request.extents, 4, 1);
    std::fill_n(request.strides, 3, kAlignment);
    return true;
  }
  for (int i = 0; i < 4; ++i) {
    if (shape[3 - i] < 0 || shape[3 - i] >= kExtentLimit) {
      return refuse(reason, "has extent ", shape[3 - i], " in dimension ",
                    3 - i,
                    "; the tensor memory accelerator needs less than 2^32");
    }
    request.extents[i] = shape[3 - i];
  }
  if (tensor.address % kAlignment) {
    return refuse(reason,
                  "is not 16-byte aligned, which the tensor memory accelerator "
                  "needs");
  }
  if (tensor.strides[3] != 1 && shape[3] != 1) {
    return refuse(reason, "has stride ", tensor.strides[3],
                  " in dimension 3; the tensor memory accelerator needs 1 "
                  "there");
  }
  for (int i = 0; i < 3; ++i) {
    int64_t bytes;
    if (!byteStride(tensor, 2 - i, bytes, reason)) {
      return false;
    }
    request.strides[i] = bytes;
  }
  return true;
}

Status runtime::encodeTensorMap(const Driver &driver,
                                const TensorMapRequest &request,
                                CUtensorMap &map) {
  static constexpr uint32_t kSteps[4] = {1, 1, 1, 1};
  CUresult result = driver.cuTensorMapEncodeTiled(
      &map, request.type, 4, reinterpret_cast<void *>(request.address),
      request.extents, request.strides, request.box, kSteps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, request.swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return driver.check(result, "cuTensorMapEncodeTiled");
}
