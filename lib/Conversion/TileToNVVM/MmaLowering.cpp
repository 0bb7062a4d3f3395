//===- MmaLowering.cpp - products by mma.sync ------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 16-bit factors: mma.m16n8k16, fragments by ldmatrix. Its lane addresses are
// one expression per operand, in which the lane's part and the tile's part
// meet in an exclusive or (the swizzle); everything else is a constant offset.
//
// f32 factors: mma.m16n8k8 on tf32, each factor split into two, x = hi + lo,
// and hi*hi + hi*lo + lo*hi summed. The order of k within a step is free as
// long as both factors agree: lane l takes columns 2(l%4) and 2(l%4) + 1, as
// accumulators do, so that weights are left factors as they are.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

static Type structOf(Type element, int64_t count) {
  return LLVM::LLVMStructType::getLiteral(element.getContext(),
                                          SmallVector<Type>(count, element));
}

Values KernelLowering::ldmatrix(Value pointer, int64_t offset,
                                bool transposed) {
  if (offset) {
    pointer = LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                                  pointer, ArrayRef<LLVM::GEPArg>(offset));
  }
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value four = NVVM::LdMatrixOp::create(b, loc, structOf(i32(), 4), pointer, 4,
                                        transposed ? NVVM::MMALayout::col
                                                   : NVVM::MMALayout::row,
                                        shape, NVVM::LdStMatrixEltType::B16);
  Values values;
  for (int64_t n = 0; n < 4; ++n) {
    values.push_back(LLVM::ExtractValueOp::create(b, loc, four, n));
  }
  return values;
}

void KernelLowering::mma16(Type element, llvm::MutableArrayRef<Value> acc,
                           ValueRange a, ValueRange bRange) {
  std::string text = "mma.sync.aligned.m16n8k16.row.col.f32.";
  text += element.isBF16() ? "bf16.bf16" : "f16.f16";
  text += ".f32 {$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$0,$1,$2,$3};";
  Values operands(a);
  llvm::append_range(operands, bRange);
  llvm::append_range(operands, acc);
  Values results =
      assembly(text, "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3", operands,
               SmallVector<Type>(4, b.getF32Type()), /*sideEffects=*/false);
  llvm::copy(results, acc.begin());
}

void KernelLowering::mmaTf32(llvm::MutableArrayRef<Value> acc, ValueRange a,
                             ValueRange bRange) {
  Values operands(a);
  llvm::append_range(operands, bRange);
  llvm::append_range(operands, acc);
  Values results = assembly(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0,$1,$2,$3}, "
      "{$4,$5,$6,$7}, {$8,$9}, {$0,$1,$2,$3};",
      "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3", operands,
      SmallVector<Type>(4, b.getF32Type()), /*sideEffects=*/false);
  llvm::copy(results, acc.begin());
}

void KernelLowering::lowerDotStart(tile::DotStartOp op) {
  if (role == Role::Consumer) {
    lowerWarpgroupDot(op);
    return;
  }
  tile::FragmentLayout out = fragmentOf(op.getResult().getType().getTile());
  Values acc = op.getAcc() ? tiles[op.getAcc()] : Values(out.values(), cf32(0));
  Values lhs;
  if (isa<tile::TileType>(op.getLhs().getType())) {
    lhs = tiles[op.getLhs()];
  }
  if (rings[op.getRhs()].element.isF32()) {
    dot32(op, lhs, acc);
  } else {
    dot16(op, lhs, acc);
  }
  slotsRead = true;
  tiles[op.getResult()] = acc;
}

namespace {
/// Lane addresses of ldmatrix in a slot: rows `laneRow` (below 16) and chunks
/// of which the lane adds `laneChunk` (0 or 1). All offsets of whole 8 rows
/// and of panels are constants; pointers are made once per chunk of a panel.
struct LaneAddresses {
  tile::SlotLayout slot;
  Value base, phase; // i32: row's address; (phase ^ laneChunk) * 16
  llvm::DenseMap<int64_t, Value> pointers;
};
} // namespace

