//===- TransferLowering.cpp - between views and buffers --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attnfuse;

namespace {
/// A rectangle of a view: the address of its first element, one stride per
/// side, and how many rows and columns lie within the view.
struct Rectangle {
  Value base;
  Value stride[2];
  Value valid[2];
};
} // namespace

static Rectangle locate(OpBuilder &b, Location loc, const LoweredView &view,
                        ValueRange indices, ArrayRef<int64_t> along,
                        ArrayRef<int64_t> extents) {
  Rectangle result;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  result.base = zero;
  for (auto [place, at] : llvm::enumerate(indices)) {
    Value part = b.createOrFold<arith::MulIOp>(loc, at, view.strides[place]);
    result.base = b.createOrFold<arith::AddIOp>(loc, result.base, part);
  }
  for (int side = 0; side < 2; ++side) {
    Value extent = arith::ConstantIndexOp::create(b, loc, extents[side]);
    if (along[side] < 0) {
      result.stride[side] = zero;
      result.valid[side] = extent;
      continue;
    }
    result.stride[side] = view.strides[along[side]];
    Value left = b.createOrFold<arith::SubIOp>(loc, view.sizes[along[side]],
                                               indices[along[side]]);
    left = b.createOrFold<arith::MaxSIOp>(loc, left, zero);
    result.valid[side] = b.createOrFold<arith::MinSIOp>(loc, left, extent);
  }
  return result;
}

static Value equals(OpBuilder &b, Location loc, Value x, int64_t value) {
  return b.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::eq, x,
      Value(arith::ConstantIndexOp::create(b, loc, value)));
}

/// As memory holds it to as a buffer holds it.
static Value widen(OpBuilder &b, Location loc, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!isa<FloatType>(element) || element.isF32()) {
    return value;
  }
  Type wide = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(value.getType())) {
    wide = vector.clone(wide);
  }
  return arith::ExtFOp::create(b, loc, wide, value);
}

static Value narrow(OpBuilder &b, Location loc, Value value, Type element) {
  if (getElementTypeOrSelf(value.getType()) == element) {
    return value;
  }
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType())) {
    type = vector.clone(element);
  }
  return arith::TruncFOp::create(b, loc, type, value);
}

/// The transpose of as many vectors as each has lanes, a power of two. Each of
/// log2(n) steps interleaves line k with line k + n/2; after the last, every
/// element has rotated its row number into its place.
static SmallVector<Value> transpose(OpBuilder &b, Location loc,
                                    SmallVector<Value> lines) {
  auto count = static_cast<int64_t>(lines.size());
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < count / 2; ++lane) {
    low.append({lane, count + lane});
    high.append({count / 2 + lane, count + count / 2 + lane});
  }
  for (int64_t step = 1; step < count; step *= 2) {
    SmallVector<Value> next;
    for (int64_t k = 0; k < count / 2; ++k) {
      for (ArrayRef<int64_t> mask :
           {ArrayRef<int64_t>(low), ArrayRef<int64_t>(high)}) {
        next.push_back(vector::ShuffleOp::create(b, loc, lines[k],
                                                 lines[k + count / 2], mask));
      }
    }
    lines = std::move(next);
  }
  return lines;
}

void KernelLowering::fill(const TileBuffer &buffer, Value scalar) {
  auto type = cast<MemRefType>(buffer.memory.getType());
  int64_t lanes = lanesFor(type.getDimSize(1));
  Value value = broadcast(scalar, lanes);
  loop(type.getDimSize(0), 1, [&](Value outer) {
    loop(type.getDimSize(1), lanes, [&](Value inner) {
      vector::StoreOp::create(b, loc, value, buffer.memory,
                              ValueRange{outer, inner});
    });
  });
}

void KernelLowering::lowerSplat(tile::SplatOp op) {
  // Products start from nothing without being told where it is.
  bool onlyStarts = llvm::all_of(op.getResult().getUses(), [&](OpOperand &use) {
    auto dot = dyn_cast<tile::DotOp>(use.getOwner());
    return dot && dot.getAcc() == op.getResult() &&
           dot.getLhs() != op.getResult() && dot.getRhs() != op.getResult();
  });
  if (onlyStarts && matchPattern(op.getValue(), m_AnyZeroFloat())) {
    return;
  }
  TileBuffer buffer = bufferFor(op.getResult());
  Value value = scalars.lookup(op.getValue());
  if (buffer.element.isInteger(1)) {
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  }
  fill(buffer, widen(b, loc, value));
}

