//===- ScalarRegion.cpp - score_mod and mask_mod inlined -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "MaskCode.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace attnfuse;

void attnfuse::captureRegion(KernelContext &context, Region &region) {
  region.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      if (operand.getParentRegion() != &region) {
        context.get(operand);
      }
    }
  });
}

//===----------------------------------------------------------------------===//
// Index values on GPUs
//===----------------------------------------------------------------------===//
//
// `index` has 64 bits in a program and 32 in a kernel for a GPU, where extents
// are small enough. What a region computes may be larger: where ranges do not
// show that 32 bits suffice, the operation is done on i64.

/// Extents of tensors of rank 4, positions among them, reach 2^30 at most: the
/// runtime refuses others. So sums and differences of two positions, and the
/// distance between them with an offset, fit 32 bits.
static constexpr int64_t kMostPositions = int64_t(1) << 30;

namespace {
/// What an index value can be, ends included.
struct Interval {
  int64_t lo = std::numeric_limits<int64_t>::min();
  int64_t hi = std::numeric_limits<int64_t>::max();

  bool isNarrow() const { return llvm::isInt<32>(lo) && llvm::isInt<32>(hi); }
  bool isNegative() const { return lo < 0; }
  int64_t size() const { return std::max(std::abs(lo), std::abs(hi)); }

  static Interval narrow() { return {INT32_MIN, INT32_MAX}; }
};

class RegionInliner {
public:
  RegionInliner(KernelContext &context, IndexMath m) : context(context), m(m) {}

  void map(Value from, Value to, Interval range) {
    mapping.map(from, to);
    ranges[from] = range;
  }
  Value inlineBlock(Block &block);

private:
  void inlineOp(Operation &op);
  void inlineIndexOp(Operation &op);
  void inlineCast(Operation &op);
  void inlineWide(Operation &op, Interval range = {});
  std::optional<Interval> rangeOf(Operation &op);

  /// The kernel's value for one of the program; an index value is one of type
  /// index or, if it is wide, i64.
  Value lookup(Value value);
  Interval range(Value value) {
    lookup(value);
    auto known = ranges.find(value);
    return known == ranges.end() ? Interval::narrow() : known->second;
  }
  Value wide(Value value) {
    Value known = lookup(value);
    return known.getType().isIndex()
               ? arith::IndexCastOp::create(m.builder, m.loc,
                                            m.builder.getI64Type(), known)
               : known;
  }
  /// As an index that tile.read brings into the extents of a tensor.
  Value clamped(Value value);

  KernelContext &context;
  IndexMath m;
  IRMapping mapping;
  llvm::DenseMap<Value, Interval> ranges;
};
} // namespace

static Interval extentRange(RankedTensorType type, std::optional<int64_t> dim) {
  if (dim && *dim >= 0 && *dim < type.getRank() && !type.isDynamicDim(*dim)) {
    return {type.getDimSize(*dim), type.getDimSize(*dim)};
  }
  return {0, type.getRank() == 4 ? kMostPositions : INT32_MAX};
}

Value RegionInliner::lookup(Value value) {
  if (Value known = mapping.lookupOrNull(value)) {
    return known;
  }
  Operation *op = value.getDefiningOp();
  // Arithmetic outside of the region is as wide as that inside.
  if (context.layout && value.getType().isIndex() && op &&
      !op->getNumRegions() &&
      isa_and_nonnull<arith::ArithDialect>(op->getDialect())) {
    inlineOp(*op);
    return mapping.lookup(value);
  }
  Value known = context.get(value);
  mapping.map(value, known);
  if (auto dim = value.getDefiningOp<tensor::DimOp>()) {
    ranges[value] =
        extentRange(cast<RankedTensorType>(dim.getSource().getType()),
                    dim.getConstantIndex());
  }
  return known;
}

Value RegionInliner::clamped(Value value) {
  Value known = lookup(value);
  if (known.getType().isIndex()) {
    return known;
  }
  auto constant = [&](int64_t number) {
    return arith::ConstantIntOp::create(m.builder, m.loc, number, 64);
  };
  Value inside = m.min(m.max(known, constant(0)), constant(INT32_MAX));
  return arith::IndexCastOp::create(m.builder, m.loc, m.builder.getIndexType(),
                                    inside);
}

