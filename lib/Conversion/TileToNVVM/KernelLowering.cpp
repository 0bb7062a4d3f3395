//===- KernelLowering.cpp - function, arguments, control flow --*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

KernelLowering::KernelLowering(tile::KernelOp kernel)
    : kernel(kernel), schedule(kernel.getScheduleAttr()),
      b(kernel.getContext()), loc(kernel.getLoc()) {
  planRoles();
  allocateRings();
}

tile::FragmentLayout KernelLowering::fragmentOf(tile::TileType type) {
  auto fragment = cast<tile::FragmentAttr>(type.getLayout());
  return {type.getRows(), type.getColumns(), fragment.getWarps()};
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static Type pointerType(MLIRContext *context, unsigned space) {
  return LLVM::LLVMPointerType::get(context, space);
}

FailureOr<LLVM::LLVMFuncOp> KernelLowering::lower(gpu::GPUModuleOp target) {
  SmallVector<Type> arguments;
  for (Type type : kernel.getArgumentTypes()) {
    if (auto view = dyn_cast<tile::ViewType>(type)) {
      arguments.push_back(pointerType(b.getContext(), 1));
      arguments.append(2 * view.getRank(), b.getI64Type());
    } else {
      arguments.push_back(type.isF32() ? type : b.getI64Type());
    }
  }
  size_t numPlain = arguments.size();
  arguments.append(maps.size(), pointerType(b.getContext(), 0));
  if (hasCounter) {
    arguments.push_back(pointerType(b.getContext(), 1));
  }
  auto global = target.lookupSymbol<LLVM::GlobalOp>(kSharedName);
  if (!global) {
    b.setInsertionPointToStart(target.getBody());
    global = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
        /*isConstant=*/false, LLVM::Linkage::External, kSharedName, Attribute(),
        /*alignment=*/1024, /*addrSpace=*/3);
  }
  b.setInsertionPointToEnd(target.getBody());
  function = LLVM::LLVMFuncOp::create(
      b, loc, kernel.getSymName(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  arguments));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(
      NVVM::NVVMDialect::getMaxntidAttrName(),
      b.getDenseI32ArrayAttr({static_cast<int32_t>(blockThreads), 1, 1}));
  if (schedule.getRegisters()) {
    // Without it ptxas may ignore setmaxnreg.
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(1));
  }
  for (size_t n = 0; n < maps.size(); ++n) {
    unsigned place = numPlain + n;
    function.setArgAttr(
        place, LLVM::LLVMDialect::getByValAttrName(),
        TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), 128)));
    function.setArgAttr(place, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(64));
    function.setArgAttr(place, NVVM::NVVMDialect::getGridConstantAttrName(),
                        b.getUnitAttr());
  }
  b.setInsertionPointToStart(function.addEntryBlock(b));

  Value address = LLVM::AddressOfOp::create(b, loc, global);
  sharedBase = LLVM::PtrToIntOp::create(b, loc, i32(), address);
  thread = NVVM::ThreadIdXOp::create(b, loc, i32());
  lane = andOf(thread, c32(31));
  // The same in every lane: a shuffle lets the compiler know.
  warp = NVVM::ShflOp::create(b, loc, i32(), c32(-1), shr(thread, 5), c32(0),
                              c32(31), NVVM::ShflKind::idx, UnitAttr());
  laneRow = shr(lane, 2);
  laneColumn = shl(andOf(lane, c32(3)), 1);
  for (size_t n = 0; n < maps.size(); ++n) {
    mapPointers.push_back(function.getArgument(numPlain + n));
  }
  if (hasCounter) {
    counter = function.getArguments().back();
  }
  lowerArguments();
  lowerGrid();
  if (failed(lowerBlock(kernel.getBody().front()))) {
    return failure();
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return function;
}

