//===- TensorIO.h - .npy and .safetensors files ------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_TENSORIO_H
#define ATTNFUSE_SUPPORT_TENSORIO_H

#include "AttnFuse/Support/HostTensor.h"

#include <string>
#include <utility>

namespace attnfuse {

/// Reads `file.npy` or `file.safetensors:name`. Tensors are copied out of the
/// file; a Fortran-ordered array keeps its order in its strides. bfloat16 in
/// .npy is stored as `<V2` (the convention of ml_dtypes).
llvm::Expected<HostTensor> readTensor(llvm::StringRef spec);
llvm::Expected<HostTensor> readNpy(llvm::StringRef path);
llvm::Expected<HostTensor> readSafetensors(llvm::StringRef path,
                                           llvm::StringRef name);

/// Writers make the whole file or none: the data go to a temporary file beside
/// it, which is renamed at the end.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);
llvm::Error
writeSafetensors(llvm::StringRef path,
                 llvm::ArrayRef<std::pair<std::string, HostTensor>> tensors);
/// By the form of `spec`, as for readTensor.
llvm::Error writeTensor(llvm::StringRef spec, const HostTensor &tensor);
/// Whether a file could be made there; used before any work is done.
llvm::Error checkWritable(llvm::StringRef spec);

} // namespace attnfuse

#endif // ATTNFUSE_SUPPORT_TENSORIO_H
