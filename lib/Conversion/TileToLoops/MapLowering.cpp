//===- MapLowering.cpp - elementwise code and reductions -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attnfuse;

/// How many columns a pass over a tile takes at a time, so that the latencies
/// of one column's operations overlap with those of the next.
static int64_t unrollFor(int64_t columns, size_t operations) {
  int64_t unroll = operations > 40 ? 1 : operations > 12 ? 2 : 4;
  while (columns % unroll) {
    unroll /= 2;
  }
  return unroll;
}

//===----------------------------------------------------------------------===//
// map
//===----------------------------------------------------------------------===//

void KernelLowering::lowerMap(tile::MapOp op) {
  if (isFusedRescale(op)) {
    return;
  }
  auto type = cast<tile::TileType>(op.getResult(0).getType());
  int64_t rows = type.getRows(), columns = type.getColumns();
  int64_t lanes = lanesFor(rows);
  SmallVector<TileBuffer> inputs, outputs;
  for (Value input : op.getInputs()) {
    inputs.push_back(tiles[input]);
  }
  for (Value result : op.getResults()) {
    outputs.push_back(bufferFor(result));
  }
  Block &body = op.getBody().front();
  int64_t unroll = unrollFor(columns, body.getOperations().size());
  Value zero = index(0);

  loop(rows, lanes, [&](Value row) {
    Value rowIds = broadcast(row, lanes);
    if (lanes > 1) {
      rowIds = arith::AddIOp::create(
          b, loc, rowIds,
          vector::StepOp::create(b, loc, vectorType(lanes, b.getIndexType())));
    }
    // One value per row is the same in every column.
    SmallVector<Value> perRow(inputs.size());
    for (auto [place, input] : llvm::enumerate(inputs)) {
      if (input.columns == 1 && input.rows != 1) {
        perRow[place] = loadVector(input, row, zero, lanes);
      }
    }
    loop(columns, unroll, [&](Value first) {
      for (int64_t step = 0; step < unroll; ++step) {
        Value column = step ? add(first, index(step)) : first;
        SmallVector<Value> arguments;
        for (auto [place, input] : llvm::enumerate(inputs)) {
          Value value = perRow[place];
          if (!value && input.rows == 1 && rows != 1) {
            value = loadScalar(input, zero, input.columns == 1 ? zero : column);
          } else if (!value) {
            value = loadVector(input, row, input.columns == 1 ? zero : column,
                               lanes);
          }
          // Narrow floats are held as f32.
          Type wanted = input.element;
          if (auto vector = dyn_cast<VectorType>(value.getType())) {
            wanted = vectorType(vector.getDimSize(0), input.element);
          }
          if (value.getType() != wanted) {
            value = arith::TruncFOp::create(b, loc, wanted, value);
          }
          arguments.push_back(value);
        }
        arguments.push_back(rowIds);
        arguments.push_back(column);
        SmallVector<Value> results;
        emitRegion(body, arguments, lanes, results);
        for (auto [result, output] : llvm::zip(results, outputs)) {
          storeVector(result, output, row, column);
        }
      }
    });
  });
}

/// Whether an operation is a division of integers, which traps on a divisor of
/// 0 and, when signed, on an overflow.
static bool isIntegerDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp, arith::DivUIOp, arith::RemUIOp,
             arith::CeilDivUIOp>(op);
}

/// A division that is defined for each divisor, as places beyond the tensors'
/// ends are computed too: by 0 it gives 0, and a quotient that does not fit
/// wraps.
static Value emitDivision(OpBuilder &b, Location loc, Operation *op, Value lhs,
                          Value rhs) {
  Type type = lhs.getType();
  auto constant = [&](int64_t value) -> Value {
    TypedAttr attribute = b.getIntegerAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type)) {
      attribute = DenseElementsAttr::get(vector, Attribute(attribute));
    }
    return arith::ConstantOp::create(b, loc, attribute);
  };
  auto equals = [&](int64_t value) {
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, rhs,
                                         constant(value));
  };
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
                      arith::CeilDivSIOp>(op);
  Value byZero = equals(0), byMinusOne = isSigned ? equals(-1) : Value();
  Value divisor =
      b.createOrFold<arith::SelectOp>(loc, byZero, constant(1), rhs);
  if (isSigned) {
    divisor =
        b.createOrFold<arith::SelectOp>(loc, byMinusOne, constant(1), divisor);
  }
  OperationState state(loc, op->getName());
  state.addOperands({lhs, divisor});
  state.addTypes(type);
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Value result = b.create(state)->getResult(0);
  if (isSigned) {
    Value negated = isa<arith::RemSIOp>(op)
                        ? constant(0)
                        : b.createOrFold<arith::SubIOp>(loc, constant(0), lhs);
    result = b.createOrFold<arith::SelectOp>(loc, byMinusOne, negated, result);
  }
  return b.createOrFold<arith::SelectOp>(loc, byZero, constant(0), result);
}