/// The operation on i64 in place of index.
void RegionInliner::inlineWide(Operation &op, Interval range) {
  OperationState state(op.getLoc(), op.getName());
  auto widen = [&](Type type) {
    return type.isIndex() ? m.builder.getI64Type() : type;
  };
  for (Value operand : op.getOperands()) {
    state.operands.push_back(operand.getType().isIndex() ? wide(operand)
                                                         : lookup(operand));
  }
  for (Type type : op.getResultTypes()) {
    state.types.push_back(widen(type));
  }
  state.addAttributes(op.getAttrs());
  Operation *made = m.builder.create(state);
  for (auto [from, to] : llvm::zip(op.getResults(), made->getResults())) {
    mapping.map(from, to);
    ranges[from] = range;
  }
}

void RegionInliner::inlineCast(Operation &op) {
  bool isSigned = isa<arith::IndexCastOp>(op);
  Value source = op.getOperand(0), result = op.getResult(0);
  if (result.getType().isIndex()) {
    unsigned bits = source.getType().getIntOrFloatBitWidth();
    Value known = lookup(source);
    if (bits < 32 || (bits == 32 && isSigned)) {
      int64_t end = int64_t(1) << (isSigned ? bits - 1 : bits);
      Value made =
          isSigned ? Value(arith::IndexCastOp::create(
                         m.builder, m.loc, m.builder.getIndexType(), known))
                   : Value(arith::IndexCastUIOp::create(
                         m.builder, m.loc, m.builder.getIndexType(), known));
      map(result, made, {isSigned ? -end : 0, end - 1});
    } else if (bits == 32) {
      map(result,
          arith::ExtUIOp::create(m.builder, m.loc, m.builder.getI64Type(),
                                 known),
          {0, std::numeric_limits<uint32_t>::max()});
    } else {
      map(result, known, {});
    }
    return;
  }
  Value known = lookup(source);
  unsigned bits = result.getType().getIntOrFloatBitWidth();
  // Index is as wide as i64: no sign is lost or made by a cast.
  if (known.getType().isIndex()) {
    mapping.map(result, arith::IndexCastOp::create(m.builder, m.loc,
                                                   result.getType(), known));
  } else if (bits == 64) {
    mapping.map(result, known);
  } else {
    mapping.map(result, arith::TruncIOp::create(m.builder, m.loc,
                                                result.getType(), known));
  }
}

/// What an operation on narrow operands gives, if 32 bits do for it: nothing if
/// 64 bits may give another value.
std::optional<Interval> RegionInliner::rangeOf(Operation &op) {
  SmallVector<Interval> in;
  for (Value operand : op.getOperands()) {
    if (operand.getType().isIndex()) {
      in.push_back(range(operand));
      if (!in.back().isNarrow()) {
        return std::nullopt;
      }
    }
  }
  Interval result = Interval::narrow();
  // Ends are below 2^31: products fit 64 bits.
  auto ends = [&](auto combine) {
    int64_t all[] = {combine(in[0].lo, in[1].lo), combine(in[0].lo, in[1].hi),
                     combine(in[0].hi, in[1].lo), combine(in[0].hi, in[1].hi)};
    return Interval{*std::min_element(all, all + 4),
                    *std::max_element(all, all + 4)};
  };
  auto negative = [&] {
    return llvm::any_of(in, [](Interval range) { return range.isNegative(); });
  };
  if (isa<arith::AddIOp>(op)) {
    result = {in[0].lo + in[1].lo, in[0].hi + in[1].hi};
  } else if (isa<arith::SubIOp>(op)) {
    result = {in[0].lo - in[1].hi, in[0].hi - in[1].lo};
  } else if (isa<arith::MulIOp>(op)) {
    result = ends([](int64_t x, int64_t y) { return x * y; });
  } else if (isa<arith::MinSIOp>(op)) {
    result = ends([](int64_t x, int64_t y) { return std::min(x, y); });
  } else if (isa<arith::MaxSIOp>(op)) {
    result = ends([](int64_t x, int64_t y) { return std::max(x, y); });
  } else if (isa<arith::SelectOp>(op)) {
    result = {std::min(in[0].lo, in[1].lo), std::max(in[0].hi, in[1].hi)};
  } else if (isa<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op)) {
    // Also what does not fit: the least number over -1.
    result = {negative() ? -in[0].size() : 0, in[0].size()};
  } else if (isa<arith::RemSIOp>(op)) {
    int64_t most = std::min(in[0].size(), in[1].size());
    result = {in[0].isNegative() ? -most : 0, most};
  } else if (isa<arith::AndIOp>(op)) {
    if (!in[0].isNegative() || !in[1].isNegative()) {
      result = {0, in[0].isNegative()   ? in[1].hi
                   : in[1].isNegative() ? in[0].hi
                                        : std::min(in[0].hi, in[1].hi)};
    }
  } else if (isa<arith::OrIOp, arith::XOrIOp>(op)) {
    result = negative() ? Interval::narrow() : Interval{0, INT32_MAX};
  } else if (isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp,
                 arith::MinUIOp, arith::MaxUIOp>(op)) {
    // As unsigned numbers, negative ones are others in 64 bits.
    if (negative()) {
      return std::nullopt;
    }
    result = {0, isa<arith::MaxUIOp>(op) ? std::max(in[0].hi, in[1].hi)
                                         : in[0].hi};
  } else if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op)) {
    // Beyond 31 bits there is a value in 64 bits alone.
    bool isLeft = isa<arith::ShLIOp>(op);
    if (in[1].lo < 0 || in[1].hi > 31 ||
        (isa<arith::ShRUIOp>(op) && in[0].isNegative())) {
      return std::nullopt;
    }
    result = ends([&](int64_t x, int64_t y) {
      return isLeft ? x * (int64_t(1) << y) : x >> y;
    });
  } else {
    return std::nullopt;
  }
  return result.isNarrow() ? std::optional<Interval>(result) : std::nullopt;
}

