//===- KernelLowering.h - one scheduled kernel to nvvm ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits what one thread does. A tile with a fragment layout becomes the list
// of scalars that a lane holds; a ring becomes an offset in dynamic shared
// memory; index values become i32, for extents are below 2^31, while offsets
// into tensors are formed in i64. Control flow stays scf, scalar code arith
// and math: passes of MLIR's own take them from there.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H
#define ATTNFUSE_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H

#include "AttnFuse/Dialect/Tile/IR/Layout.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"

#include <string>

namespace mlir::gpu {
class GPUModuleOp;
} // namespace mlir::gpu

namespace attnfuse::nvvm {

/// Dynamic shared memory, a symbol beside the kernels.
inline constexpr llvm::StringLiteral kSharedName = "attnfuse_shared";

/// Slots of all rings of a kernel with roles: their barriers take 16 bytes each
/// of the 1024 ahead of the rings, of which 64 hand out query tiles.
inline constexpr int64_t kMaxSlots = 60;

/// A view taken apart.
struct LoweredView {
  mlir::Value base;                              ///< !llvm.ptr<1>
  llvm::SmallVector<mlir::Value> sizes, strides; ///< i32, i64
  mlir::Type element;
  /// i1: rows can be copied 16 bytes at a time along the last dimension.
  mlir::Value aligned;
};

/// Who runs the code that is being emitted.
enum class Role { Everyone, Producer, Consumer };

/// A tensor map that the kernel takes: of an argument, for boxes of a shape.
struct TensorMap {
  unsigned argument;
  int64_t columns, rows, swizzle;
};

/// A ring's place in shared memory; its mbarriers, of kernels with roles, are
/// one "full" and one "empty" per slot from `barriers` on.
struct LoweredRing {
  int64_t offset = 0, stages = 1, barriers = 0, readers = 0;
  tile::SlotLayout slot;
  mlir::Type element;
};

using Values = llvm::SmallVector<mlir::Value>;

class KernelLowering {
public:
  explicit KernelLowering(tile::KernelOp kernel);

  /// Builds the function at the end of `target`; `kernel` is left as it is.
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp> lower(mlir::gpu::GPUModuleOp target);

  /// Bytes of dynamic shared memory, threads of a block; known from the start.
  int64_t sharedBytes() const { return sharedSize; }
  int64_t threads() const { return blockThreads; }
  /// What a lane holds of a tile.
  static tile::FragmentLayout fragmentOf(tile::TileType type);
  /// The parameters beyond views and scalars, as a manifest lists them.
  std::string extras() const;

private:
  // Function, arguments and control flow (KernelLowering.cpp).
  void lowerArguments();
  mlir::Value alignedForCopies(tile::ViewType type, const LoweredView &view);
  void allocateRings();
  void lowerGrid();
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerFor(mlir::scf::ForOp op);
  mlir::LogicalResult lowerWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult lowerIf(mlir::scf::IfOp op);
  mlir::Value cloneScalar(mlir::Operation *op, mlir::IRMapping &mapping);

  /// Narrow floats are held two to a register, as products take them.
  static bool isPacked(tile::TileType type);
  /// The elements of a tile that a lane holds, in the fragment's order.
  Values elementsOf(mlir::Value tile);
  void setElements(mlir::Value tile, const Values &elements);
  /// The scalars that stand for values, in order; and back.
  void flatten(mlir::ValueRange values, Values &flat);
  void bind(mlir::ValueRange values, mlir::ValueRange flat);

  // Elementwise code (ElementwiseLowering.cpp).
  void lowerMap(tile::MapOp op);
  void lowerReduce(tile::ReduceOp op);
  void lowerCombine(tile::CombineOp op);
  mlir::Value combineLanes(tile::ReduceKind kind, mlir::Value x);
  void lowerSplat(tile::SplatOp op);
  void lowerCast(tile::CastOp op);
  void lowerAny(tile::AnyOp op);
  mlir::Value emitMath(mlir::Operation *op, mlir::ValueRange operands);
  mlir::Value combine(tile::ReduceKind kind, mlir::Value x, mlir::Value y);

