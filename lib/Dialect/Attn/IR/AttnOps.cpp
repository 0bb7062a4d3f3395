//===- AttnOps.cpp - operations on tensors and scores ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Verifiers.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse::attn;
using namespace attnfuse::attn::detail;

std::string attnfuse::attn::detail::extent(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

/// `batch x heads x length x width`, width and heads static.
static LogicalResult
verifyActivation(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                 RankedTensorType type) {
  if (type.getRank() != 4) {
    return emitError() << "expected " << name
                       << " of rank 4 (batch, heads, length, width), got rank "
                       << type.getRank() << ": " << type;
  }
  if (type.isDynamicDim(1) || type.isDynamicDim(3)) {
    return emitError() << "expected " << name
                       << " with static heads and width (batch and length may "
                          "be '?'), got "
                       << type;
  }
  if (type.getDimSize(1) < 1 || type.getDimSize(3) < 1) {
    return emitError() << "expected " << name
                       << " with at least one head and a width above 0, got "
                       << type;
  }
  return success();
}

/// A vector with one entry per head.
static LogicalResult verifyPerHead(Operation *op, StringRef name, Value vector,
                                   int64_t heads) {
  auto type = cast<RankedTensorType>(vector.getType());
  if (type.getRank() != 1 || !compatible(type.getDimSize(0), heads)) {
    return op->emitOpError()
           << "expected " << name << " of type tensor<" << heads
           << "xf32>, one per query head, got " << type;
  }
  return success();
}

LogicalResult attnfuse::attn::detail::verifyPosition(Operation *op,
                                                     Value position,
                                                     StringRef name) {
  auto type = dyn_cast<RankedTensorType>(position.getType());
  if (type && type.getRank() != 1) {
    return op->emitOpError()
           << "expected " << name
           << " to be a scalar or a rank 1 tensor with one entry per batch "
              "entry, got "
           << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

int64_t RopeOp::getRotaryWidth() {
  if (std::optional<uint64_t> width = getRotaryDim()) {
    return static_cast<int64_t>(*width);
  }
  return getInput().getType().getDimSize(3);
}

LogicalResult RopeOp::verify() {
  auto emit = [&] { return emitOpError(); };
  RankedTensorType type = getInput().getType();
  if (failed(verifyActivation(emit, "input", type))) {
    return failure();
  }
  int64_t width = type.getDimSize(3), rotary = getRotaryWidth();
  if (rotary < 2 || rotary % 2 || rotary > width) {
    return emitOpError() << "expected an even rotary width between 2 and the "
                            "width "
                         << width << ", got " << rotary;
  }
  double base = getBase().convertToDouble();
  if (!std::isfinite(base) || base <= 0) {
    return emitOpError() << "expected a finite base above 0, got " << base;
  }
  auto position = static_cast<int64_t>(getPosition());
  if (position < 0) {
    return emitOpError() << "expected a position of at least 0, got "
                         << position;
  }
  if (getOffset()) {
    if (failed(verifyPosition(*this, getOffset(), "offset"))) {
      return failure();
    }
    auto offsets = dyn_cast<RankedTensorType>(getOffset().getType());
    if (offsets && !compatible(offsets.getDimSize(0), type.getDimSize(0)) &&
        offsets.getDimSize(0) != 1) {
      return emitOpError() << "expected one offset per batch entry ("
                           << extent(type.getDimSize(0)) << "), got "
                           << offsets;
    }
  }
  if (static_cast<bool>(getCos()) != static_cast<bool>(getSin())) {
    return emitOpError() << "expected both tables, cos and sin, or none";
  }
  for (Value table : {getCos(), getSin()}) {
    if (!table) {
      continue;
    }
    auto tableType = cast<RankedTensorType>(table.getType());
    if (tableType.getRank() != 2 ||
        !compatible(tableType.getDimSize(1), rotary / 2)) {
      return emitOpError() << "expected cos and sin tables of type "
                              "tensor<?x"
                           << rotary / 2
                           << "xf32>, one column per rotated pair, got "
                           << tableType;
    }
    int64_t rows = tableType.getDimSize(0), length = type.getDimSize(2);
    if (!ShapedType::isDynamic(rows) && !ShapedType::isDynamic(length) &&
        rows - length < position) {
      // As unsigned: the sum of the two may be above the signed range.
      return emitOpError() << "expected tables with a row for each of the "
                           << static_cast<uint64_t>(position) + length
                           << " positions that are used, got " << rows;
    }
    if (getScaling()) {
      return emitOpError()
             << "expected either tables or 'scaling', got both; tables already "
                "hold the scaled angles";
    }
  }
  return success();
}

OpFoldResult RopeOp::fold(FoldAdaptor) {
  // Rotating no rows is the identity.
  return getInput().getType().getDimSize(2) == 0 ? OpFoldResult(getInput())
                                                 : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// scaled_dot_product and aggregate
//===----------------------------------------------------------------------===//

double ScaledDotProductOp::getScaleValue() {
  if (std::optional<APFloat> scale = getScale()) {
    return scale->convertToDouble();
  }
  return 1.0 /
         std::sqrt(static_cast<double>(getQuery().getType().getDimSize(3)));
}

static LogicalResult
verifyHeadRatio(function_ref<InFlightDiagnostic()> emitError, int64_t queries,
                StringRef name, int64_t others) {
  if (queries % others) {
    return emitError() << "expected the number of query heads to be a multiple "
                          "of the number of "
                       << name << " heads, got " << queries << " and "
                       << others;
  }
  return success();
}

LogicalResult ScaledDotProductOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &inferred) {
  auto emit = [&] {
    return mlir::emitError(location.value_or(UnknownLoc::get(context)))
           << "'attn.scaled_dot_product' op ";
  };
  auto query = dyn_cast<RankedTensorType>(adaptor.getQuery().getType());
  auto key = dyn_cast<RankedTensorType>(adaptor.getKey().getType());
  if (!query || !key) {
    return emit() << "expected ranked tensors";
  }
  if (failed(verifyActivation(emit, "query", query)) ||
      failed(verifyActivation(emit, "key", key))) {
    return failure();
  }
  int64_t batch = ShapedType::isDynamic(query.getDimSize(0))
                      ? key.getDimSize(0)
                      : query.getDimSize(0);
  inferred.push_back(
      ScoresType::get(context, {batch, query.getDimSize(1), query.getDimSize(2),
                                key.getDimSize(2)}));
  return success();
}

LogicalResult ScaledDotProductOp::verify() {
  RankedTensorType query = getQuery().getType(), key = getKey().getType();
  if (query.getElementType() != key.getElementType()) {
    return emitOpError() << "expected query and key of one element type, got "
                         << query.getElementType() << " and "
                         << key.getElementType();
  }
  if (!compatible(query.getDimSize(0), key.getDimSize(0))) {
    return emitOpError() << "expected query and key of one batch size, got "
                         << query.getDimSize(0) << " and " << key.getDimSize(0);
  }
  if (query.getDimSize(3) != key.getDimSize(3)) {
    return emitOpError() << "expected query and key of one width, got "
                         << query.getDimSize(3) << " and " << key.getDimSize(3);
  }
  if (!std::isfinite(getScaleValue())) {
    return emitOpError() << "expected a finite scale, got " << getScaleValue();
  }
  return verifyHeadRatio([&] { return emitOpError(); }, query.getDimSize(1),
                         "key", key.getDimSize(1));
}

LogicalResult AggregateOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &inferred) {
  auto emit = [&] {
    return mlir::emitError(location.value_or(UnknownLoc::get(context)))
           << "'attn.aggregate' op ";
  };
  auto weights = dyn_cast<WeightsType>(adaptor.getWeights().getType());
  auto value = dyn_cast<RankedTensorType>(adaptor.getValue().getType());
  if (!weights || !value) {
    return emit() << "expected weights and a ranked tensor";
  }
  if (failed(verifyActivation(emit, "value", value))) {
    return failure();
  }
  int64_t batch = ShapedType::isDynamic(weights.getBatch())
                      ? value.getDimSize(0)
                      : weights.getBatch();
  inferred.push_back(RankedTensorType::get(
      {batch, weights.getHeads(), weights.getQueries(), value.getDimSize(3)},
      value.getElementType()));
  return success();
}

LogicalResult AggregateOp::verify() {
  WeightsType weights = getWeights().getType();
  RankedTensorType value = getValue().getType();
  if (!compatible(weights.getBatch(), value.getDimSize(0))) {
    return emitOpError() << "expected weights and value of one batch size, got "
                         << weights.getBatch() << " and "
                         << value.getDimSize(0);
  }
  if (!compatible(weights.getKeys(), value.getDimSize(2))) {
    return emitOpError() << "expected one value row per key, got "
                         << weights.getKeys() << " keys and "
                         << value.getDimSize(2) << " rows";
  }
  return verifyHeadRatio([&] { return emitOpError(); }, weights.getHeads(),
                         "value", value.getDimSize(1));
}

//===----------------------------------------------------------------------===//
// Operations on scores
//===----------------------------------------------------------------------===//

LogicalResult MaskOp::verify() {
  return verifyMaskExtents(*this, getMask(), getScores().getType());
}

OpFoldResult MaskOp::fold(FoldAdaptor) {
  return getMask().getDefiningOp<FullOp>() ? OpFoldResult(getScores())
                                           : OpFoldResult();
}

LogicalResult AlibiOp::verify() {
  return getSlopes() ? verifyPerHead(*this, "slopes", getSlopes(),
                                     getScores().getType().getHeads())
                     : success();
}

LogicalResult AdditiveBiasOp::verify() {
  RankedTensorType bias = getBias().getType();
  if (bias.getRank() != 4) {
    return emitOpError()
           << "expected a bias of rank 4 (batch, heads, queries, keys; 1 where "
              "it is broadcast), got rank "
           << bias.getRank() << ": " << bias;
  }
  static constexpr StringLiteral names[] = {"batch", "heads", "queries",
                                            "keys"};
  ArrayRef<int64_t> scores = getScores().getType().getShape();
  for (int64_t dim = 0; dim < 4; ++dim) {
    int64_t size = bias.getDimSize(dim);
    if (size != 1 && !compatible(size, scores[dim])) {
      return emitOpError() << "expected extent " << dim << " (" << names[dim]
                           << ") of the bias to be 1 or " << extent(scores[dim])
                           << ", got " << size;
    }
  }
  return success();
}

LogicalResult SoftcapOp::verify() {
  double cap = getCap().convertToDouble();
  if (!std::isfinite(cap) || cap <= 0) {
    return emitOpError() << "expected a finite cap above 0, got " << cap;
  }
  return success();
}

LogicalResult ScoreModOp::verify() {
  Builder b(getContext());
  Type index = b.getIndexType();
  return verifyScalarRegion(*this, getBody(),
                            {b.getF32Type(), index, index, index, index},
                            b.getF32Type());
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &inferred) {
  auto scores = dyn_cast<ScoresType>(adaptor.getScores().getType());
  if (!scores) {
    return emitOptionalError(location,
                             "'attn.softmax' op expected scores as operand");
  }
  inferred.push_back(WeightsType::get(context, scores.getShape()));
  if (adaptor.getReturnLse()) {
    inferred.push_back(RankedTensorType::get(scores.getShape().take_front(3),
                                             Float32Type::get(context)));
  }
  return success();
}

LogicalResult SoftmaxOp::verify() {
  return getSinks() ? verifyPerHead(*this, "sinks", getSinks(),
                                    getScores().getType().getHeads())
                    : success();
}

LogicalResult ReluAttentionOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &inferred) {
  auto scores = dyn_cast<ScoresType>(adaptor.getScores().getType());
  if (!scores) {
    return emitOptionalError(
        location, "'attn.relu_attention' op expected scores as operand");
  }
  inferred.push_back(WeightsType::get(context, scores.getShape()));
  return success();
}

#define GET_OP_CLASSES
#include "AttnFuse/Dialect/Attn/IR/AttnOps.cpp.inc"