void RegionInliner::inlineIndexOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    int64_t number = cast<IntegerAttr>(constant.getValue()).getInt();
    Interval range{number, number};
    map(constant,
        range.isNarrow()
            ? m.index(number)
            : arith::ConstantIntOp::create(m.builder, m.loc, number, 64),
        range);
    return;
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    inlineCast(op);
    return;
  }
  bool areNarrow = llvm::all_of(op.getOperands(), [&](Value operand) {
    return !operand.getType().isIndex() || range(operand).isNarrow();
  });
  if (isa<arith::CmpIOp>(op)) {
    // Extending the sign keeps the order, that of unsigned numbers too.
    if (areNarrow) {
      m.builder.clone(op, mapping);
    } else {
      inlineWide(op);
    }
    return;
  }
  if (std::optional<Interval> result = areNarrow ? rangeOf(op) : std::nullopt) {
    m.builder.clone(op, mapping);
    ranges[op.getResult(0)] = *result;
    return;
  }
  inlineWide(op);
}

void RegionInliner::inlineOp(Operation &op) {
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Value> indices;
    for (Value index : extract.getIndices()) {
      indices.push_back(clamped(index));
    }
    mapping.map(extract.getResult(),
                tile::ReadOp::create(m.builder, m.loc, extract.getType(),
                                     lookup(extract.getTensor()), indices));
    return;
  }
  if (isa<tensor::DimOp>(op)) {
    // The kernel's context knows extents, by the source's dim of a tensor.
    (void)lookup(op.getResult(0));
    return;
  }
  for (Value operand : op.getOperands()) {
    (void)lookup(operand);
  }
  auto isIndex = [](Type type) { return type.isIndex(); };
  // A CPU's index has 64 bits as it is.
  if (context.layout && (llvm::any_of(op.getOperandTypes(), isIndex) ||
                         llvm::any_of(op.getResultTypes(), isIndex))) {
    inlineIndexOp(op);
    return;
  }
  m.builder.clone(op, mapping);
}

Value RegionInliner::inlineBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    inlineOp(op);
  }
  return lookup(cast<attn::YieldOp>(block.getTerminator()).getValue());
}

/// The ranges of batch entry, head, query and key.
static SmallVector<Interval> positionRanges(func::FuncOp source) {
  SmallVector<Interval> ranges(4, Interval{0, kMostPositions - 1});
  source.walk([&](attn::ScaledDotProductOp product) {
    for (auto [range, extent] :
         llvm::zip(ranges, product.getScores().getType().getShape())) {
      if (!ShapedType::isDynamic(extent)) {
        range.hi = std::max<int64_t>(extent - 1, 0);
      }
    }
  });
  return ranges;
}

Value attnfuse::inlineScalarRegion(KernelContext &context, IndexMath m,
                                   Region &region, ValueRange arguments) {
  RegionInliner inliner(context, m);
  SmallVector<Interval> positions = positionRanges(context.source);
  // A score comes before the positions, in score_mod.
  size_t first = arguments.size() - positions.size();
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    inliner.map(region.getArgument(number), argument,
                number < first ? Interval() : positions[number - first]);
  }
  return inliner.inlineBlock(region.front());
}
