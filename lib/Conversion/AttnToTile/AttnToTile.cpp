//===- AttnToTile.cpp - attention kernels to tile programs -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"
#include "ScheduleChoice.h"

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

  /// What is wrong with options is no fault of a program.
  LogicalResult initialize(MLIRContext *context) override {
    auto atOptions = [&] { return emitError(UnknownLoc::get(context)); };
    llvm::Expected<ChipDescription> known = lookupChip(chip);
    if (!known) {
      return atOptions() << llvm::toString(known.takeError());
    }
    ScheduleOptions options;
    options.blockM = blockM;
    options.blockN = blockN;
    options.warps = warps;
    options.stages = stages;
    options.rescale = rescale;
    options.scheduler = scheduler;
    options.path = path;
    isGpu = known->kind == ChipDescription::GPU;
    schedules.emplace(*known, options);
    return schedules->check(atOptions);
  }

  void runOnOperation() override {
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
          program->rotation.getInput(), tensors, type, rotationRows(),
          rotationSchedule());
      Value launched =
          launch(b, loc, kernel, tensors, type, program->rotation.getInput());
      return finish(function, {launched});
    }

    Value key = program->key;
    if (!program->keyRopes.empty() && program->keyPlace() == RopePlace::Once) {
      auto source = cast<RankedTensorType>(key.getType());
      // The CPU computes in f32: a rotated key keeps what rotation gained.
      // Matrix units take the storage type.
      auto type =
          isGpu ? source
                : RankedTensorType::get(source.getShape(), b.getF32Type());
      tile::KernelOp kernel = buildRotationKernel(
          function, (name + "_rotate_k").str(), program->keyRopes, key, tensors,
          type, rotationRows(), rotationSchedule());
      Value rotated = launch(b, loc, kernel, tensors, type, key);
      llvm::erase(tensors, key);
      tensors.push_back(rotated);
      key = rotated;
    }

    SmallVector<RankedTensorType> outputs;
    for (Type type : function.getResultTypes()) {
      outputs.push_back(cast<RankedTensorType>(type));
    }
    FailureOr<tile::ScheduleAttr> chosen =
        schedules->choose(function, *program);
    if (failed(chosen)) {
      return failure();
    }
    tile::ScheduleAttr schedule = *chosen;
    if (schedule.getRegisters()) {
      return convertForHopper(function, *program, b, tensors, outputs, schedule,
                              key);
    }
    FailureOr<tile::KernelOp> kernel =
        buildAttentionKernel(function, (name + "_tile").str(), *program,
                             tensors, outputs, schedule, key);
    if (failed(kernel)) {
      return failure();
    }
    return finish(function,
                  launchAll(b, loc, *kernel, tensors, outputs, program->query));
  }

  /// The kernel for sm_90a, and a portable one: for strides that tensor maps
  /// cannot serve, and for query tiles in which a weight of 0 has met a value
  /// that is not finite.
  LogicalResult convertForHopper(func::FuncOp function,
                                 const AttentionProgram &program, OpBuilder &b,
                                 ArrayRef<Value> tensors,
                                 ArrayRef<RankedTensorType> outputs,
                                 tile::ScheduleAttr schedule, Value key) {
    Location loc = function.getLoc();
    StringRef name = function.getSymName();
    FailureOr<tile::ScheduleAttr> portable =
        schedules->standIn(function, program);
    if (failed(portable)) {
      return failure();
    }
    SmallVector<RankedTensorType> all(outputs);
    bool marks = needsMarks(program);
    if (marks) {
      auto query = cast<RankedTensorType>(program.query.getType());
      all.push_back(
          RankedTensorType::get(query.getShape().take_front(3), b.getI8Type()));
    }
    FailureOr<tile::KernelOp> kernel = buildAttentionKernel(
        function, (name + "_tile").str(), program, tensors, all, schedule, key);
    if (failed(kernel)) {
      return failure();
    }
    SmallVector<Value> results =
        launchAll(b, loc, *kernel, tensors, all, program.query);
    Operation *main = results.front().getDefiningOp();
    Value marked = marks ? results.pop_back_val() : Value();
    SmallVector<Value> inputs(tensors);
    if (marks) {
      inputs.push_back(marked);
    }
    FailureOr<tile::KernelOp> second =
        buildAttentionKernel(function, (name + "_portable").str(), program,
                             inputs, outputs, *portable, key, marked);
    if (failed(second)) {
      return failure();
    }
    ++numKernels;
    if (!marks) {
      main->setAttr("otherwise",
                    FlatSymbolRefAttr::get(second->getSymNameAttr()));
      return finish(function, results);
    }
    main->setAttr("otherwise", b.getUnitAttr());
    auto again = tile::LaunchOp::create(
        b, loc, TypeRange(ValueRange(results)),
        SymbolRefAttr::get(second->getSymNameAttr()), inputs, results);
    return finish(function, SmallVector<Value>(again.getOutputs()));
  }

  SmallVector<Value> launchAll(OpBuilder &b, Location loc,
                               tile::KernelOp kernel, ArrayRef<Value> tensors,
                               ArrayRef<RankedTensorType> outputs, Value like) {
    SmallVector<Value> inits;
    for (RankedTensorType type : outputs) {
      inits.push_back(emptyLike(b, loc, type, like));
    }
    auto call = tile::LaunchOp::create(
        b, loc, TypeRange(ValueRange(inits)),
        SymbolRefAttr::get(kernel.getSymNameAttr()), tensors, inits);
    ++numKernels;
    return SmallVector<Value>(call.getOutputs());
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
  tile::ScheduleAttr rotationSchedule() {
    if (!isGpu) {
      return {};
    }
    return tile::ScheduleAttr::get(&getContext(), rotationRows(), 8,
                                   /*warps=*/4, /*stages=*/1, 0, 0, 0, false,
                                   false);
  }

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

  std::optional<ScheduleChoice> schedules;
  bool isGpu = false;
};
} // namespace
