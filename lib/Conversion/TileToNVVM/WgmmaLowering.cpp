//===- WgmmaLowering.cpp - products of warpgroups --------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A product is one block of assembly: fence, a wgmma per 16 of the inner
// extent, commit. Accumulators are tied through it and through the wait, so
// that neither LLVM nor ptxas can touch them in between; a product without an
// accumulator has output registers only and starts with a false predicate.
//
// Shared memory descriptors (PTX ISA, "Matrix descriptor"): address, leading
// and stride byte offsets in units of 16 bytes, swizzle mode in bits 62-63.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

/// The bits of a descriptor beyond its address.
static int64_t descriptorBits(const tile::SlotLayout &slot, bool innerRows) {
  int64_t mode = slot.swizzle == 128 ? 1 : slot.swizzle == 64 ? 2 : 3;
  int64_t stride = 8 * slot.swizzle / 16;
  // With the inner extent along rows, panels follow one another by the leading
  // offset; else it is not used.
  int64_t leading = innerRows ? slot.panelBytes() / 16 : 1;
  return static_cast<int64_t>(static_cast<uint64_t>(mode) << 62) |
         stride << 32 | leading << 16;
}

/// Offset of step `step` of 16 of the inner extent, in units of 16 bytes.
static int64_t stepOffset(const tile::SlotLayout &slot, bool innerRows,
                          int64_t step) {
  if (innerRows) {
    return step * 16 * slot.swizzle / 16;
  }
  int64_t perPanel = slot.panelColumns() / 16;
  return step / perPanel * slot.panelBytes() / 16 + step % perPanel * 2;
}

void KernelLowering::lowerWarpgroupDot(tile::DotStartOp op) {
  tile::FragmentLayout out = fragmentOf(op.getResult().getType().getTile());
  const LoweredRing &right = rings[op.getRhs()];
  bool transposeB = op.getTransposeB();
  int64_t inner = transposeB ? right.slot.columns : right.slot.rows;
  auto describe = [&](Value ring, Value use, bool innerRows) -> Value {
    Value address = slotBase(ring, use);
    Value bits = shr(andOf(address, c32(0x3ffff)), 4);
    Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), bits);
    return arith::OrIOp::create(
        b, loc, wide, c64(descriptorBits(rings[ring].slot, innerRows)));
  };
  Value rightBase = describe(op.getRhs(), op.getRhsUse(), !transposeB);
  bool leftInRegisters = isa<tile::TileType>(op.getLhs().getType());
  Value leftBase;
  if (!leftInRegisters) {
    leftBase = describe(op.getLhs(), op.getLhsUse(), false);
  }

  int64_t numAcc = out.values();
  Values operands;
  std::string constraints, accumulators;
  for (int64_t n = 0; n < numAcc; ++n) {
    constraints += n ? ",=f" : "=f";
    accumulators += (n ? ",$" : "$") + std::to_string(n);
  }
  if (op.getAcc()) {
    operands = tiles[op.getAcc()];
    for (int64_t n = 0; n < numAcc; ++n) {
      constraints += "," + std::to_string(n);
    }
  }
  std::string element = right.element.isBF16() ? "bf16" : "f16";
  std::string name = "wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(out.columns) + "k16.f32." + element + "." +
                     element;
  std::string text = "{\n .reg .pred none, some;\n setp.ne.b32 none, 0, 0;\n"
                     " setp.eq.b32 some, 0, 0;\n wgmma.fence.sync.aligned;\n";
  int64_t next = op.getAcc() ? 2 * numAcc : numAcc;
  auto operand = [&](Value value, StringRef constraint) {
    operands.push_back(value);
    constraints += "," + constraint.str();
    return "$" + std::to_string(next++);
  };
  tile::FragmentLayout in{64, inner, 4};
  Values lhs;
  if (leftInRegisters) {
    lhs = tiles[op.getLhs()];
  }
  for (int64_t step = 0; step < inner / 16; ++step) {
    std::string a;
    if (leftInRegisters) {
      a = "{";
      for (int64_t side = 0; side < 2; ++side) {
        for (int64_t half = 0; half < 2; ++half) {
          a += a.size() > 1 ? "," : "";
          a += operand(lhs[in.value({0, step * 2 + side, half, 0}) / 2], "r");
        }
      }
      a += "}";
    } else {
      int64_t offset = stepOffset(rings[op.getLhs()].slot, false, step);
      a = operand(add(leftBase, c64(offset)), "l");
    }
    std::string bText = operand(
        add(rightBase, c64(stepOffset(right.slot, !transposeB, step))), "l");
    bool fresh = !op.getAcc() && step == 0;
    text += " " + name + " {" + accumulators + "}, " + a + ", " + bText + ", " +
            (fresh ? "none" : "some") + ", 1, 1, " +
            (leftInRegisters ? "" : "0, ") + (transposeB ? "0" : "1") + ";\n";
  }
  text += " wgmma.commit_group.sync.aligned;\n}";
  tiles[op.getResult()] =
      assembly(text, constraints, operands,
               SmallVector<Type>(numAcc, b.getF32Type()), /*sideEffects=*/true);
}

void KernelLowering::lowerWarpgroupWait(tile::DotWaitOp op) {
  Values values = tiles[op.getPending()];
  std::string constraints;
  for (size_t n = 0; n < values.size(); ++n) {
    constraints += n ? ",=f" : "=f";
  }
  for (size_t n = 0; n < values.size(); ++n) {
    constraints += "," + std::to_string(n);
  }
  std::string text = "wgmma.wait_group.sync.aligned " +
                     std::to_string(op.getOutstanding()) + ";";
  Values waited = assembly(text, constraints, values,
                           SmallVector<Type>(values.size(), b.getF32Type()),
                           /*sideEffects=*/true);
  tiles[op.getResult()] = waited;
}
