//===- KernelLowering.h - one tile kernel to loops -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tiles become buffers on the stack. A tile of M rows and N columns is held
// column by column, M contiguous, so that query rows lie in vector lanes: row
// statistics of softmax need no work across lanes, and the weights come out of
// one product as they go into the next. Tiles that are only right factors of
// products (keys and values) are held row by row, as they are in memory; their
// elements are broadcast.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_TILETOLOOPS_KERNELLOWERING_H
#define ATTNFUSE_LIB_CONVERSION_TILETOLOOPS_KERNELLOWERING_H

#include "AttnFuse/Analysis/CpuSchedule.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace attnfuse {

/// A view taken apart: a flat memref from its first element on, extents and
/// strides.
struct LoweredView {
  mlir::Value flat;
  llvm::SmallVector<mlir::Value> sizes, strides;
  mlir::Type element;
};

/// Where a tile is held.
struct TileBuffer {
  mlir::Value memory; ///< memref<NxM> or, row by row, memref<MxN>
  int64_t rows = 0, columns = 0;
  mlir::Type element; ///< the tile's type; floats are held as f32
  bool rowMajor = false;

  explicit operator bool() const { return static_cast<bool>(memory); }
};

class KernelLowering {
public:
  KernelLowering(tile::KernelOp kernel, const CpuVectors &cpu)
      : kernel(kernel), cpu(cpu), b(kernel.getContext()), loc(kernel.getLoc()) {
  }

  /// Builds the function at the end of `target`; `kernel` is left as it is.
  mlir::FailureOr<mlir::func::FuncOp> lower(mlir::ModuleOp target);

private:
  // Control flow and buffers (KernelLowering.cpp).
  void lowerArguments();
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerFor(mlir::scf::ForOp op);
  mlir::LogicalResult lowerIf(mlir::scf::IfOp op);
  mlir::LogicalResult lowerYield(mlir::ValueRange yielded,
                                 llvm::ArrayRef<TileBuffer> targets,
                                 llvm::SmallVectorImpl<mlir::Value> &scalars);
  mlir::Value gridExtent(tile::ExtentAttr extent);

  // Buffers (Buffers.cpp).
  TileBuffer allocate(tile::TileType type, bool rowMajor);
  TileBuffer bufferFor(mlir::Value result);
  bool holdsRowMajor(mlir::Value tile);
  bool mayWriteInto(mlir::Operation *writer, mlir::Value owner);
  void planDestination(mlir::Value yielded, TileBuffer target,
                       mlir::Value owner);
  bool isFusedRescale(mlir::Operation *op);
  void copy(const TileBuffer &from, const TileBuffer &to);

  // Transfers (TransferLowering.cpp).
  void lowerLoad(tile::LoadOp op);
  void lowerStore(tile::StoreOp op);
  void lowerSplat(tile::SplatOp op);
  void fill(const TileBuffer &buffer, mlir::Value scalar);
  mlir::Value readElement(tile::ViewType type, const LoweredView &view,
                          mlir::ValueRange indices);

  // Elementwise code (MapLowering.cpp).
  void lowerMap(tile::MapOp op);
  void lowerReduce(tile::ReduceOp op);
  void emitRegion(mlir::Block &body, mlir::ValueRange arguments, int64_t lanes,
                  llvm::SmallVectorImpl<mlir::Value> &results);
  mlir::Value emitVectorOp(mlir::Operation *op, mlir::ValueRange operands,
                           int64_t lanes);
  mlir::Value gather(tile::ReadOp op, mlir::ValueRange indices, int64_t lanes);

  // Products (DotLowering.cpp).
  void lowerDot(tile::DotOp op);
  void emitProduct(const TileBuffer &lhs, const TileBuffer &rhs,
                   const TileBuffer &acc, const TileBuffer &scale,
                   const TileBuffer &result, bool transposed);
  void emitGuardedProduct(const TileBuffer &lhs, const TileBuffer &rhs,
                          const TileBuffer &result, bool transposed);
  mlir::Value isFinite(const TileBuffer &buffer);

  // Rotation (RotaryLowering.cpp).
  void lowerAngles(tile::AnglesOp op);
  void lowerRotate(tile::RotateOp op);

  // Small pieces.
  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value minIndex(mlir::Value a, mlir::Value b);
  mlir::Value maxIndex(mlir::Value a, mlir::Value b);
  mlir::VectorType vectorType(int64_t lanes, mlir::Type element);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes);
  /// The widest vector that divides an extent.
  int64_t lanesFor(int64_t extent) const;
  /// The element type in which a tile of T is held.
  mlir::Type held(mlir::Type element);
  mlir::Value loadVector(const TileBuffer &buffer, mlir::Value row,
                         mlir::Value column, int64_t lanes);
  void storeVector(mlir::Value value, const TileBuffer &buffer, mlir::Value row,
                   mlir::Value column);
  mlir::Value loadScalar(const TileBuffer &buffer, mlir::Value row,
                         mlir::Value column);
  /// `for (iv = lower; iv < upper; iv += step) body(iv)`, unrolled if asked.
  void loop(mlir::Value lower, mlir::Value upper, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  void loop(int64_t upper, int64_t step,
            llvm::function_ref<void(mlir::Value)> body) {
    if (upper == step) {
      body(index(0));
      return;
    }
    loop(index(0), index(upper), step, body);
  }

  tile::KernelOp kernel;
  CpuVectors cpu;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::func::FuncOp function;

  llvm::DenseMap<mlir::Value, LoweredView> views;
  llvm::DenseMap<mlir::Value, TileBuffer> tiles;
  mlir::IRMapping scalars;
  llvm::SmallVector<mlir::Value> gridIds;
  /// Buffers chosen ahead for a value that a loop or branch hands on.
  llvm::DenseMap<mlir::Value, std::pair<TileBuffer, mlir::Value>> destinations;
  /// Buffers that are free to be used again, by type.
  llvm::DenseMap<mlir::Type, llvm::SmallVector<mlir::Value>> freeBuffers;
  /// Buffers taken in the block being lowered.
  llvm::SmallVector<mlir::Value> *taken = nullptr;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_TILETOLOOPS_KERNELLOWERING_H
