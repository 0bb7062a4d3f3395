//===- CanonicalizePatterns.cpp - rewrites of attn-canonicalize -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CanonicalizePatterns.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "AttnFuse/Analysis/StructuralKeys.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse::attn;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The one finite number that a value holds in every element.
static std::optional<double> constantNumber(Value value) {
  while (auto splat = value.getDefiningOp<tensor::SplatOp>()) {
    value = splat.getInput();
  }
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr))) {
    return std::nullopt;
  }
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    if (!dense.isSplat() || !isa<FloatType>(dense.getElementType())) {
      return std::nullopt;
    }
    attr = dense.getSplatValue<FloatAttr>();
  }
  auto number = dyn_cast<FloatAttr>(attr);
  if (!number || !std::isfinite(number.getValueAsDouble())) {
    return std::nullopt;
  }
  return number.getValueAsDouble();
}

/// A value that is a constant times another.
struct Multiple {
  double factor;
  /// The operand of the defining operation that is multiplied.
  OpOperand *base;
};

static std::optional<Multiple> matchMultiple(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    return std::nullopt;
  }
  std::optional<Multiple> multiple;
  if (isa<arith::MulFOp>(op)) {
    for (unsigned i : {1, 0}) {
      if (auto factor = constantNumber(op->getOperand(i))) {
        multiple = Multiple{*factor, &op->getOpOperand(1 - i)};
        break;
      }
    }
  } else if (isa<arith::DivFOp>(op)) {
    if (auto divisor = constantNumber(op->getOperand(1))) {
      multiple = Multiple{1.0 / *divisor, &op->getOpOperand(0)};
    }
  } else if (isa<arith::NegFOp>(op)) {
    multiple = Multiple{-1.0, &op->getOpOperand(0)};
  }
  if (!multiple || !std::isfinite(multiple->factor)) {
    return std::nullopt;
  }
  return multiple;
}

/// The factor of a score_mod that does nothing but multiply its score.
static std::optional<double> matchScaling(ScoreModOp op) {
  Block &body = op.getBody().front();
  Value value = cast<YieldOp>(body.back()).getValue();
  double factor = 1;
  while (value != body.getArgument(0)) {
    std::optional<Multiple> multiple = matchMultiple(value);
    if (!multiple) {
      return std::nullopt;
    }
    factor *= multiple->factor;
    value = multiple->base->get();
  }
  if (!std::isfinite(factor)) {
    return std::nullopt;
  }
  return factor;
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

namespace {
/// The default scale is written out, so that it and the same number given by
/// hand are one program.
struct ExplicitScale : OpRewritePattern<ScaledDotProductOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaledDotProductOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getScale()) {
      return rewriter.notifyMatchFailure(op, "has a scale");
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.setScaleAttr(rewriter.getF64FloatAttr(op.getScaleValue()));
    });
    return success();
  }
};

/// (c Q) Kt = c (Q Kt), and the same for the keys. The product c Q is no longer
/// rounded to the storage type, so in f16 and bf16 the result is the closer
/// one to the exact.
struct FoldOperandScale : OpRewritePattern<ScaledDotProductOp> {
  FoldOperandScale(MLIRContext *context, unsigned &folded)
      : OpRewritePattern(context), folded(folded) {}

  LogicalResult matchAndRewrite(ScaledDotProductOp op,
                                PatternRewriter &rewriter) const override {
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<Multiple> multiple = matchMultiple(operand.get());
      if (!multiple) {
        continue;
      }
      double scale = op.getScaleValue() * multiple->factor;
      if (!std::isfinite(scale)) {
        continue;
      }
      rewriter.modifyOpInPlace(op, [&] {
        operand.set(multiple->base->get());
        op.setScaleAttr(rewriter.getF64FloatAttr(scale));
      });
      ++folded;
      return success();
    }
    return rewriter.notifyMatchFailure(op, "neither operand is a multiple");
  }

  unsigned &folded;
};

