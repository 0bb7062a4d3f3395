//===- MaskModel.cpp - masks of a program in normal form -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/MaskModel.h"

#include "AttnFuse/Analysis/StructuralKeys.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::attn;

/// No tensor is as long as this, so that bounds beyond it are infinite, and
/// sums of two bounds do not overflow.
static constexpr int64_t kFar = int64_t(1) << 61;

namespace {
/// Where j - i - base lies for the pairs of one family.
struct Range {
  int64_t lo = kMinusInfinity, hi = kPlusInfinity;
};

class ModelBuilder {
public:
  ModelBuilder(ScoresType scores, MaskErrorFn emitError)
      : scores(scores), emitError(emitError) {}

  FailureOr<MaskModel> build(ArrayRef<Value> masks);

private:
  LogicalResult collectLeaves(ArrayRef<Value> masks);
  MaskExpr leaf(Operation *op);
  MaskExpr band(Value offset, Alignment alignment, int64_t lo, int64_t hi);
  Range rangeOf(int family) const;
  bool isStatic() const { return queries >= 0 && keys >= 0; }

  ScoresType scores;
  MaskErrorFn emitError;
  int64_t queries = -1, keys = -1; ///< Static extents, or -1.

  StructuralKeys texts;
  /// Mask operations, each after those it is made of.
  SmallVector<Operation *> order;
  /// By text, which is what orders them.
  std::map<std::string, std::pair<Operation *, int>> atoms;
  std::map<std::string, std::pair<Value, int>> offsets;
};
} // namespace

static Value offsetOf(Operation *op) {
  if (auto causal = dyn_cast<CausalOp>(op)) {
    return causal.getOffset();
  }
  if (auto window = dyn_cast<SlidingWindowOp>(op)) {
    return window.getOffset();
  }
  return {};
}

static bool isAtom(Operation *op) {
  return isa<PrefixOp, DocumentOp, BlockSparseOp, MaskModOp>(op);
}

/// Finds the operations that the masks are made of, and the atoms and offsets
/// among them.
LogicalResult ModelBuilder::collectLeaves(ArrayRef<Value> masks) {
  llvm::SmallPtrSet<Operation *, 16> done;
  SmallVector<std::pair<Value, bool>> stack;
  for (Value mask : masks) {
    stack.push_back({mask, false});
  }
  while (!stack.empty()) {
    auto [mask, expanded] = stack.pop_back_val();
    Operation *op = mask.getDefiningOp();
    if (!op || !isa<FullOp, CausalOp, SlidingWindowOp, AndOp, OrOp, NotOp,
                    PrefixOp, DocumentOp, BlockSparseOp, MaskModOp>(op)) {
      if (emitError) {
        InFlightDiagnostic diag = emitError();
        diag << "expected masks made by attn operations, got one from ";
        if (op) {
          diag << "'" << op->getName() << "'";
        } else {
          diag << "a block argument";
        }
      }
      return failure();
    }
    if (done.contains(op)) {
      continue;
    }
    if (expanded) {
      done.insert(op);
      order.push_back(op);
      continue;
    }
    stack.push_back({mask, true});
    if (isa<AndOp, OrOp, NotOp>(op)) {
      for (Value operand : op->getOperands()) {
        stack.push_back({operand, false});
      }
    } else if (isAtom(op)) {
      atoms.try_emplace(texts.get(op), op, 0);
    } else if (Value offset = offsetOf(op)) {
      if (!constantInteger(offset)) {
        offsets.try_emplace(texts.get(offset), offset, 0);
      }
    }
  }
  return success();
}

