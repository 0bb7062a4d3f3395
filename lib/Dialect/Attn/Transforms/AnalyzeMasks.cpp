//===- AnalyzeMasks.cpp - annotate masks with key intervals ----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The intervals are those of MaskBounds.cpp, here as expressions: for a tile of
// rows [i0, i1) and a band lo <= j - i - base <= hi,
//
//   touched   i0 + base + lo       <= j <  i1 + base + hi
//   full      i1 - 1 + base + lo   <= j <  i0 + base + hi + 1
//
//===----------------------------------------------------------------------===//

#include "FunctionWalk.h"

#include "AttnFuse/Analysis/MaskModel.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::attn;

namespace attnfuse::attn {
#define GEN_PASS_DEF_ATTNANALYZEMASKS
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attnfuse::attn

/// Tables with more blocks than this are left for run time: their lists would
/// swell the text of the program.
static constexpr int64_t kMaxTableBlocks = 65536;

static bool isFinite(int64_t bound) {
  return bound != kMinusInfinity && bound != kPlusInfinity;
}

namespace {
class TileMapBuilder {
public:
  TileMapBuilder(const MaskModel &model, MLIRContext *context)
      : model(model), context(context), i0(getAffineDimExpr(0, context)),
        i1(getAffineDimExpr(1, context)), nq(getAffineSymbolExpr(0, context)),
        nk(getAffineSymbolExpr(1, context)),
        zero(getAffineConstantExpr(0, context)) {}

  TileMapAttr build();

private:
  /// The bounds of one interval; the greatest of `lower`, the least of `upper`.
  struct Interval {
    llvm::SmallSetVector<AffineExpr, 4> lower, upper;
    bool fromZero = true, toEnd = true;

    bool isTrivial() const { return lower.empty() && upper.empty(); }
  };
  struct Term {
    Interval touched, full;
    bool hasFull = true;
    unsigned tests = 0;
  };

  AffineExpr symbol(const void *key, StringRef kind);
  AffineExpr base(int family);
  AffineExpr length(PrefixOp prefix);
  void addBand(const Band &band, Term &term);
  void addAtom(int atom, bool isPositive, Term &term);
  AffineMap map(const llvm::SmallSetVector<AffineExpr, 4> &bounds, bool clip,
                AffineExpr limit);

