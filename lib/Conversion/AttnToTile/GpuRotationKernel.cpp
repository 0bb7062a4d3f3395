//===- GpuRotationKernel.cpp - a rotation of its own -----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "AttnFuse/Dialect/Tile/IR/Layout.h"

using namespace mlir;
using namespace attnfuse;

void attnfuse::buildGpuRotation(KernelContext &context,
                                ArrayRef<attn::RopeOp> ropes, Value tensor,
                                int64_t rows) {
  IndexMath m = context.math();
  OpBuilder &b = context.builder;
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t padded = tile::paddedWidth(type.getDimSize(3), bytes);
  Value ring = tile::AllocOp::create(
      b, context.loc,
      tile::RingType::get(b.getContext(), 1, rows, padded,
                          type.getElementType(),
                          tile::SlotLayout::widestSwizzle(padded, bytes)));
  Value batch = context.programId(2), head = context.programId(1);
  Value first = m.mul(context.programId(0), rows), zero = m.index(0);
  SmallVector<Value> place{batch, head, first, zero};
  SmallVector<int64_t> along{2, 3};
  tile::AsyncLoadOp::create(b, context.loc, context.get(tensor), place, along,
                            ring, zero);
  tile::CommitOp::create(b, context.loc, ring, zero);
  tile::WaitOp::create(b, context.loc, ring, zero, 0);
  context.rotateSlot(ropes, ring, zero, batch, first);
  tile::CopyOutOp::create(b, context.loc, ring, zero, context.output(0), place,
                          along, /*drained=*/false);
  tile::ReturnOp::create(b, context.loc);
}
