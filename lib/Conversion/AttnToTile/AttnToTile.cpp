//===- AttnToTile.cpp - attention kernels to tile programs -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Analysis/CpuSchedule.h"
#include "AttnFuse/Conversion/Passes.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attnfuse {
#define GEN_PASS_DEF_ATTNTOTILE
#include "AttnFuse/Conversion/Passes.h.inc"
} // namespace attnfuse

using namespace mlir;
using namespace attnfuse;

/// The block size of queries of the first block table among the masks.
static int64_t tableBlockOf(func::FuncOp function) {
  int64_t block = 0;
  function.walk([&](attn::BlockSparseOp op) { block = op.getBlocks()[0]; });
  return block;
}

/// An uninitialised tensor with the extents of `like` in the leading
/// dimensions that are dynamic.
static Value emptyLike(OpBuilder &b, Location loc, RankedTensorType type,
                       Value like) {
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (type.isDynamicDim(dim)) {
      sizes.push_back(tensor::DimOp::create(b, loc, like, dim));
    }
  }
  return tensor::EmptyOp::create(b, loc, type, sizes);
}

namespace {
struct AttnToTilePass : public attnfuse::impl::AttnToTileBase<AttnToTilePass> {
  using Base::Base;

  void runOnOperation() override {
    llvm::Expected<ChipDescription> known = lookupChip(chip);
    if (!known) {
      getOperation().emitError() << llvm::toString(known.takeError());
      return signalPassFailure();
    }
    description = *known;
    SmallVector<func::FuncOp> kernels;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function->hasAttr(attn::kKernelAttrName)) {
        kernels.push_back(function);
      }
    }
    for (func::FuncOp kernel : kernels) {
      if (failed(convert(kernel))) {
        return signalPassFailure();
      }
    }
  }