void KernelLowering::emitRegion(Block &body, ValueRange arguments,
                                int64_t lanes,
                                SmallVectorImpl<Value> &results) {
  IRMapping local;
  for (auto [parameter, argument] : llvm::zip(body.getArguments(), arguments)) {
    local.map(parameter, argument);
  }
  auto lookup = [&](Value value) {
    Value inside = local.lookupOrNull(value);
    return inside ? inside : scalars.lookup(value);
  };
  for (Operation &op : body.without_terminator()) {
    SmallVector<Value> operands;
    if (auto read = dyn_cast<tile::ReadOp>(op)) {
      operands = llvm::map_to_vector(read.getIndices(), lookup);
    } else {
      operands = llvm::map_to_vector(op.getOperands(), lookup);
    }
    bool varies = llvm::any_of(operands, [](Value operand) {
      return isa<VectorType>(operand.getType());
    });
    if (auto read = dyn_cast<tile::ReadOp>(op)) {
      local.map(read.getResult(),
                varies ? gather(read, operands, lanes)
                       : readElement(read.getView().getType(),
                                     views[read.getView()], operands));
    } else if (!varies && isIntegerDivision(&op)) {
      local.map(op.getResult(0),
                emitDivision(b, loc, &op, operands[0], operands[1]));
    } else if (varies) {
      local.map(op.getResult(0), emitVectorOp(&op, operands, lanes));
    } else {
      // The same for every row: computed once.
      IRMapping scalar;
      for (auto [from, to] : llvm::zip(op.getOperands(), operands)) {
        scalar.map(from, to);
      }
      Operation *copy = b.clone(op, scalar);
      local.map(op.getResult(0), copy->getResult(0));
    }
  }
  for (Value value : body.getTerminator()->getOperands()) {
    Value result = lookup(value);
    results.push_back(
        isa<VectorType>(result.getType()) ? result : broadcast(result, lanes));
  }
}

Value KernelLowering::emitVectorOp(Operation *op, ValueRange operands,
                                   int64_t lanes) {
  SmallVector<Value> vectors;
  for (Value operand : operands) {
    vectors.push_back(isa<VectorType>(operand.getType())
                          ? operand
                          : broadcast(operand, lanes));
  }
  if (isIntegerDivision(op)) {
    return emitDivision(b, loc, op, vectors[0], vectors[1]);
  }
  if (isa<math::Exp2Op>(op) && op->getResult(0).getType().isF32()) {
    return emitExp2(b, loc, vectors[0]);
  }
  if (isa<math::TanhOp>(op) && op->getResult(0).getType().isF32()) {
    return emitTanh(b, loc, vectors[0]);
  }
  OperationState state(loc, op->getName());
  state.addOperands(vectors);
  state.addTypes(vectorType(lanes, op->getResult(0).getType()));
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

Value KernelLowering::gather(tile::ReadOp op, ValueRange indices,
                             int64_t lanes) {
  const LoweredView &view = views[op.getView()];
  Value address, zero = index(0);
  for (auto [place, given] : llvm::enumerate(indices)) {
    Value top = maxIndex(
        b.createOrFold<arith::SubIOp>(loc, view.sizes[place], index(1)), zero);
    Value part;
    if (isa<VectorType>(given.getType())) {
      Value within = arith::MaxSIOp::create(
          b, loc, arith::MinSIOp::create(b, loc, given, broadcast(top, lanes)),
          broadcast(zero, lanes));
      part = arith::MulIOp::create(b, loc, within,
                                   broadcast(view.strides[place], lanes));
    } else {
      Value within = maxIndex(minIndex(given, top), zero);
      part = broadcast(mul(within, view.strides[place]), lanes);
    }
    address =
        address ? Value(arith::AddIOp::create(b, loc, address, part)) : part;
  }
  Type memory = cast<MemRefType>(view.flat.getType()).getElementType();
  Value mask = vector::ConstantMaskOp::create(
      b, loc, vectorType(lanes, b.getI1Type()), ArrayRef<int64_t>{lanes});
  Value none = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(vectorType(lanes, memory)));
  Value value =
      vector::GatherOp::create(b, loc, vectorType(lanes, memory), view.flat,
                               ValueRange{zero}, address, mask, none);
  if (view.element.isInteger(1)) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, none);
  }
  return value;
}

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

