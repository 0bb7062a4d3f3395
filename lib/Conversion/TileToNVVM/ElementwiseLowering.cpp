//===- ElementwiseLowering.cpp - maps, reductions, casts -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

static constexpr double kLog2E = 1.4426950408889634074;
static constexpr double kLn2 = 0.69314718055994530942;

Value KernelLowering::emitMath(Operation *op, ValueRange operands) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isF32()) {
    return {};
  }
  auto mulf = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  if (isa<math::Exp2Op>(op)) {
    return ex2(operands[0]);
  }
  // One instruction each; the passes of arith would compare and select.
  if (isa<arith::MaxNumFOp>(op)) {
    return LLVM::MaxNumOp::create(b, loc, operands[0], operands[1]);
  }
  if (isa<arith::MinNumFOp>(op)) {
    return LLVM::MinNumOp::create(b, loc, operands[0], operands[1]);
  }
  if (isa<arith::MaximumFOp>(op)) {
    return LLVM::MaximumOp::create(b, loc, operands[0], operands[1]);
  }
  if (isa<arith::MinimumFOp>(op)) {
    return LLVM::MinimumOp::create(b, loc, operands[0], operands[1]);
  }
  if (isa<math::ExpOp>(op)) {
    // 2^(hi) 2^(lo), lo what the product rounds away: errors of the argument
    // would be multiplied by its size.
    Value scale = cf32(kLog2E);
    Value hi = mulf(operands[0], scale);
    Value lo = math::FmaOp::create(b, loc, operands[0], scale,
                                   arith::NegFOp::create(b, loc, hi));
    Value power = ex2(hi);
    Value correction =
        math::FmaOp::create(b, loc, mulf(lo, cf32(kLn2)), power, power);
    // An infinite or zero power needs none, and would make a NaN of it.
    Value exact =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                              arith::SubFOp::create(b, loc, hi, hi), cf32(0));
    return select(exact, correction, power);
  }
  if (isa<math::Log2Op>(op)) {
    return intrinsic("llvm.nvvm.lg2.approx.f", operands, b.getF32Type());
  }
  if (isa<math::TanhOp>(op)) {
    // 1 - 2 / (e^2x + 1): within 2^-22 of the value, where tanh.approx has
    // 2^-11.
    Value power = ex2(mulf(operands[0], cf32(2 * kLog2E)));
    Value sum = arith::AddFOp::create(b, loc, power, cf32(1));
    Value inverse =
        intrinsic("llvm.nvvm.rcp.approx.ftz.f", sum, b.getF32Type());
    return math::FmaOp::create(b, loc, cf32(-2), inverse, cf32(1));
  }
  if (isa<arith::DivFOp>(op)) {
    return intrinsic("llvm.nvvm.div.full", operands, b.getF32Type());
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

namespace {
/// What a value of a map's region varies with, as bits.
enum Varies { Nothing = 0, ByRow = 1, ByColumn = 2 };
} // namespace

void KernelLowering::lowerMap(tile::MapOp op) {
  auto type = cast<tile::TileType>(op.getResult(0).getType());
  tile::FragmentLayout fragment = fragmentOf(type);
  Block &body = op.getBody().front();
  size_t numInputs = op.getInputs().size();

  llvm::DenseMap<Value, unsigned> varies;
  for (auto [input, argument] :
       llvm::zip(op.getInputs(), body.getArguments())) {
    auto inputType = cast<tile::TileType>(input.getType());
    varies[argument] = (inputType.getRows() == 1 ? Nothing : ByRow) |
                       (inputType.getColumns() == 1 ? Nothing : ByColumn);
  }
  varies[body.getArgument(numInputs)] = ByRow;
  varies[body.getArgument(numInputs + 1)] = ByColumn;
  for (Operation &inner : body.without_terminator()) {
    unsigned bits = Nothing;
    for (Value operand : inner.getOperands()) {
      bits |= varies.lookup(operand);
    }
    varies[inner.getResult(0)] = bits;
  }

  // What does not vary with rows is computed once per column, and so on: one
  // table of values per row, per column, and for all.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> known;
  auto keyOf = [&](Value value, const tile::FragmentLayout::Place &at) {
    unsigned bits = varies.lookup(value);
    int64_t row = bits & ByRow ? at.rowTile * 2 + at.half + 1 : 0;
    int64_t column = bits & ByColumn ? at.columnTile * 2 + at.pair + 1 : 0;
    return std::make_pair(value, row << 32 | column);
  };

  SmallVector<Values> inputs, results(op.getNumResults());
  for (Value input : op.getInputs()) {
    inputs.push_back(elementsOf(input));
  }
  for (int64_t n = 0; n < fragment.values(); ++n) {
    tile::FragmentLayout::Place at = fragment.place(n);
    IRMapping mapping = {};
    auto lookup = [&](Value value) -> Value {
      auto argument = dyn_cast<BlockArgument>(value);
      if (argument && argument.getOwner() == &body) {
        Value &entry = known[keyOf(value, at)];
        if (entry) {
          return entry;
        }
        size_t number = argument.getArgNumber();
        if (number < numInputs) {
          Value input = op.getInputs()[number];
          tile::FragmentLayout source =
              fragmentOf(cast<tile::TileType>(input.getType()));
          tile::FragmentLayout::Place from = at;
          if (source.rows == 1) {
            from.rowTile = from.half = 0;
          }
          if (source.columns == 1) {
            from.columnTile = from.pair = 0;
          }
          entry = inputs[number][source.value(from)];
        } else if (number == numInputs) {
          entry =
              fragment.rows == 1
                  ? c32(0)
                  : add(add(mul(warp, c32(fragment.rowsPerWarp())), laneRow),
                        c32(at.rowTile * 16 + at.half * 8));
        } else {
          entry = fragment.columns == 1
                      ? c32(0)
                      : add(laneColumn, c32(at.columnTile * 8 + at.pair));
        }
        return entry;
      }
      if (value.getParentBlock() == &body) {
        return known.lookup(keyOf(value, at));
      }
      return scalars.lookup(value);
    };
    for (Operation &inner : body.without_terminator()) {
      Value &entry = known[keyOf(inner.getResult(0), at)];
      if (entry) {
        continue;
      }
      loc = inner.getLoc();
      Values operands;
      for (Value operand : inner.getOperands()) {
        operands.push_back(lookup(operand));
      }
      Value made;
      if (auto read = dyn_cast<tile::ReadOp>(inner)) {
        made = readElement(views[read.getView()],
                           ValueRange(operands).drop_front());
      } else {
        for (auto [from, to] : llvm::zip(inner.getOperands(), operands)) {
          mapping.map(from, to);
        }
        made = cloneScalar(&inner, mapping);
      }
      known[keyOf(inner.getResult(0), at)] = made;
    }
    for (auto [place, value] :
         llvm::enumerate(body.getTerminator()->getOperands())) {
      results[place].push_back(lookup(value));
    }
  }
  loc = op.getLoc();
  for (auto [result, values] : llvm::zip(op.getResults(), results)) {
    setElements(result, values);
  }
}

void KernelLowering::lowerSplat(tile::SplatOp op) {
  tile::FragmentLayout fragment = fragmentOf(op.getResult().getType());
  setElements(op.getResult(),
              Values(fragment.values(), scalars.lookup(op.getValue())));
}

//===----------------------------------------------------------------------===//
// Reductions and votes
//===----------------------------------------------------------------------===//

Value KernelLowering::combine(tile::ReduceKind kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case tile::ReduceKind::Add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                   : Value(arith::AddIOp::create(b, loc, x, y));
  case tile::ReduceKind::Max:
    return isFloat ? Value(LLVM::MaxNumOp::create(b, loc, x, y))
                   : Value(arith::MaxSIOp::create(b, loc, x, y));
  case tile::ReduceKind::Min:
    return isFloat ? Value(LLVM::MinNumOp::create(b, loc, x, y))
                   : Value(arith::MinSIOp::create(b, loc, x, y));
  }
  llvm_unreachable("every kind is listed");
}

