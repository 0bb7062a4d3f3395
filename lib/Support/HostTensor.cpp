//===- HostTensor.cpp - tensors in host memory -----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Support/HostTensor.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace attnfuse;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

namespace {
struct DTypeInfo {
  DType type;
  llvm::StringLiteral name;
  int64_t size;
  bool isFloat;
};
} // namespace

static constexpr DTypeInfo kDTypes[] = {
    {DType::F16, "f16", 2, true},  {DType::BF16, "bf16", 2, true},
    {DType::F32, "f32", 4, true},  {DType::F64, "f64", 8, true},
    {DType::I1, "i1", 1, false},   {DType::I8, "i8", 1, false},
    {DType::I32, "i32", 4, false}, {DType::I64, "i64", 8, false}};

static const DTypeInfo &info(DType type) {
  return kDTypes[static_cast<int>(type)];
}

llvm::StringRef attnfuse::dtypeName(DType type) { return info(type).name; }
int64_t attnfuse::dtypeSize(DType type) { return info(type).size; }
bool attnfuse::isFloat(DType type) { return info(type).isFloat; }

std::optional<DType> attnfuse::parseDType(llvm::StringRef name) {
  for (const DTypeInfo &known : kDTypes) {
    if (known.name == name) {
      return known.type;
    }
  }
  return std::nullopt;
}

uint16_t attnfuse::floatToBFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  bits += 0x7FFF + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

float attnfuse::bfloatToFloat(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t attnfuse::floatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) {
    return sign | 0x7E00 | ((magnitude >> 13) & 0x3FF);
  }
  if (magnitude >= 0x477FF000) { // rounds to 2^16 or more
    return sign | 0x7C00;
  }
  if (magnitude < 0x38800000) { // subnormal or zero
    float positive;
    std::memcpy(&positive, &magnitude, sizeof(positive));
    // In units of 2^-24, rounded to nearest even by the addition of 2^23.
    float shifted = positive * 16777216.0f + 8388608.0f;
    uint32_t result;
    std::memcpy(&result, &shifted, sizeof(result));
    return sign | static_cast<uint16_t>(result & 0x7FFF);
  }
  uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

float attnfuse::halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1F, fraction = bits & 0x3FF;
  uint32_t wide;
  if (exponent == 31) {
    wide = sign | 0x7F800000 | (fraction << 13);
  } else if (exponent) {
    wide = sign | ((exponent + 112) << 23) | (fraction << 13);
  } else {
    float value = static_cast<float>(fraction) / 16777216.0f;
    std::memcpy(&wide, &value, sizeof(wide));
    wide |= sign;
  }
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

llvm::SmallVector<int64_t>
attnfuse::contiguousStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim) {
    strides[dim] = strides[dim + 1] * std::max<int64_t>(shape[dim + 1], 1);
  }
  return strides;
}

std::string attnfuse::shapeToString(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape) {
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  }
  return text.empty() ? "scalar" : text;
}

int64_t HostTensor::numElements() const {
  int64_t count = 1;
  for (int64_t extent : extents) {
    count *= extent;
  }
  return count;
}

bool HostTensor::isContiguous() const {
  llvm::SmallVector<int64_t> wanted = contiguousStrides(extents);
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    if (extents[dim] != 1 && steps[dim] != wanted[dim]) {
      return false;
    }
  }
  return true;
}

llvm::Expected<HostTensor> HostTensor::allocate(DType type,
                                                llvm::ArrayRef<int64_t> shape) {
  uint64_t bytes = dtypeSize(type);
  bool overflow = false;
  for (int64_t extent : shape) {
    if (extent < 0) {
      return llvm::createStringError("a tensor of shape " +
                                     shapeToString(shape) +
                                     " has a negative extent");
    }
    bool step = false;
    bytes =
        llvm::SaturatingMultiply(bytes, static_cast<uint64_t>(extent), &step);
    overflow |= step;
  }
  HostTensor tensor;
  tensor.type = type;
  tensor.extents.assign(shape.begin(), shape.end());
  tensor.steps = contiguousStrides(shape);
  uint64_t rounded = llvm::alignTo(std::max<uint64_t>(bytes, 1), 64);
  void *memory = overflow || bytes > (uint64_t(1) << 47)
                     ? nullptr
                     : std::aligned_alloc(64, rounded);
  if (!memory) {
    return llvm::createStringError(
        "no memory for a tensor of shape " + shapeToString(shape) + " of " +
        dtypeName(type) +
        (overflow ? std::string(", whose size overflows")
                  : " (" + std::to_string(bytes) + " bytes)"));
  }
  tensor.owner = std::shared_ptr<void>(memory, std::free);
  tensor.base = memory;
  return tensor;
}