FailureOr<MaskModel> ModelBuilder::build(ArrayRef<Value> masks) {
  if (scores && !ShapedType::isDynamic(scores.getQueries())) {
    queries = scores.getQueries();
  }
  if (scores && !ShapedType::isDynamic(scores.getKeys())) {
    keys = scores.getKeys();
  }
  if (failed(collectLeaves(masks))) {
    return failure();
  }

  MaskModel model;
  model.families.resize(2);
  model.families[1].alignment = Alignment::TopLeft;
  for (auto &[text, entry] : offsets) {
    entry.second = model.families.size();
    model.families.push_back({Alignment::BottomRight, entry.first});
  }
  for (auto &[text, entry] : atoms) {
    entry.second = model.atoms.size();
    model.atoms.push_back(entry.first);
  }

  llvm::DenseMap<Operation *, MaskExpr> exprs;
  auto exprOf = [&](Value mask) {
    return exprs.find(mask.getDefiningOp())->second;
  };
  for (Operation *op : order) {
    if (isa<AndOp, OrOp, NotOp>(op)) {
      SmallVector<MaskExpr> operands =
          llvm::map_to_vector(op->getOperands(), exprOf);
      exprs.try_emplace(op, isa<AndOp>(op)  ? MaskExpr::conjunction(operands)
                            : isa<OrOp>(op) ? MaskExpr::disjunction(operands)
                                            : MaskExpr::negation(operands[0]));
    } else {
      exprs.try_emplace(op, leaf(op));
    }
  }
  std::optional<MaskNormalForm> form =
      normalize(MaskExpr::conjunction(llvm::map_to_vector(masks, exprOf)));
  if (!form) {
    if (emitError) {
      emitError() << "the mask, written as a union of intersections, has more "
                     "terms than are supported; use attn.mask_mod for it";
    }
    return failure();
  }
  model.form = std::move(*form);
  return model;
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// With d = j - i: 1 - Nq <= d <= Nk - 1; from the bottom right, d - (Nk - Nq).
Range ModelBuilder::rangeOf(int family) const {
  Range range;
  int64_t below = family == 0 ? keys : queries;
  int64_t above = family == 0 ? queries : keys;
  if (family <= 1 && below > 0) {
    range.lo = 1 - below;
  }
  if (family <= 1 && above > 0) {
    range.hi = above - 1;
  }
  return range;
}

MaskExpr ModelBuilder::band(Value offset, Alignment alignment, int64_t lo,
                            int64_t hi) {
  int family = alignment == Alignment::TopLeft ? 1 : 0;
  int64_t shift = 0;
  if (std::optional<int64_t> constant = constantInteger(offset)) {
    // A constant offset is a shift of the diagonal from the top left.
    family = 1;
    shift = *constant;
  } else if (offset) {
    family = offsets.find(texts.get(offset))->second.second;
  }
  auto moved = [](int64_t bound, int64_t by) {
    if (bound <= -kFar || bound >= kFar) {
      return bound < 0 ? kMinusInfinity : kPlusInfinity;
    }
    by = std::clamp(by, -kFar, kFar);
    return bound + by;
  };
  lo = moved(lo, shift);
  hi = moved(hi, shift);
  if (family == 1 && isStatic()) {
    family = 0;
    lo = moved(lo, queries - keys);
    hi = moved(hi, queries - keys);
  }
  lo = moved(lo, 0);
  hi = moved(hi, 0);

  Range range = rangeOf(family);
  if (lo > range.hi || hi < range.lo || lo > hi || lo == kPlusInfinity ||
      hi == kMinusInfinity) {
    return MaskExpr::none();
  }
  lo = lo <= range.lo ? kMinusInfinity : lo;
  hi = hi >= range.hi ? kPlusInfinity : hi;
  return lo == kMinusInfinity && hi == kPlusInfinity
             ? MaskExpr::full()
             : MaskExpr::band(family, lo, hi);
}

MaskExpr ModelBuilder::leaf(Operation *op) {
  if (auto causal = dyn_cast<CausalOp>(op)) {
    return band(causal.getOffset(), causal.getAlignment(), kMinusInfinity,
                static_cast<int64_t>(causal.getShift()));
  }
  if (auto window = dyn_cast<SlidingWindowOp>(op)) {
    // c - left < j < c + right, the widths being at least 1.
    int64_t lo = window.getLeft() ? 1 - static_cast<int64_t>(*window.getLeft())
                                  : kMinusInfinity;
    int64_t hi = window.getRight()
                     ? static_cast<int64_t>(*window.getRight()) - 1
                     : kPlusInfinity;
    return band(window.getOffset(), window.getAlignment(), lo, hi);
  }
  if (isa<FullOp>(op)) {
    return MaskExpr::full();
  }
  if (auto prefix = dyn_cast<PrefixOp>(op)) {
    std::optional<int64_t> length = constantInteger(prefix.getLengths());
    if (prefix.getLength()) {
      length = static_cast<int64_t>(*prefix.getLength());
    }
    if (length && *length <= 0) {
      return MaskExpr::none();
    }
    if (length && keys >= 0 && *length >= keys) {
      return MaskExpr::full();
    }
  }
  if (auto blocks = dyn_cast<BlockSparseOp>(op)) {
    DenseIntElementsAttr table;
    if (matchPattern(blocks.getTable(), m_Constant(&table)) &&
        table.isSplat()) {
      return table.getSplatValue<APInt>().isZero() ? MaskExpr::none()
                                                   : MaskExpr::full();
    }
  }
  return MaskExpr::atom(atoms.find(texts.get(op))->second.second);
}

FailureOr<MaskModel> attnfuse::buildMaskModel(ArrayRef<Value> masks,
                                              ScoresType scores,
                                              MaskErrorFn emitError) {
  return ModelBuilder(scores, emitError).build(masks);
}

FailureOr<MaskModel> attnfuse::buildMaskModel(Value mask, ScoresType scores,
                                              MaskErrorFn emitError) {
  return ModelBuilder(scores, emitError).build(mask);
}

bool attnfuse::isFullMask(const MaskModel &model) {
  return model.form.isFull();
}

//===----------------------------------------------------------------------===//
// Back to operations
//===----------------------------------------------------------------------===//

namespace {
class Materializer {
public:
  Materializer(OpBuilder &builder, Location loc, const MaskModel &model)
      : builder(builder), loc(loc), model(model),
        type(MaskType::get(builder.getContext())) {}

  Value run() {
    if (model.form.isEmpty()) {
      return complement(FullOp::create(builder, loc, type));
    }
    SmallVector<Value> terms;
    for (const MaskTerm &term : model.form.terms) {
      SmallVector<Value> literals;
      for (const Band &band : term.bands) {
        addBand(band, literals);
      }
      for (int atom : term.positive) {
        literals.push_back(model.atoms[atom]->getResult(0));
      }
      for (int atom : term.negative) {
        literals.push_back(complement(model.atoms[atom]->getResult(0)));
      }
      if (literals.empty()) {
        return FullOp::create(builder, loc, type);
      }
      terms.push_back(literals.size() == 1
                          ? literals.front()
                          : AndOp::create(builder, loc, type, literals));
    }
    return terms.size() == 1 ? terms.front()
                             : OrOp::create(builder, loc, type, terms);
  }

private:
  Value complement(Value mask) {
    return NotOp::create(builder, loc, type, mask);
  }

  Value upTo(const MaskModel::Family &family, int64_t shift) {
    return CausalOp::create(builder, loc, type, family.offset, family.alignment,
                            shift);
  }

  void addBand(const Band &band, SmallVectorImpl<Value> &literals) {
    const MaskModel::Family &family = model.families[band.family];
    bool hasLo = band.lo != kMinusInfinity, hasHi = band.hi != kPlusInfinity;
    // A window holds the key beside the query; a diagonal may lie anywhere.
    if (hasLo && band.lo <= 0 && band.hi >= 0) {
      IntegerAttr left = builder.getI64IntegerAttr(1 - band.lo);
      IntegerAttr right =
          hasHi ? builder.getI64IntegerAttr(band.hi + 1) : IntegerAttr();
      literals.push_back(SlidingWindowOp::create(
          builder, loc, type, family.offset, left, right, family.alignment));
      return;
    }
    if (hasHi) {
      literals.push_back(upTo(family, band.hi));
    }
    if (hasLo) {
      literals.push_back(complement(upTo(family, band.lo - 1)));
    }
  }

  OpBuilder &builder;
  Location loc;
  const MaskModel &model;
  Type type;
};
} // namespace

Value attnfuse::materializeMask(OpBuilder &builder, Location loc,
                                const MaskModel &model) {
  return Materializer(builder, loc, model).run();
}
