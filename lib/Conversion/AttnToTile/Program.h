//===- Program.h - one attention root, taken apart -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_PROGRAM_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_PROGRAM_H

#include "AttnFuse/Analysis/GpuSchedule.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attnfuse {

/// Where a key rotation runs; a query rotation is always in the prologue.
enum class RopePlace { InLoop, Once };

/// What a kernel function computes: the chain of operations from a product of
/// queries and keys to a weighted sum of values. A function that only rotates
/// a tensor has `rotation` alone.
struct AttentionProgram {
  attn::RopeOp rotation;

  attn::ScaledDotProductOp product;
  /// Rotations of query and key, outermost last.
  llvm::SmallVector<attn::RopeOp> queryRopes, keyRopes;
  mlir::Value query, key;
  /// Alibi, bias, softcap and score_mod, in order of application.
  llvm::SmallVector<mlir::Operation *> scoreOps;
  /// Every mask of the chain: a pair is read if all of them are true.
  llvm::SmallVector<mlir::Value> masks;
  attn::SoftmaxOp softmax;
  attn::ReluAttentionOp relu;
  attn::AggregateOp aggregate;
  bool wantsLse = false;

  RopePlace keyPlace() const;
  bool hasScoreOps() const { return !scoreOps.empty(); }
};

/// Reads a function marked `attn.kernel`; an error is emitted if its body is
/// not one attention root.
mlir::FailureOr<AttentionProgram> readProgram(mlir::func::FuncOp kernel);

/// What a GPU's schedule depends on of a program.
GpuProblem problemOf(const AttentionProgram &program);

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_PROGRAM_H
