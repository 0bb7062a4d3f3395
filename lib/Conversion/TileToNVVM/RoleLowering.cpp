//===- RoleLowering.cpp - roles, mbarriers and bulk copies -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each slot of a ring has two mbarriers: "full", on which the producer arrives
// once with the bytes it expects and which the copies complete, and "empty",
// on which one lane of every consuming warp arrives. Use n is slot n mod S in
// phase n / S; the producer waits for the phase before, which a new barrier
// counts as passed.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

/// Nanoseconds that a wait may suspend its thread before it looks again.
static constexpr int64_t kWaitHint = 10000000;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

void KernelLowering::planRoles() {
  blockThreads = numThreads = schedule.getWarps() * 32;
  kernel.walk([&](tile::RolesOp roles) {
    blockThreads = (schedule.getWarps() + 4) * 32;
    auto require = [&](Value view, tile::RingType ring) {
      unsigned argument = cast<BlockArgument>(view).getArgNumber();
      TensorMap map{argument,
                    ring.getSwizzle() * 8 /
                        ring.getElementType().getIntOrFloatBitWidth(),
                    ring.getRows(), ring.getSwizzle()};
      for (const TensorMap &known : maps) {
        if (known.argument == map.argument && known.rows == map.rows &&
            known.columns == map.columns) {
          return;
        }
      }
      maps.push_back(map);
    };
    roles.walk([&](tile::AsyncLoadOp load) {
      require(load.getView(), load.getRing().getType());
    });
    roles.walk([&](tile::CopyOutOp store) {
      require(store.getView(), store.getRing().getType());
    });
    roles.walk([&](tile::NextWorkOp) { hasCounter = true; });
  });
}

std::string KernelLowering::extras() const {
  if (maps.empty() && !hasCounter) {
    return "";
  }
  std::string text = "[";
  for (const TensorMap &map : maps) {
    text += text.size() > 1 ? "," : "";
    text += "{\"tensor_map\":" + std::to_string(map.argument) + ",\"box\":[" +
            std::to_string(map.columns) + "," + std::to_string(map.rows) +
            "],\"swizzle\":" + std::to_string(map.swizzle) + "}";
  }
  if (hasCounter) {
    text += text.size() > 1 ? "," : "";
    text += "{\"counter\":true}";
  }
  return text + "]";
}

Value KernelLowering::tensorMap(Value view, const LoweredRing &ring) {
  unsigned argument = cast<BlockArgument>(view).getArgNumber();
  for (auto [map, pointer] : llvm::zip(maps, mapPointers)) {
    if (map.argument == argument && map.rows == ring.slot.rows &&
        map.columns == ring.slot.panelColumns()) {
      return pointer;
    }
  }
  llvm_unreachable("every copy's tensor map was planned");
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

Value KernelLowering::isFirstLane() {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, c32(0));
}

std::pair<Value, Value> KernelLowering::slotAndPhase(Value use,
                                                     int64_t stages) {
  if (stages == 1) {
    return {c32(0), andOf(use, c32(1))};
  }
  if (llvm::isPowerOf2_64(stages)) {
    return {andOf(use, c32(stages - 1)),
            andOf(shr(use, llvm::Log2_64(stages)), c32(1))};
  }
  return {remainder(use, stages), andOf(divide(use, stages), c32(1))};
}

Value KernelLowering::fullBarrier(const LoweredRing &ring, Value slot) {
  return add(add(sharedBase, c32(ring.barriers)), shl(slot, 4));
}

Value KernelLowering::emptyBarrier(const LoweredRing &ring, Value slot) {
  return add(add(sharedBase, c32(ring.barriers + 8)), shl(slot, 4));
}

void KernelLowering::waitBarrier(Value address, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(b, loc, shared(address), parity,
                                        c32(kWaitHint));
}

/// One arrival of this warp.
void KernelLowering::arriveOnce(Value address) {
  when(isFirstLane(), [&] {
    NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), shared(address),
                                   Value());
  });
}

void KernelLowering::initBarriers() {
  int64_t consumerWarps = schedule.getWarps();
  auto init = [&](int64_t offset, int64_t count) {
    NVVM::MBarrierInitOp::create(b, loc, shared(add(sharedBase, c32(offset))),
                                 c32(count), Value());
  };
  when(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, c32(0)),
       [&] {
         for (auto alloc : kernel.getBody().front().getOps<tile::AllocOp>()) {
           const LoweredRing &ring = rings[alloc.getRing()];
           int64_t arrivals = ring.readers ? 4 * ring.readers : consumerWarps;
           for (int64_t slot = 0; slot < ring.stages; ++slot) {
             init(ring.barriers + 16 * slot, 1);
             init(ring.barriers + 16 * slot + 8, arrivals);
           }
         }
         for (int64_t slot = 0; slot < (hasCounter ? 2 : 0); ++slot) {
           init(workBarriers + 16 * slot, 1);
           init(workBarriers + 16 * slot + 8, consumerWarps);
         }
         NVVM::FenceMbarrierInitOp::create(b, loc);
       });
  NVVM::Barrier0Op::create(b, loc);
}

