//===- KernelContext.cpp - a tile kernel being built -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelContext.h"

#include "AttnFuse/Dialect/Attn/IR/Formulas.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attnfuse;

static Type viewOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? Type(tile::ViewType::get(type.getContext(), tensor.getShape(),
                                           tensor.getElementType()))
                : type;
}

KernelContext::KernelContext(func::FuncOp source, StringRef name,
                             ValueRange inputs,
                             ArrayRef<RankedTensorType> outputTypes,
                             ArrayRef<Attribute> grid)
    : builder(source.getContext()), loc(source.getLoc()), source(source) {
  SmallVector<Type> arguments;
  for (Value input : inputs) {
    arguments.push_back(viewOf(input.getType()));
  }
  for (RankedTensorType type : outputTypes) {
    arguments.push_back(viewOf(type));
  }
  builder.setInsertionPointAfter(source);
  kernel = tile::KernelOp::create(
      builder, loc, builder.getStringAttr(name),
      TypeAttr::get(builder.getFunctionType(arguments, {})),
      builder.getArrayAttr(grid), builder.getI64IntegerAttr(outputTypes.size()),
      tile::ScheduleAttr(), ArrayAttr(), ArrayAttr());
  entry = builder.createBlock(&kernel.getBody(), {}, arguments,
                              SmallVector<Location>(arguments.size(), loc));
  for (auto [input, argument] : llvm::zip(inputs, entry->getArguments())) {
    mapping.map(input, argument);
  }
  llvm::append_range(outputs,
                     entry->getArguments().take_back(outputTypes.size()));
}

Value KernelContext::get(Value source) {
  if (Value known = mapping.lookupOrNull(source)) {
    return known;
  }
  // A scalar of the source: arithmetic on its arguments. It goes to the
  // kernel's entry, so that every later use is dominated by it.
  Operation *op = source.getDefiningOp();
  assert(op && "every argument of the source is mapped");
  for (Value operand : op->getOperands()) {
    get(operand);
  }
  OpBuilder::InsertionGuard guard(builder);
  Operation *after = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *def = get(operand).getDefiningOp();
    if (def && def->getBlock() == entry &&
        (!after || after->isBeforeInBlock(def))) {
      after = def;
    }
  }
  if (after) {
    builder.setInsertionPointAfter(after);
  } else {
    builder.setInsertionPointToStart(entry);
  }
  if (auto dimOp = dyn_cast<tensor::DimOp>(op)) {
    Value extent = dim(get(dimOp.getSource()), *dimOp.getConstantIndex());
    mapping.map(source, extent);
    return extent;
  }
  builder.clone(*op, mapping);
  return mapping.lookup(source);
}

Value KernelContext::dim(Value view, int64_t dimension) {
  return builder.createOrFold<tile::DimOp>(loc, builder.getIndexType(), view,
                                           dimension);
}

Value KernelContext::programId(int64_t dimension) {
  return tile::ProgramIdOp::create(builder, loc, builder.getIndexType(),
                                   dimension);
}

tile::TileType KernelContext::tileType(int64_t rows, int64_t columns,
                                       Type element) {
  return tile::TileType::get(builder.getContext(), {rows, columns}, element,
                             layout);
}

Value KernelContext::splat(Value scalar, int64_t rows, int64_t columns) {
  return tile::SplatOp::create(
      builder, loc, tileType(rows, columns, scalar.getType()), scalar);
}

Value KernelContext::load(Value view, ValueRange indices,
                          ArrayRef<int64_t> along, int64_t rows,
                          int64_t columns, Type element) {
  if (!element) {
    element = cast<tile::ViewType>(view.getType()).getElementType();
  }
  return tile::LoadOp::create(builder, loc, tileType(rows, columns, element),
                              view, indices, along);
}

void KernelContext::store(Value tile, Value view, ValueRange indices,
                          ArrayRef<int64_t> along) {
  tile::StoreOp::create(builder, loc, tile, view, indices, along);
}

Value KernelContext::combine(tile::ReduceKind kind, Value tile) {
  return tile::CombineOp::create(builder, loc, tile.getType(), kind, tile);
}

Value KernelContext::reduce(tile::ReduceKind kind, Value tile,
                            int64_t dimension, bool partial) {
  auto type = cast<tile::TileType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] = 1;
  return tile::ReduceOp::create(
      builder, loc, tileType(shape[0], shape[1], type.getElementType()), kind,
      tile, dimension, partial);
}

