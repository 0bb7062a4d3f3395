//===- TileScheduledOps.cpp - verifiers of scheduled programs --*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attnfuse::tile;

/// Rings are places, not values: which one is meant is known at compile time.
static LogicalResult verifyRing(Operation *op, Value ring) {
  if (op->getParentOfType<KernelOp>() && !ring.getDefiningOp<AllocOp>()) {
    return op->emitOpError() << "expected a ring of a tile.alloc";
  }
  return success();
}

/// A pending tile is a tile: extents, element type and layout.
static LogicalResult verifyPending(Operation *op, PendingType type) {
  return verifyFragment(op, type.getShape(), type.getElementType(),
                        type.getLayout());
}

/// Indices, `along` and element types of a copy between a view and a slot.
static LogicalResult verifyCopy(Operation *op, ViewType view, size_t numIndices,
                                ArrayRef<int64_t> along,
                                TypedValue<RingType> place) {
  RingType ring = place.getType();
  if (static_cast<int64_t>(numIndices) != view.getRank()) {
    return op->emitOpError() << "expected one index per dimension of the view, "
                             << view.getRank() << ", got " << numIndices;
  }
  if (along.size() != 2 || along[0] < 0 || along[1] < 0 ||
      along[0] >= view.getRank() || along[1] >= view.getRank() ||
      along[0] == along[1]) {
    return op->emitOpError()
           << "expected 'along' to name two dimensions of " << view;
  }
  if (view.getElementType() != ring.getElementType()) {
    return op->emitOpError() << "expected a ring of " << view.getElementType()
                             << ", got " << ring;
  }
  return verifyRing(op, place);
}

LogicalResult AsyncLoadOp::verify() {
  return verifyCopy(*this, getView().getType(), getIndices().size(), getAlong(),
                    getRing());
}

LogicalResult CopyOutOp::verify() {
  return verifyCopy(*this, getView().getType(), getIndices().size(), getAlong(),
                    getRing());
}

LogicalResult RotateSlotOp::verify() {
  if (failed(verifyRing(*this, getRing()))) {
    return failure();
  }
  auto pairs = static_cast<int64_t>(getPairs());
  if (pairs < 1 || 2 * pairs > getRing().getType().getColumns()) {
    return emitOpError() << "expected 1 to "
                         << getRing().getType().getColumns() / 2
                         << " pairs of columns, got " << pairs;
  }
  if (static_cast<bool>(getCos()) != static_cast<bool>(getSin())) {
    return emitOpError() << "expected both tables or none";
  }
  if (!getCos()) {
    if (static_cast<int64_t>(getFrequencies().size()) != pairs) {
      return emitOpError() << "expected one frequency per pair (" << pairs
                           << "), got " << getFrequencies().size();
    }
    return success();
  }
  for (ViewType table : {getCos().getType(), getSin().getType()}) {
    if (table.getRank() != 2 || !isa<FloatType>(table.getElementType()) ||
        (!ShapedType::isDynamic(table.getShape()[1]) &&
         table.getShape()[1] != pairs)) {
      return emitOpError() << "expected tables of floats with " << pairs
                           << " columns, one per pair, got " << table;
    }
  }
  if (!getFrequencies().empty() || !getMagnitude().isExactlyValue(1.0)) {
    return emitOpError() << "expected neither frequencies nor a magnitude "
                            "beside tables";
  }
  return success();
}

LogicalResult PutOp::verify() {
  if (failed(verifyRing(*this, getRing()))) {
    return failure();
  }
  TileType tile = getTile().getType();
  RingType ring = getRing().getType();
  if (tile.getRows() != ring.getRows() ||
      tile.getColumns() != ring.getColumns()) {
    return emitOpError() << "expected a slot of the tile's extents, got "
                         << tile << " and " << ring;
  }
  if (!tile.getElementType().isF32()) {
    return emitOpError() << "expected a tile of f32, got " << tile;
  }
  return verifyFragment(*this, tile);
}