Value KernelLowering::readElement(tile::ViewType type, const LoweredView &view,
                                  ValueRange indices) {
  Value address = index(0), zero = index(0);
  for (auto [place, at] : llvm::enumerate(indices)) {
    Value top = b.createOrFold<arith::SubIOp>(loc, view.sizes[place], index(1));
    Value within = maxIndex(minIndex(at, top), zero);
    address = add(address, mul(within, view.strides[place]));
  }
  Value value = memref::LoadOp::create(b, loc, view.flat, address);
  if (type.getElementType().isInteger(1)) {
    Value none = arith::ConstantIntOp::create(b, loc, 0, 8);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, none);
  }
  return value;
}

void KernelLowering::lowerLoad(tile::LoadOp op) {
  TileBuffer buffer = bufferFor(op.getResult());
  const LoweredView view = views[op.getView()];
  SmallVector<Value> indices;
  for (Value at : op.getIndices()) {
    indices.push_back(scalars.lookup(at));
  }
  Rectangle from = locate(b, loc, view, indices, op.getAlong(),
                          {buffer.rows, buffer.columns});
  Value zero = index(0);
  Type memory = cast<MemRefType>(view.flat.getType()).getElementType();

  // The buffer's two dimensions, outer first, as sides of the rectangle.
  int outer = buffer.rowMajor ? 0 : 1, inner = 1 - outer;
  int64_t extents[] = {buffer.rows, buffer.columns};

  // What lies outside is 0.
  Value whole =
      arith::AndIOp::create(b, loc, equals(b, loc, from.valid[0], buffer.rows),
                            equals(b, loc, from.valid[1], buffer.columns));
  auto ragged = scf::IfOp::create(
      b, loc,
      arith::XOrIOp::create(b, loc, whole,
                            arith::ConstantIntOp::create(b, loc, 1, 1)),
      /*withElse=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ragged.thenBlock());
    Type element = cast<MemRefType>(buffer.memory.getType()).getElementType();
    fill(buffer, arith::ConstantOp::create(
                     b, loc, cast<TypedAttr>(b.getZeroAttr(element))));
  }

  auto address = [&](Value o, Value i) {
    return add(from.base,
               add(mul(o, from.stride[outer]), mul(i, from.stride[inner])));
  };
  auto byElement = [&](Value o, Value innerEnd) {
    loop(zero, innerEnd, 1, [&](Value i) {
      Value value = memref::LoadOp::create(b, loc, view.flat, address(o, i));
      memref::StoreOp::create(b, loc, widen(b, loc, value), buffer.memory,
                              ValueRange{o, i});
    });
  };
  // Rows that are contiguous and complete in the inner dimension are copied by
  // vectors.
  Value contiguous =
      arith::AndIOp::create(b, loc, equals(b, loc, from.stride[inner], 1),
                            equals(b, loc, from.valid[inner], extents[inner]));
  bool vectors = extents[inner] > 1;
  if (!vectors) {
    loop(zero, from.valid[outer], 1,
         [&](Value o) { byElement(o, from.valid[inner]); });
    return;
  }
  // Across the lanes, a transposition: blocks of rows and columns are turned
  // in registers where the other side is contiguous.
  int64_t block = std::min<int64_t>(16, lanesFor(extents[inner]));
  bool turns = block >= 8 && extents[outer] % block == 0;
  auto branch = scf::IfOp::create(b, loc, contiguous, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  loop(zero, from.valid[outer], 1, [&](Value o) {
    int64_t at = 0;
    while (at < extents[inner]) {
      int64_t lanes = cpu.lanes;
      while (at + lanes > extents[inner]) {
        lanes /= 2;
      }
      int64_t end = extents[inner] - (extents[inner] - at) % lanes;
      loop(index(at), index(end), lanes, [&](Value i) {
        Value value = vector::LoadOp::create(b, loc, vectorType(lanes, memory),
                                             view.flat, address(o, i));
        vector::StoreOp::create(b, loc, widen(b, loc, value), buffer.memory,
                                ValueRange{o, i});
      });
      at = end;
    }
  });
  b.setInsertionPointToStart(branch.elseBlock());
  if (!turns) {
    loop(zero, from.valid[outer], 1,
         [&](Value o) { byElement(o, from.valid[inner]); });
    return;
  }
  Value turnable =
      arith::AndIOp::create(b, loc, equals(b, loc, from.stride[outer], 1),
                            equals(b, loc, from.valid[outer], extents[outer]));
  auto turn = scf::IfOp::create(b, loc, turnable, /*withElse=*/true);
  b.setInsertionPointToStart(turn.thenBlock());
  Value blocks = arith::MulIOp::create(
      b, loc, arith::DivUIOp::create(b, loc, from.valid[inner], index(block)),
      index(block));
  loop(zero, index(extents[outer]), block, [&](Value o) {
    loop(zero, blocks, block, [&](Value i) {
      SmallVector<Value> lines;
      for (int64_t row = 0; row < block; ++row) {
        Value line =
            vector::LoadOp::create(b, loc, vectorType(block, memory), view.flat,
                                   address(o, add(i, index(row))));
        lines.push_back(widen(b, loc, line));
      }
      for (auto [row, line] : llvm::enumerate(transpose(b, loc, lines))) {
        vector::StoreOp::create(b, loc, line, buffer.memory,
                                ValueRange{add(o, index(row)), i});
      }
    });
  });
  // What is left of the inner dimension.
  loop(zero, from.valid[outer], 1, [&](Value o) {
    loop(blocks, from.valid[inner], 1, [&](Value i) {
      Value value = memref::LoadOp::create(b, loc, view.flat, address(o, i));
      memref::StoreOp::create(b, loc, widen(b, loc, value), buffer.memory,
                              ValueRange{o, i});
    });
  });
  b.setInsertionPointToStart(turn.elseBlock());
  loop(zero, from.valid[outer], 1,
       [&](Value o) { byElement(o, from.valid[inner]); });
}

