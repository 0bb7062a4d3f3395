//===- Canonicalize.cpp - one normal form for attn programs ----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The stages, each of which relies on the ones before:
//   1. local rewrites (CanonicalizePatterns.cpp): scales folded, masks merged
//      and moved to the end of their chain, defaults made explicit or dropped;
//   2. scalar regions made self-contained, so that equal ones look equal;
//   3. each mask replaced by its normal form in the mask algebra;
//   4. alibi and biases that follow one another ordered;
//   5. equal operations merged, unused ones dropped;
//   6. the operations of each block laid out in the order in which a walk from
//      its end, operand by operand, meets them.
// The last stage makes the text of a program a function of what it computes.
//
//===----------------------------------------------------------------------===//

#include "CanonicalizePatterns.h"
#include "FunctionWalk.h"

#include "AttnFuse/Analysis/MaskModel.h"
#include "AttnFuse/Analysis/StructuralKeys.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::attn;

namespace attnfuse::attn {
#define GEN_PASS_DEF_ATTNCANONICALIZE
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attnfuse::attn

static bool hasScalarRegion(Operation *op) {
  return isa<ScoreModOp, MaskModOp>(op);
}

/// The operations that `accept` holds for, before any is changed.
static SmallVector<Operation *>
collect(Operation *root, llvm::function_ref<bool(Operation *)> accept) {
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    if (op != root && accept(op)) {
      found.push_back(op);
    }
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

/// Gives each scalar region its own copy of the scalar constants that it
/// captures. Whether a constant stands inside or outside is of no consequence,
/// so one of the two has to be chosen; inside, the region can move freely.
static void sinkScalarConstants(Operation *root) {
  for (Operation *op : collect(root, hasScalarRegion)) {
    Region &region = op->getRegion(0);
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(region, captured);
    OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
    for (Value value : captured) {
      Operation *def = value.getDefiningOp();
      if (!def || !def->hasTrait<OpTrait::ConstantLike>() ||
          !value.getType().isIntOrIndexOrFloat()) {
        continue;
      }
      Value inner = builder.clone(*def)->getResult(0);
      replaceAllUsesInRegionWith(value, inner, region);
    }
  }
}

/// Puts the operands of commutative scalar operations into the order of their
/// texts: `a + b` is `b + a` bit for bit.
static void orderCommutativeOperands(Operation *root) {
  for (Operation *op : collect(root, hasScalarRegion)) {
    StructuralKeys keys;
    for (Operation &inner : op->getRegion(0).front()) {
      if (inner.hasTrait<OpTrait::IsCommutative>() &&
          inner.getNumOperands() == 2 &&
          keys.get(inner.getOperand(1)) < keys.get(inner.getOperand(0))) {
        Value first = inner.getOperand(0);
        inner.setOperand(0, inner.getOperand(1));
        inner.setOperand(1, first);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Replaces the operand of each attn.mask by its normal form. A mask that
/// holds a value from elsewhere (a block argument, another dialect's result)
/// has none and is left as it is, as is one whose form would be too large.
static void normalizeMasks(Operation *root) {
  SmallVector<Operation *> masks =
      collect(root, [](Operation *op) { return isa<MaskOp>(op); });
  for (Operation *op : masks) {
    auto mask = cast<MaskOp>(op);
    FailureOr<MaskModel> model =
        buildMaskModel(mask.getMask(), mask.getScores().getType());
    if (failed(model) || !model->form.exact) {
      continue;
    }
    OpBuilder builder(mask);
    if (isFullMask(*model)) {
      mask.replaceAllUsesWith(mask.getScores());
      mask.erase();
      continue;
    }
    mask.getMaskMutable().assign(
        materializeMask(builder, mask.getMask().getLoc(), *model));
  }
}

//===----------------------------------------------------------------------===//
// Alibi and biases
//===----------------------------------------------------------------------===//

/// Where an addition to the scores belongs among its neighbours. Alibi first:
/// it needs no memory traffic.
static std::string additionRank(Operation *op, StructuralKeys &keys) {
  if (auto alibi = dyn_cast<AlibiOp>(op)) {
    return alibi.getSlopes() ? "1" + keys.get(alibi.getSlopes()) : "0";
  }
  return "2" + keys.get(cast<AdditiveBiasOp>(op).getBias());
}

static bool isAddition(Operation *op) {
  return isa_and_nonnull<AlibiOp, AdditiveBiasOp>(op);
}

/// Sorts additions that follow one another. Legal because each adds to every
/// score a value that does not depend on the score; only the rounding of the
/// f32 sums depends on the order.
static void orderAdditions(Operation *root) {
  // What is replaced is erased only afterwards, by eraseDead: the keys are
  // those of addresses, which could be taken again.
  StructuralKeys keys;
  for (Operation *last : collect(root, isAddition)) {
    if (llvm::all_of(last->getUsers(), isAddition)) {
      continue; // Not the end of a run.
    }
    SmallVector<std::pair<std::string, Operation *>> run;
    for (Operation *op = last; isAddition(op);
         op = op->getOperand(0).getDefiningOp()) {
      run.emplace_back(additionRank(op, keys), op);
    }
    std::reverse(run.begin(), run.end());
    if (llvm::is_sorted(run, llvm::less_first())) {
      continue;
    }
    Value scores = run.front().second->getOperand(0);
    llvm::sort(run, llvm::less_first());
    // Made anew rather than moved: those inside the run may have other users.
    OpBuilder builder(last);
    for (auto &[rank, op] : run) {
      Operation *copy = builder.clone(*op);
      copy->setOperand(0, scores);
      scores = copy->getResult(0);
    }
    last->getResult(0).replaceAllUsesWith(scores);
  }
}

//===----------------------------------------------------------------------===//
// Merging and layout
//===----------------------------------------------------------------------===//

/// Merges equal attn operations of a block. MLIR's own elimination compares
/// regions operand by operand, and not once it has reached into one of the two
/// and replaced a constant; so operations with regions are merged here first.
static void mergeEqualOperations(Operation *root) {
  root->walk([&](Block *block) {
    StructuralKeys keys;
    llvm::StringMap<Operation *> seen;
    for (Operation &op : llvm::make_early_inc_range(*block)) {
      if (!hasScalarRegion(&op)) {
        continue;
      }
      auto [entry, isNew] = seen.try_emplace(keys.get(&op), &op);
      if (!isNew) {
        op.replaceAllUsesWith(entry->second);
      }
    }
  });
}

static void eraseDead(Operation *root) {
  // Users come after what they use, and a reversed post-order walk meets them
  // first.
  SmallVector<Operation *> all =
      collect(root, [](Operation *op) { return isMovable(op); });
  llvm::SmallPtrSet<Operation *, 32> inErased;
  for (Operation *op : llvm::reverse(all)) {
    if (inErased.contains(op) || !op->use_empty()) {
      continue;
    }
    op->walk([&](Operation *inner) { inErased.insert(inner); });
    op->erase();
  }
}

/// Lays the block out in the order of use: what has an effect keeps its place
/// relative to the rest that has, and everything else comes just ahead of the
/// first that needs it, operands from left to right.
static void orderBlock(Block &block) {
  SmallVector<Operation *> order;
  llvm::SmallPtrSet<Operation *, 32> placed;
  auto place = [&](Operation *root) {
    SmallVector<std::pair<Operation *, bool>> stack = {{root, false}};
    while (!stack.empty()) {
      auto [op, expanded] = stack.pop_back_val();
      if (placed.contains(op)) {
        continue;
      }
      if (expanded) {
        placed.insert(op);
        order.push_back(op);
        continue;
      }
      stack.push_back({op, true});
      SmallVector<Operation *> needed;
      forEachDependency(op, [&](Value value) {
        Operation *def = value.getDefiningOp();
        // The definition is in this block or in one around it.
        if (def && def->getBlock() == &block && !placed.contains(def)) {
          needed.push_back(def);
        }
      });
      for (Operation *def : llvm::reverse(needed)) {
        stack.push_back({def, false});
      }
    }
  };
  for (Operation &op : block) {
    if (!isMovable(&op)) {
      place(&op);
    }
  }
  // A block without terminator may end in unused operations.
  for (Operation &op : block) {
    place(&op);
  }
  for (Operation *op : order) {
    op->moveBefore(&block, block.end());
  }
}

static void orderOperations(Operation *root) {
  // Inner blocks first: what a region captures first depends on its order.
  root->walk([](Operation *op) {
    for (Region &region : op->getRegions()) {
      if (!mayHaveSSADominance(region)) {
        continue;
      }
      for (Block &block : region) {
        orderBlock(block);
      }
    }
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct AttnCanonicalizePass
    : public attnfuse::attn::impl::AttnCanonicalizeBase<AttnCanonicalizePass> {
  using AttnCanonicalizeBase::AttnCanonicalizeBase;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](Operation *function) {
          return canonicalize(function);
        }))) {
      signalPassFailure();
    }
  }

  LogicalResult canonicalize(Operation *function) {
    unsigned masks = countMasks(function);

    RewritePatternSet patterns(&getContext());
    unsigned folded = 0;
    populateAttnCanonicalizationPatterns(patterns, folded);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled)
        .enableConstantCSE(false);
    if (failed(applyPatternsGreedily(function, std::move(patterns), config))) {
      return function->emitError("the rewrites of attn-canonicalize do not "
                                 "come to an end on this function");
    }
    numScalesFolded += folded;

    sinkScalarConstants(function);
    orderCommutativeOperands(function);
    normalizeMasks(function);
    orderAdditions(function);
    eraseDead(function);
    unsigned left = countMasks(function);
    numMasksMerged += masks > left ? masks - left : 0;

    mergeEqualOperations(function);
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
    // The elimination replaces a constant in a region by an equal one outside.
    sinkScalarConstants(function);
    eraseDead(function);
    orderOperations(function);
    return success();
  }

  static unsigned countMasks(Operation *root) {
    unsigned count = 0;
    root->walk([&](MaskOp) { ++count; });
    return count;
  }
};
} // namespace
