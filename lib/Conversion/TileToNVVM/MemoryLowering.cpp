//===- MemoryLowering.cpp - tensors, slots and copies ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value KernelLowering::loadMemory(Type element, Value pointer) {
  if (!element.isInteger(1)) {
    return LLVM::LoadOp::create(b, loc, element, pointer);
  }
  // Predicates are bytes in memory.
  Value byte = LLVM::LoadOp::create(b, loc, b.getI8Type(), pointer);
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 8);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, byte, zero);
}

void KernelLowering::storeMemory(Value value, Type element, Value pointer) {
  if (isa<FloatType>(element) && value.getType() != element) {
    value = arith::TruncFOp::create(b, loc, element, value);
  }
  if (element.isInteger(1)) {
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  }
  LLVM::StoreOp::create(b, loc, value, pointer);
}

static int64_t bytesOf(Type element) {
  return element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8;
}

Value KernelLowering::elementPointer(const LoweredView &view,
                                     ValueRange indices) {
  Value offset = c64(0);
  for (auto [index, stride] : llvm::zip(indices, view.strides)) {
    offset = add(offset, mul(toI64(index), stride));
  }
  offset = mul(offset, c64(bytesOf(view.element)));
  return LLVM::GEPOp::create(b, loc, view.base.getType(), b.getI8Type(),
                             view.base, ArrayRef<LLVM::GEPArg>(offset));
}

Value KernelLowering::readElement(const LoweredView &view, ValueRange indices) {
  Values clamped;
  for (auto [index, size] : llvm::zip(indices, view.sizes)) {
    Value last = sub(size, c32(1));
    Value low = b.createOrFold<arith::MaxSIOp>(loc, toI32(index), c32(0));
    clamped.push_back(b.createOrFold<arith::MinSIOp>(loc, low, last));
  }
  return loadMemory(view.element, elementPointer(view, clamped));
}

//===----------------------------------------------------------------------===//
// Tiles in registers
//===----------------------------------------------------------------------===//

namespace {
/// The places of a fragment's rows or columns in a view, computed once each.
struct Axis {
  Value inside, offset; // i1 (null: always), i64 in elements (null: 0)
};
} // namespace

/// Places of the rows (or columns) of a tile along a dimension of a view.
static SmallVector<Axis> axisOf(int64_t count,
                                llvm::function_ref<Axis(int64_t)> positionOf) {
  SmallVector<Axis> axis;
  for (int64_t n = 0; n < count; ++n) {
    axis.push_back(positionOf(n));
  }
  return axis;
}

void KernelLowering::lowerLoad(tile::LoadOp op) {
  const LoweredView &view = views[op.getView()];
  tile::FragmentLayout fragment = fragmentOf(op.getResult().getType());
  ArrayRef<int64_t> along = op.getAlong();
  Value start = c64(0);
  Values indices;
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    indices.push_back(scalars.lookup(index));
    if (!llvm::is_contained(along, static_cast<int64_t>(dim))) {
      start = add(start, mul(toI64(indices.back()), view.strides[dim]));
    }
  }
  auto place = [&](int64_t dim, Value step) {
    Axis axis;
    if (dim < 0) {
      return axis;
    }
    Value position = add(indices[dim], step);
    axis.inside = less(position, view.sizes[dim]);
    // Lanes beyond the end read the view's first element: the tile itself may
    // lie beyond it.
    Value inside = select(axis.inside, position, c32(0));
    axis.offset = mul(toI64(inside), view.strides[dim]);
    return axis;
  };
  auto rows =
      axisOf(fragment.rowTiles() * fragment.rowValues(), [&](int64_t n) {
        Value row =
            fragment.rows == 1
                ? c32(0)
                : add(add(mul(warp, c32(fragment.rowsPerWarp())), laneRow),
                      c32(n * 8));
        return place(along[0], row);
      });
  auto columns =
      axisOf(fragment.columnTiles() * fragment.columnValues(), [&](int64_t n) {
        Value column = fragment.columns == 1
                           ? c32(0)
                           : add(laneColumn, c32(n / 2 * 8 + n % 2));
        return place(along[1], column);
      });
  Type wanted = op.getResult().getType().getElementType();
  Values values;
  for (int64_t n = 0; n < fragment.values(); ++n) {
    tile::FragmentLayout::Place at = fragment.place(n);
    const Axis &row = rows[at.rowTile * fragment.rowValues() + at.half];
    const Axis &column =
        columns[at.columnTile * fragment.columnValues() + at.pair];
    Value offset = start, inside;
    for (const Axis &axis : {row, column}) {
      if (axis.offset) {
        offset = add(offset, axis.offset);
        inside = inside ? andOf(inside, axis.inside) : axis.inside;
      }
    }
    Value pointer = LLVM::GEPOp::create(
        b, loc, view.base.getType(), b.getI8Type(), view.base,
        ArrayRef<LLVM::GEPArg>(mul(offset, c64(bytesOf(view.element)))));
    Value value = loadMemory(view.element, pointer);
    if (value.getType() != wanted) {
      value = arith::ExtFOp::create(b, loc, wanted, value);
    }
    if (inside) {
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(wanted));
      value = select(inside, value, zero);
    }
    values.push_back(value);
  }
  setElements(op.getResult(), values);
}