SmallVector<Value> KernelContext::map(ValueRange inputs, int64_t rows,
                                      int64_t columns, TypeRange elements,
                                      MapBody body) {
  SmallVector<Type> results;
  for (Type element : elements) {
    results.push_back(tileType(rows, columns, element));
  }
  auto op = tile::MapOp::create(builder, loc, results, inputs);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> arguments;
  for (Value input : inputs) {
    arguments.push_back(cast<tile::TileType>(input.getType()).getElementType());
  }
  arguments.append(2, builder.getIndexType());
  Block *block =
      builder.createBlock(&op.getBody(), {}, arguments,
                          SmallVector<Location>(arguments.size(), loc));
  SmallVector<Value> values = body(math(), block->getArguments());
  tile::YieldOp::create(builder, loc, values);
  return SmallVector<Value>(op.getResults());
}

Value KernelContext::mapF32(
    ValueRange inputs, int64_t rows, int64_t columns,
    llvm::function_ref<Value(IndexMath, ValueRange)> body) {
  return map(inputs, rows, columns, builder.getF32Type(),
             [&](IndexMath m, ValueRange arguments) {
               return SmallVector<Value>{body(m, arguments)};
             })
      .front();
}

Value KernelContext::position(Value source, Value batch) {
  Value value = get(source);
  if (auto view = dyn_cast<tile::ViewType>(value.getType())) {
    // One entry per batch entry, or one for all of them; reads are clamped.
    value =
        tile::ReadOp::create(builder, loc, view.getElementType(), value, batch);
  }
  return math().toIndex(value);
}

Value KernelContext::ropeStart(attn::RopeOp rope, Value batch, Value firstRow) {
  IndexMath m = math();
  Value start = m.add(firstRow, static_cast<int64_t>(rope.getPosition()));
  if (rope.getOffset()) {
    start = m.add(start, position(rope.getOffset(), batch));
  }
  return start;
}

void KernelContext::rotateSlot(ArrayRef<attn::RopeOp> ropes, Value ring,
                               Value use, Value batch, Value firstRow) {
  for (attn::RopeOp rope : ropes) {
    Value start = ropeStart(rope, batch, firstRow);
    bool interleaved = rope.getStyle() == attn::RopeStyle::Interleaved;
    int64_t pairs = rope.getRotaryWidth() / 2;
    Value cos, sin;
    attn::RopeAngles table;
    if (rope.getCos()) {
      cos = get(rope.getCos());
      sin = get(rope.getSin());
    } else {
      table = attn::computeRopeAngles(rope);
    }
    tile::RotateSlotOp::create(
        builder, loc, ring, use, start, cos, sin, pairs, table.frequencies,
        llvm::APFloat(rope.getCos() ? 1.0 : double(table.magnitude)),
        interleaved);
  }
}

Value KernelContext::rotate(ArrayRef<attn::RopeOp> ropes, Value tile,
                            Value batch, Value firstRow) {
  IndexMath m = math();
  for (attn::RopeOp rope : ropes) {
    auto type = cast<tile::TileType>(tile.getType());
    int64_t pairs = rope.getRotaryWidth() / 2;
    Value start = ropeStart(rope, batch, firstRow);
    Value cos, sin;
    if (rope.getCos()) {
      Value zero = m.index(0);
      cos = load(get(rope.getCos()), {start, zero}, {0, 1}, type.getRows(),
                 pairs);
      sin = load(get(rope.getSin()), {start, zero}, {0, 1}, type.getRows(),
                 pairs);
    } else {
      Type angles = tileType(type.getRows(), pairs, builder.getF32Type());
      attn::RopeAngles table = attn::computeRopeAngles(rope);
      auto op = tile::AnglesOp::create(
          builder, loc, angles, angles, start,
          builder.getDenseF64ArrayAttr(table.frequencies),
          builder.getF64FloatAttr(table.magnitude));
      cos = op.getCos();
      sin = op.getSin();
    }
    tile = tile::RotateOp::create(
        builder, loc, type.withElementType(builder.getF32Type()), tile, cos,
        sin, rope.getStyle() == attn::RopeStyle::Interleaved);
  }
  return tile;
}
