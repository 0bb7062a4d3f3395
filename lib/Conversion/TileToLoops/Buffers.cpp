//===- Buffers.cpp - where the tiles of a kernel are held ------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attnfuse;

Type KernelLowering::held(Type element) {
  if (isa<FloatType>(element)) {
    return b.getF32Type();
  }
  return element.isInteger(1) ? b.getI8Type() : element;
}

TileBuffer KernelLowering::allocate(tile::TileType type, bool rowMajor) {
  int64_t outer = rowMajor ? type.getRows() : type.getColumns();
  int64_t inner = rowMajor ? type.getColumns() : type.getRows();
  auto memory = MemRefType::get({outer, inner}, held(type.getElementType()));
  TileBuffer buffer{Value(), type.getRows(), type.getColumns(),
                    type.getElementType(), rowMajor};
  SmallVector<Value> &free = freeBuffers[memory];
  if (!free.empty()) {
    buffer.memory = free.pop_back_val();
  } else {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    // A cache line, so that no vector straddles two.
    buffer.memory =
        memref::AllocaOp::create(b, loc, memory, b.getI64IntegerAttr(64));
  }
  if (taken) {
    taken->push_back(buffer.memory);
  }
  return buffer;
}

bool KernelLowering::holdsRowMajor(Value tile) {
  Operation *def = tile.getDefiningOp();
  if (!def || !isa<tile::LoadOp, tile::RotateOp, tile::AnglesOp>(def)) {
    return false;
  }
  return llvm::all_of(tile.getUses(), [&](OpOperand &use) {
    if (auto dot = dyn_cast<tile::DotOp>(use.getOwner())) {
      return dot.getRhs() == tile && dot.getLhs() != tile;
    }
    auto rotate = dyn_cast<tile::RotateOp>(use.getOwner());
    return rotate && holdsRowMajor(rotate.getResult());
  });
}

/// An operand of a map that has the result's extents, made in the same block:
/// the result may overwrite it, element by element, if nothing reads it later.
static SmallVector<Value> overwritableOperands(tile::MapOp map, Value result) {
  SmallVector<Value> operands;
  for (Value input : map.getInputs()) {
    Operation *def = input.getDefiningOp();
    if (def && def->getBlock() == map->getBlock() &&
        !isa<scf::ForOp, scf::IfOp>(def) &&
        input.getType() == result.getType()) {
      operands.push_back(input);
    }
  }
  return operands;
}

TileBuffer KernelLowering::bufferFor(Value result) {
  TileBuffer buffer;
  auto planned = destinations.find(result);
  if (planned != destinations.end()) {
    buffer = planned->second.first;
  } else if (auto map = result.getDefiningOp<tile::MapOp>()) {
    for (Value operand : overwritableOperands(map, result)) {
      // Only the first result: two cannot share a buffer.
      if (result == map.getResult(0) && !tiles[operand].rowMajor &&
          mayWriteInto(map, operand)) {
        buffer = tiles[operand];
        break;
      }
    }
  }
  if (!buffer) {
    buffer =
        allocate(cast<tile::TileType>(result.getType()), holdsRowMajor(result));
  }
  tiles[result] = buffer;
  return buffer;
}

/// A rescaling `acc * row` that only a product reads is done by the product,
/// as it takes up its accumulator.
bool KernelLowering::isFusedRescale(Operation *op) {
  auto map = dyn_cast_or_null<tile::MapOp>(op);
  if (!map || map.getInputs().size() != 2 || map->getNumResults() != 1 ||
      !map.getResult(0).hasOneUse()) {
    return false;
  }
  auto dot = dyn_cast<tile::DotOp>(*map.getResult(0).user_begin());
  if (!dot || dot.getAcc() != map.getResult(0) ||
      dot->getBlock() != map->getBlock()) {
    return false;
  }
  auto row = cast<tile::TileType>(map.getInputs()[1].getType());
  auto acc = cast<tile::TileType>(map.getInputs()[0].getType());
  Block &body = map.getBody().front();
  auto product = dyn_cast<arith::MulFOp>(body.front());
  return acc == map.getResult(0).getType() && row.getColumns() == 1 &&
         product && product->getNextNode() == body.getTerminator() &&
         product.getLhs() == body.getArgument(0) &&
         product.getRhs() == body.getArgument(1) &&
         body.getTerminator()->getOperand(0) == product.getResult();
}