/// i64 halves travel apart.
static bool isWide(Value value) { return value.getType().isInteger(64); }

void KernelLowering::lowerReduce(tile::ReduceOp op) {
  tile::FragmentLayout fragment = fragmentOf(op.getTile().getType());
  Values values = elementsOf(op.getTile());
  if (op.getDimension() == 0 || fragment.columns == 1) {
    // One row, or one column: nothing to combine.
    setElements(op.getResult(), values);
    return;
  }
  Values results;
  for (int64_t mt = 0; mt < fragment.rowTiles(); ++mt) {
    for (int64_t half = 0; half < fragment.rowValues(); ++half) {
      // Four chains keep the units busy.
      SmallVector<Value, 4> chains;
      int64_t count = 0;
      for (int64_t nt = 0; nt < fragment.columnTiles(); ++nt) {
        for (int64_t pair = 0; pair < 2; ++pair) {
          Value x = values[fragment.value({mt, nt, half, pair})];
          if (count < 4) {
            chains.push_back(x);
          } else {
            Value &chain = chains[count % 4];
            chain = combine(op.getKind(), chain, x);
          }
          ++count;
        }
      }
      while (chains.size() > 1) {
        Value last = chains.pop_back_val();
        Value &into = chains[chains.size() / 2];
        into = combine(op.getKind(), into, last);
      }
      Value x = chains[0];
      results.push_back(op.getPartial() ? x : combineLanes(op.getKind(), x));
    }
  }
  setElements(op.getResult(), results);
}

