//===- Shapes.h - checks and extents of a launch's tensors -- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_SHAPES_H
#define ATTNFUSE_LIB_RUNTIME_SHAPES_H

#include "Manifest.h"

namespace attnfuse::runtime {

/// "argument 1 ('k')", "output 0"
std::string describeArgument(const Manifest &manifest, int index);
std::string describeOutput(int index);

inline int64_t resolve(const Extent &extent, const attnfuse_tensor *inputs) {
  return extent.source.argument < 0
             ? extent.value
             : inputs[extent.source.argument].shape[extent.source.dimension];
}

/// Count, types, ranks and extents; not the data.
Status checkInputs(const Manifest &manifest, const attnfuse_tensor *inputs,
                   int count);
/// Likewise; the inputs have been checked.
Status checkOutputs(const Manifest &manifest, const attnfuse_tensor *inputs,
                    const attnfuse_tensor *outputs, int count);

/// Strides and the address's alignment, before a launch.
Status checkData(const attnfuse_tensor &tensor);

bool isEmpty(const attnfuse_tensor &tensor);

/// The counters come first, then each temporary.
struct WorkspaceLayout {
  size_t bytes;
  size_t temporaries[kMaxTemporaries];
};
Status layOutWorkspace(const Manifest &manifest, const attnfuse_tensor *inputs,
                       WorkspaceLayout &layout);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_SHAPES_H
