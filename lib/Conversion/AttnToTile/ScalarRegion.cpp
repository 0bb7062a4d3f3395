//===- ScalarRegion.cpp - score_mod and mask_mod inlined -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "MaskCode.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

Value attnfuse::inlineScalarRegion(KernelContext &context, IndexMath m,
                                   Region &region, ValueRange arguments) {
  Block &block = region.front();
  IRMapping mapping;
  for (auto [parameter, argument] :
       llvm::zip(block.getArguments(), arguments)) {
    mapping.map(parameter, argument);
  }
  auto lookup = [&](Value value) {
    Value local = mapping.lookupOrNull(value);
    return local ? local : context.get(value);
  };
  for (Operation &op : block.without_terminator()) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      SmallVector<Value> indices =
          llvm::map_to_vector(extract.getIndices(), lookup);
      Value view = lookup(extract.getTensor());
      Value element = tile::ReadOp::create(m.builder, m.loc, extract.getType(),
                                           view, indices);
      mapping.map(extract.getResult(), element);
      continue;
    }
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      // The kernel's context knows extents, by the source's dim of a tensor.
      mapping.map(dim.getResult(), context.get(dim.getResult()));
      continue;
    }
    for (Value operand : op.getOperands()) {
      if (!mapping.contains(operand)) {
        mapping.map(operand, context.get(operand));
      }
    }
    m.builder.clone(op, mapping);
  }
  return lookup(cast<attn::YieldOp>(block.getTerminator()).getValue());
}