void KernelLowering::dot16(tile::DotStartOp op, const Values &lhs,
                           Values &acc) {
  const LoweredRing &ring = rings[op.getRhs()];
  tile::FragmentLayout out = fragmentOf(op.getResult().getType().getTile());
  bool transposeB = op.getTransposeB();
  int64_t inner = transposeB ? ring.slot.columns : ring.slot.rows;

  auto addresses = [&](const LoweredRing &source, Value start, Value row,
                       Value chunk) {
    LaneAddresses lanes;
    lanes.slot = source.slot;
    Value phase =
        andOf(shr(row, source.slot.rowShift()), c32(source.slot.chunkMask()));
    lanes.base = add(start, mul(row, c32(source.slot.swizzle)));
    lanes.phase = shl(xorOf(phase, chunk), 4);
    return lanes;
  };
  auto load = [&](LaneAddresses &lanes, int64_t row, int64_t chunk,
                  bool transposed) {
    int64_t perPanel = lanes.slot.swizzle / 16;
    int64_t inPanel = chunk % perPanel;
    Value &pointer = lanes.pointers[inPanel];
    if (!pointer) {
      pointer = shared(add(lanes.base, xorOf(lanes.phase, c32(inPanel * 16))));
    }
    int64_t offset =
        chunk / perPanel * lanes.slot.panelBytes() + row * lanes.slot.swizzle;
    return ldmatrix(pointer, offset, transposed);
  };

  // Rows of 8x8 matrices: lanes 0-7, 8-15, 16-23, 24-31 address one each.
  Value low = andOf(lane, c32(7)), eighth = andOf(shr(lane, 3), c32(1)),
        half = shr(lane, 4);
  std::optional<LaneAddresses> left;
  if (lhs.empty()) {
    const LoweredRing &source = rings[op.getLhs()];
    Value row = add(mul(warp, c32(out.rowsPerWarp())), andOf(lane, c32(15)));
    left = addresses(source, slotBase(op.getLhs(), op.getLhsUse()), row, half);
  }
  Value start = slotBase(op.getRhs(), op.getRhsUse());
  LaneAddresses right =
      transposeB ? addresses(ring, start, add(shl(half, 3), low), eighth)
                 : addresses(ring, start, andOf(lane, c32(15)), half);

  tile::FragmentLayout in{out.rows, inner, out.warps};
  for (int64_t ks = 0; ks < inner / 16; ++ks) {
    SmallVector<Values> a;
    for (int64_t mt = 0; mt < out.rowTiles(); ++mt) {
      if (left) {
        a.push_back(load(*left, mt * 16, ks * 2, false));
      } else {
        // Packed pairs: (column tile, half) in accumulator order.
        Values four;
        for (int64_t side = 0; side < 2; ++side) {
          for (int64_t h = 0; h < 2; ++h) {
            four.push_back(lhs[in.value({mt, ks * 2 + side, h, 0}) / 2]);
          }
        }
        a.push_back(four);
      }
    }
    for (int64_t nt = 0; nt < out.columnTiles(); nt += 2) {
      Values four = transposeB ? load(right, nt * 8, ks * 2, false)
                               : load(right, ks * 16, nt, true);
      for (int64_t side = 0; side < 2; ++side) {
        for (int64_t mt = 0; mt < out.rowTiles(); ++mt) {
          llvm::MutableArrayRef<Value> place(
              &acc[out.value({mt, nt + side, 0, 0})], 4);
          mma16(ring.element, place, a[mt],
                ValueRange(four).slice(2 * side, 2));
        }
      }
    }
  }
}

