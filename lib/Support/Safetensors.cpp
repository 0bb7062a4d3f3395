//===- Safetensors.cpp - .safetensors files --------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The format: the header's length in 8 bytes, a JSON object that gives each
// tensor's dtype, shape and data_offsets, then the data.
//
//===----------------------------------------------------------------------===//

#include "FileFormat.h"

#include "AttnFuse/Support/TensorIO.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <cstring>

using namespace attnfuse;
using namespace attnfuse::detail;

static constexpr std::pair<llvm::StringLiteral, DType> kNames[] = {
    {"F16", DType::F16}, {"BF16", DType::BF16}, {"F32", DType::F32},
    {"F64", DType::F64}, {"BOOL", DType::I1},   {"I8", DType::I8},
    {"I32", DType::I32}, {"I64", DType::I64}};

static llvm::StringRef toName(DType type) {
  for (auto &[name, known] : kNames) {
    if (known == type) {
      return name;
    }
  }
  llvm_unreachable("every type is named");
}

/// Up to eight names of tensors in the file.
static std::string namesIn(const nlohmann::json &header) {
  std::string names;
  int count = 0;
  for (auto &[name, value] : header.items()) {
    if (name == "__metadata__") {
      continue;
    }
    if (++count > 8) {
      return names + ", ...";
    }
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

llvm::Expected<HostTensor> attnfuse::readSafetensors(llvm::StringRef path,
                                                     llvm::StringRef name) {
  auto file = openFile(path);
  if (!file) {
    return file.takeError();
  }
  llvm::StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < 8) {
    return fileError(path, "is truncated: a .safetensors file has at least 8 "
                           "bytes, this one " +
                               llvm::Twine(bytes.size()));
  }
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8) {
    return fileError(path, "is truncated or not a .safetensors file: its "
                           "header needs " +
                               llvm::Twine(length) + " bytes, " +
                               llvm::Twine(bytes.size() - 8) + " are there");
  }
  llvm::StringRef data = bytes.drop_front(8 + length);
  nlohmann::json header =
      nlohmann::json::parse(bytes.data() + 8, bytes.data() + 8 + length,
                            nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) {
    return fileError(path, "has a header that is not a JSON object");
  }
  auto entry = header.find(name.str());
  if (name.empty() || entry == header.end()) {
    return fileError(path,
                     (name.empty() ? llvm::Twine("no tensor is named; use "
                                                 "FILE.safetensors:NAME")
                                   : "has no tensor '" + name + "'") +
                         "; there are: " + namesIn(header));
  }
  auto refuse = [&](const llvm::Twine &what) {
    return fileError(path, "tensor '" + name + "' " + what);
  };
  if (!entry->is_object() || !entry->contains("dtype") ||
      !entry->contains("shape") || !entry->contains("data_offsets") ||
      !(*entry)["dtype"].is_string() || !(*entry)["shape"].is_array() ||
      !(*entry)["data_offsets"].is_array() ||
      (*entry)["data_offsets"].size() != 2) {
    return refuse("lacks a proper dtype, shape or data_offsets");
  }
  std::string typeName = (*entry)["dtype"].get<std::string>();
  std::optional<DType> type;
  for (auto &[known, value] : kNames) {
    if (typeName == known) {
      type = value;
    }
  }
  if (!type) {
    return refuse("has dtype " + llvm::Twine(typeName) +
                  "; supported: F16, BF16, F32, F64, BOOL, I8, I32, I64");
  }
  llvm::SmallVector<int64_t> shape;
  for (const nlohmann::json &extent : (*entry)["shape"]) {
    if (!extent.is_number_unsigned() ||
        extent.get<uint64_t>() > (uint64_t(1) << 47)) {
      return refuse("has a shape with '" + llvm::Twine(extent.dump()) + "'");
    }
    shape.push_back(extent.get<int64_t>());
  }
  const nlohmann::json &offsets = (*entry)["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return refuse("has data_offsets that are not numbers");
  }
  auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    return refuse("is at bytes " + llvm::Twine(begin) + " to " +
                  llvm::Twine(end) + " of the data, of which " +
                  llvm::Twine(data.size()) +
                  " are there: the file is "
                  "truncated or damaged");
  }
  uint64_t bytesNeeded = dtypeSize(*type);
  for (int64_t extent : shape) {
    bytesNeeded = llvm::SaturatingMultiply<uint64_t>(bytesNeeded, extent);
  }
  if (bytesNeeded != end - begin) {
    return refuse("of shape " + llvm::Twine(shapeToString(shape)) + " and " +
                  typeName + " needs " + llvm::Twine(bytesNeeded) +
                  " bytes, its data_offsets span " + llvm::Twine(end - begin));
  }
  llvm::Expected<HostTensor> tensor = HostTensor::allocate(*type, shape);
  if (!tensor) {
    return refuse(llvm::toString(tensor.takeError()));
  }
  std::memcpy(tensor->data(), data.data() + begin, bytesNeeded);
  return tensor;
}

llvm::Error attnfuse::writeSafetensors(
    llvm::StringRef path,
    llvm::ArrayRef<std::pair<std::string, HostTensor>> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t offset = 0;
  for (auto &[name, tensor] : tensors) {
    uint64_t end = offset + tensor.sizeInBytes();
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    header[name] = {{"dtype", toName(tensor.dtype()).str()},
                    {"shape", shape},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return writeAtomically(path, [&](llvm::raw_ostream &stream) {
    char length[8];
    llvm::support::endian::write64le(length, text.size());
    stream.write(length, 8);
    stream << text;
    for (auto &[name, tensor] : tensors) {
      writeElements(stream, tensor);
    }
  });
}
