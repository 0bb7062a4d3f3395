//===- Npy.cpp - numpy's array files ---------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The format is that of numpy.lib.format: a magic string, a version, the
// header's length, and a Python dictionary with the keys 'descr',
// 'fortran_order' and 'shape'.
//
//===----------------------------------------------------------------------===//

#include "FileFormat.h"

#include "AttnFuse/Support/TensorIO.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace attnfuse;
using namespace attnfuse::detail;

static constexpr llvm::StringLiteral kMagic("\x93NUMPY");

static std::optional<DType> fromDescr(llvm::StringRef descr) {
  // '|' stands for no byte order, '=' for the machine's.
  if (descr.size() < 2 || descr[0] == '>') {
    return std::nullopt;
  }
  llvm::StringRef kind = descr.drop_front(
      descr[0] == '<' || descr[0] == '|' || descr[0] == '=' ? 1 : 0);
  if (kind == "f2") {
    return DType::F16;
  }
  if (kind == "f4") {
    return DType::F32;
  }
  if (kind == "f8") {
    return DType::F64;
  }
  if (kind == "V2") {
    return DType::BF16;
  }
  if (kind == "b1" || kind == "?") {
    return DType::I1;
  }
  if (kind == "i1") {
    return DType::I8;
  }
  if (kind == "i4") {
    return DType::I32;
  }
  if (kind == "i8") {
    return DType::I64;
  }
  return std::nullopt;
}

static llvm::StringRef toDescr(DType type) {
  switch (type) {
  case DType::F16:
    return "<f2";
  case DType::BF16:
    return "<V2";
  case DType::F32:
    return "<f4";
  case DType::F64:
    return "<f8";
  case DType::I1:
    return "|b1";
  case DType::I8:
    return "|i1";
  case DType::I32:
    return "<i4";
  case DType::I64:
    return "<i8";
  }
  llvm_unreachable("every type is handled");
}

/// The text after `'key':`, trimmed on the left; empty if there is none.
static llvm::StringRef valueOf(llvm::StringRef header, llvm::StringRef key) {
  for (char quote : {'\'', '"'}) {
    std::string quoted = std::string(1, quote) + key.str() + quote;
    size_t at = header.find(quoted);
    if (at != llvm::StringRef::npos) {
      llvm::StringRef rest = header.drop_front(at + quoted.size()).ltrim();
      return rest.consume_front(":") ? rest.ltrim() : llvm::StringRef();
    }
  }
  return {};
}

llvm::Expected<HostTensor> attnfuse::readNpy(llvm::StringRef path) {
  auto file = openFile(path);
  if (!file) {
    return file.takeError();
  }
  llvm::StringRef bytes = (*file)->getBuffer();
  if (!bytes.starts_with(kMagic) || bytes.size() < 10) {
    return fileError(path, "is not a .npy file: it does not start with numpy's "
                           "magic string");
  }
  int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) {
    return fileError(path, "has .npy format version " + llvm::Twine(major) +
                               "; supported: 1, 2 and 3");
  }
  size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start) {
    return fileError(path, "is truncated within its header");
  }
  uint64_t length = major == 1
                        ? llvm::support::endian::read16le(bytes.data() + 8)
                        : llvm::support::endian::read32le(bytes.data() + 8);
  if (bytes.size() - start < length) {
    return fileError(path, "is truncated: its header needs " +
                               llvm::Twine(length) + " bytes, " +
                               llvm::Twine(bytes.size() - start) +
                               " are there");
  }
  llvm::StringRef header = bytes.substr(start, length);
  llvm::StringRef descr = valueOf(header, "descr");
  llvm::StringRef order = valueOf(header, "fortran_order");
  llvm::StringRef shapeText = valueOf(header, "shape");
  if (descr.empty() || order.empty() || !shapeText.consume_front("(")) {
    return fileError(path, "has a header without 'descr', 'fortran_order' or "
                           "'shape'");
  }
  char quote = descr[0];
  llvm::StringRef name =
      descr.drop_front().take_until([&](char c) { return c == quote; });
  std::optional<DType> type =
      quote == '\'' || quote == '"' ? fromDescr(name) : std::nullopt;
  if (!type) {
    return fileError(path, "has element type '" + name +
                               "'; supported: little-endian f2, f4, f8, V2 "
                               "(bfloat16), b1, i1, i4, i8");
  }
  llvm::SmallVector<int64_t> shape;
  size_t close = shapeText.find(')');
  if (close == llvm::StringRef::npos) {
    return fileError(path, "has a header whose shape does not end");
  }
  for (llvm::StringRef part : llvm::split(shapeText.take_front(close), ',')) {
    int64_t extent;
    if (part.trim().empty()) {
      continue;
    }
    if (part.trim().getAsInteger(10, extent) || extent < 0) {
      return fileError(path, "has '" + part.trim() + "' in its shape");
    }
    shape.push_back(extent);
  }
  llvm::Expected<HostTensor> tensor = HostTensor::allocate(*type, shape);
  if (!tensor) {
    return fileError(path, llvm::toString(tensor.takeError()));
  }
  uint64_t needed = tensor->sizeInBytes();
  uint64_t present = bytes.size() - start - length;
  if (present < needed) {
    return fileError(path, "is truncated: shape " + shapeToString(shape) +
                               " of " + dtypeName(*type) + " needs " +
                               llvm::Twine(needed) + " bytes, " +
                               llvm::Twine(present) + " are there");
  }
  std::memcpy(tensor->data(), bytes.data() + start + length, needed);
  if (!order.starts_with("True")) {
    return tensor;
  }
  // First index fastest.
  llvm::SmallVector<int64_t> strides;
  int64_t step = 1;
  for (int64_t extent : shape) {
    strides.push_back(step);
    step *= extent;
  }
  auto owner = std::make_shared<HostTensor>(*tensor);
  return HostTensor::wrap(*type, shape, strides, tensor->data(), owner);
}

llvm::Error attnfuse::writeNpy(llvm::StringRef path, const HostTensor &tensor) {
  std::string shape;
  for (int64_t extent : tensor.shape()) {
    shape += std::to_string(extent) + ", ";
  }
  if (tensor.rank() > 1) {
    shape.resize(shape.size() - 2);
  }
  std::string header =
      ("{'descr': '" + toDescr(tensor.dtype()) +
       "', 'fortran_order': False, 'shape': (" + shape + "), }")
          .str();
  // The data start at a multiple of 64 bytes.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  return writeAtomically(path, [&](llvm::raw_ostream &stream) {
    stream << kMagic << '\x01' << '\0';
    char length[2];
    llvm::support::endian::write16le(length,
                                     static_cast<uint16_t>(header.size()));
    stream.write(length, 2);
    stream << header;
    writeElements(stream, tensor);
  });
}