/// rope(c x) = c rope(x), a rotation being linear; only where nothing but
/// products and further rotations would see the scaled tensor, for elsewhere
/// the multiplication would have to stay.
struct HoistScaleOverRope : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Multiple> multiple = matchMultiple(op.getInput());
    if (!multiple) {
      return rewriter.notifyMatchFailure(op, "input is not a multiple");
    }
    for (OpOperand &use : op->getUses()) {
      bool rotated = isa<RopeOp>(use.getOwner()) && !use.getOperandNumber();
      if (!rotated && !isa<ScaledDotProductOp>(use.getOwner())) {
        return rewriter.notifyMatchFailure(op, "used outside of products");
      }
    }
    OpOperand &base = *multiple->base;
    IRMapping toBase;
    toBase.map(op.getInput(), base.get());
    Operation *rotated = rewriter.clone(*op, toBase);
    Operation *scaled = rewriter.clone(*base.getOwner());
    scaled->setOperand(base.getOperandNumber(), rotated->getResult(0));
    rewriter.replaceOp(op, scaled);
    return success();
  }
};

/// A score_mod that multiplies by a constant belongs to the scale, or to the
/// score_mod before it if that one does the same; by 1, it is nothing.
struct FoldScoreScaling : OpRewritePattern<ScoreModOp> {
  FoldScoreScaling(MLIRContext *context, unsigned &folded)
      : OpRewritePattern(context), folded(folded) {}

  LogicalResult matchAndRewrite(ScoreModOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<double> factor = matchScaling(op);
    if (!factor) {
      return rewriter.notifyMatchFailure(op, "more than a multiplication");
    }
    if (*factor == 1) {
      rewriter.replaceOp(op, op.getScores());
      return success();
    }
    if (auto product = op.getScores().getDefiningOp<ScaledDotProductOp>()) {
      double scale = product.getScaleValue() * *factor;
      if (!std::isfinite(scale)) {
        return rewriter.notifyMatchFailure(op, "the scale would overflow");
      }
      // Made anew: the product may have other users.
      rewriter.replaceOpWithNewOp<ScaledDotProductOp>(
          op, op.getType(), product.getQuery(), product.getKey(),
          rewriter.getF64FloatAttr(scale));
      ++folded;
      return success();
    }
    Value scores = op.getScores();
    if (auto inner = scores.getDefiningOp<ScoreModOp>()) {
      std::optional<double> innerFactor = matchScaling(inner);
      if (innerFactor) {
        factor = *factor * *innerFactor;
        scores = inner.getScores();
      }
    }
    APFloat constant(*factor);
    bool inexact;
    constant.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                     &inexact);
    if (!constant.isFinite()) {
      return rewriter.notifyMatchFailure(op, "the factor exceeds f32");
    }
    if (scores == op.getScores() && isPlain(op)) {
      return rewriter.notifyMatchFailure(op, "already a lone multiplication");
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.getScoresMutable().assign(scores);
      OpBuilder::InsertionGuard guard(rewriter);
      Block &body = op.getBody().front();
      rewriter.setInsertionPoint(&body.back());
      Location loc = op.getLoc();
      Value number = arith::ConstantOp::create(
          rewriter, loc, rewriter.getF32FloatAttr(constant.convertToFloat()));
      Value scaled =
          arith::MulFOp::create(rewriter, loc, body.getArgument(0), number);
      rewriter.modifyOpInPlace(&body.back(),
                               [&] { body.back().setOperand(0, scaled); });
    });
    return success();
  }

  /// One multiplication, the constant on the right.
  static bool isPlain(ScoreModOp op) {
    Block &body = op.getBody().front();
    auto product =
        cast<YieldOp>(body.back()).getValue().getDefiningOp<arith::MulFOp>();
    return product && product.getLhs() == body.getArgument(0) &&
           product.getRhs() != body.getArgument(0);
  }

  unsigned &folded;
};

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// mask(mask(s, a), b) = mask(s, a and b): a pair is removed if either mask
/// removes it.
struct MergeMasks : OpRewritePattern<MaskOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MaskOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getScores().getDefiningOp<MaskOp>();
    if (!inner) {
      return rewriter.notifyMatchFailure(op, "scores are not masked yet");
    }
    auto both = AndOp::create(rewriter, op.getLoc(), op.getMask().getType(),
                              ValueRange{inner.getMask(), op.getMask()});
    rewriter.replaceOpWithNewOp<MaskOp>(op, op.getType(), inner.getScores(),
                                        both);
    return success();
  }
};

