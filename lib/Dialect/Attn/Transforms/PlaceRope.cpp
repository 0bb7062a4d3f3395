//===- PlaceRope.cpp - where rotations run ---------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A query tile is rotated in the prologue of the kernel: it is read once, so
// nothing is done twice, and a trip of the queries through memory is saved. A
// key tile is read by every query tile that visits it; whether to rotate it
// each time or once ahead of the kernel is for RopeCost.cpp to tell. A rotation
// that something else reads has to be in memory anyway.
//
//===----------------------------------------------------------------------===//

#include "FunctionWalk.h"

#include "AttnFuse/Analysis/MaskBounds.h"
#include "AttnFuse/Analysis/MaskModel.h"
#include "AttnFuse/Analysis/RopeCost.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::attn;

namespace attnfuse::attn {
#define GEN_PASS_DEF_ATTNPLACEROPE
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attnfuse::attn

namespace {
/// Who reads a rotated tensor, further rotations looked through.
struct Readers {
  bool queries = false, others = false;
  SmallVector<ScaledDotProductOp, 1> keys;
};
} // namespace

static void collectReaders(Value rotated, Readers &readers) {
  for (OpOperand &use : rotated.getUses()) {
    if (auto product = dyn_cast<ScaledDotProductOp>(use.getOwner())) {
      if (use.getOperandNumber() == 0) {
        readers.queries = true;
      } else {
        readers.keys.push_back(product);
      }
      continue;
    }
    auto rope = dyn_cast<RopeOp>(use.getOwner());
    if (rope && use.getOperandNumber() == 0) {
      collectReaders(rope.getResult(), readers);
    } else {
      readers.others = true;
    }
  }
}

static std::optional<int64_t> constantLength(PrefixOp prefix) {
  APInt number;
  if (prefix.getLength()) {
    return static_cast<int64_t>(*prefix.getLength());
  }
  if (prefix.getLengths().getType().isIntOrIndex() &&
      matchPattern(prefix.getLengths(), m_ConstantInt(&number))) {
    return number.getSExtValue();
  }
  return std::nullopt;
}

/// The share of pairs of tiles that the readers of `scores` visit: that of the
/// masks ahead of each reader, the greatest where there are several chains.
static double visitedBy(Value scores, SmallVector<Value> masks,
                        const RopeProblem &problem) {
  double visited = 0;
  bool isEnd = true;
  for (Operation *user : scores.getUsers()) {
    if (user->getNumResults() != 1 ||
        !isa<ScoresType>(user->getResult(0).getType())) {
      continue;
    }
    isEnd = false;
    SmallVector<Value> further = masks;
    if (auto mask = dyn_cast<MaskOp>(user)) {
      further.push_back(mask.getMask());
    }
    visited =
        std::max(visited, visitedBy(user->getResult(0), further, problem));
  }
  if (!isEnd || masks.empty()) {
    return isEnd ? 1 : visited;
  }
  FailureOr<MaskModel> model =
      buildMaskModel(masks, cast<ScoresType>(scores.getType()));
  if (failed(model)) {
    return 1;
  }
  // An offset known at run time alone is that of a cache: the last query
  // stands beside the last key, or near it.
  auto base = [&](int family) -> int64_t {
    const MaskModel::Family &diagonal = model->families[family];
    bool topLeft = diagonal.alignment == Alignment::TopLeft;
    return topLeft && !diagonal.offset ? 0 : problem.keys - problem.queries;
  };
  auto length = [&](int atom) -> std::optional<int64_t> {
    auto prefix = dyn_cast<PrefixOp>(model->atoms[atom]);
    return prefix ? constantLength(prefix) : std::nullopt;
  };
  return visitedFraction(model->form, base, length, problem.queries,
                         problem.keys, problem.blockM, problem.blockN);
}

namespace {
struct AttnPlaceRopePass
    : public attnfuse::attn::impl::AttnPlaceRopeBase<AttnPlaceRopePass> {
  using AttnPlaceRopeBase::AttnPlaceRopeBase;

  /// Once per run of the pipeline, not once per function: the fault is in an
  /// option.
  LogicalResult initialize(MLIRContext *context) override {
    Location loc = UnknownLoc::get(context);
    if (auto known = lookupChip(chip); !known) {
      return emitError(loc) << llvm::toString(known.takeError());
    }
    if (force != "" && force != "in_loop" && force != "once") {
      return emitError(loc) << "unknown place '" << force.getValue()
                            << "' for key rotations; supported: in_loop, "
                               "once, or none to choose by cost";
    }
    if (length < 1) {
      return emitError(loc) << "expected an assumed length of at least 1, got "
                            << length.getValue();
    }
    return success();
  }

  void runOnOperation() override {
    ChipDescription description = llvm::cantFail(lookupChip(chip));
    (void)forEachFunction(getOperation(), [&](Operation *function) {
      function->walk([&](RopeOp rope) {
        rope->setDiscardableAttr(kPlacementAttrName, place(rope, description));
      });
      return success();
    });
  }

  PlacementAttr place(RopeOp rope, const ChipDescription &description) {
    Readers readers;
    collectReaders(rope.getResult(), readers);
    if (readers.others || (readers.keys.empty() && !readers.queries)) {
      return PlacementAttr::get(&getContext(), Placement::Once);
    }
    if (readers.keys.empty()) {
      return PlacementAttr::get(&getContext(), Placement::Prologue);
    }
    RopeCost cost =
        estimate(problemOf(rope, readers.keys, description), description);
    Placement choice =
        cost.onceIsFaster() ? Placement::Once : Placement::InLoop;
    if (force != "") {
      choice = *symbolizePlacement(force);
    }
    return PlacementAttr::get(&getContext(), choice, cost.inLoop * 1e6,
                              cost.once * 1e6, cost.crossover);
  }

  RopeProblem problemOf(RopeOp rope, ArrayRef<ScaledDotProductOp> products,
                        const ChipDescription &description) {
    auto extent = [](int64_t size, int64_t assumed) {
      return ShapedType::isDynamic(size) ? assumed : size;
    };
    RopeProblem total;
    double visited = 0;
    for (ScaledDotProductOp product : products) {
      auto queries = cast<RankedTensorType>(product.getQuery().getType());
      auto keys = cast<RankedTensorType>(product.getKey().getType());
      bool isGpu = description.kind == ChipDescription::GPU;
      RopeProblem problem;
      problem.batch = extent(keys.getDimSize(0), 1);
      problem.queryHeads = extent(queries.getDimSize(1), 1);
      problem.keyHeads = extent(keys.getDimSize(1), 1);
      problem.queries = extent(queries.getDimSize(2), length);
      problem.keys = extent(keys.getDimSize(2), length);
      problem.width = keys.getDimSize(3);
      problem.rotary = rope.getRotaryWidth();
      problem.bytesPerElement = keys.getElementTypeBitWidth() / 8;
      problem.blockM = isGpu ? 128 : 96;
      problem.blockN = isGpu ? 128 : 64;
      double share = visitedBy(product.getScores(), {}, problem);
      if (product == products.front()) {
        total = problem;
      }
      // Several products of one rotated tensor count as one that visits more.
      visited += share * static_cast<double>(problem.queryHeads) *
                 static_cast<double>(problem.queries) /
                 (static_cast<double>(total.queryHeads) *
                  static_cast<double>(std::max<int64_t>(total.queries, 1)));
    }
    total.visited = visited;
    return total;
  }
};
} // namespace
