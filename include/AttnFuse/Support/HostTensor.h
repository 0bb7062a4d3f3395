//===- HostTensor.h - tensors in host memory ---------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_HOSTTENSOR_H
#define ATTNFUSE_SUPPORT_HOSTTENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace attnfuse {

/// Element types of tensors in memory; a predicate takes one byte.
enum class DType { F16, BF16, F32, F64, I1, I8, I32, I64 };

llvm::StringRef dtypeName(DType type);
int64_t dtypeSize(DType type);
bool isFloat(DType type);
std::optional<DType> parseDType(llvm::StringRef name);

/// Rounds to nearest even; NaN stays NaN, what is too large becomes infinite.
uint16_t floatToHalf(float value);
float halfToFloat(uint16_t bits);
uint16_t floatToBFloat(float value);
float bfloatToFloat(uint16_t bits);

/// A strided tensor. Copies share storage.
class HostTensor {
public:
  HostTensor() = default;

  /// Contiguous, 64-byte aligned, uninitialised. An error names a shape that
  /// is negative, too large, or does not fit memory.
  static llvm::Expected<HostTensor> allocate(DType type,
                                             llvm::ArrayRef<int64_t> shape);
  /// A view of memory that `owner` keeps alive; strides in elements.
  static HostTensor wrap(DType type, llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<int64_t> strides, void *data,
                         std::shared_ptr<void> owner);

  DType dtype() const { return type; }
  llvm::ArrayRef<int64_t> shape() const { return extents; }
  llvm::ArrayRef<int64_t> strides() const { return steps; }
  int64_t rank() const { return extents.size(); }
  int64_t numElements() const;
  int64_t sizeInBytes() const { return numElements() * dtypeSize(type); }
  bool isContiguous() const;
  void *data() const { return base; }
  /// True if no other tensor shares the storage.
  bool ownsAlone() const { return owner && owner.use_count() == 1; }

  /// Element access by position; indices are in range.
  double at(llvm::ArrayRef<int64_t> index) const;
  void set(llvm::ArrayRef<int64_t> index, double value);
  int64_t intAt(llvm::ArrayRef<int64_t> index) const;

  /// NaN in floats, 0xA5 in every byte of integers: what must not be left in
  /// an output. Contiguous tensors only.
  void poison();
  /// All elements in row-major order.
  std::vector<double> toDouble() const;
  /// A contiguous copy, in another type where asked; conversion rounds to
  /// nearest even.
  llvm::Expected<HostTensor> convertTo(DType type) const;

private:
  double load(int64_t offset) const;
  void store(int64_t offset, double value);
  int64_t offsetOf(llvm::ArrayRef<int64_t> index) const;

  DType type = DType::F32;
  llvm::SmallVector<int64_t> extents, steps;
  void *base = nullptr;
  std::shared_ptr<void> owner;
};

llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape);
/// "2x8x?x64" without the unknowns.
std::string shapeToString(llvm::ArrayRef<int64_t> shape);

/// Normal with mean 0 and deviation 1, the same for a seed on every machine.
void fillRandomNormal(HostTensor &tensor, uint64_t seed);
/// Uniform integers in [low, high).
void fillRandomInts(HostTensor &tensor, uint64_t seed, int64_t low,
                    int64_t high);
/// 1 with the given probability, else 0.
void fillRandomBools(HostTensor &tensor, uint64_t seed, double probability);

} // namespace attnfuse

#endif // ATTNFUSE_SUPPORT_HOSTTENSOR_H
