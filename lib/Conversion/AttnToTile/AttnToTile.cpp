//===- AttnToTile.cpp - attention kernels to tile programs -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"
#include "MaskCode.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Analysis/CpuSchedule.h"
#include "AttnFuse/Analysis/GpuSchedule.h"
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
  bool isGpu() const { return description.kind == ChipDescription::GPU; }

  /// Why the schedule for sm_90a does not serve a program; empty if it does.
  std::string whyNotHopper(AttentionProgram program) {
    auto elementOf = [](Value tensor) {
      return cast<RankedTensorType>(tensor.getType()).getElementType();
    };
    if (chip != "sm_90a") {
      return "the chip is not sm_90a";
    }
    if (path == "portable") {
      return "path = portable";
    }
    Type element = elementOf(program.query);
    if (element.isF32()) {
      return "wgmma has no f32 products";
    }
    if (program.aggregate) {
      Type values = elementOf(program.aggregate.getValue());
      Type result = elementOf(program.aggregate.getResult());
      if (values.isF32() || result.isF32()) {
        return "values and results in f32";
      }
    }
    if (!program.keyRopes.empty() && program.keyPlace() != RopePlace::Once) {
      return "keys are rotated in the loop";
    }
    if (!program.masks.empty()) {
      auto model =
          buildMaskModel(program.masks, program.product.getScores().getType(),
                         [&] { return program.product.emitOpError(); });
      if (failed(model) || !MaskCode::boundsSuffice(*model)) {
        return "tiles of the mask are classified one by one";
      }
    }
    return "";
  }

  tile::ScheduleAttr hopperScheduleFor(func::FuncOp function,
                                       AttentionProgram program) {
    std::string reason = whyNotHopper(program);
    GpuProblem problem = problemOf(program);
    std::optional<HopperBlocks> blocks;
    if (reason.empty()) {
      blocks = chooseHopperBlocks(problem, !program.masks.empty(),
                                  description.sharedMemory, &reason);
    }
    if (!blocks) {
      if (chip == "sm_90a") {
        function->setAttr("tile.portable",
                          StringAttr::get(&getContext(), reason));
      }
      return {};
    }
    blocks->consumers = blockM ? blockM / 64 : blocks->consumers;
    blocks->blockN = blockN ? blockN.getValue() : blocks->blockN;
    blocks->stages = stages ? stages.getValue() : blocks->stages;
    blocks->rescale = rescale >= 0 ? rescale.getValue() : blocks->rescale;
    if (!scheduler.empty()) {
      blocks->persistent = scheduler == "counter";
    }
    if (blockM) {
      static constexpr int64_t budgets[] = {240, 240, 160, 112};
      int64_t place = std::clamp<int64_t>(blocks->consumers, 1, 4) - 1;
      blocks->registers = budgets[place];
      blocks->producerRegisters = place == 2 ? 32 : 24;
    }
    int64_t shared = hopperSharedBytes(*blocks, problem);
    if (shared > description.sharedMemory || !hopperRegistersFit(*blocks) ||
        (blockM && blockM % 64)) {
      function.emitError() << "needs " << shared
                           << " bytes of shared memory with block-m = "
                           << 64 * blocks->consumers
                           << " and block-n = " << blocks->blockN << "; "
                           << description.name << " has "
                           << description.sharedMemory
                           << ", and query rows come in multiples of 64 up to "
                              "256";
      failedSchedule = true;
      return {};
    }
    if (blocks->sharedResult) {
      function->setAttr("tile.shared_result", UnitAttr::get(&getContext()));
    }
    return tile::ScheduleAttr::get(&getContext(), 64 * blocks->consumers,
                                   blocks->blockN, 4 * blocks->consumers,
                                   blocks->stages, blocks->registers,
                                   blocks->producerRegisters, blocks->rescale,
                                   /*ping_pong=*/false, blocks->persistent);
  }

  /// A schedule for a GPU, from the options or the table; null with an error
  /// emitted if none fits.
  tile::ScheduleAttr gpuScheduleFor(func::FuncOp function,
                                    AttentionProgram program) {
    if (auto hopper = hopperScheduleFor(function, program)) {
      return hopper;
    }
    return failedSchedule ? tile::ScheduleAttr()
                          : portableScheduleFor(function, program);
  }

  tile::ScheduleAttr portableScheduleFor(func::FuncOp function,
                                         AttentionProgram program) {
    GpuProblem problem = problemOf(program);
    std::string considered;
    std::optional<GpuBlocks> blocks =
        choosePortableBlocks(problem, description.sharedMemory, &considered);
    if (!blocks && !(blockM && blockN)) {
      InFlightDiagnostic error = function.emitError();
      error << "has no schedule that fits " << description.name << " at width "
            << problem.width << "; tried:";
      SmallVector<StringRef> lines;
      StringRef(considered).split(lines, '\n', -1, /*KeepEmpty=*/false);
      for (StringRef line : lines) {
        error.attachNote(function.getLoc()) << line;
      }
      return {};
    }
    GpuBlocks chosen = blocks.value_or(GpuBlocks{64, 64, 4, 1});
    if (chip == "sm_90a" && path != "portable") {
      // The options are those of the kernel that this one stands in for.
      return tile::ScheduleAttr::get(&getContext(), chosen.blockM,
                                     chosen.blockN, chosen.warps, chosen.stages,
                                     0, 0, 0, false, false);
    }
    chosen.blockM = blockM ? blockM.getValue() : chosen.blockM;
    chosen.blockN = blockN ? blockN.getValue() : chosen.blockN;
    chosen.warps = warps ? warps.getValue() : chosen.warps;
    chosen.stages = stages ? stages.getValue() : chosen.stages;
    int64_t step = problem.value == GpuElement::F32 ? 8 : 16;
    if (chosen.blockM % (16 * chosen.warps) || chosen.blockN % step) {
      function.emitError() << "expected block-m in multiples of 16 for each of "
                           << chosen.warps << " warps and block-n in multiples "
                           << "of " << step << ", got " << chosen.blockM
                           << " and " << chosen.blockN;
      return {};
    }
    int64_t shared = portableSharedBytes(chosen, problem);
    if (shared > description.sharedMemory) {
      function.emitError() << "needs " << shared
                           << " bytes of shared memory with block-m = "
                           << chosen.blockM << ", block-n = " << chosen.blockN
                           << " and stages = " << chosen.stages << "; "
                           << description.name << " has "
                           << description.sharedMemory << " for a block";
      return {};
    }
    return tile::ScheduleAttr::get(&getContext(), chosen.blockM, chosen.blockN,
                                   chosen.warps, chosen.stages, 0, 0, 0, false,
                                   false);
  }

  tile::ScheduleAttr scheduleFor(func::FuncOp function,
                                 AttentionProgram program) {
    if (auto forced =
            function->getAttrOfType<tile::ScheduleAttr>("tile.schedule")) {
      return forced;
    }
    if (isGpu()) {
      return gpuScheduleFor(function, program);
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
          isGpu() ? source
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
    tile::ScheduleAttr schedule = scheduleFor(function, *program);
    if (!schedule) {
      return failure();
    }
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
    tile::ScheduleAttr portable = portableScheduleFor(function, program);
    if (!portable) {
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
                             inputs, outputs, portable, key, marked);
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
    if (!isGpu()) {
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

  ChipDescription description;
  bool failedSchedule = false;
};
} // namespace