void KernelLowering::lowerArguments() {
  unsigned next = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = dyn_cast<tile::ViewType>(argument.getType());
    if (!type) {
      Value value = function.getArgument(next++);
      Type wanted = argument.getType();
      if (wanted.isIndex()) {
        // What is further than any position is as far as can be.
        value = arith::MaxSIOp::create(b, loc, value, c64(INT32_MIN));
        value = arith::MinSIOp::create(b, loc, value, c64(INT32_MAX));
        value = toI32(value);
      } else if (wanted.isInteger(32)) {
        value = toI32(value);
      } else if (wanted.isInteger(8) || wanted.isInteger(1)) {
        value = arith::TruncIOp::create(b, loc, wanted, value);
      }
      scalars.map(argument, value);
      continue;
    }
    LoweredView view;
    view.base = function.getArgument(next++);
    view.element = type.getElementType();
    for (int64_t extent : type.getShape()) {
      Value size = function.getArgument(next++);
      view.sizes.push_back(ShapedType::isDynamic(extent) ? toI32(size)
                                                         : c32(extent));
      view.strides.push_back(function.getArgument(next++));
    }
    bool copied = llvm::any_of(argument.getUsers(), [](Operation *op) {
      return isa<tile::AsyncLoadOp, tile::CopyOutOp>(op);
    });
    if (copied) {
      view.aligned = alignedForCopies(type, view);
    }
    views[argument] = view;
  }
}

Value KernelLowering::alignedForCopies(tile::ViewType type,
                                       const LoweredView &view) {
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  Value bits = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), view.base);
  bits = andOf(bits, c64(15));
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
    Value stride = mul(view.strides[dim], c64(bytes));
    bits = arith::OrIOp::create(b, loc, bits, andOf(stride, c64(15)));
  }
  Value unit = xorOf(view.strides.back(), c64(1));
  bits = arith::OrIOp::create(b, loc, bits, unit);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, bits, c64(0));
}

void KernelLowering::allocateRings() {
  // Barriers come first: two words of 8 bytes per slot.
  int64_t barriers = 0;
  bool hasRoles = !kernel.getBody().front().getOps<tile::RolesOp>().empty();
  if (hasRoles) {
    workBarriers = 0;
    barriers = 64;
    sharedSize = 1024;
  }
  for (auto alloc : kernel.getBody().front().getOps<tile::AllocOp>()) {
    tile::RingType type = alloc.getRing().getType();
    LoweredRing ring;
    ring.element = type.getElementType();
    ring.stages = type.getStages();
    ring.slot = {type.getRows(), type.getColumns(),
                 type.getElementType().getIntOrFloatBitWidth() / 8,
                 type.getSwizzle()};
    ring.readers = alloc.getReaders();
    if (hasRoles) {
      ring.barriers = barriers;
      barriers += 16 * ring.stages;
    }
    // Swizzles repeat every 8 rows: 1024 bytes at most.
    ring.offset = (sharedSize + 1023) / 1024 * 1024;
    sharedSize = ring.offset + type.getBytes();
    rings[alloc.getRing()] = ring;
  }
}

