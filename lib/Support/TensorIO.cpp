//===- TensorIO.cpp - files in general -------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Support/TensorIO.h"

#include "FileFormat.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace attnfuse;
using namespace attnfuse::detail;

llvm::Error attnfuse::detail::fileError(llvm::StringRef path,
                                        const llvm::Twine &message) {
  return llvm::createStringError("'" + path + "': " + message);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
attnfuse::detail::openFile(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path)) {
    return fileError(path, "is a directory; expected a .npy or .safetensors "
                           "file");
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return fileError(path, "cannot be read: " + buffer.getError().message());
  }
  return std::move(*buffer);
}

llvm::Error attnfuse::detail::writeAtomically(
    llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(path + ".%%%%%%%%.tmp",
                                      llvm::sys::fs::all_read |
                                          llvm::sys::fs::all_write);
  if (!file) {
    return fileError(path,
                     "cannot be written: " + llvm::toString(file.takeError()));
  }
  std::error_code failed;
  {
    llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    write(stream);
    stream.flush();
    failed = stream.error();
    stream.clear_error();
  }
  if (failed) {
    llvm::consumeError(file->discard());
    return fileError(path, "cannot be written: " + failed.message());
  }
  if (llvm::Error error = file->keep(path)) {
    return fileError(path,
                     "cannot be written: " + llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

void attnfuse::detail::writeElements(llvm::raw_ostream &stream,
                                     const HostTensor &tensor) {
  int64_t size = dtypeSize(tensor.dtype());
  const char *data = static_cast<const char *>(tensor.data());
  if (tensor.isContiguous()) {
    stream.write(data, tensor.sizeInBytes());
    return;
  }
  llvm::SmallVector<int64_t> index(tensor.rank(), 0);
  for (int64_t n = 0, count = tensor.numElements(); n < count; ++n) {
    int64_t offset = 0;
    for (auto [at, stride] : llvm::zip(index, tensor.strides())) {
      offset += at * stride;
    }
    stream.write(data + offset * size, size);
    for (int64_t dim = tensor.rank() - 1; dim >= 0; --dim) {
      if (++index[dim] < tensor.shape()[dim]) {
        break;
      }
      index[dim] = 0;
    }
  }
}

/// `file.safetensors:name` taken apart; the name is empty for other files.
static std::pair<llvm::StringRef, llvm::StringRef>
splitSpec(llvm::StringRef spec) {
  size_t at = spec.rfind(".safetensors:");
  if (at == llvm::StringRef::npos) {
    return {spec, ""};
  }
  size_t colon = at + llvm::StringRef(".safetensors").size();
  return {spec.take_front(colon), spec.drop_front(colon + 1)};
}

static llvm::Error unknownKind(llvm::StringRef spec) {
  return fileError(spec, "has an unknown kind of file; supported: FILE.npy and "
                         "FILE.safetensors:NAME");
}

llvm::Expected<HostTensor> attnfuse::readTensor(llvm::StringRef spec) {
  auto [path, name] = splitSpec(spec);
  if (path.ends_with(".safetensors")) {
    return readSafetensors(path, name);
  }
  if (path.ends_with(".npy")) {
    return readNpy(path);
  }
  return unknownKind(spec);
}

llvm::Error attnfuse::writeTensor(llvm::StringRef spec,
                                  const HostTensor &tensor) {
  auto [path, name] = splitSpec(spec);
  if (path.ends_with(".safetensors")) {
    return writeSafetensors(path,
                            {{name.empty() ? "out" : name.str(), tensor}});
  }
  if (path.ends_with(".npy")) {
    return writeNpy(path, tensor);
  }
  return unknownKind(spec);
}

llvm::Error attnfuse::checkWritable(llvm::StringRef spec) {
  auto [path, name] = splitSpec(spec);
  if (!path.ends_with(".npy") && !path.ends_with(".safetensors")) {
    return unknownKind(spec);
  }
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty()) {
    folder = ".";
  }
  if (!llvm::sys::fs::is_directory(folder)) {
    return fileError(path,
                     "cannot be written: there is no folder '" + folder + "'");
  }
  if (llvm::sys::fs::is_directory(path)) {
    return fileError(path, "cannot be written: it is a directory");
  }
  // A file made and dropped tells what permissions alone do not.
  llvm::Expected<llvm::sys::fs::TempFile> probe =
      llvm::sys::fs::TempFile::create(path + ".%%%%%%%%.tmp");
  if (!probe) {
    return fileError(path,
                     "cannot be written: " + llvm::toString(probe.takeError()));
  }
  return probe->discard();
}