void KernelLowering::dot32(tile::DotStartOp op, const Values &lhs,
                           Values &acc) {
  const LoweredRing &ring = rings[op.getRhs()];
  tile::FragmentLayout out = fragmentOf(op.getResult().getType().getTile());
  bool transposeB = op.getTransposeB();
  int64_t inner = transposeB ? ring.slot.columns : ring.slot.rows;

  // hi is x with its low 13 bits cleared, lo what is left: both fit tf32 up to
  // 2^-22 of x. An infinite x leaves nothing.
  auto split = [&](Value x, Values &hi, Values &lo) {
    Value bits = arith::BitcastOp::create(b, loc, i32(), x);
    Value top = andOf(bits, c32(~int64_t(0x1fff)));
    Value high = arith::BitcastOp::create(b, loc, b.getF32Type(), top);
    Value rest = arith::SubFOp::create(b, loc, x, high);
    Value same =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, high);
    rest = select(same, cf32(0), rest);
    hi.push_back(top);
    lo.push_back(arith::BitcastOp::create(b, loc, i32(), rest));
  };
  auto element = [&](const LoweredRing &source, Value start, Value row,
                     Value column) -> Value {
    return LLVM::LoadOp::create(
        b, loc, b.getF32Type(),
        shared(slotAddress(source, start, row, column)));
  };
  Value start = slotBase(op.getRhs(), op.getRhsUse());
  Value leftStart;
  if (lhs.empty()) {
    leftStart = slotBase(op.getLhs(), op.getLhsUse());
  }
  Value firstRow = add(mul(warp, c32(out.rowsPerWarp())), laneRow);
  tile::FragmentLayout in{out.rows, inner, out.warps};
  for (int64_t ks = 0; ks < inner / 8; ++ks) {
    SmallVector<Values> aHi(out.rowTiles()), aLo(out.rowTiles());
    for (int64_t mt = 0; mt < out.rowTiles(); ++mt) {
      for (int64_t pair = 0; pair < 2; ++pair) {
        for (int64_t half = 0; half < 2; ++half) {
          Value x = lhs.empty()
                        ? element(rings[op.getLhs()], leftStart,
                                  add(firstRow, c32(mt * 16 + half * 8)),
                                  add(laneColumn, c32(ks * 8 + pair)))
                        : lhs[in.value({mt, ks, half, pair})];
          split(x, aHi[mt], aLo[mt]);
        }
      }
    }
    for (int64_t nt = 0; nt < out.columnTiles(); ++nt) {
      Values bHi, bLo;
      for (int64_t pair = 0; pair < 2; ++pair) {
        Value k = add(laneColumn, c32(ks * 8 + pair));
        Value n = add(laneRow, c32(nt * 8));
        split(transposeB ? element(ring, start, n, k)
                         : element(ring, start, k, n),
              bHi, bLo);
      }
      for (int64_t mt = 0; mt < out.rowTiles(); ++mt) {
        llvm::MutableArrayRef<Value> place(&acc[out.value({mt, nt, 0, 0})], 4);
        mmaTf32(place, aLo[mt], bHi);
        mmaTf32(place, aHi[mt], bLo);
        mmaTf32(place, aHi[mt], bHi);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Guarded products
//===----------------------------------------------------------------------===//

void KernelLowering::lowerDotGuarded(tile::DotGuardedOp op) {
  const LoweredRing &ring = rings[op.getRhs()];
  tile::FragmentLayout in = fragmentOf(op.getLhs().getType());
  tile::FragmentLayout out = fragmentOf(op.getAcc().getType());
  Value start = slotBase(op.getRhs(), op.getRhsUse());
  int64_t numAcc = out.values();
  // Registers have no run-time index: each step takes the first 8 columns of
  // the weights and moves the others down.
  Values carried = tiles[op.getAcc()];
  llvm::append_range(carried, tiles[op.getLhs()]);
  int64_t steps = in.columnTiles();
  auto outer = scf::ForOp::create(b, loc, c32(0), c32(steps), c32(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(outer.getBody());
  Values weights(outer.getRegionIterArgs().drop_front(numAcc));
  auto inner = scf::ForOp::create(
      b, loc, c32(0), c32(8), c32(1),
      ValueRange(outer.getRegionIterArgs()).take_front(numAcc));
  {
    OpBuilder::InsertionGuard innerGuard(b);
    b.setInsertionPointToStart(inner.getBody());
    Value column = inner.getInductionVar();
    Value key = add(shl(outer.getInductionVar(), 3), column);
    Value source = add(andOf(lane, c32(~int64_t(3))), shr(column, 1));
    Value odd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                      andOf(column, c32(1)), c32(0));
    Values acc(inner.getRegionIterArgs());
    Values factors;
    for (int64_t mt = 0; mt < in.rowTiles(); ++mt) {
      for (int64_t half = 0; half < 2; ++half) {
        auto from = [&](int64_t pair) -> Value {
          return NVVM::ShflOp::create(b, loc, b.getF32Type(), c32(-1),
                                      weights[in.value({mt, 0, half, pair})],
                                      source, c32(31), NVVM::ShflKind::idx,
                                      UnitAttr());
        };
        Value even = from(0);
        factors.push_back(select(odd, from(1), even));
      }
    }
    for (int64_t nt = 0; nt < out.columnTiles(); ++nt) {
      for (int64_t pair = 0; pair < 2; ++pair) {
        Value address =
            slotAddress(ring, start, key, add(laneColumn, c32(nt * 8 + pair)));
        Value v = LLVM::LoadOp::create(b, loc, ring.element, shared(address));
        if (!ring.element.isF32()) {
          v = arith::ExtFOp::create(b, loc, b.getF32Type(), v);
        }
        for (int64_t mt = 0; mt < out.rowTiles(); ++mt) {
          for (int64_t half = 0; half < 2; ++half) {
            Value p = factors[mt * 2 + half];
            Value &o = acc[out.value({mt, nt, half, pair})];
            Value isZero = arith::CmpFOp::create(
                b, loc, arith::CmpFPredicate::OEQ, p, cf32(0));
            Value sum = math::FmaOp::create(b, loc, p, v, o);
            o = select(isZero, o, sum);
          }
        }
      }
    }
    scf::YieldOp::create(b, loc, acc);
  }
  Values next(inner.getResults());
  for (int64_t n = 0; n < in.values(); ++n) {
    tile::FragmentLayout::Place at = in.place(n);
    if (at.columnTile + 1 < in.columnTiles()) {
      ++at.columnTile;
    }
    next.push_back(weights[in.value(at)]);
  }
  scf::YieldOp::create(b, loc, next);
  slotsRead = true;
  tiles[op.getResult()] =
      Values(ValueRange(outer.getResults()).take_front(numAcc));
}