void KernelLowering::lowerGrid() {
  // One dimension: a runtime's grid has no smaller limit then than 2^31 - 1.
  Value rest = NVVM::BlockIdXOp::create(b, loc, i32());
  ArrayAttr grid = kernel.getGrid();
  for (auto [place, attr] : llvm::enumerate(grid)) {
    auto extent = cast<tile::ExtentAttr>(attr);
    if (place + 1 == grid.size()) {
      gridIds.push_back(rest);
      break;
    }
    Value size =
        views[kernel.getArgument(extent.getArg())].sizes[extent.getDim()];
    Value count = divide(add(size, c32(extent.getDiv() - 1)), extent.getDiv());
    gridIds.push_back(arith::RemUIOp::create(b, loc, rest, count));
    rest = arith::DivUIOp::create(b, loc, rest, count);
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      break;
    }
    if (failed(lowerOp(&op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult KernelLowering::lowerOp(Operation *op) {
  loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) { return lowerFor(loop); })
      .Case([&](scf::WhileOp loop) { return lowerWhile(loop); })
      .Case([&](scf::IfOp branch) { return lowerIf(branch); })
      .Case([&](tile::AllocOp) { return success(); })
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
        Values indices;
        for (Value place : read.getIndices()) {
          indices.push_back(scalars.lookup(place));
        }
        scalars.map(read.getResult(),
                    readElement(views[read.getView()], indices));
        return success();
      })
      .Case([&](tile::ExtractOp extract) {
        scalars.map(extract.getResult(), elementsOf(extract.getTile()).front());
        return success();
      })
      .Case([&](tile::LoadOp o) { return lowerLoad(o), success(); })
      .Case([&](tile::StoreOp o) { return lowerStore(o), success(); })
      .Case([&](tile::SplatOp o) { return lowerSplat(o), success(); })
      .Case([&](tile::MapOp o) { return lowerMap(o), success(); })
      .Case([&](tile::CastOp o) { return lowerCast(o), success(); })
      .Case([&](tile::AnyOp o) { return lowerAny(o), success(); })
      .Case([&](tile::ReduceOp o) -> LogicalResult {
        if (o.getDimension() == 0 && o.getTile().getType().getRows() != 1) {
          return o.emitOpError() << "is not supported over rows on a GPU, "
                                    "where they lie in different warps";
        }
        return lowerReduce(o), success();
      })
      .Case([&](tile::CombineOp o) { return lowerCombine(o), success(); })
      .Case([&](tile::AsyncLoadOp o) { return lowerAsyncLoad(o), success(); })
      .Case([&](tile::PutOp o) { return lowerPut(o), success(); })
      .Case([&](tile::CopyOutOp o) { return lowerCopyOut(o), success(); })
      .Case([&](tile::RotateSlotOp o) { return lowerRotateSlot(o), success(); })
      .Case([&](tile::DotStartOp o) { return lowerDotStart(o), success(); })
      .Case([&](tile::DotGuardedOp o) { return lowerDotGuarded(o), success(); })
      .Case([&](tile::DotWaitOp wait) {
        if (role == Role::Consumer) {
          lowerWarpgroupWait(wait);
          return success();
        }
        Values values = tiles[wait.getPending()];
        tiles[wait.getResult()] = values;
        return success();
      })
      .Case([&](tile::AcquireOp o) { return lowerAcquire(o), success(); })
      .Case([&](tile::CommitOp) {
        if (role == Role::Everyone) {
          NVVM::CpAsyncCommitGroupOp::create(b, loc);
        }
        return success();
      })
      .Case([&](tile::RolesOp o) { return lowerRoles(o); })
      .Case([&](tile::NextWorkOp o) { return lowerNextWork(o), success(); })
      .Case([&](tile::WarpgroupOp o) {
        scalars.map(o.getResult(), warpgroup);
        return success();
      })
      .Case([&](tile::WaitOp o) { return lowerWait(o), success(); })
      .Case([&](tile::ReleaseOp o) { return lowerRelease(o), success(); })
      .Default([&](Operation *other) -> LogicalResult {
        StringRef dialect = other->getName().getDialectNamespace();
        bool scalar = (dialect == "arith" || dialect == "math") &&
                      llvm::all_of(other->getOperandTypes(), tile::isScalar) &&
                      llvm::all_of(other->getResultTypes(), tile::isScalar);
        if (!scalar || other->getNumRegions() || other->getNumResults() != 1) {
          return other->emitOpError()
                 << "is not supported in a scheduled tile.kernel; supported: "
                    "the tile dialect's scheduled operations, scf.for, "
                    "scf.while, scf.if and scalar arith and math operations";
        }
        scalars.map(other->getResult(0), cloneScalar(other, scalars));
        return success();
      });
}

/// index is i32 in the kernel.
static Type convertType(Type type) {
  return type.isIndex() ? IntegerType::get(type.getContext(), 32) : type;
}

