//===- TileScheduledOps.cpp - verifiers of scheduled programs --*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attnfuse::tile;

/// Indices, `along` and element types of a copy between a view and a slot.
static LogicalResult verifyCopy(Operation *op, ViewType view, size_t numIndices,
                                ArrayRef<int64_t> along, RingType ring) {
  if (static_cast<int64_t>(numIndices) != view.getRank()) {
    return op->emitOpError() << "expected one index per dimension of the view, "
                             << view.getRank() << ", got " << numIndices;
  }
  if (along.size() != 2 || along[0] < 0 || along[1] < 0 ||
      along[0] >= view.getRank() || along[1] >= view.getRank() ||
      along[0] == along[1]) {
    return op->emitOpError() << "expected 'along' to name two dimensions of "
                             << view;
  }
  if (view.getElementType() != ring.getElementType()) {
    return op->emitOpError() << "expected a ring of " << view.getElementType()
                             << ", got " << ring;
  }
  return success();
}

LogicalResult AsyncLoadOp::verify() {
  return verifyCopy(*this, getView().getType(), getIndices().size(), getAlong(),
                    getRing().getType());
}

LogicalResult CopyOutOp::verify() {
  return verifyCopy(*this, getView().getType(), getIndices().size(), getAlong(),
                    getRing().getType());
}

LogicalResult RotateSlotOp::verify() {
  auto pairs = static_cast<int64_t>(getPairs());
  if (pairs < 1 || 2 * pairs > getRing().getType().getColumns()) {
    return emitOpError() << "expected 1 to "
                         << getRing().getType().getColumns() / 2
                         << " pairs of columns, got " << pairs;
  }
  if (static_cast<bool>(getCos()) != static_cast<bool>(getSin())) {
    return emitOpError() << "expected both tables or none";
  }
  if (!getCos() && static_cast<int64_t>(getFrequencies().size()) != pairs) {
    return emitOpError() << "expected one frequency per pair (" << pairs
                         << "), got " << getFrequencies().size();
  }
  return success();
}

LogicalResult PutOp::verify() {
  TileType tile = getTile().getType();
  RingType ring = getRing().getType();
  if (tile.getRows() != ring.getRows() ||
      tile.getColumns() != ring.getColumns()) {
    return emitOpError() << "expected a slot of the tile's extents, got "
                         << tile << " and " << ring;
  }
  return success();
}

LogicalResult DotStartOp::verify() {
  Type lhsElement;
  int64_t rows, inner;
  if (auto ring = dyn_cast<RingType>(getLhs().getType())) {
    rows = ring.getRows();
    inner = ring.getColumns();
    lhsElement = ring.getElementType();
    if (!getLhsUse()) {
      return emitOpError() << "expected the use of the left ring";
    }
  } else {
    auto tile = cast<TileType>(getLhs().getType());
    rows = tile.getRows();
    inner = tile.getColumns();
    lhsElement = tile.getElementType();
    if (getLhsUse()) {
      return emitOpError() << "expected no use for a left factor in registers";
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
  if (lhsElement != rhs.getElementType() ||
      !result.getElementType().isF32()) {
    return emitOpError() << "expected factors of one type and a result of f32, "
                            "got "
                         << lhsElement << ", " << rhs.getElementType()
                         << " and " << result.getElementType();
  }
  return success();
}

LogicalResult DotWaitOp::verify() {
  if (getPending().getType().getTile() != getResult().getType()) {
    return emitOpError() << "expected a result of type "
                         << getPending().getType().getTile() << ", got "
                         << getResult().getType();
  }
  return success();
}

LogicalResult DotGuardedOp::verify() {
  TileType lhs = getLhs().getType(), acc = getAcc().getType();
  RingType rhs = getRhs().getType();
  if (lhs.getColumns() != rhs.getRows() || acc.getRows() != lhs.getRows() ||
      acc.getColumns() != rhs.getColumns()) {
    return emitOpError() << "expected MxK times KxN plus MxN, got " << lhs
                         << ", " << rhs << " and " << acc;
  }
  return success();
}

LogicalResult CastOp::verify() {
  TileType from = getTile().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape() ||
      !isa<FloatType>(from.getElementType()) ||
      !isa<FloatType>(to.getElementType())) {
    return emitOpError() << "expected float tiles of the same extents, got "
                         << from << " and " << to;
  }
  return success();
}

LogicalResult AnyOp::verify() {
  if (!getTile().getType().getElementType().isInteger(1)) {
    return emitOpError() << "expected a tile of i1, got " << getTile().getType();
  }
  return success();
}

LogicalResult RolesOp::verify() {
  for (uint64_t budget : {getProducerRegisters(), getConsumerRegisters()}) {
    if (budget % 8 || budget < 24 || budget > 240) {
      return emitOpError() << "expected budgets that are multiples of 8 from "
                              "24 to 240, got "
                           << budget;
    }
  }
  auto kernel = (*this)->getParentOfType<KernelOp>();
  ScheduleAttr schedule = kernel ? kernel.getScheduleAttr() : ScheduleAttr();
  if (!schedule || !schedule.getWarps() || schedule.getWarps() % 4) {
    return emitOpError() << "expected a kernel whose schedule has consumer "
                            "warps in multiples of 4";
  }
  // A launch allocates 65536 registers in equal parts, in units of 8; a
  // setmaxnreg beyond what is left never returns.
  int64_t consumers = schedule.getWarps() / 4;
  int64_t threads = 128 * (consumers + 1);
  int64_t allocated = 65536 / threads / 8 * 8 * threads;
  int64_t wanted = 128 * (static_cast<int64_t>(getProducerRegisters()) +
                          consumers *
                              static_cast<int64_t>(getConsumerRegisters()));
  if (wanted > allocated) {
    return emitOpError() << "expected budgets of at most " << allocated
                         << " registers together, which a launch of " << threads
                         << " threads allocates, got " << wanted;
  }
  return success();
}
