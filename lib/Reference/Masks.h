//===- Masks.h - masks of the oracle ---------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_MASKS_H
#define ATTNFUSE_LIB_REFERENCE_MASKS_H

#include "ScalarProgram.h"

namespace attnfuse::reference {

/// One row of pairs: (batch, head, query) against every key.
struct Row {
  int64_t batch, head, query, queries, keys;
};

/// A mask decoded from its operations.
class MaskProgram {
public:
  static llvm::Expected<MaskProgram> decode(mlir::Value mask,
                                            const Values &values);

  /// Sets `keep[j]` for every key of the row.
  void run(const Row &row, std::vector<uint8_t> &keep,
           std::vector<Scalar> &slots, std::string &error) const;

private:
  using Fill = std::function<void(const Row &, std::vector<uint8_t> &,
                                  std::vector<Scalar> &, std::string &)>;
  Fill fill;
};

/// The value of a position operand for a batch entry: a scalar, or a vector of
/// one or B entries.
int64_t positionOf(const Array &array, int64_t batch);

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_MASKS_H
