//===- KernelLowering.cpp - arguments and control flow ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value KernelLowering::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value KernelLowering::add(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value KernelLowering::mul(Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}
Value KernelLowering::minIndex(Value x, Value y) {
  return b.createOrFold<arith::MinSIOp>(loc, x, y);
}
Value KernelLowering::maxIndex(Value x, Value y) {
  return b.createOrFold<arith::MaxSIOp>(loc, x, y);
}

VectorType KernelLowering::vectorType(int64_t lanes, Type element) {
  return VectorType::get({lanes}, element);
}

Value KernelLowering::broadcast(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(
      b, loc, vectorType(lanes, scalar.getType()), scalar);
}

int64_t KernelLowering::lanesFor(int64_t extent) const {
  int64_t lanes = cpu.lanes;
  while (extent % lanes) {
    lanes /= 2;
  }
  return lanes;
}

void KernelLowering::loop(Value lower, Value upper, int64_t step,
                          llvm::function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, lower, upper, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Predicates are bytes in memory.
static Type memoryType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8)
                              : element;
}

FailureOr<func::FuncOp> KernelLowering::lower(ModuleOp target) {
  SmallVector<Type> arguments;
  for (Type type : kernel.getArgumentTypes()) {
    if (auto view = dyn_cast<tile::ViewType>(type)) {
      SmallVector<int64_t> strides(view.getRank(), ShapedType::kDynamic);
      auto layout =
          StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
      arguments.push_back(MemRefType::get(
          view.getShape(), memoryType(view.getElementType()), layout));
    } else {
      arguments.push_back(type);
    }
  }
  arguments.append(2, b.getIndexType());
  b.setInsertionPointToEnd(target.getBody());
  function = func::FuncOp::create(b, loc, kernel.getSymName(),
                                  b.getFunctionType(arguments, {}));
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  lowerArguments();

  size_t count = kernel.getArgumentTypes().size();
  Value first = function.getArgument(count);
  Value last = function.getArgument(count + 1);
  SmallVector<Value> extents;
  for (Attribute extent : kernel.getGrid()) {
    extents.push_back(gridExtent(cast<tile::ExtentAttr>(extent)));
  }
  auto overGrid = scf::ForOp::create(b, loc, first, last, index(1));
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(overGrid.getBody());
  // The first dimension varies fastest.
  Value rest = overGrid.getInductionVar();
  for (auto [place, extent] : llvm::enumerate(extents)) {
    if (place + 1 == extents.size()) {
      gridIds.push_back(rest);
      break;
    }
    gridIds.push_back(arith::RemUIOp::create(b, loc, rest, extent));
    rest = arith::DivUIOp::create(b, loc, rest, extent);
  }
  if (failed(lowerBlock(kernel.getBody().front()))) {
    function.erase();
    return failure();
  }
  return function;
}

Value KernelLowering::gridExtent(tile::ExtentAttr extent) {
  const LoweredView &view = views[kernel.getArgument(extent.getArg())];
  Value size = view.sizes[extent.getDim()];
  if (extent.getDiv() == 1) {
    return size;
  }
  return arith::CeilDivUIOp::create(b, loc, size, index(extent.getDiv()));
}

