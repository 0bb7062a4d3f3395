//===- AttentionKernel.h - the main kernel of an attention -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_ATTENTIONKERNEL_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_ATTENTIONKERNEL_H

#include "KernelContext.h"

namespace attnfuse {

/// Builds the tile kernel of a program's attention. `inputs` are the values of
/// the function that become its arguments; the key among them stands for the
/// rotated key if the program rotates keys once, ahead of this kernel.
/// `outputs` are, in order, the tensor and the log-sum-exp, as far as wanted.
mlir::FailureOr<tile::KernelOp>
buildAttentionKernel(mlir::func::FuncOp source, llvm::StringRef name,
                     const AttentionProgram &program, mlir::ValueRange inputs,
                     llvm::ArrayRef<mlir::RankedTensorType> outputs,
                     tile::ScheduleAttr schedule, mlir::Value rotatedKey,
                     mlir::Value marks = {});

/// Builds the kernel that applies `ropes` to a whole tensor of the function.
tile::KernelOp buildRotationKernel(mlir::func::FuncOp source,
                                   llvm::StringRef name,
                                   llvm::ArrayRef<attn::RopeOp> ropes,
                                   mlir::Value tensor, mlir::ValueRange inputs,
                                   mlir::RankedTensorType output, int64_t rows,
                                   tile::ScheduleAttr schedule);

/// Bodies of scheduled kernels for GPUs, in kernels made by the functions
/// above where the schedule has warps.
/// `marks`, if any, is an input with a byte per row: query tiles without a mark
/// are left as they are.
mlir::LogicalResult buildGpuAttention(KernelContext &context,
                                      const AttentionProgram &program,
                                      tile::ScheduleAttr schedule,
                                      mlir::Value rotatedKey,
                                      mlir::Value marks);
/// Whether a weight of 0 may meet a value that is not finite, so that the
/// kernel for sm_90a marks rows that have to be computed again; its marks are
/// its last output.
bool needsMarks(AttentionProgram program);
mlir::LogicalResult buildHopperAttention(KernelContext &context,
                                         const AttentionProgram &program,
                                         tile::ScheduleAttr schedule,
                                         mlir::Value rotatedKey);
void buildGpuRotation(KernelContext &context,
                      llvm::ArrayRef<attn::RopeOp> ropes, mlir::Value tensor,
                      int64_t rows);

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_ATTENTIONKERNEL_H
