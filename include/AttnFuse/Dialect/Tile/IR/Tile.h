//===- Tile.h - the tile dialect --------------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_TILE_IR_TILE_H
#define ATTNFUSE_DIALECT_TILE_IR_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "AttnFuse/Dialect/Tile/IR/TileDialect.h.inc"
#include "AttnFuse/Dialect/Tile/IR/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "AttnFuse/Dialect/Tile/IR/TileAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "AttnFuse/Dialect/Tile/IR/TileTypes.h.inc"

namespace attnfuse::tile {
/// Scalars that code inside kernels computes with: index, integers of 1 to 64
/// bits whose width is a power of two, f16, bf16, f32 and f64.
bool isScalar(mlir::Type type);

/// Whether lanes know what they hold of a tile: it has a fragment for its
/// layout, shared out among the warps that run the operation.
mlir::LogicalResult verifyFragment(mlir::Operation *op,
                                   llvm::ArrayRef<int64_t> shape,
                                   mlir::Type element, mlir::Attribute layout);
mlir::LogicalResult verifyFragment(mlir::Operation *op, TileType tile);
} // namespace attnfuse::tile

#define GET_OP_CLASSES
#include "AttnFuse/Dialect/Tile/IR/TileOps.h.inc"

#endif // ATTNFUSE_DIALECT_TILE_IR_TILE_H