/// f(mask(s, m)) = mask(f(s), m): by the dialect's semantics no operation on
/// scores brings a removed pair back, and none reads another pair's score.
template <typename ScoreOp> struct SinkMask : OpRewritePattern<ScoreOp> {
  using OpRewritePattern<ScoreOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ScoreOp op,
                                PatternRewriter &rewriter) const override {
    auto mask = op.getScores().template getDefiningOp<MaskOp>();
    if (!mask) {
      return rewriter.notifyMatchFailure(op, "scores are not masked yet");
    }
    rewriter.setInsertionPointAfter(op);
    auto moved = MaskOp::create(rewriter, mask.getLoc(), op.getType(),
                                op.getResult(), mask.getMask());
    rewriter.replaceAllUsesExcept(op.getResult(), moved.getResult(), moved);
    rewriter.modifyOpInPlace(
        op, [&] { op.getScoresMutable().assign(mask.getScores()); });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Operands and attributes that say the default
//===----------------------------------------------------------------------===//

struct NormalizeRope : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getRotaryDim() &&
        op.getRotaryWidth() == op.getInput().getType().getDimSize(3)) {
      rewriter.modifyOpInPlace(op, [&] { op.removeRotaryDimAttr(); });
      return success();
    }
    // Tables take the place of the base.
    if (op.getCos() && op.getBase().convertToDouble() != 10000.0) {
      rewriter.modifyOpInPlace(
          op, [&] { op.setBaseAttr(rewriter.getF64FloatAttr(10000.0)); });
      return success();
    }
    // A constant offset is part of the position. With tables it is left alone:
    // their length is checked against the position.
    std::optional<int64_t> offset = attnfuse::constantInteger(op.getOffset());
    int64_t position;
    if (!offset || op.getCos() ||
        llvm::AddOverflow(static_cast<int64_t>(op.getPosition()), *offset,
                          position) ||
        position < 0) {
      return rewriter.notifyMatchFailure(op, "in normal form");
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.getOffsetMutable().clear();
      op.setPosition(position);
    });
    return success();
  }
};

/// Ids that serve both sides are given once.
struct NormalizeDocument : OpRewritePattern<DocumentOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DocumentOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getKeyIds() != op.getQueryIds()) {
      return rewriter.notifyMatchFailure(op, "the sides differ");
    }
    rewriter.modifyOpInPlace(op, [&] { op.getKeyIdsMutable().clear(); });
    return success();
  }
};

/// A constant length is an attribute; below 0 it is 0.
struct NormalizePrefix : OpRewritePattern<PrefixOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PrefixOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<int64_t> length = attnfuse::constantInteger(op.getLengths());
    if (!length) {
      return rewriter.notifyMatchFailure(op, "no constant length");
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.getLengthsMutable().clear();
      op.setLength(std::max<int64_t>(*length, 0));
    });
    return success();
  }
};
} // namespace

void attnfuse::attn::populateAttnCanonicalizationPatterns(
    RewritePatternSet &patterns, unsigned &folded) {
  MLIRContext *context = patterns.getContext();
  patterns
      .add<ExplicitScale, HoistScaleOverRope, MergeMasks, SinkMask<AlibiOp>,
           SinkMask<AdditiveBiasOp>, SinkMask<SoftcapOp>, SinkMask<ScoreModOp>,
           NormalizeRope, NormalizeDocument, NormalizePrefix>(context);
  patterns.add<FoldOperandScale, FoldScoreScaling>(context, folded);
}