void KernelLowering::lowerStore(tile::StoreOp op) {
  const LoweredView &view = views[op.getView()];
  tile::FragmentLayout fragment = fragmentOf(op.getTile().getType());
  ArrayRef<int64_t> along = op.getAlong();
  Values start;
  for (Value index : op.getIndices()) {
    start.push_back(scalars.lookup(index));
  }
  Values values = elementsOf(op.getTile());
  for (int64_t n = 0; n < fragment.values(); ++n) {
    tile::FragmentLayout::Place at = fragment.place(n);
    Values indices = start;
    Value inside;
    auto step = [&](int64_t dim, Value distance) {
      if (dim >= 0) {
        indices[dim] = add(indices[dim], distance);
        Value some = less(indices[dim], view.sizes[dim]);
        inside = inside ? andOf(inside, some) : some;
      }
    };
    if (fragment.rows != 1) {
      step(along[0], add(add(mul(warp, c32(fragment.rowsPerWarp())), laneRow),
                         c32(at.rowTile * 16 + at.half * 8)));
    }
    if (fragment.columns != 1) {
      step(along[1], add(laneColumn, c32(at.columnTile * 8 + at.pair)));
    }
    // Of the lanes that hold the same element one stores it.
    auto only = [&](Value number) {
      Value first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          number, c32(0));
      inside = inside ? andOf(inside, first) : first;
    };
    if (fragment.columns == 1) {
      only(laneColumn);
    }
    if (fragment.rows == 1) {
      only(laneRow);
      only(warp);
    }
    when(inside, [&] {
      storeMemory(values[n], view.element, elementPointer(view, indices));
    });
  }
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

Value KernelLowering::slotBase(Value ring, Value use) {
  const LoweredRing &lowered = rings[ring];
  Value base = add(sharedBase, c32(lowered.offset));
  if (lowered.stages == 1) {
    return base;
  }
  Value number = scalars.lookup(use);
  Value slot = llvm::isPowerOf2_64(lowered.stages)
                   ? andOf(number, c32(lowered.stages - 1))
                   : remainder(number, lowered.stages);
  return add(base, mul(slot, c32(lowered.slot.bytes())));
}

Value KernelLowering::slotAddress(const LoweredRing &ring, Value base,
                                  Value row, Value column) {
  const tile::SlotLayout &slot = ring.slot;
  Value panel = divide(column, slot.panelColumns());
  Value inPanel =
      slot.panels() == 1 ? column : remainder(column, slot.panelColumns());
  Value chunk = divide(inPanel, slot.chunkColumns());
  Value phase = andOf(shr(row, slot.rowShift()), c32(slot.chunkMask()));
  chunk = xorOf(chunk, phase);
  Value address = add(base, mul(row, c32(slot.swizzle)));
  address = add(address, shl(chunk, 4));
  Value rest = remainder(inPanel, slot.chunkColumns());
  address = add(address, mul(rest, c32(slot.elementBytes)));
  return slot.panels() == 1 ? address
                            : add(address, mul(panel, c32(slot.panelBytes())));
}

void KernelLowering::blockBarrier() {
  if (role == Role::Producer) {
    NVVM::SyncWarpOp::create(b, loc, c32(-1));
  } else if (role == Role::Consumer) {
    // Barrier 0 is the whole block's.
    NVVM::BarrierOp::create(b, loc, Type(), add(warpgroup, c32(1)), c32(128),
                            NVVM::BarrierReductionAttr(), Value());
  } else {
    NVVM::Barrier0Op::create(b, loc);
  }
  slotsRead = false;
}

void KernelLowering::lowerWait(tile::WaitOp op) {
  if (role != Role::Everyone) {
    const LoweredRing &ring = rings[op.getRing()];
    auto [slot, phase] = slotAndPhase(scalars.lookup(op.getUse()), ring.stages);
    waitBarrier(fullBarrier(ring, slot), phase);
    return;
  }
  NVVM::CpAsyncWaitGroupOp::create(b, loc,
                                   static_cast<uint32_t>(op.getOutstanding()));
  blockBarrier();
}

