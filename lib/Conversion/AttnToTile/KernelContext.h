//===- KernelContext.h - a tile kernel being built -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_KERNELCONTEXT_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_KERNELCONTEXT_H

#include "IndexMath.h"
#include "Program.h"

#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/IRMapping.h"

namespace attnfuse {

/// A `tile.kernel` under construction: its arguments mirror those of a kernel
/// function, followed by outputs; values of the function are looked up by
/// their place in the source.
class KernelContext {
public:
  /// Makes the kernel after `source`, with one argument per value in `inputs`
  /// (tensors become views) and one per type in `outputs`.
  KernelContext(mlir::func::FuncOp source, llvm::StringRef name,
                mlir::ValueRange inputs,
                llvm::ArrayRef<mlir::RankedTensorType> outputs,
                llvm::ArrayRef<mlir::Attribute> grid);

  /// The view or scalar that stands for a value of the source function.
  /// Scalars computed in the source are cloned into the kernel's entry.
  mlir::Value get(mlir::Value source);
  mlir::Value output(unsigned index) { return outputs[index]; }
  mlir::Value lastOutput() { return outputs.back(); }

  IndexMath math() { return {builder, loc}; }
  mlir::Value dim(mlir::Value view, int64_t dimension);
  mlir::Value programId(int64_t dimension);
  tile::TileType tileType(int64_t rows, int64_t columns, mlir::Type element);
  mlir::Value splat(mlir::Value scalar, int64_t rows, int64_t columns);
  mlir::Value load(mlir::Value view, mlir::ValueRange indices,
                   llvm::ArrayRef<int64_t> along, int64_t rows, int64_t columns,
                   mlir::Type element = {});
  void store(mlir::Value tile, mlir::Value view, mlir::ValueRange indices,
             llvm::ArrayRef<int64_t> along);
  mlir::Value reduce(tile::ReduceKind kind, mlir::Value tile, int64_t dimension,
                     bool partial = false);
  mlir::Value combine(tile::ReduceKind kind, mlir::Value tile);

  /// Builds a `tile.map`; `body` gets the scalars of the operands, then row
  /// and column, and returns the scalars of the results.
  using MapBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      IndexMath, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> map(mlir::ValueRange inputs, int64_t rows,
                                     int64_t columns, mlir::TypeRange elements,
                                     MapBody body);
  /// The common case: one f32 result.
  mlir::Value
  mapF32(mlir::ValueRange inputs, int64_t rows, int64_t columns,
         llvm::function_ref<mlir::Value(IndexMath, mlir::ValueRange)> body);

  /// The rotations, in turn, of a tile of `rows` rows from `firstRow` on.
  mlir::Value rotate(llvm::ArrayRef<attn::RopeOp> ropes, mlir::Value tile,
                     mlir::Value batch, mlir::Value firstRow);

  /// The same in place, in a ring's slot, for a scheduled kernel.
  void rotateSlot(llvm::ArrayRef<attn::RopeOp> ropes, mlir::Value ring,
                  mlir::Value use, mlir::Value batch, mlir::Value firstRow);

  /// A runtime position (scalar, or one per batch entry) as an index.
  mlir::Value position(mlir::Value source, mlir::Value batch);

  mlir::OpBuilder builder;
  mlir::Location loc;
  tile::KernelOp kernel;
  mlir::func::FuncOp source;
  /// The layout of every tile of a scheduled kernel, else null.
  mlir::Attribute layout;

private:
  /// The position of a tile's first row under a rotation.
  mlir::Value ropeStart(attn::RopeOp rope, mlir::Value batch,
                        mlir::Value firstRow);

  mlir::IRMapping mapping;
  mlir::Block *entry;
  llvm::SmallVector<mlir::Value> outputs;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_KERNELCONTEXT_H