/// True if `writer` may overwrite the buffer that holds `owner`: nothing reads
/// `owner` after it, and what it reads of `owner` itself it reads in time.
bool KernelLowering::mayWriteInto(Operation *writer, Value owner) {
  if (!owner) {
    return true;
  }
  for (OpOperand &use : owner.getUses()) {
    Operation *reader =
        writer->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (!reader) {
      // Another branch; the operation that holds both has been asked.
      continue;
    }
    if (isFusedRescale(reader)) {
      reader = *reader->getResult(0).user_begin();
      if (reader == writer) {
        continue;
      }
    }
    if (reader == writer) {
      bool inTime = isa<scf::IfOp>(writer) ||
                    (isa<tile::MapOp>(writer) &&
                     owner.getType() == writer->getResult(0).getType()) ||
                    (isa<tile::DotOp>(writer) &&
                     cast<tile::DotOp>(writer).getAcc() == owner &&
                     cast<tile::DotOp>(writer).getLhs() != owner &&
                     cast<tile::DotOp>(writer).getRhs() != owner);
      if (!inTime) {
        return false;
      }
    } else if (writer->isBeforeInBlock(reader)) {
      return false;
    }
  }
  return true;
}

void KernelLowering::planDestination(Value yielded, TileBuffer target,
                                     Value owner) {
  Operation *def = yielded.getDefiningOp();
  if (!isa<tile::TileType>(yielded.getType()) || yielded == owner || !def ||
      destinations.count(yielded)) {
    return;
  }
  // The value has to be made where it is handed on, for good.
  bool local = llvm::all_of(yielded.getUses(), [&](OpOperand &use) {
    return use.getOwner()->getBlock() == def->getBlock() ||
           def->getBlock()->findAncestorOpInBlock(*use.getOwner());
  });
  Operation *terminator = def->getBlock()->getTerminator();
  bool handedOn = llvm::is_contained(terminator->getOperands(), yielded);
  if (!local || !handedOn || isa<scf::ForOp, tile::LoadOp>(def) ||
      holdsRowMajor(yielded) || !mayWriteInto(def, owner)) {
    return;
  }
  destinations[yielded] = {target, owner};
}

void KernelLowering::copy(const TileBuffer &from, const TileBuffer &to) {
  int64_t lanes = lanesFor(from.rows);
  if (from.rowMajor || to.rowMajor) {
    loop(from.columns, 1, [&](Value column) {
      loop(from.rows, 1, [&](Value row) {
        storeVector(broadcast(loadScalar(from, row, column), 1), to, row,
                    column);
      });
    });
    return;
  }
  loop(from.columns, 1, [&](Value column) {
    loop(from.rows, lanes, [&](Value row) {
      storeVector(loadVector(from, row, column, lanes), to, row, column);
    });
  });
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

static SmallVector<Value> place(const TileBuffer &buffer, Value row,
                                Value column) {
  return buffer.rowMajor ? SmallVector<Value>{row, column}
                         : SmallVector<Value>{column, row};
}

Value KernelLowering::loadVector(const TileBuffer &buffer, Value row,
                                 Value column, int64_t lanes) {
  Type memory = cast<MemRefType>(buffer.memory.getType()).getElementType();
  Value value =
      vector::LoadOp::create(b, loc, vectorType(lanes, memory), buffer.memory,
                             place(buffer, row, column));
  if (buffer.element.isInteger(1)) {
    return arith::TruncIOp::create(b, loc, vectorType(lanes, buffer.element),
                                   value);
  }
  return value;
}

void KernelLowering::storeVector(Value value, const TileBuffer &buffer,
                                 Value row, Value column) {
  Type memory = cast<MemRefType>(buffer.memory.getType()).getElementType();
  auto type = cast<VectorType>(value.getType());
  Type wanted = vectorType(type.getDimSize(0), memory);
  if (type.getElementType().isInteger(1)) {
    value = arith::ExtUIOp::create(b, loc, wanted, value);
  } else if (type.getElementType() != memory) {
    value = arith::ExtFOp::create(b, loc, wanted, value);
  }
  vector::StoreOp::create(b, loc, value, buffer.memory,
                          place(buffer, row, column));
}

Value KernelLowering::loadScalar(const TileBuffer &buffer, Value row,
                                 Value column) {
  Value value =
      memref::LoadOp::create(b, loc, buffer.memory, place(buffer, row, column));
  if (buffer.element.isInteger(1)) {
    return arith::TruncIOp::create(b, loc, buffer.element, value);
  }
  return value;
}