private:
  tile::ScheduleAttr scheduleFor(func::FuncOp function,
                                 AttentionProgram program) {
    if (auto forced =
            function->getAttrOfType<tile::ScheduleAttr>("tile.schedule")) {
      return forced;
    }
    auto query = cast<RankedTensorType>(program.query.getType());
    int64_t width = query.getDimSize(3);
    int64_t valueWidth =
        program.aggregate
            ? program.aggregate.getResult().getType().getDimSize(3)
            : 0;
    int64_t queries = query.isDynamicDim(2) ? -1 : query.getDimSize(2);
    CpuBlocks blocks = chooseCpuBlocks(
        {description.vectorBits / 32, description.vectorRegisters}, width,
        valueWidth, queries, tableBlockOf(function));
    return tile::ScheduleAttr::get(&getContext(),
                                   blockM ? blockM : blocks.blockM,
                                   blockN ? blockN : blocks.blockN);
  }

  /// A tile holds whole rows, on the stack of a CPU's thread.
  LogicalResult checkWidths(func::FuncOp function) {
    constexpr int64_t widest = 4096;
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      bool isActivation = llvm::any_of(argument.getUsers(), [](Operation *op) {
        return isa<attn::RopeOp, attn::ScaledDotProductOp, attn::AggregateOp>(
            op);
      });
      if (type && isActivation && type.getRank() == 4 &&
          type.getDimSize(3) > widest) {
        return function.emitError() << "expected widths of at most " << widest
                                    << ", which tiles can hold, got " << type;
      }
    }
    return success();
  }

  LogicalResult convert(func::FuncOp function) {
    FailureOr<AttentionProgram> program = readProgram(function);
    if (failed(program)) {
      return failure();
    }
    if (failed(checkWidths(function))) {
      return failure();
    }
    Operation *ret = function.getBody().back().getTerminator();
    OpBuilder b(ret);
    Location loc = function.getLoc();
    StringRef name = function.getSymName();

    // Tensors of the function that a kernel may read: its arguments and its
    // constants, which the host passes as it does any tensor.
    SmallVector<Value> tensors(function.getArguments());
    for (auto constant : function.getBody().getOps<arith::ConstantOp>()) {
      if (isa<RankedTensorType>(constant.getType())) {
        tensors.push_back(constant);
      }
    }

    if (program->rotation) {
      auto type = program->rotation.getResult().getType();
      tile::KernelOp kernel = buildRotationKernel(
          function, (name + "_rotate").str(), program->rotation,
          program->rotation.getInput(), tensors, type, rotationRows());
      Value launched =
          launch(b, loc, kernel, tensors, type, program->rotation.getInput());
      return finish(function, {launched});
    }

    Value key = program->key;
    if (!program->keyRopes.empty() && program->keyPlace() == RopePlace::Once) {
      auto source = cast<RankedTensorType>(key.getType());
      // The CPU computes in f32: a rotated key keeps what rotation gained.
      auto type = RankedTensorType::get(source.getShape(), b.getF32Type());
      tile::KernelOp kernel = buildRotationKernel(
          function, (name + "_rotate_k").str(), program->keyRopes, key, tensors,
          type, rotationRows());
      Value rotated = launch(b, loc, kernel, tensors, type, key);
      llvm::erase(tensors, key);
      tensors.push_back(rotated);
      key = rotated;
    }

    SmallVector<RankedTensorType> outputs;
    for (Type type : function.getResultTypes()) {
      outputs.push_back(cast<RankedTensorType>(type));
    }
    tile::ScheduleAttr schedule = scheduleFor(function, *program);
    int64_t width =
        cast<RankedTensorType>(program->query.getType()).getDimSize(3);
    int64_t bytes =
        stackBytes({schedule.getBlockM(), schedule.getBlockN()}, width,
                   program->aggregate
                       ? program->aggregate.getResult().getType().getDimSize(3)
                       : 0);
    if (description.kind == ChipDescription::CPU && bytes > kStackLimit) {
      return function.emitError()
             << "expected tiles that fit the stack, " << kStackLimit
             << " bytes; block_m = " << schedule.getBlockM()
             << " and block_n = " << schedule.getBlockN() << " at width "
             << width << " need " << bytes << "; use smaller blocks";
    }
    FailureOr<tile::KernelOp> kernel =
        buildAttentionKernel(function, (name + "_tile").str(), *program,
                             tensors, outputs, schedule, key);
    if (failed(kernel)) {
      return failure();
    }
    SmallVector<Value> inits;
    for (RankedTensorType type : outputs) {
      inits.push_back(emptyLike(b, loc, type, program->query));
    }
    auto call = tile::LaunchOp::create(
        b, loc, TypeRange(ValueRange(inits)),
        SymbolRefAttr::get(kernel->getSymNameAttr()), tensors, inits);
    ++numKernels;
    return finish(function, SmallVector<Value>(call.getOutputs()));
  }

  Value launch(OpBuilder &b, Location loc, tile::KernelOp kernel,
               ValueRange inputs, RankedTensorType type, Value like) {
    Value init = emptyLike(b, loc, type, like);
    ++numKernels;
    return tile::LaunchOp::create(b, loc, TypeRange{type},
                                  SymbolRefAttr::get(kernel.getSymNameAttr()),
                                  inputs, init)
        .getResult(0);
  }

  int64_t rotationRows() const { return 64; }

  /// Returns the launches' results and drops what they stand for.
  LogicalResult finish(func::FuncOp function, ArrayRef<Value> results) {
    Block &block = function.getBody().back();
    block.getTerminator()->setOperands(results);
    SmallVector<Operation *> ops = llvm::map_to_vector(
        block.without_terminator(), [](Operation &op) { return &op; });
    for (Operation *op : llvm::reverse(ops)) {
      if (isOpTriviallyDead(op)) {
        op->erase();
      }
    }
    function->removeAttr(attn::kKernelAttrName);
    return success();
  }

  ChipDescription description;
};
} // namespace
