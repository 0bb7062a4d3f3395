//===- Shapes.cpp - checks and extents of a launch -------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include <cstdlib>
#include <cstring>

using namespace attnfuse;
using namespace attnfuse::runtime;

std::string runtime::describeArgument(const Manifest &manifest, int index) {
  const std::string &name = manifest.arguments[index].name;
  return name.empty() ? concat("argument ", index)
                      : concat("argument ", index, " ('", name, "')");
}

std::string runtime::describeOutput(int index) {
  return concat("output ", index);
}

/// A C caller may have put any number there.
static int numberOf(const attnfuse_dtype &dtype) {
  int number;
  static_assert(sizeof(dtype) == sizeof(number));
  std::memcpy(&number, &dtype, sizeof(number));
  return number;
}

static Status wrongType(int found, attnfuse_dtype needed) {
  bool known = found >= ATTNFUSE_F32 && found <= ATTNFUSE_I1;
  return invalid("is of type ",
                 known ? nameOf(static_cast<attnfuse_dtype>(found))
                       : concat("number ", found),
                 ", the program needs ", nameOf(needed));
}

/// What is wrong with a tensor's type, rank or extents. `extent(d)` is the
/// extent that dimension d has to have, -1 for any.
template <typename Function>
static Status checkTensor(const TensorSpec &spec, const attnfuse_tensor &tensor,
                          Function &&extent) {
  int dtype = numberOf(tensor.dtype);
  if (dtype != spec.dtype) {
    return wrongType(dtype, spec.dtype);
  }
  if (tensor.rank != spec.rank) {
    return invalid("has rank ", tensor.rank, ", the program needs ", spec.rank,
                   spec.scalar ? " (a scalar)" : "");
  }
  if (spec.rank > 0 && !tensor.shape) {
    return invalid("has no shape");
  }
  for (int d = 0; d < spec.rank; ++d) {
    int64_t found = tensor.shape[d];
    if (found < 0 || found > kMaxExtent) {
      return invalid("has extent ", found, " in dimension ", d,
                     "; extents are from 0 to 2^31 - 1");
    }
    if (spec.rank == 4 && found > kMaxPositions) {
      return invalid("has extent ", found, " in dimension ", d,
                     "; extents of tensors of rank 4 are from 0 to 2^30");
    }
    int64_t needed = extent(d);
    if (needed >= 0 && found != needed) {
      return invalid("has extent ", found, " in dimension ", d,
                     ", the program needs ", needed);
    }
  }
  return {};
}

static Status prefixed(const std::string &name, Status status) {
  status.message = concat(name, " ", status.message);
  return status;
}

static Status checkCount(const char *what, int found, size_t needed,
                         const attnfuse_tensor *tensors) {
  if (found != static_cast<int>(needed)) {
    return invalid("the program has ", needed, " ", what, ", ", found,
                   " were given");
  }
  if (found > 0 && !tensors) {
    return invalid("the ", what, " are a null pointer");
  }
  return {};
}

Status runtime::checkInputs(const Manifest &manifest,
                            const attnfuse_tensor *inputs, int count) {
  Status status =
      checkCount("inputs", count, manifest.arguments.size(), inputs);
  for (int i = 0; i < count && status.ok(); ++i) {
    const TensorSpec &spec = manifest.arguments[i];
    status = checkTensor(spec, inputs[i],
                         [&](int d) { return spec.shape[d].value; });
    if (!status.ok()) {
      return prefixed(describeArgument(manifest, i), std::move(status));
    }
  }
  if (!status.ok()) {
    return status;
  }
  for (auto [first, second] : manifest.equal) {
    int64_t one = inputs[first.argument].shape[first.dimension];
    int64_t other = inputs[second.argument].shape[second.dimension];
    if (one != other) {
      return invalid("dimension ", first.dimension, " of ",
                     describeArgument(manifest, first.argument), " is ", one,
                     ", dimension ", second.dimension, " of ",
                     describeArgument(manifest, second.argument), " is ", other,
                     "; they have to agree");
    }
  }
  return {};
}

Status runtime::checkOutputs(const Manifest &manifest,
                             const attnfuse_tensor *inputs,
                             const attnfuse_tensor *outputs, int count) {
  Status status =
      checkCount("outputs", count, manifest.results.size(), outputs);
  for (int i = 0; i < count && status.ok(); ++i) {
    const TensorSpec &spec = manifest.results[i];
    status = checkTensor(spec, outputs[i],
                         [&](int d) { return resolve(spec.shape[d], inputs); });
    if (!status.ok()) {
      return prefixed(describeOutput(i), std::move(status));
    }
    for (int d = 0; d < spec.rank && outputs[i].strides; ++d) {
      if (outputs[i].strides[d] == 0 && outputs[i].shape[d] > 1 &&
          !isEmpty(outputs[i])) {
        return invalid(describeOutput(i), " has stride 0 in dimension ", d,
                       "; its elements have to be different ones");
      }
    }
  }
  return status;
}

bool runtime::isEmpty(const attnfuse_tensor &tensor) {
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] == 0) {
      return true;
    }
  }
  return false;
}

Status runtime::checkData(const attnfuse_tensor &tensor) {
  if (tensor.rank > 0 && !tensor.strides) {
    return invalid("has no strides");
  }
  if (isEmpty(tensor)) {
    return {};
  }
  if (!tensor.data) {
    return invalid("is a null pointer");
  }
  int64_t size = sizeOf(tensor.dtype);
  if (reinterpret_cast<uintptr_t>(tensor.data) % size) {
    return invalid("is not aligned to its elements of ", size, " bytes");
  }
  int64_t reach = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    int64_t stride = tensor.strides[d];
    int64_t step;
    if (stride == INT64_MIN ||
        __builtin_mul_overflow(std::abs(stride), tensor.shape[d] - 1, &step) ||
        __builtin_mul_overflow(step, size, &step) ||
        __builtin_add_overflow(reach, step, &reach)) {
      return invalid("has stride ", stride, " in dimension ", d,
                     ", which leads out of 64-bit addresses");
    }
  }
  return {};
}

static constexpr size_t alignUp(size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
         kWorkspaceAlignment;
}

Status runtime::layOutWorkspace(const Manifest &manifest,
                                const attnfuse_tensor *inputs,
                                WorkspaceLayout &layout) {
  layout.bytes = alignUp(sizeof(uint32_t) * manifest.counters);
  for (size_t i = 0; i < manifest.temporaries.size(); ++i) {
    const TensorSpec &spec = manifest.temporaries[i];
    layout.temporaries[i] = layout.bytes;
    bool empty = false;
    bool tooMuch = false;
    int64_t bytes = sizeOf(spec.dtype);
    for (int d = 0; d < spec.rank; ++d) {
      int64_t extent = resolve(spec.shape[d], inputs);
      empty |= extent == 0;
      tooMuch |= __builtin_mul_overflow(bytes, extent, &bytes);
    }
    if (empty) {
      continue;
    }
    // Half of the address space leaves room for the sum.
    if (tooMuch || bytes > INT64_MAX / 2 ||
        layout.bytes > static_cast<size_t>(INT64_MAX / 2)) {
      return invalid("temporary ", i,
                     " of the program has more bytes than can be addressed");
    }
    layout.bytes += alignUp(bytes);
  }
  return {};
}