void KernelLowering::lowerStore(tile::StoreOp op) {
  TileBuffer buffer = tiles[op.getTile()];
  const LoweredView view = views[op.getView()];
  SmallVector<Value> indices;
  for (Value at : op.getIndices()) {
    indices.push_back(scalars.lookup(at));
  }
  Rectangle to = locate(b, loc, view, indices, op.getAlong(),
                        {buffer.rows, buffer.columns});
  Value zero = index(0);
  Type memory = cast<MemRefType>(view.flat.getType()).getElementType();
  auto address = [&](Value row, Value column) {
    return add(to.base, add(mul(row, to.stride[0]), mul(column, to.stride[1])));
  };
  auto byElement = [&](Value firstRow, Value rows) {
    loop(firstRow, rows, 1, [&](Value row) {
      loop(zero, to.valid[1], 1, [&](Value column) {
        Value value = loadScalar(buffer, row, column);
        if (buffer.element.isInteger(1)) {
          value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
        }
        memref::StoreOp::create(b, loc, narrow(b, loc, value, memory),
                                view.flat, address(row, column));
      });
    });
  };
  // Buffers hold columns: blocks are turned in registers on the way out.
  int64_t block = std::min<int64_t>(16, lanesFor(buffer.rows));
  bool turns = !buffer.rowMajor && block >= 8 && buffer.columns % block == 0 &&
               isa<FloatType>(buffer.element);
  if (!turns) {
    byElement(zero, to.valid[0]);
    return;
  }
  Value turnable =
      arith::AndIOp::create(b, loc, equals(b, loc, to.stride[1], 1),
                            equals(b, loc, to.valid[1], buffer.columns));
  auto turn = scf::IfOp::create(b, loc, turnable, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(turn.thenBlock());
  Value blocks = arith::MulIOp::create(
      b, loc, arith::DivUIOp::create(b, loc, to.valid[0], index(block)),
      index(block));
  loop(zero, blocks, block, [&](Value row) {
    loop(zero, index(buffer.columns), block, [&](Value column) {
      SmallVector<Value> lines;
      for (int64_t place = 0; place < block; ++place) {
        lines.push_back(
            loadVector(buffer, row, add(column, index(place)), block));
      }
      for (auto [place, line] : llvm::enumerate(transpose(b, loc, lines))) {
        vector::StoreOp::create(b, loc, narrow(b, loc, line, memory), view.flat,
                                address(add(row, index(place)), column));
      }
    });
  });
  byElement(blocks, to.valid[0]);
  b.setInsertionPointToStart(turn.elseBlock());
  byElement(zero, to.valid[0]);
}