LogicalResult DotStartOp::verify() {
  if (failed(verifyPending(*this, getResult().getType())) ||
      failed(verifyRing(*this, getRhs()))) {
    return failure();
  }
  if (!getResult().use_empty() && !getResult().hasOneUse()) {
    return emitOpError() << "expected its result to be waited for once: what "
                            "is in flight can be taken back only once";
  }
  Type lhsElement;
  int64_t rows, inner;
  if (auto ring = dyn_cast<RingType>(getLhs().getType())) {
    rows = ring.getRows();
    inner = ring.getColumns();
    lhsElement = ring.getElementType();
    if (!getLhsUse()) {
      return emitOpError() << "expected the use of the left ring";
    }
    if (failed(verifyRing(*this, getLhs()))) {
      return failure();
    }
  } else {
    auto tile = cast<TileType>(getLhs().getType());
    rows = tile.getRows();
    inner = tile.getColumns();
    lhsElement = tile.getElementType();
    if (getLhsUse()) {
      return emitOpError() << "expected no use for a left factor in registers";
    }
    if (tile.getLayout() != getResult().getType().getLayout()) {
      return emitOpError() << "expected a left factor with the result's "
                              "layout, got "
                           << tile << " and " << getResult().getType();
    }
  }
  RingType rhs = getRhs().getType();
  int64_t rhsInner = getTransposeB() ? rhs.getColumns() : rhs.getRows();
  int64_t columns = getTransposeB() ? rhs.getRows() : rhs.getColumns();
  PendingType result = getResult().getType();
  if (inner != rhsInner || result.getShape()[0] != rows ||
      result.getShape()[1] != columns ||
      (getAcc() && getAcc().getType() != result.getTile())) {
    return emitOpError() << "expected MxK times "
                         << (getTransposeB() ? "NxK (transposed)" : "KxN")
                         << " to give MxN, got " << getLhs().getType() << ", "
                         << rhs << " and " << result;
  }
  if (lhsElement != rhs.getElementType() || !result.getElementType().isF32()) {
    return emitOpError() << "expected factors of one type and a result of f32, "
                            "got "
                         << lhsElement << ", " << rhs.getElementType()
                         << " and " << result.getElementType();
  }
  // Matrix instructions take k-steps of 32 bytes; right factors of 16 bits are
  // read two tiles of 8 columns at a time.
  int64_t step = lhsElement.isF32() ? 8 : 16;
  if (inner % step || columns % step) {
    return emitOpError() << "expected an inner extent and columns in multiples "
                            "of "
                         << step << " for factors of " << lhsElement << ", got "
                         << inner << " and " << columns;
  }
  return success();
}

/// Counts of what may still be under way: instructions take 0 to 7.
static LogicalResult verifyOutstanding(Operation *op, uint64_t outstanding) {
  if (outstanding > 7) {
    return op->emitOpError() << "expected 0 to 7 outstanding, got "
                             << static_cast<int64_t>(outstanding);
  }
  return success();
}

LogicalResult WaitOp::verify() {
  return verifyOutstanding(*this, getOutstanding());
}

LogicalResult DotWaitOp::verify() {
  if (failed(verifyOutstanding(*this, getOutstanding()))) {
    return failure();
  }
  if (failed(verifyPending(*this, getPending().getType()))) {
    return failure();
  }
  if (getPending().getType().getTile() != getResult().getType()) {
    return emitOpError() << "expected a result of type "
                         << getPending().getType().getTile() << ", got "
                         << getResult().getType();
  }
  return success();
}

LogicalResult DotGuardedOp::verify() {
  if (failed(verifyRing(*this, getRhs()))) {
    return failure();
  }
  TileType lhs = getLhs().getType(), acc = getAcc().getType();
  RingType rhs = getRhs().getType();
  if (lhs.getColumns() != rhs.getRows() || acc.getRows() != lhs.getRows() ||
      acc.getColumns() != rhs.getColumns()) {
    return emitOpError() << "expected MxK times KxN plus MxN, got " << lhs
                         << ", " << rhs << " and " << acc;
  }
  if (!lhs.getElementType().isF32() || !acc.getElementType().isF32() ||
      lhs.getLayout() != acc.getLayout()) {
    return emitOpError() << "expected tiles of f32 with one layout, got " << lhs
                         << " and " << acc;
  }
  return verifyFragment(*this, lhs);
}

LogicalResult CastOp::verify() {
  TileType from = getTile().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape() || from.getLayout() != to.getLayout() ||
      !from.getElementType().isF32() || !isa<FloatType>(to.getElementType())) {
    return emitOpError() << "expected a tile of f32 and one of floats with the "
                            "same extents and layout, got "
                         << from << " and " << to;
  }
  return verifyFragment(*this, from);
}

LogicalResult AnyOp::verify() {
  if (!getTile().getType().getElementType().isInteger(1)) {
    return emitOpError() << "expected a tile of i1, got "
                         << getTile().getType();
  }
  return verifyFragment(*this, getTile().getType());
}