  // Memory (MemoryLowering.cpp).
  void lowerLoad(tile::LoadOp op);
  void lowerStore(tile::StoreOp op);
  void lowerAsyncLoad(tile::AsyncLoadOp op);
  void lowerPut(tile::PutOp op);
  void lowerCopyOut(tile::CopyOutOp op);
  mlir::Value readElement(const LoweredView &view, mlir::ValueRange indices);
  mlir::Value elementPointer(const LoweredView &view, mlir::ValueRange indices);
  /// Calls `body` with row and column of each chunk of 16 bytes (or of each
  /// element) of a slot that this thread copies.
  void forChunks(const LoweredRing &ring,
                 llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  void forElements(const LoweredRing &ring,
                   llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  mlir::Value loadMemory(mlir::Type element, mlir::Value pointer);
  void storeMemory(mlir::Value value, mlir::Type element, mlir::Value pointer);

  // Rings (MemoryLowering.cpp).
  mlir::Value slotBase(mlir::Value ring, mlir::Value use);
  mlir::Value slotAddress(const LoweredRing &ring, mlir::Value base,
                          mlir::Value row, mlir::Value column);
  void lowerWait(tile::WaitOp op);
  void blockBarrier();

  // Products (MmaLowering.cpp).
  void lowerDotStart(tile::DotStartOp op);
  void dot16(tile::DotStartOp op, const Values &lhs, Values &acc);
  void dot32(tile::DotStartOp op, const Values &lhs, Values &acc);
  void lowerDotGuarded(tile::DotGuardedOp op);
  void mma16(mlir::Type element, llvm::MutableArrayRef<mlir::Value> acc,
             mlir::ValueRange a, mlir::ValueRange b);
  void mmaTf32(llvm::MutableArrayRef<mlir::Value> acc, mlir::ValueRange a,
               mlir::ValueRange b);
  Values ldmatrix(mlir::Value pointer, int64_t offset, bool transposed);

  // Roles and their barriers (RoleLowering.cpp).
  void planRoles();
  mlir::LogicalResult lowerRoles(tile::RolesOp op);
  void initBarriers();
  std::pair<mlir::Value, mlir::Value> slotAndPhase(mlir::Value use,
                                                   int64_t stages);
  mlir::Value fullBarrier(const LoweredRing &ring, mlir::Value slot);
  mlir::Value emptyBarrier(const LoweredRing &ring, mlir::Value slot);
  void waitBarrier(mlir::Value address, mlir::Value parity);
  void arriveOnce(mlir::Value address);
  mlir::Value isFirstLane();
  void lowerAcquire(tile::AcquireOp op);
  void lowerRelease(tile::ReleaseOp op);
  void lowerBulkLoad(tile::AsyncLoadOp op);
  void lowerBulkStore(tile::CopyOutOp op);
  void lowerNextWork(tile::NextWorkOp op);
  mlir::Value tensorMap(mlir::Value view, const LoweredRing &ring);

  // Products of warpgroups (WgmmaLowering.cpp).
  void lowerWarpgroupDot(tile::DotStartOp op);
  void lowerWarpgroupWait(tile::DotWaitOp op);

  // Rotation (RotaryLowering.cpp).
  void lowerRotateSlot(tile::RotateSlotOp op);

  // Small pieces; the two-letter names are those of PTX types.
  mlir::Type i32() { return b.getI32Type(); }
  mlir::Value c32(int64_t value);
  mlir::Value c64(int64_t value);
  mlir::Value cf32(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value andOf(mlir::Value x, mlir::Value y);
  mlir::Value xorOf(mlir::Value x, mlir::Value y);
  mlir::Value shr(mlir::Value x, int64_t bits);
  mlir::Value shl(mlir::Value x, int64_t bits);
  mlir::Value divide(mlir::Value x, int64_t y);
  mlir::Value remainder(mlir::Value x, int64_t y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y);
  mlir::Value toI64(mlir::Value x);
  mlir::Value toI32(mlir::Value x);
  mlir::Value shared(mlir::Value address, int64_t offset = 0);
  mlir::Value shuffle(mlir::Value value, int64_t distance);
  mlir::Value intrinsic(llvm::StringRef name, mlir::ValueRange operands,
                        mlir::Type result);
  mlir::Value ex2(mlir::Value x);
  /// Inline assembly; several results come back as their list.
  Values assembly(llvm::StringRef text, llvm::StringRef constraints,
                  mlir::ValueRange operands, mlir::TypeRange results,
                  bool sideEffects);
  void when(mlir::Value condition, llvm::function_ref<void()> body);

  tile::KernelOp kernel;
  tile::ScheduleAttr schedule;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::LLVM::LLVMFuncOp function;
  /// Threads of the block, and of those that run the code being emitted.
  int64_t blockThreads = 0, numThreads = 0, sharedSize = 0;
  Role role = Role::Everyone;

  llvm::DenseMap<mlir::Value, LoweredView> views;
  llvm::DenseMap<mlir::Value, LoweredRing> rings;
  llvm::DenseMap<mlir::Value, Values> tiles;
  mlir::IRMapping scalars;
  Values gridIds;
  mlir::Value sharedBase; ///< i32 address of dynamic shared memory
  mlir::Value thread, warp, lane, warpgroup;
  llvm::SmallVector<TensorMap> maps;
  Values mapPointers;
  bool hasCounter = false;
  mlir::Value counter;
  /// Offsets of the words that hand query tiles to consumers.
  int64_t workBarriers = 0;
  /// Row of a lane's first value within its warp's rows, and its column.
  mlir::Value warpRow, laneRow, laneColumn;
  /// True if a slot may have been read since the last barrier.
  bool slotsRead = true;
};

} // namespace attnfuse::nvvm

#endif // ATTNFUSE_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H
