//===- Program.cpp - one attention root, taken apart -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"

using namespace mlir;
using namespace attnfuse;

/// Walks up through rotations to the tensor that is read from memory.
static Value stripRopes(Value value, SmallVectorImpl<attn::RopeOp> &ropes) {
  while (auto rope = value.getDefiningOp<attn::RopeOp>()) {
    ropes.insert(ropes.begin(), rope);
    value = rope.getInput();
  }
  return value;
}

static LogicalResult requireArgument(Operation *user, Value value) {
  if (isa<BlockArgument>(value)) {
    return success();
  }
  return user->emitOpError()
         << "expected its tensor to be an argument of the kernel function; run "
            "attn-outline first";
}

RopePlace AttentionProgram::keyPlace() const {
  for (attn::RopeOp rope : keyRopes) {
    if (auto placement = rope->getAttrOfType<attn::PlacementAttr>(
            attn::kPlacementAttrName)) {
      return placement.getPlace() == attn::Placement::Once ? RopePlace::Once
                                                           : RopePlace::InLoop;
    }
  }
  return RopePlace::InLoop;
}

FailureOr<AttentionProgram> attnfuse::readProgram(func::FuncOp kernel) {
  auto ret = cast<func::ReturnOp>(kernel.getBody().back().getTerminator());
  AttentionProgram program;
  if (ret.getNumOperands() == 0) {
    return kernel.emitOpError() << "expected an attention kernel to return a "
                                   "tensor";
  }

  Value first = ret.getOperand(0);
  if (auto rope = first.getDefiningOp<attn::RopeOp>()) {
    if (ret.getNumOperands() != 1 ||
        failed(requireArgument(rope, rope.getInput()))) {
      return failure();
    }
    program.rotation = rope;
    return program;
  }

  Value weights;
  for (Value result : ret.getOperands()) {
    if (auto aggregate = result.getDefiningOp<attn::AggregateOp>()) {
      program.aggregate = aggregate;
      weights = aggregate.getWeights();
      if (failed(requireArgument(aggregate, aggregate.getValue()))) {
        return failure();
      }
    } else if (auto softmax = result.getDefiningOp<attn::SoftmaxOp>()) {
      program.wantsLse = true;
      if (!weights) {
        weights = softmax.getWeights();
      }
    } else {
      return kernel.emitOpError()
             << "expected to return the results of attn.aggregate, "
                "attn.softmax or attn.rope, got "
             << result;
    }
  }

  Value scores;
  Operation *normaliser = weights.getDefiningOp();
  if ((program.softmax = dyn_cast_or_null<attn::SoftmaxOp>(normaliser))) {
    scores = program.softmax.getScores();
  } else if ((program.relu =
                  dyn_cast_or_null<attn::ReluAttentionOp>(normaliser))) {
    scores = program.relu.getScores();
  } else {
    return kernel.emitOpError() << "expected weights made by attn.softmax or "
                                   "attn.relu_attention in the same function";
  }

  while (Operation *op = scores.getDefiningOp()) {
    if (auto product = dyn_cast<attn::ScaledDotProductOp>(op)) {
      program.product = product;
      break;
    }
    if (auto mask = dyn_cast<attn::MaskOp>(op)) {
      program.masks.push_back(mask.getMask());
    } else {
      program.scoreOps.insert(program.scoreOps.begin(), op);
    }
    // Every operation on scores has them as its first operand.
    scores = op->getOperand(0);
  }
  if (!program.product) {
    return kernel.emitOpError() << "expected scores made by "
                                   "attn.scaled_dot_product in the same "
                                   "function";
  }
  program.query = stripRopes(program.product.getQuery(), program.queryRopes);
  program.key = stripRopes(program.product.getKey(), program.keyRopes);
  if (failed(requireArgument(program.product, program.query)) ||
      failed(requireArgument(program.product, program.key))) {
    return failure();
  }
  return program;
}

GpuProblem attnfuse::problemOf(const AttentionProgram &program) {
  auto elementOf = [](Value tensor) {
    Type type = cast<RankedTensorType>(tensor.getType()).getElementType();
    return type.isF32()    ? GpuElement::F32
           : type.isBF16() ? GpuElement::BF16
                           : GpuElement::F16;
  };
  GpuProblem problem;
  problem.width = cast<RankedTensorType>(program.query.getType()).getDimSize(3);
  problem.element = elementOf(program.query);
  attn::AggregateOp aggregate = program.aggregate;
  if (aggregate) {
    Value values = aggregate.getValue();
    problem.valueWidth = cast<RankedTensorType>(values.getType()).getDimSize(3);
    problem.value = elementOf(values);
  }
  return problem;
}
