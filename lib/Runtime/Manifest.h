//===- Manifest.h - how a compiled program is launched --- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The manifest of docs/runtime.md as flat records, read and checked once, when
// a program is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_MANIFEST_H
#define ATTNFUSE_LIB_RUNTIME_MANIFEST_H

#include "Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attnfuse::runtime {

// Limits that let a launch keep all it needs on the stack.
constexpr int kMaxRank = 8;
constexpr int kMaxArguments = 64;
constexpr int kMaxResults = 16;
constexpr int kMaxTemporaries = 64;
constexpr int kMaxConstants = 64;
constexpr int kMaxSteps = 256;
/// What every chip and driver accepts.
constexpr int kMaxParameterBytes = 4096;
constexpr int64_t kMaxExtent = (int64_t(1) << 31) - 1;
/// Of tensors of rank 4, whose extents are those of positions: kernels form
/// sums and differences of two in 32 bits.
constexpr int64_t kMaxPositions = int64_t(1) << 30;
constexpr int kWorkspaceAlignment = 256;

/// An extent of an argument.
struct DimensionRef {
  int argument;
  int dimension;
};

/// An extent: a number, or (argument >= 0) an argument's.
struct Extent {
  int64_t value = 0;
  DimensionRef source = {-1, 0};
};

/// An argument, result, temporary or constant.
struct TensorSpec {
  /// Arguments alone have one, and perhaps an empty one.
  std::string name;
  attnfuse_dtype dtype = ATTNFUSE_F32;
  /// Passed by value, from host memory.
  bool scalar = false;
  int rank = 0;
  /// An argument's extents that are known at run time have the value -1.
  Extent shape[kMaxRank];
  /// A constant's bytes.
  std::string data;
};

struct Operand {
  enum class Kind : uint8_t { Argument, Temporary, Constant, Result };
  Kind kind;
  int index;
};

struct GridFactor {
  int operand;
  int dimension;
  int64_t divisor;
};

/// A kernel's parameter behind its operands.
struct Extra {
  enum class Kind : uint8_t { TensorMap, Counter };
  Kind kind;
  /// A tensor map's operand, box (columns, rows) and swizzle in bytes.
  int operand = 0;
  int box[2] = {0, 0};
  int swizzle = 0;
  /// Which of the program's tensor maps, or counters, this is.
  int index = 0;
};

struct Step {
  std::string kernel;
  int threads = 0;
  int64_t shared = 0;
  std::vector<GridFactor> grid;
  std::vector<Operand> operands;
  std::vector<Extra> extras;
  /// Blocks per multiprocessor; 0: one block per point of the grid.
  int persistent = 0;
  /// Index into Manifest::steps of the step to take where a tensor map cannot
  /// be made; -1: none.
  int otherwise = -1;
  /// The temporary whose bytes are all set instead, in that case; -1: none. A
  /// later step then computes what this one would have.
  int otherwiseFill = -1;
};

struct Manifest {
  /// "sm_90a" is 90 and specific.
  std::string chip;
  int chipNumber = 0;
  bool chipSpecific = false;
  int ptx = 0;
  std::string entry;
  std::vector<TensorSpec> arguments, results, temporaries, constants;
  /// Pairs of extents that have to agree.
  std::vector<std::pair<DimensionRef, DimensionRef>> equal;
  /// Every step, alternatives included.
  std::vector<Step> steps;
  /// Indices of the steps to run, in order.
  std::vector<int> order;
  int tensorMaps = 0;
  int counters = 0;

  const TensorSpec &spec(Operand operand) const;

  /// Every index in the result is in range, every step is complete.
  static Status parse(std::string_view text, Manifest &manifest);
};

int64_t sizeOf(attnfuse_dtype dtype);
std::string nameOf(attnfuse_dtype dtype);

/// A kernel's parameters: each aligned to its own size, tensor maps to 64
/// bytes. The function is called with each parameter's offset and size.
template <typename Function>
int layOutParameters(const Manifest &manifest, const Step &step,
                     Function &&visit) {
  int offset = 0;
  auto place = [&](int size, int alignment) {
    offset = (offset + alignment - 1) / alignment * alignment;
    visit(offset, size);
    offset += size;
  };
  for (Operand operand : step.operands) {
    const TensorSpec &spec = manifest.spec(operand);
    if (spec.scalar) {
      int size = spec.dtype == ATTNFUSE_F32 ? 4 : 8;
      place(size, size);
      continue;
    }
    for (int i = 0; i < 1 + 2 * spec.rank; ++i) {
      place(8, 8);
    }
  }
  for (const Extra &extra : step.extras) {
    if (extra.kind == Extra::Kind::TensorMap) {
      place(128, 64);
    } else {
      place(8, 8);
    }
  }
  return offset;
}

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_MANIFEST_H
