//===- TileRoles.cpp - what a kernel holds as a whole ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifiers that look at more than an operation and its operands: the values of
// a kernel, and who runs which operation.
//
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Layout.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attnfuse::tile;

bool attnfuse::tile::isScalar(Type type) {
  return type.isIndex() || type.isInteger(1) || type.isInteger(8) ||
         type.isInteger(16) || type.isInteger(32) || type.isInteger(64) ||
         isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

LogicalResult attnfuse::tile::verifyFragment(Operation *op,
                                             ArrayRef<int64_t> shape,
                                             Type element, Attribute layout) {
  auto emitError = [&] { return op->emitOpError(); };
  if (failed(TileType::verify(emitError, shape, element, layout))) {
    return failure();
  }
  auto tile = TileType::get(op->getContext(), shape, element, layout);
  auto fragment = dyn_cast_or_null<FragmentAttr>(layout);
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

LogicalResult attnfuse::tile::verifyFragment(Operation *op, TileType tile) {
  return verifyFragment(op, tile.getShape(), tile.getElementType(),
                        tile.getLayout());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A value of a scheduled kernel's body: lanes know what they hold of tiles.
static LogicalResult verifyValue(Operation *op, Type type) {
  if (auto tile = dyn_cast<TileType>(type)) {
    return verifyFragment(op, tile);
  }
  if (auto pending = dyn_cast<PendingType>(type)) {
    return verifyFragment(op, pending.getShape(), pending.getElementType(),
                          pending.getLayout());
  }
  return success();
}

/// Whether an operation works on tiles or slots, which in a kernel with roles
/// is for a role to do.
static bool needsRole(Operation *op) {
  auto isData = [](Type type) {
    return isa<TileType, PendingType, RingType>(type);
  };
  return !isa<AllocOp>(op) && (llvm::any_of(op->getOperandTypes(), isData) ||
                               llvm::any_of(op->getResultTypes(), isData));
}

LogicalResult KernelOp::verifyRegions() {
  ScheduleAttr schedule = getScheduleAttr();
  bool scheduled = schedule && schedule.getWarps();
  auto roles = getBody().front().getOps<RolesOp>();
  bool hasRoles = !roles.empty(), takesWork = false;
  WalkResult result = getBody().walk([&](Operation *op) {
    takesWork |= isa<NextWorkOp>(op);
    SmallVector<Type> types(op->getResultTypes());
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        llvm::append_range(types, block.getArgumentTypes());
      }
    }
    for (Type type : types) {
      if (isa<ViewType, RingType>(type) && !isa<AllocOp>(op)) {
        op->emitOpError() << "expected views to be arguments of the kernel and "
                             "rings results of tile.alloc, got a value of type "
                          << type;
        return WalkResult::interrupt();
      }
      if (scheduled && failed(verifyValue(op, type))) {
        return WalkResult::interrupt();
      }
    }
    if (hasRoles && needsRole(op) && !op->getParentOfType<RolesOp>()) {
      op->emitOpError() << "expected to be in a role of tile.roles, which "
                           "shares out all work on tiles and rings";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted()) {
    return failure();
  }
  if (schedule && schedule.getPersistent() && !takesWork) {
    return emitOpError() << "has a schedule that is persistent, and no "
                            "tile.next_work to take query tiles with";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// The role that runs an operation.
static Region *roleOf(Operation *op, RolesOp roles) {
  Region *region = op->getParentRegion();
  return roles.getProducer().isAncestor(region) ? &roles.getProducer()
                                                : &roles.getConsumer();
}

LogicalResult WarpgroupOp::verify() {
  auto roles = (*this)->getParentOfType<RolesOp>();
  if (!roles || roleOf(*this, roles) != &roles.getConsumer()) {
    return emitOpError() << "expected to be in a consumer of tile.roles";
  }
  return success();
}

LogicalResult NextWorkOp::verify() {
  if (!(*this)->getParentOfType<RolesOp>()) {
    return emitOpError() << "expected to be in a role of tile.roles";
  }
  return success();
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
  if (threads > 1024) {
    return emitOpError() << "expected at most 7 consumers of 4 warps beside "
                            "the producer, 1024 threads, got "
                         << consumers;
  }
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
    auto readers = static_cast<int64_t>(alloc.getReaders());
    if (readers < 0 || readers > consumers) {
      InFlightDiagnostic error = emitOpError()
                                 << "expected rings with 0 (every consumer) to "
                                 << consumers << " readers, got " << readers;
      error.attachNote(alloc.getLoc()) << "the ring";
      return error;
    }
    if (failed(verifyProtocol(*this, alloc))) {
      return failure();
    }
  }
  return success();
}

/// A copy by the tensor memory accelerator.
static LogicalResult verifyBulkCopy(Operation *op, ViewType view,
                                    ArrayRef<int64_t> along, RingType ring) {
  if (view.getRank() != 4 || along != ArrayRef<int64_t>{2, 3} ||
      ring.getRows() > 256) {
    return op->emitOpError()
           << "expected, in a role, a view of rank 4, along "
              "[2, 3] and slots of at most 256 rows, got "
           << view << ", along [" << along << "] and " << ring;
  }
  return success();
}

/// A product of a warpgroup (wgmma).
static LogicalResult verifyWarpgroupDot(DotStartOp dot) {
  PendingType result = dot.getResult().getType();
  RingType rhs = dot.getRhs().getType();
  if (rhs.getElementType().isF32() || result.getShape()[0] != 64 ||
      result.getShape()[1] > 256) {
    return dot.emitOpError()
           << "expected, in a consumer, factors of f16 or bf16 and a result of "
              "64 rows and at most 256 columns, got "
           << rhs << " and " << result;
  }
  return success();
}

static LogicalResult verifyProducerOp(Operation *op) {
  if (auto load = dyn_cast<AsyncLoadOp>(op)) {
    return verifyBulkCopy(op, load.getView().getType(), load.getAlong(),
                          load.getRing().getType());
  }
  bool isOther =
      isa<TileDialect>(op->getDialect()) &&
      !isa<AcquireOp, CommitOp, NextWorkOp, ProgramIdOp, DimOp, ReadOp>(op);
  if (isOther || needsRole(op)) {
    if (!isa<AcquireOp, CommitOp>(op)) {
      return op->emitOpError()
             << "is not for a producer: it may hold tile.acquire, "
                "tile.async_load, tile.commit, tile.next_work and scalar code";
    }
  }
  return success();
}

static LogicalResult verifyConsumerOp(Operation *op) {
  if (isa<AsyncLoadOp, CommitOp>(op)) {
    return op->emitOpError() << "is not for a consumer: the producer copies";
  }
  if (auto copy = dyn_cast<CopyOutOp>(op)) {
    return verifyBulkCopy(op, copy.getView().getType(), copy.getAlong(),
                          copy.getRing().getType());
  }
  if (auto dot = dyn_cast<DotStartOp>(op)) {
    return verifyWarpgroupDot(dot);
  }
  if (auto any = dyn_cast<AnyOp>(op);
      any && any.getScope() == VoteScope::Block) {
    return any.emitOpError() << "expected the scope 'warp' in a consumer: the "
                                "producer takes no part in a vote of the block";
  }
  return success();
}

LogicalResult RolesOp::verifyRegions() {
  auto all = [](Region &region,
                function_ref<LogicalResult(Operation *)> check) {
    return failure(region
                       .walk([&](Operation *op) {
                         return failed(check(op)) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
                       })
                       .wasInterrupted());
  };
  if (failed(all(getProducer(), verifyProducerOp))) {
    return failure();
  }
  return all(getConsumer(), verifyConsumerOp);
}