Value KernelLowering::cloneScalar(Operation *op, IRMapping &mapping) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (constant.getType().isIndex()) {
      int64_t number = cast<IntegerAttr>(constant.getValue()).getInt();
      return c32(std::clamp<int64_t>(number, INT32_MIN, INT32_MAX));
    }
    return arith::ConstantOp::create(b, loc,
                                     cast<TypedAttr>(constant.getValue()));
  }
  Values operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(mapping.lookup(operand));
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    Type wanted = convertType(op->getResult(0).getType());
    Value value = operands[0];
    unsigned from = value.getType().getIntOrFloatBitWidth();
    unsigned to = wanted.getIntOrFloatBitWidth();
    if (from == to) {
      return value;
    }
    if (from > to) {
      return arith::TruncIOp::create(b, loc, wanted, value);
    }
    return isa<arith::IndexCastOp>(op)
               ? Value(arith::ExtSIOp::create(b, loc, wanted, value))
               : Value(arith::ExtUIOp::create(b, loc, wanted, value));
  }
  if (Value special = emitMath(op, operands)) {
    return special;
  }
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  state.addAttributes(op->getAttrs());
  state.addTypes(convertType(op->getResult(0).getType()));
  Operation *made = b.create(state);
  SmallVector<Value> folded;
  // Folding in place succeeds without a result.
  if (succeeded(b.tryFold(made, folded)) && !folded.empty()) {
    made->erase();
    return folded[0];
  }
  return made->getResult(0);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

bool KernelLowering::isPacked(tile::TileType type) {
  Type element = type.getElementType();
  // A lane holds an even number of elements of all but 1x1.
  return (element.isBF16() || element.isF16()) &&
         fragmentOf(type).values() % 2 == 0;
}

Values KernelLowering::elementsOf(Value tile) {
  auto type = cast<tile::TileType>(tile.getType());
  if (!isPacked(type)) {
    return tiles[tile];
  }
  auto pair = VectorType::get({2}, type.getElementType());
  Values elements;
  for (Value packed : tiles[tile]) {
    Value both = LLVM::BitcastOp::create(b, loc, pair, packed);
    for (int64_t side = 0; side < 2; ++side) {
      elements.push_back(
          LLVM::ExtractElementOp::create(b, loc, both, c32(side)));
    }
  }
  return elements;
}

void KernelLowering::setElements(Value tile, const Values &elements) {
  auto type = cast<tile::TileType>(tile.getType());
  if (!isPacked(type)) {
    tiles[tile] = elements;
    return;
  }
  auto pair = VectorType::get({2}, type.getElementType());
  Values packed;
  for (size_t n = 0; n < elements.size(); n += 2) {
    Value both = LLVM::PoisonOp::create(b, loc, pair);
    for (int64_t side = 0; side < 2; ++side) {
      both = LLVM::InsertElementOp::create(b, loc, both, elements[n + side],
                                           c32(side));
    }
    packed.push_back(LLVM::BitcastOp::create(b, loc, i32(), both));
  }
  tiles[tile] = packed;
}

void KernelLowering::flatten(ValueRange values, Values &flat) {
  for (Value value : values) {
    if (isa<tile::TileType, tile::PendingType>(value.getType())) {
      llvm::append_range(flat, tiles[value]);
    } else {
      flat.push_back(scalars.lookup(value));
    }
  }
}

void KernelLowering::bind(ValueRange values, ValueRange flat) {
  size_t next = 0;
  for (Value value : values) {
    Type type = value.getType();
    if (!isa<tile::TileType, tile::PendingType>(type)) {
      scalars.map(value, flat[next++]);
      continue;
    }
    auto tile = dyn_cast<tile::TileType>(type);
    if (!tile) {
      tile = cast<tile::PendingType>(type).getTile();
    }
    size_t count = fragmentOf(tile).values() / (isPacked(tile) ? 2 : 1);
    tiles[value] = Values(flat.slice(next, count));
    next += count;
  }
}

