//===- TileOps.cpp - verifiers and folders of tile operations --*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attnfuse::tile;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult ProgramIdOp::verify() {
  auto dimension = static_cast<int64_t>(getDimension());
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel) {
    return emitOpError() << "expected to be inside a tile.kernel";
  }
  if (dimension < 0 ||
      dimension >= static_cast<int64_t>(kernel.getGrid().size())) {
    return emitOpError() << "expected a dimension of the grid, 0 to "
                         << kernel.getGrid().size() - 1 << ", got "
                         << dimension;
  }
  return success();
}

LogicalResult DimOp::verify() {
  auto dimension = static_cast<int64_t>(getDimension());
  if (dimension < 0 || dimension >= getView().getType().getRank()) {
    return emitOpError() << "expected a dimension below the rank "
                         << getView().getType().getRank() << ", got "
                         << dimension;
  }
  return success();
}

OpFoldResult DimOp::fold(FoldAdaptor) {
  int64_t size = getView().getType().getShape()[getDimension()];
  return ShapedType::isDynamic(size)
             ? OpFoldResult()
             : OpFoldResult(Builder(getContext()).getIndexAttr(size));
}

/// Indices and `along` of a transfer between a view and a tile.
static LogicalResult verifyTransfer(Operation *op, ViewType view,
                                    size_t numIndices, ArrayRef<int64_t> along,
                                    TileType tile) {
  if (static_cast<int64_t>(numIndices) != view.getRank()) {
    return op->emitOpError() << "expected one index per dimension of the view, "
                             << view.getRank() << ", got " << numIndices;
  }
  if (along.size() != 2) {
    return op->emitOpError()
           << "expected 'along' to name two dimensions, got " << along.size();
  }
  for (int side = 0; side < 2; ++side) {
    StringRef name = side ? "columns" : "rows";
    if (along[side] < -1 || along[side] >= view.getRank()) {
      return op->emitOpError()
             << "expected 'along' to hold -1 or a dimension below the rank "
             << view.getRank() << ", got " << along[side];
    }
    if (along[side] == -1 && tile.getShape()[side] != 1) {
      return op->emitOpError()
             << "expected one of the " << name
             << ", which run along no dimension, got " << tile.getShape()[side];
    }
  }
  if (along[0] == along[1] && along[0] != -1) {
    return op->emitOpError() << "expected rows and columns along different "
                                "dimensions, got "
                             << along[0] << " twice";
  }
  Type memory = view.getElementType(), element = tile.getElementType();
  bool converts = isa<FloatType>(memory) && element.isF32();
  if (memory != element && !converts) {
    return op->emitOpError()
           << "expected a tile of " << memory
           << (isa<FloatType>(memory) ? " or f32" : "") << ", got " << element;
  }
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyTransfer(*this, getView().getType(), getIndices().size(),
                        getAlong(), getResult().getType());
}

LogicalResult StoreOp::verify() {
  return verifyTransfer(*this, getView().getType(), getIndices().size(),
                        getAlong(), getTile().getType());
}