LogicalResult KernelLowering::lowerRoles(tile::RolesOp op) {
  initBarriers();
  Value group = shr(warp, 2);
  Value isProducer =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, group, c32(0));
  Value blockThread = thread, blockWarp = warp;
  auto branch = scf::IfOp::create(b, loc, isProducer, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);

  b.setInsertionPointToStart(branch.thenBlock());
  NVVM::SetMaxRegisterOp::create(b, loc, op.getProducerRegisters(),
                                 NVVM::SetMaxRegisterAction::decrease);
  // One thread: what others of its warp would repeat takes issue slots from
  // the consumers' softmax.
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, c32(0));
  auto one = scf::IfOp::create(b, loc, first, /*withElse=*/false);
  b.setInsertionPointToStart(one.thenBlock());
  role = Role::Producer;
  numThreads = 1;
  for (Value map : mapPointers) {
    NVVM::PrefetchOp::create(b, loc, NVVM::PrefetchCacheLevelAttr(),
                             NVVM::CacheEvictionPriorityAttr(), map, Value(),
                             b.getUnitAttr());
  }
  if (failed(lowerBlock(op.getProducer().front()))) {
    return failure();
  }

  b.setInsertionPointToStart(branch.elseBlock());
  loc = op.getLoc();
  NVVM::SetMaxRegisterOp::create(b, loc, op.getConsumerRegisters(),
                                 NVVM::SetMaxRegisterAction::increase);
  role = Role::Consumer;
  numThreads = 128;
  warpgroup = sub(group, c32(1));
  warp = andOf(blockWarp, c32(3));
  thread = andOf(blockThread, c32(127));
  if (failed(lowerBlock(op.getConsumer().front()))) {
    return failure();
  }
  // What was stored has to have left shared memory.
  when(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, c32(0)),
       [&] { NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, 0, UnitAttr()); });
  role = Role::Everyone;
  thread = blockThread;
  warp = blockWarp;
  numThreads = blockThreads;
  return success();
}

//===----------------------------------------------------------------------===//
// The protocol of rings
//===----------------------------------------------------------------------===//

void KernelLowering::lowerAcquire(tile::AcquireOp op) {
  if (role == Role::Everyone) {
    if (slotsRead) {
      blockBarrier();
    }
    return;
  }
  const LoweredRing &ring = rings[op.getRing()];
  auto [slot, phase] = slotAndPhase(scalars.lookup(op.getUse()), ring.stages);
  waitBarrier(emptyBarrier(ring, slot), xorOf(phase, c32(1)));
}

void KernelLowering::lowerRelease(tile::ReleaseOp op) {
  if (role == Role::Everyone) {
    return;
  }
  const LoweredRing &ring = rings[op.getRing()];
  auto [slot, phase] = slotAndPhase(scalars.lookup(op.getUse()), ring.stages);
  arriveOnce(emptyBarrier(ring, slot));
}

void KernelLowering::lowerBulkLoad(tile::AsyncLoadOp op) {
  const LoweredRing &ring = rings[op.getRing()];
  auto [slot, phase] = slotAndPhase(scalars.lookup(op.getUse()), ring.stages);
  Value barrier = fullBarrier(ring, slot);
  Value base = slotBase(op.getRing(), op.getUse());
  // (B, H, N, D) becomes (D, N, H, B).
  Values at;
  for (Value index : op.getIndices()) {
    at.push_back(scalars.lookup(index));
  }
  Value map = tensorMap(op.getView(), ring);
  NVVM::MBarrierArriveExpectTxOp::create(
      b, loc, Type(), shared(barrier), c32(ring.slot.bytes()),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
  for (int64_t panel = 0; panel < ring.slot.panels(); ++panel) {
    Values box{add(at[3], c32(panel * ring.slot.panelColumns())), at[2], at[1],
               at[0]};
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, loc, shared(add(base, c32(panel * ring.slot.panelBytes()))), map,
        box, shared(barrier), ValueRange(), Value(), Value(),
        NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true, NVVM::CTAGroupKindAttr(),
        Value());
  }
}

void KernelLowering::lowerBulkStore(tile::CopyOutOp op) {
  const LoweredRing &ring = rings[op.getRing()];
  Value base = slotBase(op.getRing(), op.getUse());
  Values at;
  for (Value index : op.getIndices()) {
    at.push_back(scalars.lookup(index));
  }
  Value map = tensorMap(op.getView(), ring);
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  blockBarrier();
  when(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, c32(0)),
       [&] {
         for (int64_t panel = 0; panel < ring.slot.panels(); ++panel) {
           Values box{add(at[3], c32(panel * ring.slot.panelColumns())), at[2],
                      at[1], at[0]};
           NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
               b, loc, map,
               shared(add(base, c32(panel * ring.slot.panelBytes()))), box,
               Value(), NVVM::TMAStoreMode::TILE, Value());
         }
         NVVM::CpAsyncBulkCommitGroupOp::create(b, loc);
         if (op.getDrained()) {
           NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, 0, b.getUnitAttr());
         }
       });
  if (op.getDrained()) {
    blockBarrier();
  }
}

//===----------------------------------------------------------------------===//
// Query tiles of a persistent block
//===----------------------------------------------------------------------===//

void KernelLowering::lowerNextWork(tile::NextWorkOp op) {
  auto [slot, phase] = slotAndPhase(scalars.lookup(op.getCall()), 2);
  Value full = add(add(sharedBase, c32(workBarriers)), shl(slot, 4));
  Value empty = add(full, c32(8));
  Value word =
      shared(add(add(sharedBase, c32(workBarriers + 32)), shl(slot, 2)));
  if (role == Role::Producer) {
    Value number =
        LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add, counter,
                                  c32(1), LLVM::AtomicOrdering::monotonic);
    waitBarrier(empty, xorOf(phase, c32(1)));
    LLVM::StoreOp::create(b, loc, number, word);
    NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), shared(full),
                                   Value());
    scalars.map(op.getResult(), number);
    return;
  }
  waitBarrier(full, phase);
  Value number = LLVM::LoadOp::create(b, loc, i32(), word);
  NVVM::SyncWarpOp::create(b, loc, c32(-1));
  arriveOnce(empty);
  scalars.map(op.getResult(), number);
}
