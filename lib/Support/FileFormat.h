//===- FileFormat.h - what readers and writers share -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_SUPPORT_FILEFORMAT_H
#define ATTNFUSE_LIB_SUPPORT_FILEFORMAT_H

#include "AttnFuse/Support/HostTensor.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace llvm {
class MemoryBuffer;
class raw_ostream;
} // namespace llvm

namespace attnfuse::detail {

/// An error that starts with the file's name.
llvm::Error fileError(llvm::StringRef path, const llvm::Twine &message);

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openFile(llvm::StringRef path);

/// Calls `write` on a temporary file, which takes the name `path` when all has
/// been written.
llvm::Error
writeAtomically(llvm::StringRef path,
                llvm::function_ref<void(llvm::raw_ostream &)> write);

/// The elements in row-major order.
void writeElements(llvm::raw_ostream &stream, const HostTensor &tensor);

} // namespace attnfuse::detail

#endif // ATTNFUSE_LIB_SUPPORT_FILEFORMAT_H