LogicalResult ReadOp::verify() {
  ViewType view = getView().getType();
  if (static_cast<int64_t>(getIndices().size()) != view.getRank()) {
    return emitOpError() << "expected one index per dimension of the view, "
                         << view.getRank() << ", got " << getIndices().size();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult SplatOp::verify() {
  if (getValue().getType() != getResult().getType().getElementType()) {
    return emitOpError() << "expected a value of type "
                         << getResult().getType().getElementType() << ", got "
                         << getValue().getType();
  }
  return success();
}

LogicalResult ExtractOp::verify() {
  TileType tile = getTile().getType();
  if (tile.getRows() != 1 || tile.getColumns() != 1) {
    return emitOpError() << "expected a tile of one element, got " << tile;
  }
  if (tile.getElementType() != getResult().getType()) {
    return emitOpError() << "expected a result of type "
                         << tile.getElementType() << ", got "
                         << getResult().getType();
  }
  return success();
}

LogicalResult DotOp::verify() {
  TileType lhs = getLhs().getType(), rhs = getRhs().getType(),
           acc = getAcc().getType();
  for (TileType type : {lhs, rhs}) {
    if (!isa<FloatType>(type.getElementType())) {
      return emitOpError() << "expected float factors, got " << type;
    }
  }
  if (!acc.getElementType().isF32()) {
    return emitOpError() << "expected an accumulator of f32, got " << acc;
  }
  int64_t inner = getTransposeB() ? rhs.getColumns() : rhs.getRows();
  int64_t columns = getTransposeB() ? rhs.getRows() : rhs.getColumns();
  if (lhs.getColumns() != inner || acc.getRows() != lhs.getRows() ||
      acc.getColumns() != columns) {
    return emitOpError() << "expected MxK times "
                         << (getTransposeB() ? "NxK (transposed)" : "KxN")
                         << " plus MxN, got " << lhs << ", " << rhs << " and "
                         << acc;
  }
  return success();
}

LogicalResult MapOp::verify() {
  if (getResults().empty()) {
    return emitOpError() << "expected at least one result";
  }
  auto first = cast<TileType>(getResult(0).getType());
  for (Value result : getResults()) {
    if (cast<TileType>(result.getType()).getShape() != first.getShape()) {
      return emitOpError() << "expected results of one extent, got " << first
                           << " and " << result.getType();
    }
  }
  for (Value input : getInputs()) {
    auto type = cast<TileType>(input.getType());
    for (int side = 0; side < 2; ++side) {
      if (type.getShape()[side] != 1 &&
          type.getShape()[side] != first.getShape()[side]) {
        return emitOpError() << "expected operands that broadcast to " << first
                             << ", got " << type;
      }
    }
  }
  Block &block = getBody().front();
  SmallVector<Type> expected;
  for (Value input : getInputs()) {
    expected.push_back(cast<TileType>(input.getType()).getElementType());
  }
  expected.append(2, IndexType::get(getContext()));
  if (TypeRange(block.getArgumentTypes()) != TypeRange(expected)) {
    InFlightDiagnostic diag = emitOpError()
                              << "expected block arguments of types (";
    llvm::interleaveComma(expected, diag);
    diag << "), got (";
    llvm::interleaveComma(block.getArgumentTypes(), diag);
    return diag << ")";
  }
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValues().size() != getResults().size()) {
    return emitOpError() << "expected a tile.yield of one value per result";
  }
  for (auto [value, result] : llvm::zip(yield.getValues(), getResults())) {
    Type element = cast<TileType>(result.getType()).getElementType();
    if (value.getType() != element) {
      return emitOpError() << "expected to yield " << element << ", got "
                           << value.getType();
    }
  }
  for (Operation &op : block.without_terminator()) {
    StringRef dialect = op.getName().getDialectNamespace();
    if (dialect != "arith" && dialect != "math" && !isa<ReadOp>(op)) {
      InFlightDiagnostic diag = emitOpError()
                                << "has a region with '" << op.getName()
                                << "'; it may hold scalar arith and math "
                                   "operations and tile.read";
      diag.attachNote(op.getLoc()) << "the operation";
      return diag;
    }
    bool takesView = isa<ReadOp>(op);
    if (op.getNumResults() != 1 || op.getNumRegions() ||
        !isScalar(op.getResult(0).getType()) ||
        !llvm::all_of(op.getOperandTypes(), [&](Type type) {
          return isScalar(type) || (takesView && isa<ViewType>(type));
        })) {
      InFlightDiagnostic diag =
          emitOpError() << "expected operations on scalars with one result in "
                           "its region, got '"
                        << op.getName() << "'";
      diag.attachNote(op.getLoc()) << "the operation";
      return diag;
    }
  }
  return success();
}

LogicalResult ReduceOp::verify() {
  auto dimension = static_cast<int64_t>(getDimension());
  if (dimension < 0 || dimension > 1) {
    return emitOpError() << "expected dimension 0 or 1, got " << dimension;
  }
  TileType tile = getTile().getType(), result = getResult().getType();
  SmallVector<int64_t> shape(tile.getShape());
  shape[dimension] = 1;
  if (result.getShape() != ArrayRef(shape) ||
      result.getElementType() != tile.getElementType()) {
    return emitOpError() << "expected a result of extents " << shape[0] << "x"
                         << shape[1] << " and the operand's element type, got "
                         << result;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

LogicalResult AnglesOp::verify() {
  TileType type = getCos().getType();
  if (!type.getElementType().isF32()) {
    return emitOpError() << "expected tiles of f32, got " << type;
  }
  if (static_cast<int64_t>(getFrequencies().size()) != type.getColumns()) {
    return emitOpError() << "expected one frequency per column ("
                         << type.getColumns() << "), got "
                         << getFrequencies().size();
  }
  return success();
}

LogicalResult RotateOp::verify() {
  TileType input = getInput().getType(), result = getResult().getType(),
           cos = getCos().getType();
  if (getSin().getType() != cos || !cos.getElementType().isF32()) {
    return emitOpError() << "expected cos and sin of one f32 type, got " << cos
                         << " and " << getSin().getType();
  }
  if (input.getShape() != result.getShape() ||
      cos.getRows() != input.getRows()) {
    return emitOpError() << "expected operand, result and angles with the same "
                            "rows, got "
                         << input << ", " << result << " and " << cos;
  }
  if (2 * cos.getColumns() > input.getColumns()) {
    return emitOpError() << "expected at most " << input.getColumns()
                         << " rotated columns, got " << 2 * cos.getColumns();
  }
  if (!isa<FloatType>(input.getElementType()) ||
      !isa<FloatType>(result.getElementType())) {
    return emitOpError() << "expected float tiles, got " << input << " and "
                         << result;
  }
  return success();
}
