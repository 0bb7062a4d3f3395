//===- RotaryLowering.cpp - rotation in shared memory ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Angles in turns: position times frequency / 2 pi, the latter as a sum of two
// floats, so that the fraction of a turn is right to 2^-24 for positions that
// f32 holds exactly (up to 2^24); then sin.approx and cos.approx of at most
// half a turn, whose absolute error is below 2^-20 there.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

static constexpr double kTwoPi = 6.28318530717958647692;

/// The table (hi, lo) of turns per position, a constant of the module.
static LLVM::GlobalOp turnsTable(OpBuilder &b, Location loc,
                                 LLVM::LLVMFuncOp function,
                                 ArrayRef<double> frequencies) {
  auto module = function->getParentOfType<gpu::GPUModuleOp>();
  SmallVector<float> table;
  for (double frequency : frequencies) {
    double turns = frequency / kTwoPi;
    auto high = static_cast<float>(turns);
    table.push_back(high);
    table.push_back(static_cast<float>(turns - high));
  }
  auto value = DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(table.size())},
                            b.getF32Type()),
      ArrayRef<float>(table));
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    if (global.getValueOrNull() == value) {
      return global;
    }
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  std::string name;
  for (unsigned n = 0; name.empty() || module.lookupSymbol(name); ++n) {
    name = "attnfuse_turns_" + std::to_string(n);
  }
  return LLVM::GlobalOp::create(
      b, loc, LLVM::LLVMArrayType::get(b.getF32Type(), table.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name, value,
      /*alignment=*/8, /*addrSpace=*/1);
}

void KernelLowering::lowerRotateSlot(tile::RotateSlotOp op) {
  const LoweredRing &ring = rings[op.getRing()];
  Value base = slotBase(op.getRing(), op.getUse());
  Value start = scalars.lookup(op.getStart());
  auto pairs = static_cast<int64_t>(op.getPairs());
  Value table;
  if (!op.getCos()) {
    table = LLVM::AddressOfOp::create(
        b, loc, turnsTable(b, loc, function, op.getFrequencies()));
  }
  double magnitude = op.getMagnitude().convertToDouble();

  auto loop = scf::ForOp::create(b, loc, thread, c32(ring.slot.rows * pairs),
                                 c32(numThreads));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = divide(loop.getInductionVar(), pairs);
    Value pair = remainder(loop.getInductionVar(), pairs);
    Value position = add(start, row);
    Value cos, sin;
    auto toF32 = [&](Value x) -> Value {
      return x.getType().isF32()
                 ? x
                 : Value(arith::ExtFOp::create(b, loc, b.getF32Type(), x));
    };
    if (op.getCos()) {
      cos = toF32(readElement(views[op.getCos()], ValueRange{position, pair}));
      sin = toF32(readElement(views[op.getSin()], ValueRange{position, pair}));
    } else {
      auto entry = [&](int64_t which) -> Value {
        Value place = add(shl(pair, 3), c32(which * 4));
        Value pointer =
            LLVM::GEPOp::create(b, loc, table.getType(), b.getI8Type(), table,
                                ArrayRef<LLVM::GEPArg>(place));
        return LLVM::LoadOp::create(b, loc, b.getF32Type(), pointer);
      };
      Value high = entry(0), low = entry(1);
      Value real = arith::SIToFPOp::create(b, loc, b.getF32Type(), position);
      Value turns = arith::MulFOp::create(b, loc, real, high);
      Value rounded = intrinsic("llvm.nvvm.round.f", turns, b.getF32Type());
      Value rest = math::FmaOp::create(b, loc, real, high,
                                       arith::NegFOp::create(b, loc, turns));
      rest = math::FmaOp::create(b, loc, real, low, rest);
      Value fraction = arith::SubFOp::create(b, loc, turns, rounded);
      fraction = arith::AddFOp::create(b, loc, fraction, rest);
      Value angle = arith::MulFOp::create(b, loc, fraction, cf32(kTwoPi));
      cos = intrinsic("llvm.nvvm.cos.approx.f", angle, b.getF32Type());
      sin = intrinsic("llvm.nvvm.sin.approx.f", angle, b.getF32Type());
      if (magnitude != 1) {
        cos = arith::MulFOp::create(b, loc, cos, cf32(magnitude));
        sin = arith::MulFOp::create(b, loc, sin, cf32(magnitude));
      }
    }
    Value first = op.getInterleaved() ? shl(pair, 1) : pair;
    Value second =
        op.getInterleaved() ? add(first, c32(1)) : add(pair, c32(pairs));
    Value firstPlace = shared(slotAddress(ring, base, row, first));
    Value secondPlace = shared(slotAddress(ring, base, row, second));
    Value x = toF32(loadMemory(ring.element, firstPlace));
    Value y = toF32(loadMemory(ring.element, secondPlace));
    Value u = math::FmaOp::create(
        b, loc, x, cos,
        arith::NegFOp::create(b, loc, arith::MulFOp::create(b, loc, y, sin)));
    Value v = math::FmaOp::create(b, loc, y, cos,
                                  arith::MulFOp::create(b, loc, x, sin));
    storeMemory(u, ring.element, firstPlace);
    storeMemory(v, ring.element, secondPlace);
  }
  if (role == Role::Consumer) {
    NVVM::FenceProxyOp::create(
        b, loc, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(b.getContext(),
                                   NVVM::SharedSpace::shared_cta));
  }
  blockBarrier();
}