  const MaskModel &model;
  MLIRContext *context;
  AffineExpr i0, i1, nq, nk, zero;
  SmallVector<StringAttr> symbols;
  llvm::DenseMap<const void *, AffineExpr> known;
  llvm::SmallSetVector<Operation *, 4> tables;
};
} // namespace

AffineExpr TileMapBuilder::symbol(const void *key, StringRef kind) {
  AffineExpr &expr = known[key];
  if (!expr) {
    std::string name = (kind + Twine(symbols.size())).str();
    symbols.push_back(StringAttr::get(context, name));
    expr = getAffineSymbolExpr(symbols.size() + 1, context);
  }
  return expr;
}

AffineExpr TileMapBuilder::base(int family) {
  const MaskModel::Family &diagonal = model.families[family];
  if (diagonal.offset) {
    return symbol(diagonal.offset.getAsOpaquePointer(), "offset");
  }
  return diagonal.alignment == Alignment::TopLeft ? zero : nk - nq;
}

AffineExpr TileMapBuilder::length(PrefixOp prefix) {
  APInt number;
  if (prefix.getLength()) {
    return getAffineConstantExpr(*prefix.getLength(), context);
  }
  if (prefix.getLengths().getType().isIntOrIndex() &&
      matchPattern(prefix.getLengths(), m_ConstantInt(&number))) {
    return getAffineConstantExpr(number.getSExtValue(), context);
  }
  return symbol(prefix.getLengths().getAsOpaquePointer(), "length");
}

void TileMapBuilder::addBand(const Band &band, Term &term) {
  AffineExpr diagonal = base(band.family);
  bool fromTopLeft = diagonal == zero, fromBottomRight = diagonal == nk - nq;
  if (isFinite(band.lo)) {
    term.touched.lower.insert(i0 + diagonal + band.lo);
    term.full.lower.insert(i1 + diagonal + (band.lo - 1));
    // 0 <= i0 and 1 <= i1.
    if (fromTopLeft && band.lo >= 0) {
      term.touched.fromZero = term.full.fromZero = false;
    }
  }
  if (isFinite(band.hi)) {
    term.touched.upper.insert(i1 + diagonal + band.hi);
    term.full.upper.insert(i0 + diagonal + (band.hi + 1));
    // i1 <= Nq and i0 <= Nq - 1.
    if (fromBottomRight && band.hi <= 0) {
      term.touched.toEnd = term.full.toEnd = false;
    }
  }
}

void TileMapBuilder::addAtom(int atom, bool isPositive, Term &term) {
  Operation *op = model.atoms[atom];
  if (auto prefix = dyn_cast<PrefixOp>(op)) {
    term.tests |= static_cast<unsigned>(TileTest::Prefix);
    AffineExpr end = length(prefix);
    (isPositive ? term.touched.upper : term.touched.lower).insert(end);
    (isPositive ? term.full.upper : term.full.lower).insert(end);
    return;
  }
  term.hasFull = false;
  if (isa<DocumentOp>(op)) {
    term.tests |= static_cast<unsigned>(TileTest::Document);
  } else if (isa<BlockSparseOp>(op)) {
    term.tests |= static_cast<unsigned>(TileTest::BlockSparse);
    tables.insert(op);
  } else {
    term.tests |= static_cast<unsigned>(TileTest::MaskMod);
  }
}

AffineMap TileMapBuilder::map(const llvm::SmallSetVector<AffineExpr, 4> &bounds,
                              bool clip, AffineExpr limit) {
  SmallVector<AffineExpr> results(bounds.begin(), bounds.end());
  // A constant bound of a lower end is a length, so never below 0.
  bool isClipped = limit == zero && llvm::any_of(results, [](AffineExpr expr) {
                     return isa<AffineConstantExpr>(expr);
                   });
  if (clip && !isClipped) {
    results.push_back(limit);
  }
  return AffineMap::get(2, symbols.size() + 2, results, context);
}

/// The lists of a table that is a constant of moderate size.
static BlockListsAttr listBlocks(BlockSparseOp op) {
  DenseIntElementsAttr table;
  if (!matchPattern(op.getTable(), m_Constant(&table)) ||
      table.getNumElements() > kMaxTableBlocks) {
    return {};
  }
  ArrayRef<int64_t> shape = table.getType().getShape();
  SmallVector<int64_t> starts = {0}, keys;
  int64_t column = 0;
  for (const APInt &entry : table.getValues<APInt>()) {
    if (!entry.isZero()) {
      keys.push_back(column);
    }
    if (++column == shape[3]) {
      starts.push_back(static_cast<int64_t>(keys.size()));
      column = 0;
    }
  }
  // A table without columns has rows all the same.
  starts.resize(shape[0] * shape[1] * shape[2] + 1, 0);
  return BlockListsAttr::get(op.getContext(), op.getBlocks(), shape.drop_back(),
                             starts, keys);
}

TileMapAttr TileMapBuilder::build() {
  if (model.form.isEmpty() || model.form.isFull()) {
    TileClass whole = model.form.isEmpty() ? TileClass::Empty : TileClass::Full;
    return TileMapAttr::get(context, whole, {}, {}, {});
  }
  std::vector<Term> terms;
  for (const MaskTerm &source : model.form.terms) {
    Term &term = terms.emplace_back();
    for (const Band &band : source.bands) {
      addBand(band, term);
    }
    for (int atom : source.positive) {
      addAtom(atom, /*isPositive=*/true, term);
    }
    for (int atom : source.negative) {
      addAtom(atom, /*isPositive=*/false, term);
    }
  }

  // Maps come last: each has all symbols.
  SmallVector<TileTerm> finished;
  bool decides = llvm::all_of(
      terms, [](const Term &term) { return !term.touched.isTrivial(); });
  for (const Term &term : terms) {
    TileTerm &out = finished.emplace_back();
    out.tests = term.tests;
    out.touchedLower = map(term.touched.lower, term.touched.fromZero, zero);
    out.touchedUpper = map(term.touched.upper, term.touched.toEnd, nk);
    if (term.hasFull) {
      out.fullLower = map(term.full.lower, term.full.fromZero, zero);
      out.fullUpper = map(term.full.upper, term.full.toEnd, nk);
    }
    decides |= term.hasFull;
  }
  SmallVector<BlockListsAttr> lists;
  for (Operation *op : tables) {
    if (BlockListsAttr list = listBlocks(cast<BlockSparseOp>(op))) {
      lists.push_back(list);
    }
  }
  decides |= !lists.empty();
  return TileMapAttr::get(context,
                          decides ? TileClass::Partial : TileClass::Unknown,
                          symbols, finished, lists);
}

namespace {
struct AttnAnalyzeMasksPass
    : public attnfuse::attn::impl::AttnAnalyzeMasksBase<AttnAnalyzeMasksPass> {
  using AttnAnalyzeMasksBase::AttnAnalyzeMasksBase;

  void runOnOperation() override {
    (void)forEachFunction(getOperation(), [&](Operation *function) {
      function->walk([&](MaskOp mask) {
        FailureOr<MaskModel> model =
            buildMaskModel(mask.getMask(), mask.getScores().getType());
        TileMapAttr tiles =
            succeeded(model) ? TileMapBuilder(*model, &getContext()).build()
                             : TileMapAttr::get(&getContext(),
                                                TileClass::Unknown, {}, {}, {});
        mask->setDiscardableAttr(kTilesAttrName, tiles);
      });
      return success();
    });
  }
};
} // namespace