LogicalResult KernelLowering::lowerFor(scf::ForOp op) {
  Values inits;
  flatten(op.getInitArgs(), inits);
  auto loop = scf::ForOp::create(b, loc, scalars.lookup(op.getLowerBound()),
                                 scalars.lookup(op.getUpperBound()),
                                 scalars.lookup(op.getStep()), inits);
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  bind(op.getRegionIterArgs(), loop.getRegionIterArgs());
  bind(op.getResults(), loop.getResults());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  slotsRead = true;
  if (failed(lowerBlock(*op.getBody()))) {
    return failure();
  }
  slotsRead = true;
  Values results;
  flatten(op.getYieldedValues(), results);
  if (inits.empty()) {
    return success();
  }
  scf::YieldOp::create(b, loc, results);
  return success();
}

LogicalResult KernelLowering::lowerWhile(scf::WhileOp op) {
  Values inits;
  flatten(op.getInits(), inits);
  auto locations = [&](size_t count) {
    return SmallVector<Location>(count, loc);
  };
  // What the condition hands on need not be what the loop carries: the first
  // region is lowered before the loop can be made.
  Region before;
  Values passed;
  {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&before, {}, TypeRange(ValueRange(inits)),
                                 locations(inits.size()));
    bind(op.getBeforeArguments(), block->getArguments());
    slotsRead = true;
    if (failed(lowerBlock(*op.getBeforeBody()))) {
      return failure();
    }
    scf::ConditionOp condition = op.getConditionOp();
    flatten(condition.getArgs(), passed);
    scf::ConditionOp::create(b, loc, scalars.lookup(condition.getCondition()),
                             passed);
  }
  loc = op.getLoc();
  TypeRange types{ValueRange(passed)};
  auto loop = scf::WhileOp::create(b, loc, types, inits);
  loop.getBefore().takeBody(before);
  OpBuilder::InsertionGuard guard(b);
  Block *block =
      b.createBlock(&loop.getAfter(), {}, types, locations(passed.size()));
  bind(op.getAfterArguments(), block->getArguments());
  bind(op.getResults(), loop.getResults());
  slotsRead = true;
  if (failed(lowerBlock(*op.getAfterBody()))) {
    return failure();
  }
  slotsRead = true;
  Values results;
  flatten(op.getYieldOp()->getOperands(), results);
  scf::YieldOp::create(b, loc, results);
  return success();
}

LogicalResult KernelLowering::lowerIf(scf::IfOp op) {
  // The branches are lowered first: their yields give the result types.
  auto lowerRegion = [&](Region &region, Block *block, Values &results) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(block);
    if (failed(lowerBlock(region.front()))) {
      return failure();
    }
    flatten(region.front().getTerminator()->getOperands(), results);
    scf::YieldOp::create(b, loc, results);
    return success();
  };
  Region thenRegion, elseRegion;
  Block *thenBlock = new Block(), *elseBlock = new Block();
  thenRegion.push_back(thenBlock);
  elseRegion.push_back(elseBlock);
  Values results, ignored;
  bool read = slotsRead;
  if (failed(lowerRegion(op.getThenRegion(), thenBlock, results))) {
    return failure();
  }
  bool readThen = slotsRead;
  slotsRead = read;
  bool hasElse = !op.getElseRegion().empty();
  if (hasElse && failed(lowerRegion(op.getElseRegion(), elseBlock, ignored))) {
    return failure();
  }
  slotsRead = slotsRead || readThen || read;
  loc = op.getLoc();
  auto branch = scf::IfOp::create(b, loc, TypeRange(ValueRange(results)),
                                  scalars.lookup(op.getCondition()),
                                  /*addThenBlock=*/false,
                                  /*addElseBlock=*/false);
  branch.getThenRegion().takeBody(thenRegion);
  if (hasElse) {
    branch.getElseRegion().takeBody(elseRegion);
  }
  bind(op.getResults(), branch.getResults());
  return success();
}
