//===- StructuralKeys.h - names for what values compute ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_STRUCTURALKEYS_H
#define ATTNFUSE_ANALYSIS_STRUCTURALKEYS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <string>

namespace attnfuse {

/// The value of an integer constant that 64 bits hold.
std::optional<int64_t> constantInteger(mlir::Value value);

/// True if the operation may be moved within its block, merged with an equal
/// one and dropped when unused.
bool isMovable(mlir::Operation *op);

/// Calls `fn` with every value that `op` reads: its operands, then what its
/// regions capture, in order of use.
void forEachDependency(mlir::Operation *op,
                       llvm::function_ref<void(mlir::Value)> fn);

/// Texts that tell values apart by what they compute and not by where they
/// were written: equal for equal computations, and ordered the same way in
/// every program that computes the same, whatever the order of its operations.
///
/// A function argument's text is its number (arguments sort first), a result's
/// that of its operation: name, attributes, types, and the texts of the
/// operands and of the region. An operation with effects, or with a region
/// that is not a score_mod's or mask_mod's, is known by its place among such
/// operations, which nothing reorders. Long texts are shortened to a digest,
/// so the cost is linear in the program.
///
/// The texts are kept: an object serves until the program is changed.
class StructuralKeys {
public:
  const std::string &get(mlir::Value value);
  const std::string &get(mlir::Operation *op);

private:
  void compute(mlir::Operation *op);
  std::string textOf(mlir::Operation *op);
  std::string placeOf(mlir::Operation *op);
  std::string argumentKey(mlir::BlockArgument argument);

  llvm::DenseMap<mlir::Operation *, std::string> operations;
  llvm::DenseMap<mlir::Value, std::string> values;
  /// Places of the operations that have no text.
  llvm::DenseMap<mlir::Operation *, unsigned> places;
};

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_STRUCTURALKEYS_H