static Value combine(OpBuilder &b, Location loc, tile::ReduceKind kind, Value x,
                     Value y) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  switch (kind) {
  case tile::ReduceKind::Max: {
    if (!isFloat) {
      return arith::MaxSIOp::create(b, loc, x, y);
    }
    // One compare and one select: a NaN in y is passed over, and the neutral
    // element that x starts from is not one.
    Value greater =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, y, x);
    return arith::SelectOp::create(b, loc, greater, y, x);
  }
  case tile::ReduceKind::Min: {
    if (!isFloat) {
      return arith::MinSIOp::create(b, loc, x, y);
    }
    Value less = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, y, x);
    return arith::SelectOp::create(b, loc, less, y, x);
  }
  case tile::ReduceKind::Add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                   : Value(arith::AddIOp::create(b, loc, x, y));
  }
  llvm_unreachable("every kind is handled");
}

static TypedAttr neutral(OpBuilder &b, tile::ReduceKind kind, Type element) {
  if (auto type = dyn_cast<FloatType>(element)) {
    double value = kind == tile::ReduceKind::Add ? 0.0 : INFINITY;
    return b.getFloatAttr(type, kind == tile::ReduceKind::Max ? -value : value);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  APInt value = kind == tile::ReduceKind::Add ? APInt(bits, 0)
                : kind == tile::ReduceKind::Max
                    ? APInt::getSignedMinValue(bits)
                    : APInt::getSignedMaxValue(bits);
  return b.getIntegerAttr(element, value);
}

void KernelLowering::lowerReduce(tile::ReduceOp op) {
  TileBuffer input = tiles[op.getTile()];
  TileBuffer output = bufferFor(op.getResult());
  tile::ReduceKind kind = op.getKind();
  Type element = cast<MemRefType>(input.memory.getType()).getElementType();
  Value start = arith::ConstantOp::create(b, loc, neutral(b, kind, element));
  Value zero = index(0), one = index(1);

  if (op.getDimension() == 0) {
    // Over rows: a plain loop per column.
    loop(input.columns, 1, [&](Value column) {
      auto rows = scf::ForOp::create(
          b, loc, zero, index(input.rows), one, start,
          [&](OpBuilder &, Location, Value row, ValueRange state) {
            Value next =
                combine(b, loc, kind, state[0], loadScalar(input, row, column));
            scf::YieldOp::create(b, loc, next);
          });
      storeVector(broadcast(rows.getResult(0), 1), output, zero, column);
    });
    return;
  }

  int64_t lanes = lanesFor(input.rows);
  // Several partial results, so that latencies overlap.
  int64_t partial = unrollFor(input.columns, 1);
  loop(input.rows, lanes, [&](Value row) {
    SmallVector<Value> starts(partial, broadcast(start, lanes));
    auto columns = scf::ForOp::create(
        b, loc, zero, index(input.columns), index(partial), starts,
        [&](OpBuilder &, Location, Value column, ValueRange state) {
          SmallVector<Value> next;
          for (int64_t step = 0; step < partial; ++step) {
            Value value =
                loadVector(input, row, add(column, index(step)), lanes);
            next.push_back(combine(b, loc, kind, state[step], value));
          }
          scf::YieldOp::create(b, loc, next);
        });
    Value total = columns.getResult(0);
    for (int64_t step = 1; step < partial; ++step) {
      total = combine(b, loc, kind, total, columns.getResult(step));
    }
    storeVector(total, output, row, zero);
  });
}
