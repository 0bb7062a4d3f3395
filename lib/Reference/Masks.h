//===- Masks.h - masks of the oracle ---------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_MASKS_H
#define ATTNFUSE_LIB_REFERENCE_MASKS_H

#include "Array.h"

#include <functional>
#include <string>

namespace attnfuse::reference {

/// One row of pairs: (batch, head, query) against every key.
struct Row {
  int64_t batch, head, query, queries, keys;
};

using Keep = std::vector<uint8_t>;

/// The operations that given masks consist of, each once and after those that
/// it reads. Masks that come from elsewhere than the function are left out.
llvm::SmallVector<mlir::Operation *>
maskOperations(llvm::ArrayRef<mlir::Value> masks);

/// Masks decoded from their operations; a pair is kept if all of them keep it.
class MaskProgram {
public:
  static llvm::Expected<MaskProgram> decode(llvm::ArrayRef<mlir::Value> masks,
                                            const Values &values);

  /// Sets `keep[j]` for every key of the row. `scratch` is any.
  void run(const Row &row, Keep &keep, std::vector<Keep> &scratch,
           std::string &error) const;

private:
  /// Writes a mask; `parts` are the masks it combines.
  using Fill = std::function<void(const Row &row, Keep &keep,
                                  llvm::ArrayRef<const Keep *> parts,
                                  std::string &error)>;
  struct Node {
    Fill fill;
    llvm::SmallVector<size_t> parts;
  };
  static llvm::Expected<Fill> decodeNode(mlir::Operation *op,
                                         const Values &values);

  std::vector<Node> nodes;
  llvm::SmallVector<size_t> roots;
};

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_MASKS_H