void KernelLowering::forChunks(const LoweredRing &ring,
                               llvm::function_ref<void(Value, Value)> body) {
  const tile::SlotLayout &slot = ring.slot;
  int64_t perRow = slot.columns / slot.chunkColumns();
  int64_t total = slot.rows * perRow;
  for (int64_t first = 0; first < total; first += numThreads) {
    Value row, chunk;
    if (numThreads % perRow == 0) {
      row = add(divide(thread, perRow), c32(first / perRow));
      chunk = remainder(thread, perRow);
    } else {
      Value number = add(thread, c32(first));
      row = divide(number, perRow);
      chunk = remainder(number, perRow);
    }
    auto copy = [&] { body(row, mul(chunk, c32(slot.chunkColumns()))); };
    if (first + numThreads > total) {
      when(less(thread, c32(total - first)), copy);
    } else {
      copy();
    }
  }
}

void KernelLowering::forElements(const LoweredRing &ring,
                                 llvm::function_ref<void(Value, Value)> body) {
  const tile::SlotLayout &slot = ring.slot;
  auto loop = scf::ForOp::create(b, loc, thread, c32(slot.rows * slot.columns),
                                 c32(numThreads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  body(divide(number, slot.columns), remainder(number, slot.columns));
}

void KernelLowering::lowerAsyncLoad(tile::AsyncLoadOp op) {
  if (role == Role::Producer) {
    lowerBulkLoad(op);
    return;
  }
  const LoweredView &view = views[op.getView()];
  const LoweredRing &ring = rings[op.getRing()];
  Value base = slotBase(op.getRing(), op.getUse());
  int64_t rowDim = op.getAlong()[0], columnDim = op.getAlong()[1];
  Values indices;
  for (Value index : op.getIndices()) {
    indices.push_back(scalars.lookup(index));
  }
  auto viewType = cast<tile::ViewType>(op.getView().getType());
  int64_t width = viewType.getShape()[columnDim];
  // Padding beyond a static width is known to need zeros.
  bool whole = width == ring.slot.columns;
  bool innermost = columnDim + 1 == viewType.getRank();

  auto rowInside = [&](Value row) {
    return less(add(indices[rowDim], row), view.sizes[rowDim]);
  };
  auto pointerTo = [&](Value row, Value column) {
    Values place = indices;
    place[rowDim] = add(place[rowDim], row);
    place[columnDim] = add(place[columnDim], column);
    return elementPointer(view, place);
  };
  auto fast = [&] {
    forChunks(ring, [&](Value row, Value column) {
      Value bytes = select(rowInside(row), c32(16), c32(0));
      if (!whole) {
        Value left =
            sub(view.sizes[columnDim], add(indices[columnDim], column));
        left = b.createOrFold<arith::MaxSIOp>(loc, left, c32(0));
        left = b.createOrFold<arith::MinSIOp>(loc, left,
                                              c32(ring.slot.chunkColumns()));
        bytes = select(rowInside(row), mul(left, c32(ring.slot.elementBytes)),
                       c32(0));
      }
      Value target = shared(slotAddress(ring, base, row, column));
      NVVM::CpAsyncOp::create(b, loc, target, pointerTo(row, column), 16,
                              NVVM::LoadCacheModifierKind::CG, bytes);
    });
  };
  auto slow = [&] {
    forElements(ring, [&](Value row, Value column) {
      Value inside = rowInside(row);
      Value place = add(indices[columnDim], column);
      inside = andOf(inside, less(place, view.sizes[columnDim]));
      Value source = pointerTo(select(inside, row, c32(0)),
                               select(inside, column, c32(0)));
      Value zero =
          arith::ConstantOp::create(b, loc, b.getZeroAttr(view.element));
      Value value = select(inside, loadMemory(view.element, source), zero);
      storeMemory(value, view.element,
                  shared(slotAddress(ring, base, row, column)));
    });
  };
  if (!innermost) {
    slow();
    return;
  }
  auto branch = scf::IfOp::create(b, loc, view.aligned, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  fast();
  b.setInsertionPointToStart(branch.elseBlock());
  slow();
}

void KernelLowering::lowerPut(tile::PutOp op) {
  if (role == Role::Consumer) {
    // The thread that stored the slot before knows when it has been read.
    when(
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, c32(0)),
        [&] {
          NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, 0, b.getUnitAttr());
        });
    blockBarrier();
  }
  const LoweredRing &ring = rings[op.getRing()];
  Value base = slotBase(op.getRing(), op.getUse());
  tile::FragmentLayout fragment = fragmentOf(op.getTile().getType());
  Values values = tiles[op.getTile()];
  Value firstRow = add(mul(warp, c32(fragment.rowsPerWarp())), laneRow);
  bool wide = ring.element.isF32();
  StringRef text = ring.element.isBF16() ? "cvt.rn.bf16x2.f32 $0, $1, $2;"
                                         : "cvt.rn.f16x2.f32 $0, $1, $2;";
  auto pack = [&](Value x, Value y) {
    return assembly(text, "=r,f,f", ValueRange{y, x}, i32(),
                    /*sideEffects=*/false)
        .front();
  };
  if (role == Role::Consumer && !wide) {
    // Four matrices of 8 x 8 at a time; lane n has the address of row n % 8 of
    // matrix n / 8, in the order of a 16 x 16 block by columns.
    Value laneRow =
        add(mul(warp, c32(fragment.rowsPerWarp())), andOf(lane, c32(15)));
    Value laneColumn = shl(shr(lane, 4), 3);
    auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
    for (int64_t mt = 0; mt < fragment.rowTiles(); ++mt) {
      Value row = add(laneRow, c32(mt * 16));
      for (int64_t nt = 0; nt < fragment.columnTiles(); nt += 2) {
        Values sources;
        for (int64_t n = nt; n < nt + 2; ++n) {
          for (int64_t half = 0; half < 2; ++half) {
            sources.push_back(pack(values[fragment.value({mt, n, half, 0})],
                                   values[fragment.value({mt, n, half, 1})]));
          }
        }
        Value column = add(laneColumn, c32(nt * 8));
        NVVM::StMatrixOp::create(
            b, loc, shared(slotAddress(ring, base, row, column)), sources,
            NVVM::MMALayout::row, shape, NVVM::LdStMatrixEltType::B16);
      }
    }
    return;
  }
  for (int64_t mt = 0; mt < fragment.rowTiles(); ++mt) {
    for (int64_t half = 0; half < 2; ++half) {
      Value row = add(firstRow, c32(mt * 16 + half * 8));
      for (int64_t nt = 0; nt < fragment.columnTiles(); ++nt) {
        Value x = values[fragment.value({mt, nt, half, 0})];
        Value y = values[fragment.value({mt, nt, half, 1})];
        Value column = add(laneColumn, c32(nt * 8));
        Value target = shared(slotAddress(ring, base, row, column));
        if (wide) {
          LLVM::StoreOp::create(b, loc, x, target);
          Value next =
              LLVM::GEPOp::create(b, loc, target.getType(), b.getI8Type(),
                                  target, ArrayRef<LLVM::GEPArg>(4));
          LLVM::StoreOp::create(b, loc, y, next);
        } else {
          LLVM::StoreOp::create(b, loc, pack(x, y), target);
        }
      }
    }
  }
}

void KernelLowering::lowerCopyOut(tile::CopyOutOp op) {
  if (role == Role::Consumer) {
    lowerBulkStore(op);
    return;
  }
  blockBarrier();
  const LoweredView &view = views[op.getView()];
  const LoweredRing &ring = rings[op.getRing()];
  Value base = slotBase(op.getRing(), op.getUse());
  int64_t rowDim = op.getAlong()[0], columnDim = op.getAlong()[1];
  Values indices;
  for (Value index : op.getIndices()) {
    indices.push_back(scalars.lookup(index));
  }
  auto viewType = cast<tile::ViewType>(op.getView().getType());
  bool whole = viewType.getShape()[columnDim] == ring.slot.columns;
  auto place = [&](Value row, Value column) {
    Values at = indices;
    at[rowDim] = add(at[rowDim], row);
    at[columnDim] = add(at[columnDim], column);
    return at;
  };
  auto element = [&](Value row, Value column) {
    Values at = place(row, column);
    Value inside = andOf(less(at[rowDim], view.sizes[rowDim]),
                         less(at[columnDim], view.sizes[columnDim]));
    when(inside, [&] {
      Value value = loadMemory(ring.element,
                               shared(slotAddress(ring, base, row, column)));
      storeMemory(value, view.element, elementPointer(view, at));
    });
  };
  auto fast = [&] {
    forChunks(ring, [&](Value row, Value column) {
      Values at = place(row, column);
      Value inside = less(at[rowDim], view.sizes[rowDim]);
      if (!whole) {
        Value end = add(at[columnDim], c32(ring.slot.chunkColumns() - 1));
        inside = andOf(inside, less(end, view.sizes[columnDim]));
      }
      when(inside, [&] {
        Type four = VectorType::get({4}, i32());
        Value value = LLVM::LoadOp::create(
            b, loc, four, shared(slotAddress(ring, base, row, column)),
            /*alignment=*/16);
        LLVM::StoreOp::create(b, loc, value, elementPointer(view, at),
                              /*alignment=*/16);
      });
    });
  };
  auto slow = [&] { forElements(ring, element); };
  // The last chunk of a row that is no whole one goes element by element.
  bool chunked = columnDim + 1 == viewType.getRank() &&
                 viewType.getShape()[columnDim] % ring.slot.chunkColumns() == 0;
  if (!chunked) {
    slow();
    return;
  }
  auto branch = scf::IfOp::create(b, loc, view.aligned, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  fast();
  b.setInsertionPointToStart(branch.elseBlock());
  slow();
}
