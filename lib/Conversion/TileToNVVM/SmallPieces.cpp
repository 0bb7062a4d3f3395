//===- SmallPieces.cpp - short names for what is emitted -------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::nvvm;

Value KernelLowering::c32(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}
Value KernelLowering::c64(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}
Value KernelLowering::cf32(double value) {
  return arith::ConstantFloatOp::create(
      b, loc, b.getF32Type(), llvm::APFloat(static_cast<float>(value)));
}
Value KernelLowering::add(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value KernelLowering::sub(Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(loc, x, y);
}
Value KernelLowering::mul(Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}
Value KernelLowering::andOf(Value x, Value y) {
  return b.createOrFold<arith::AndIOp>(loc, x, y);
}
Value KernelLowering::xorOf(Value x, Value y) {
  return b.createOrFold<arith::XOrIOp>(loc, x, y);
}
static Value constantLike(OpBuilder &b, Location loc, Value x, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value,
                                      x.getType().getIntOrFloatBitWidth());
}
Value KernelLowering::shr(Value x, int64_t bits) {
  return b.createOrFold<arith::ShRUIOp>(loc, x, constantLike(b, loc, x, bits));
}
Value KernelLowering::shl(Value x, int64_t bits) {
  return b.createOrFold<arith::ShLIOp>(loc, x, constantLike(b, loc, x, bits));
}
Value KernelLowering::divide(Value x, int64_t y) {
  return y == 1 ? x
                : b.createOrFold<arith::DivUIOp>(loc, x,
                                                 constantLike(b, loc, x, y));
}
Value KernelLowering::remainder(Value x, int64_t y) {
  return b.createOrFold<arith::RemUIOp>(loc, x, constantLike(b, loc, x, y));
}
Value KernelLowering::less(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}
Value KernelLowering::select(Value c, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(loc, c, x, y);
}
Value KernelLowering::toI64(Value x) {
  return x.getType().isInteger(64)
             ? x
             : b.createOrFold<arith::ExtSIOp>(loc, b.getI64Type(), x);
}
Value KernelLowering::toI32(Value x) {
  return x.getType().isInteger(32)
             ? x
             : b.createOrFold<arith::TruncIOp>(loc, i32(), x);
}

Value KernelLowering::shared(Value address, int64_t offset) {
  Type type = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
  if (!offset) {
    return pointer;
  }
  return LLVM::GEPOp::create(b, loc, type, b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>(offset));
}

Value KernelLowering::shuffle(Value value, int64_t distance) {
  return NVVM::ShflOp::create(b, loc, value.getType(), c32(-1), value,
                              c32(distance), c32(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}

Value KernelLowering::intrinsic(StringRef name, ValueRange operands,
                                Type result) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                       operands)
      .getResult(0);
}

Value KernelLowering::ex2(Value x) {
  return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", x, b.getF32Type());
}

Values KernelLowering::assembly(StringRef text, StringRef constraints,
                                ValueRange operands, TypeRange results,
                                bool sideEffects) {
  Type type = LLVM::LLVMVoidType::get(b.getContext());
  if (results.size() == 1) {
    type = results[0];
  } else if (results.size() > 1) {
    type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                            SmallVector<Type>(results));
  }
  auto op = LLVM::InlineAsmOp::create(
      b, loc, results.empty() ? TypeRange() : TypeRange(type), operands, text,
      constraints, sideEffects, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
  if (results.size() <= 1) {
    return Values(op->getResults());
  }
  Values values;
  for (size_t n = 0; n < results.size(); ++n) {
    values.push_back(LLVM::ExtractValueOp::create(b, loc, op.getResult(0), n));
  }
  return values;
}

void KernelLowering::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  body();
}
