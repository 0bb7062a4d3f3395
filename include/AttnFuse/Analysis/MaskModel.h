//===- MaskModel.h - masks of a program in normal form ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_MASKMODEL_H
#define ATTNFUSE_ANALYSIS_MASKMODEL_H

#include "AttnFuse/Analysis/MaskAlgebra.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

namespace attnfuse {

/// A mask as a function of bands and atoms, and what those stand for.
struct MaskModel {
  MaskNormalForm form;

  /// By number of atom: an attn.prefix, document, block_sparse or mask_mod.
  /// Equal operations share a number, and the numbers depend on what the
  /// operations compute, not on where they are written. Simplification may
  /// leave the form without some of them.
  llvm::SmallVector<mlir::Operation *> atoms;

  /// Diagonals, by number of family: 0 from the bottom right, 1 from the top
  /// left, the others by a runtime offset each (the alignment is then of no
  /// meaning).
  struct Family {
    attn::Alignment alignment = attn::Alignment::BottomRight;
    mlir::Value offset;
  };
  llvm::SmallVector<Family> families;
};

using MaskErrorFn = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// The model of the conjunction of `masks`. With the type of the scores that
/// they are applied to, what its static extents imply is used: the two
/// alignments become one, and bounds that every pair satisfies go.
///
/// Fails if a mask comes from somewhere other than an attn operation, or if
/// its normal form has too many terms; says so if `emitError` is given.
mlir::FailureOr<MaskModel> buildMaskModel(llvm::ArrayRef<mlir::Value> masks,
                                          attn::ScoresType scores = {},
                                          MaskErrorFn emitError = nullptr);
mlir::FailureOr<MaskModel> buildMaskModel(mlir::Value mask,
                                          attn::ScoresType scores = {},
                                          MaskErrorFn emitError = nullptr);

/// True if the model keeps every pair.
bool isFullMask(const MaskModel &model);

/// Makes the operations of the model's form at the builder's place, where its
/// atoms and offsets have to be visible, and returns the mask: a disjunction
/// of conjunctions, each diagonal band in the fewest operations.
mlir::Value materializeMask(mlir::OpBuilder &builder, mlir::Location loc,
                            const MaskModel &model);

} // namespace attnfuse

#endif // ATTNFUSE_ANALYSIS_MASKMODEL_H