void KernelLowering::lowerCombine(tile::CombineOp op) {
  Values values;
  for (Value part : elementsOf(op.getTile())) {
    values.push_back(combineLanes(op.getKind(), part));
  }
  setElements(op.getResult(), values);
}

Value KernelLowering::combineLanes(tile::ReduceKind kind, Value x) {
  auto across = [&](Value x, int64_t distance) -> Value {
    if (!isWide(x)) {
      return shuffle(x, distance);
    }
    Value low = shuffle(toI32(x), distance);
    Value high = shuffle(toI32(shr(x, 32)), distance);
    low = arith::ExtUIOp::create(b, loc, b.getI64Type(), low);
    high = arith::ExtUIOp::create(b, loc, b.getI64Type(), high);
    return arith::OrIOp::create(b, loc, low, shl(high, 32));
  };
  // What is narrower than a register travels in one.
  Type own = x.getType();
  bool narrow = own.isInteger(8) || own.isInteger(1);
  bool narrowFloat = own.isBF16() || own.isF16();
  if (narrow) {
    x = arith::ExtSIOp::create(b, loc, i32(), x);
  } else if (narrowFloat) {
    x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  }
  x = combine(kind, x, across(x, 1));
  x = combine(kind, x, across(x, 2));
  return narrow        ? Value(arith::TruncIOp::create(b, loc, own, x))
         : narrowFloat ? Value(arith::TruncFOp::create(b, loc, own, x))
                       : x;
}

void KernelLowering::lowerAny(tile::AnyOp op) {
  Value any;
  for (Value value : tiles[op.getTile()]) {
    any = any ? b.createOrFold<arith::OrIOp>(loc, any, value) : value;
  }
  if (op.getScope() == tile::VoteScope::Warp) {
    scalars.map(op.getResult(),
                NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), c32(-1), any,
                                         NVVM::VoteSyncKind::any));
    return;
  }
  Value bit = arith::ExtUIOp::create(b, loc, i32(), any);
  Value all = assembly("{\n .reg .pred p, q;\n setp.ne.b32 p, $1, 0;\n"
                       " bar.red.or.pred q, 0, p;\n"
                       " selp.b32 $0, 1, 0, q;\n}",
                       "=r,r,~{memory}", bit, i32(), /*sideEffects=*/true)
                  .front();
  slotsRead = false;
  scalars.map(
      op.getResult(),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, all, c32(0)));
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

void KernelLowering::lowerCast(tile::CastOp op) {
  Values from = tiles[op.getTile()];
  Type element = op.getResult().getType().getElementType();
  if (element.isF32()) {
    tiles[op.getResult()] = from;
    return;
  }
  if (!isPacked(op.getResult().getType())) {
    Value narrow = arith::TruncFOp::create(b, loc, element, from.front());
    tiles[op.getResult()] = {narrow};
    return;
  }
  // Values are in pairs of neighbouring columns.
  Values packed;
  for (size_t n = 0; n + 1 < from.size(); n += 2) {
    StringRef text = element.isBF16() ? "cvt.rn.bf16x2.f32 $0, $1, $2;"
                                      : "cvt.rn.f16x2.f32 $0, $1, $2;";
    packed.push_back(assembly(text, "=r,f,f", ValueRange{from[n + 1], from[n]},
                              i32(), /*sideEffects=*/false)
                         .front());
  }
  if (role == Role::Consumer) {
    // Empty assembly that holds the conversions where they are: they would
    // sink below the branch that rescales, behind the wait for the products.
    std::string constraints;
    for (size_t n = 0; n < packed.size(); ++n) {
      constraints += n ? ",=r" : "=r";
    }
    for (size_t n = 0; n < packed.size(); ++n) {
      constraints += "," + std::to_string(n);
    }
    packed = assembly("", constraints, packed,
                      SmallVector<Type>(packed.size(), i32()),
                      /*sideEffects=*/true);
  }
  tiles[op.getResult()] = packed;
}