HostTensor HostTensor::wrap(DType type, llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<int64_t> strides, void *data,
                            std::shared_ptr<void> owner) {
  HostTensor tensor;
  tensor.type = type;
  tensor.extents.assign(shape.begin(), shape.end());
  tensor.steps.assign(strides.begin(), strides.end());
  tensor.base = data;
  tensor.owner = std::move(owner);
  return tensor;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

template <typename T> static T read(const void *base, int64_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char *>(base) + offset * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T> static void write(void *base, int64_t offset, T value) {
  std::memcpy(static_cast<char *>(base) + offset * sizeof(T), &value,
              sizeof(T));
}

double HostTensor::load(int64_t offset) const {
  switch (type) {
  case DType::F16:
    return halfToFloat(read<uint16_t>(base, offset));
  case DType::BF16:
    return bfloatToFloat(read<uint16_t>(base, offset));
  case DType::F32:
    return read<float>(base, offset);
  case DType::F64:
    return read<double>(base, offset);
  case DType::I1:
    return read<uint8_t>(base, offset) != 0;
  case DType::I8:
    return read<int8_t>(base, offset);
  case DType::I32:
    return read<int32_t>(base, offset);
  case DType::I64:
    return static_cast<double>(read<int64_t>(base, offset));
  }
  llvm_unreachable("every type is handled");
}

void HostTensor::store(int64_t offset, double value) {
  switch (type) {
  case DType::F16:
    return write(base, offset, floatToHalf(static_cast<float>(value)));
  case DType::BF16:
    return write(base, offset, floatToBFloat(static_cast<float>(value)));
  case DType::F32:
    return write(base, offset, static_cast<float>(value));
  case DType::F64:
    return write(base, offset, value);
  case DType::I1:
    return write<uint8_t>(base, offset, value != 0);
  case DType::I8:
    return write(base, offset, static_cast<int8_t>(value));
  case DType::I32:
    return write(base, offset, static_cast<int32_t>(value));
  case DType::I64:
    return write(base, offset, static_cast<int64_t>(value));
  }
}

int64_t HostTensor::offsetOf(llvm::ArrayRef<int64_t> index) const {
  int64_t offset = 0;
  for (size_t dim = 0; dim < index.size(); ++dim) {
    offset += index[dim] * steps[dim];
  }
  return offset;
}

double HostTensor::at(llvm::ArrayRef<int64_t> index) const {
  return load(offsetOf(index));
}

void HostTensor::set(llvm::ArrayRef<int64_t> index, double value) {
  store(offsetOf(index), value);
}

int64_t HostTensor::intAt(llvm::ArrayRef<int64_t> index) const {
  return type == DType::I64 ? read<int64_t>(base, offsetOf(index))
                            : static_cast<int64_t>(load(offsetOf(index)));
}

void HostTensor::poison() {
  if (type == DType::F16 || type == DType::BF16 || type == DType::F32 ||
      type == DType::F64) {
    // All ones is a NaN in every format.
    std::memset(base, 0xFF, sizeInBytes());
  } else {
    std::memset(base, 0xA5, sizeInBytes());
  }
}

/// Calls `fn` with the offset of every element, in row-major order.
template <typename Fn>
static void forEachOffset(llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<int64_t> strides, Fn fn) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    count *= extent;
  }
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    fn(n, offset);
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0;
         --dim) {
      offset += strides[dim];
      if (++index[dim] < shape[dim]) {
        break;
      }
      offset -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
}

std::vector<double> HostTensor::toDouble() const {
  std::vector<double> values(numElements());
  forEachOffset(extents, steps,
                [&](int64_t n, int64_t offset) { values[n] = load(offset); });
  return values;
}

llvm::Expected<HostTensor> HostTensor::convertTo(DType wanted) const {
  llvm::Expected<HostTensor> result = allocate(wanted, extents);
  if (!result) {
    return result;
  }
  if (wanted == type) {
    forEachOffset(extents, steps, [&](int64_t n, int64_t offset) {
      int64_t size = dtypeSize(type);
      std::memcpy(static_cast<char *>(result->base) + n * size,
                  static_cast<const char *>(base) + offset * size, size);
    });
    return result;
  }
  forEachOffset(extents, steps, [&](int64_t n, int64_t offset) {
    result->store(n, load(offset));
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Random values
//===----------------------------------------------------------------------===//

/// A hash of a counter (splitmix64, Steele et al. 2014): element n of a stream
/// depends on nothing but the seed and n.
static uint64_t mix(uint64_t seed, uint64_t counter) {
  uint64_t z =
      seed * 0x9E3779B97F4A7C15ull + (counter + 1) * 0xD1342543DE82EF95ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static double uniform(uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

void attnfuse::fillRandomNormal(HostTensor &tensor, uint64_t seed) {
  // The sum of four 16-bit uniforms is near enough to a normal distribution
  // for test data, needs no logarithm, and is bit for bit the same everywhere.
  constexpr double mean = 2.0 * 65535, deviation = 37837.2;
  int64_t count = tensor.numElements();
  char *data = static_cast<char *>(tensor.data());
  for (int64_t n = 0; n < count; ++n) {
    uint64_t bits = mix(seed, n);
    double sum = double(bits & 0xFFFF) + double((bits >> 16) & 0xFFFF) +
                 double((bits >> 32) & 0xFFFF) + double(bits >> 48);
    auto value = static_cast<float>((sum - mean) / deviation);
    switch (tensor.dtype()) {
    case DType::F32:
      write(data, n, value);
      break;
    case DType::BF16:
      write(data, n, floatToBFloat(value));
      break;
    case DType::F16:
      write(data, n, floatToHalf(value));
      break;
    case DType::F64:
      write(data, n, static_cast<double>(value));
      break;
    default:
      write(data, n, static_cast<uint8_t>(value > 0));
      break;
    }
  }
}

void attnfuse::fillRandomInts(HostTensor &tensor, uint64_t seed, int64_t low,
                              int64_t high) {
  uint64_t span = high > low ? static_cast<uint64_t>(high - low) : 1;
  HostTensor flat = HostTensor::wrap(tensor.dtype(), {tensor.numElements()},
                                     {1}, tensor.data(), nullptr);
  for (int64_t n = 0; n < tensor.numElements(); ++n) {
    flat.set({n}, static_cast<double>(
                      low + static_cast<int64_t>(mix(seed, n) % span)));
  }
}

void attnfuse::fillRandomBools(HostTensor &tensor, uint64_t seed,
                               double probability) {
  HostTensor flat = HostTensor::wrap(tensor.dtype(), {tensor.numElements()},
                                     {1}, tensor.data(), nullptr);
  for (int64_t n = 0; n < tensor.numElements(); ++n) {
    flat.set({n}, uniform(mix(seed, n)) < probability);
  }
}