void KernelLowering::lowerArguments() {
  for (auto [argument, value] :
       llvm::zip(kernel.getArguments(), function.getArguments())) {
    auto view = dyn_cast<tile::ViewType>(argument.getType());
    if (!view) {
      scalars.map(argument, value);
      continue;
    }
    auto parts = memref::ExtractStridedMetadataOp::create(b, loc, value);
    auto flatType = MemRefType::get(
        {int64_t(1) << 48}, memoryType(view.getElementType()),
        StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}));
    LoweredView lowered;
    // Addresses are made from the view's own extents and strides; the flat
    // memref's extent only has to be beyond them all.
    OpFoldResult offset = Value(parts.getOffset());
    OpFoldResult size = b.getIndexAttr(int64_t(1) << 48);
    OpFoldResult stride = b.getIndexAttr(1);
    lowered.flat = memref::ReinterpretCastOp::create(
        b, loc, flatType, parts.getBaseBuffer(), offset,
        ArrayRef<OpFoldResult>(size), ArrayRef<OpFoldResult>(stride));
    llvm::append_range(lowered.sizes, parts.getSizes());
    llvm::append_range(lowered.strides, parts.getStrides());
    for (auto [place, extent] : llvm::enumerate(view.getShape())) {
      if (!ShapedType::isDynamic(extent)) {
        lowered.sizes[place] = index(extent);
      }
    }
    lowered.element = view.getElementType();
    views[argument] = lowered;
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBlock(Block &block) {
  SmallVector<Value> mine;
  SmallVector<Value> *outer = taken;
  taken = &mine;
  for (Operation &op : block.without_terminator()) {
    if (failed(lowerOp(&op))) {
      return failure();
    }
  }
  taken = outer;
  // What was made in this block is not used after it.
  for (Value buffer : mine) {
    freeBuffers[buffer.getType()].push_back(buffer);
  }
  return success();
}

LogicalResult KernelLowering::lowerOp(Operation *op) {
  loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) { return lowerFor(loop); })
      .Case([&](scf::IfOp branch) { return lowerIf(branch); })
      .Case([&](tile::ProgramIdOp id) {
        scalars.map(id.getResult(), gridIds[id.getDimension()]);
        return success();
      })
      .Case([&](tile::DimOp dim) {
        scalars.map(dim.getResult(),
                    views[dim.getView()].sizes[dim.getDimension()]);
        return success();
      })
      .Case([&](tile::ReadOp read) {
        SmallVector<Value> indices;
        for (Value place : read.getIndices()) {
          indices.push_back(scalars.lookup(place));
        }
        scalars.map(read.getResult(),
                    readElement(read.getView().getType(), views[read.getView()],
                                indices));
        return success();
      })
      .Case([&](tile::ExtractOp extract) {
        scalars.map(extract.getResult(),
                    loadScalar(tiles[extract.getTile()], index(0), index(0)));
        return success();
      })
      .Case([&](tile::LoadOp load) { return lowerLoad(load), success(); })
      .Case([&](tile::StoreOp store) { return lowerStore(store), success(); })
      .Case([&](tile::SplatOp splat) { return lowerSplat(splat), success(); })
      .Case([&](tile::DotOp dot) { return lowerDot(dot), success(); })
      .Case([&](tile::MapOp map) { return lowerMap(map), success(); })
      .Case([&](tile::ReduceOp r) { return lowerReduce(r), success(); })
      .Case([&](tile::AnglesOp a) { return lowerAngles(a), success(); })
      .Case([&](tile::RotateOp r) { return lowerRotate(r), success(); })
      .Default([&](Operation *other) -> LogicalResult {
        StringRef dialect = other->getName().getDialectNamespace();
        bool scalar = dialect == "arith" || dialect == "math";
        if (!scalar || other->getNumRegions()) {
          return other->emitOpError()
                 << "is not supported in a tile.kernel on a CPU; supported: "
                    "the tile dialect's operations, scf.for, scf.if and scalar "
                    "arith and math operations";
        }
        b.clone(*other, scalars);
        return success();
      });
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static bool isTile(Value value) { return isa<tile::TileType>(value.getType()); }

LogicalResult KernelLowering::lowerYield(ValueRange yielded,
                                         ArrayRef<TileBuffer> targets,
                                         SmallVectorImpl<Value> &results) {
  // A tile that is handed on stands in its target already, or is copied. The
  // source of one copy may be the target of another: then all pass through
  // buffers of their own.
  SmallVector<std::pair<TileBuffer, TileBuffer>> copies;
  for (auto [value, target] : llvm::zip(yielded, targets)) {
    if (!isTile(value)) {
      results.push_back(scalars.lookup(value));
    } else if (tiles[value].memory != target.memory) {
      copies.push_back({tiles[value], target});
    }
  }
  bool crossed = llvm::any_of(copies, [&](auto &copy) {
    return llvm::any_of(copies, [&](auto &other) {
      return copy.first.memory == other.second.memory;
    });
  });
  if (crossed) {
    for (auto &copyPair : copies) {
      auto type = tile::TileType::get(
          b.getContext(), {copyPair.first.rows, copyPair.first.columns},
          copyPair.first.element);
      TileBuffer own = allocate(type, copyPair.first.rowMajor);
      copy(copyPair.first, own);
      copyPair.first = own;
    }
  }
  for (auto &[from, to] : copies) {
    copy(from, to);
  }
  return success();
}

