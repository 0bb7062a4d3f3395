//===- TileScheduledOps.cpp - verifiers of scheduled programs --*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Layout.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attnfuse::tile;

/// What lanes hold: without a fragment no one knows which, and it has to be
/// shared out among the warps that run the operation.
static LogicalResult verifyFragment(Operation *op, TileType tile) {
  auto fragment = dyn_cast_or_null<FragmentAttr>(tile.getLayout());
  if (!fragment) {
    return op->emitOpError()
           << "expected a tile with a fragment as its layout, got " << tile;
  }
  auto kernel = op->getParentOfType<KernelOp>();
  ScheduleAttr schedule = kernel ? kernel.getScheduleAttr() : ScheduleAttr();
  if (!schedule || !schedule.getWarps()) {
    return success();
  }
  int64_t warps = op->getParentOfType<RolesOp>() ? 4 : schedule.getWarps();
  if (fragment.getWarps() != warps) {
    return op->emitOpError() << "expected a tile shared out among the " << warps
                             << " warps that compute it, got " << tile;
  }
  return success();
}

/// Rings are places, not values: which one is meant is known at compile time.
static LogicalResult verifyRing(Operation *op, Value ring) {
  if (op->getParentOfType<KernelOp>() && !ring.getDefiningOp<AllocOp>()) {
    return op->emitOpError() << "expected a ring of a tile.alloc";
  }
  return success();
}

/// A pending tile is a tile: extents, element type and layout.
static LogicalResult verifyPending(Operation *op, PendingType type) {
  auto emitError = [&] { return op->emitOpError(); };
  if (failed(TileType::verify(emitError, type.getShape(), type.getElementType(),
                              type.getLayout()))) {
    return failure();
  }
  return verifyFragment(op, type.getTile());
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

LogicalResult DotWaitOp::verify() {
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

/// Whether a region holds an operation of a kind on a ring.
template <typename Op> static bool uses(Region &region, Value ring) {
  return llvm::any_of(ring.getUsers(), [&](Operation *user) {
    return isa<Op>(user) && region.isAncestor(user->getParentRegion());
  });
}

/// Both sides of a ring's protocol: a slot that is never freed or never filled
/// would stop the other side for good.
static LogicalResult verifyProtocol(RolesOp roles, AllocOp alloc) {
  Value ring = alloc.getRing();
  Region &producer = roles.getProducer(), &consumer = roles.getConsumer();
  auto error = [&](StringRef what) {
    InFlightDiagnostic diag = roles.emitOpError() << what;
    diag.attachNote(alloc.getLoc()) << "the ring";
    return diag;
  };
  if (uses<ReleaseOp>(producer, ring) || uses<AcquireOp>(consumer, ring)) {
    return error("expected the producer to acquire and consumers to release");
  }
  bool acquires = uses<AcquireOp>(producer, ring);
  bool releases = uses<ReleaseOp>(consumer, ring);
  if (acquires != releases) {
    return error(acquires ? "acquires slots of a ring that no consumer releases"
                          : "releases slots of a ring that are never acquired");
  }
  if (uses<WaitOp>(consumer, ring) != uses<CommitOp>(producer, ring)) {
    return error("expected what consumers wait for to be committed, and what "
                 "is committed to be waited for");
  }
  return success();
}

LogicalResult RolesOp::verify() {
  Operation *previous = (*this)->getPrevNode();
  for (; previous; previous = previous->getPrevNode()) {
    if (isa<RolesOp>(previous)) {
      return emitOpError() << "expected one tile.roles in a kernel";
    }
  }
  auto producer = static_cast<int64_t>(getProducerRegisters());
  auto consumer = static_cast<int64_t>(getConsumerRegisters());
  for (int64_t budget : {producer, consumer}) {
    if (budget % 8 || budget < 24 || budget > 256) {
      return emitOpError() << "expected budgets that are multiples of 8 from "
                              "24 to 256, got "
                           << budget;
    }
  }
  auto kernel = (*this)->getParentOfType<KernelOp>();
  ScheduleAttr schedule = kernel ? kernel.getScheduleAttr() : ScheduleAttr();
  if (!schedule || !schedule.getWarps() || schedule.getWarps() % 4) {
    return emitOpError() << "expected a kernel whose schedule has consumer "
                            "warps in multiples of 4";
  }
  // A setmaxnreg beyond what is left never returns.
  int64_t consumers = schedule.getWarps() / 4;
  int64_t threads = 128 * (consumers + 1);
  int64_t share = launchRegisters(threads);
  if (producer > share || consumer < share) {
    return emitOpError() << "expected a producer that gives back some of the "
                         << share << " registers that a launch of " << threads
                         << " threads gives each of them, and consumers that "
                            "take more, got "
                         << producer << " and " << consumer;
  }
  int64_t allocated = share * threads;
  int64_t wanted = 128 * (producer + consumers * consumer);
  if (wanted > allocated) {
    return emitOpError() << "expected budgets of at most " << allocated
                         << " registers together, which a launch of " << threads
                         << " threads allocates, got " << wanted;
  }
  for (auto alloc : kernel.getBody().front().getOps<AllocOp>()) {
    if (failed(verifyProtocol(*this, alloc))) {
      return failure();
    }
  }
  return success();
}