LogicalResult KernelLowering::lowerFor(scf::ForOp op) {
  // Carried tiles stay in one buffer from before the loop to after it.
  SmallVector<TileBuffer> buffers(op.getNumResults());
  SmallVector<Value> inits;
  for (auto [place, init] : llvm::enumerate(op.getInitArgs())) {
    if (!isTile(init)) {
      inits.push_back(scalars.lookup(init));
      continue;
    }
    // A tile of the same block that nothing else reads hands over its buffer.
    Operation *def = init.getDefiningOp();
    bool handsOver =
        init.hasOneUse() && def && def->getBlock() == op->getBlock();
    buffers[place] =
        handsOver ? tiles[init]
                  : allocate(cast<tile::TileType>(init.getType()), false);
    if (!handsOver) {
      copy(tiles[init], buffers[place]);
    }
    tiles[op.getRegionIterArg(place)] = buffers[place];
    tiles[op.getResult(place)] = buffers[place];
    planDestination(op.getYieldedValues()[place], buffers[place],
                    op.getRegionIterArg(place));
  }
  auto loopOp = scf::ForOp::create(b, loc, scalars.lookup(op.getLowerBound()),
                                   scalars.lookup(op.getUpperBound()),
                                   scalars.lookup(op.getStep()), inits);
  scalars.map(op.getInductionVar(), loopOp.getInductionVar());
  size_t next = 0;
  for (auto [place, result] : llvm::enumerate(op.getResults())) {
    if (!isTile(result)) {
      scalars.map(op.getRegionIterArg(place), loopOp.getRegionIterArg(next));
      scalars.map(result, loopOp.getResult(next++));
    }
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loopOp.getBody());
  if (failed(lowerBlock(*op.getBody()))) {
    return failure();
  }
  SmallVector<Value> results;
  if (failed(lowerYield(op.getYieldedValues(), buffers, results))) {
    return failure();
  }
  if (!results.empty()) {
    scf::YieldOp::create(b, loc, results);
  }
  return success();
}

LogicalResult KernelLowering::lowerIf(scf::IfOp op) {
  SmallVector<TileBuffer> buffers(op.getNumResults());
  SmallVector<Type> types;
  for (auto [place, result] : llvm::enumerate(op.getResults())) {
    if (!isTile(result)) {
      types.push_back(result.getType());
      continue;
    }
    Value owner;
    auto planned = destinations.find(result);
    if (planned != destinations.end()) {
      std::tie(buffers[place], owner) = planned->second;
    } else {
      buffers[place] = allocate(cast<tile::TileType>(result.getType()), false);
    }
    tiles[result] = buffers[place];
    for (Region &region : op->getRegions()) {
      if (!region.empty()) {
        planDestination(region.front().getTerminator()->getOperand(place),
                        buffers[place], owner);
      }
    }
  }
  auto branch =
      scf::IfOp::create(b, loc, types, scalars.lookup(op.getCondition()),
                        /*addThenBlock=*/true,
                        /*addElseBlock=*/!op.getElseRegion().empty());
  size_t next = 0;
  for (Value result : op.getResults()) {
    if (!isTile(result)) {
      scalars.map(result, branch.getResult(next++));
    }
  }
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    if (from.empty()) {
      continue;
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&to.front());
    if (failed(lowerBlock(from.front()))) {
      return failure();
    }
    SmallVector<Value> results;
    if (failed(lowerYield(from.front().getTerminator()->getOperands(), buffers,
                          results))) {
      return failure();
    }
    if (to.front().empty() ||
        !to.front().back().hasTrait<OpTrait::IsTerminator>()) {
      scf::YieldOp::create(b, loc, results);
    }
  }
  return success();
}
