//===- ScheduleChoice.cpp - schedules of a program's kernels ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScheduleChoice.h"
#include "MaskCode.h"

#include "AttnFuse/Analysis/CpuSchedule.h"
#include "AttnFuse/Dialect/Tile/IR/Layout.h"

#include <algorithm>
#include <tuple>

using namespace mlir;
using namespace attnfuse;

/// Extents of tiles beyond which no chip's memory reaches.
static constexpr int64_t kMostRows = 4096;
static constexpr int64_t kMostStages = 8, kMostWarps = 32;
/// Weights that grow by more than 2^15 are infinite in f16.
static constexpr int64_t kMostRescale = 15;

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

namespace {
/// Emits what is wrong with one parameter of a schedule, which an option of the
/// pass or the function's own attribute has given.
class Refusals {
public:
  Refusals(llvm::function_ref<InFlightDiagnostic()> emitError, bool isAttribute)
      : emitError(emitError), isAttribute(isAttribute) {}

  /// An error that starts with the parameter's name.
  InFlightDiagnostic at(StringRef option) const {
    InFlightDiagnostic error = emitError();
    error << nameOf(option) << ": ";
    return error;
  }

  /// An error of several parameters together.
  InFlightDiagnostic any() const { return emitError(); }

  /// `block-m` as a message calls it.
  std::string nameOf(StringRef option) const {
    std::string name = option.str();
    if (!isAttribute) {
      return "option '" + name + "'";
    }
    std::replace(name.begin(), name.end(), '-', '_');
    return "'" + name + "' of #tile.schedule";
  }

  LogicalResult range(StringRef option, int64_t value, int64_t least,
                      int64_t most) const {
    if (value >= least && value <= most) {
      return success();
    }
    return at(option) << "expected " << least << " to " << most << ", got "
                      << value;
  }

  LogicalResult multiple(StringRef option, int64_t value, int64_t step,
                         int64_t most, StringRef why) const {
    if (value >= step && value <= most && value % step == 0) {
      return success();
    }
    return at(option) << "expected a multiple of " << step << " up to " << most
                      << " (" << why << "), got " << value;
  }

private:
  llvm::function_ref<InFlightDiagnostic()> emitError;
  bool isAttribute;
};
} // namespace

LogicalResult ScheduleChoice::check(
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  Refusals refuse(emitError, /*isAttribute=*/false);
  bool isGpu = chip.kind == ChipDescription::GPU;
  bool isHopper = chip.name == "sm_90a" && options.path != "portable";
  std::string where = chip.name;
  if (options.path == "portable") {
    where += " with path = portable";
  }
  auto number = [&](StringRef name, int64_t value, int64_t unset, int64_t least,
                    int64_t most, bool applies, StringRef kind) {
    if (value == unset) {
      return success();
    }
    if (value < least || value > most) {
      InFlightDiagnostic error = refuse.at(name);
      error << "expected ";
      if (most == INT64_MAX) {
        error << "a number above 0";
      } else {
        error << least << " to " << most;
      }
      return LogicalResult(error << ", or " << unset << " for the chip's, got "
                                 << value);
    }
    if (!applies) {
      return LogicalResult(refuse.at(name)
                           << "expected none for " << where << ", got " << value
                           << "; it is one of " << kind);
    }
    return success();
  };
  int64_t most = isGpu ? kMostRows : INT64_MAX;
  if (failed(number("block-m", options.blockM, 0, 1, most, true, "")) ||
      failed(number("block-n", options.blockN, 0, 1, most, true, "")) ||
      failed(number("warps", options.warps, 0, 1, kMostWarps, isGpu,
                    "kernels for GPUs")) ||
      failed(number("stages", options.stages, 0, 1, kMostStages, isGpu,
                    "kernels for GPUs")) ||
      failed(number("rescale", options.rescale, -1, 0, kMostRescale, isHopper,
                    "kernels for sm_90a"))) {
    return failure();
  }
  StringRef path = options.path, scheduler = options.scheduler;
  if (!path.empty() && path != "hopper" && path != "portable") {
    return refuse.at("path")
           << "expected 'hopper', 'portable' or nothing, got '" << path << "'";
  }
  if (path == "hopper" && chip.name != "sm_90a") {
    return refuse.at("path") << "expected 'portable' or nothing for "
                             << chip.name << ", got 'hopper', which is for "
                             << "sm_90a";
  }
  if (scheduler.empty()) {
    return success();
  }
  if (scheduler != "grid" && scheduler != "counter") {
    return refuse.at("scheduler")
           << "expected 'grid', 'counter' or nothing, got '" << scheduler
           << "'";
  }
  if (!isHopper) {
    return refuse.at("scheduler")
           << "expected none for " << where << ", got '" << scheduler
           << "'; it is one of kernels for sm_90a";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// CPUs
//===----------------------------------------------------------------------===//

/// The block size of queries of the first block table among the masks.
static int64_t tableBlockOf(func::FuncOp function) {
  int64_t block = 0;
  function.walk([&](attn::BlockSparseOp op) { block = op.getBlocks()[0]; });
  return block;
}

FailureOr<tile::ScheduleAttr>
ScheduleChoice::chooseCpu(func::FuncOp function,
                          const AttentionProgram &program) const {
  auto query = cast<RankedTensorType>(program.query.getType());
  attn::AggregateOp aggregate = program.aggregate;
  int64_t width = query.getDimSize(3);
  int64_t valueWidth =
      aggregate ? aggregate.getResult().getType().getDimSize(3) : 0;
  int64_t queries = query.isDynamicDim(2) ? -1 : query.getDimSize(2);
  tile::ScheduleAttr schedule =
      function->getAttrOfType<tile::ScheduleAttr>("tile.schedule");
  if (schedule && (schedule.getWarps() || schedule.getRegisters())) {
    return function.emitError()
           << "has a schedule with warps, which is one for a GPU, got "
           << schedule << " for chip " << chip.name
           << "; leave out what follows block_m and block_n, or compile for a "
              "GPU";
  }
  if (!schedule) {
    CpuBlocks blocks =
        chooseCpuBlocks({chip.vectorBits / 32, chip.vectorRegisters}, width,
                        valueWidth, queries, tableBlockOf(function));
    schedule = tile::ScheduleAttr::get(
        function.getContext(), options.blockM ? options.blockM : blocks.blockM,
        options.blockN ? options.blockN : blocks.blockN);
  }
  int64_t bytes = stackBytes({schedule.getBlockM(), schedule.getBlockN()},
                             width, valueWidth);
  if (bytes > kStackLimit) {
    return function.emitError()
           << "expected tiles that fit the stack, " << kStackLimit
           << " bytes; block_m = " << schedule.getBlockM()
           << " and block_n = " << schedule.getBlockN() << " at width " << width
           << " need " << bytes << "; use smaller blocks";
  }
  return schedule;
}

//===----------------------------------------------------------------------===//
// Portable kernels
//===----------------------------------------------------------------------===//

static tile::ScheduleAttr portableAttr(MLIRContext *context,
                                       const GpuBlocks &blocks) {
  return tile::ScheduleAttr::get(context, blocks.blockM, blocks.blockN,
                                 blocks.warps, blocks.stages, 0, 0, 0, false,
                                 false);
}

/// Whether a portable kernel can have these blocks. `warpsGiven` and not the
/// rows: it is the number of warps that does not fit.
static LogicalResult checkPortable(const Refusals &refuse,
                                   const ChipDescription &chip,
                                   const GpuBlocks &blocks,
                                   const GpuProblem &problem, bool warpsGiven) {
  if (failed(refuse.range("warps", blocks.warps, 1, kMostWarps)) ||
      failed(refuse.range("stages", blocks.stages, 1, kMostStages))) {
    return failure();
  }
  int64_t rows = 16 * blocks.warps;
  if (warpsGiven && blocks.blockM % rows) {
    return refuse.at("warps")
           << "expected warps that share block-m = " << blocks.blockM
           << " query rows in multiples of 16, got " << blocks.warps
           << "; or give block-m in multiples of " << rows;
  }
  std::string share =
      "16 query rows for each of " + std::to_string(blocks.warps) + " warps";
  bool isWide = problem.value == GpuElement::F32;
  if (failed(
          refuse.multiple("block-m", blocks.blockM, rows, kMostRows, share)) ||
      failed(refuse.multiple("block-n", blocks.blockN, isWide ? 8 : 16,
                             kMostRows,
                             isWide ? "whole steps of products of f32"
                                    : "whole steps of products of 16 bits"))) {
    return failure();
  }
  int64_t shared = portableSharedBytes(blocks, problem);
  if (shared > chip.sharedMemory) {
    return refuse.any() << "needs " << shared
                        << " bytes of shared memory with block-m = "
                        << blocks.blockM << ", block-n = " << blocks.blockN
                        << " and stages = " << blocks.stages << "; "
                        << chip.name << " has " << chip.sharedMemory
                        << " for a block; use smaller blocks or fewer stages";
  }
  return success();
}

std::optional<GpuBlocks> ScheduleChoice::tableBlocks(func::FuncOp function,
                                                     const GpuProblem &problem,
                                                     bool required) const {
  std::string considered;
  std::optional<GpuBlocks> blocks =
      choosePortableBlocks(problem, chip.sharedMemory, &considered);
  if (!blocks && required) {
    InFlightDiagnostic error = function.emitError();
    error << "has no schedule that fits " << chip.name << " at width "
          << problem.width;
    if (problem.valueWidth && problem.valueWidth != problem.width) {
      error << " with values of width " << problem.valueWidth;
    }
    error << "; tried:";
    SmallVector<StringRef> lines;
    StringRef(considered).split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (StringRef line : lines) {
      error.attachNote(function.getLoc()) << line;
    }
  }
  return blocks;
}

FailureOr<tile::ScheduleAttr>
ScheduleChoice::choosePortable(func::FuncOp function,
                               const GpuProblem &problem) const {
  bool sized = options.blockM && options.blockN;
  std::optional<GpuBlocks> table = tableBlocks(function, problem, !sized);
  if (!table && !sized) {
    return failure();
  }
  GpuBlocks blocks = table.value_or(GpuBlocks{64, 64, 4, 1});
  blocks.blockM = options.blockM ? options.blockM : blocks.blockM;
  blocks.blockN = options.blockN ? options.blockN : blocks.blockN;
  blocks.warps = options.warps ? options.warps : blocks.warps;
  blocks.stages = options.stages ? options.stages : blocks.stages;
  auto emitError = [&] { return function.emitError(); };
  if (failed(checkPortable(Refusals(emitError, false), chip, blocks, problem,
                           options.warps && !options.blockM))) {
    return failure();
  }
  return portableAttr(function.getContext(), blocks);
}

FailureOr<tile::ScheduleAttr>
ScheduleChoice::standIn(func::FuncOp function,
                        const AttentionProgram &program) const {
  auto blocks = tableBlocks(function, problemOf(program), /*required=*/true);
  if (!blocks) {
    return failure();
  }
  return portableAttr(function.getContext(), *blocks);
}

//===----------------------------------------------------------------------===//
// sm_90a
//===----------------------------------------------------------------------===//

/// Why the schedule for sm_90a does not serve a program; empty if it does.
std::string ScheduleChoice::whyNotHopper(AttentionProgram program) const {
  GpuProblem problem = problemOf(program);
  if (options.path == "portable") {
    return "path = portable";
  }
  if (problem.element == GpuElement::F32) {
    return "wgmma has no f32 products";
  }
  if (problem.valueWidth && problem.value == GpuElement::F32) {
    return "values and results in f32";
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

/// Whether a kernel for sm_90a can have these blocks.
static LogicalResult checkHopper(const Refusals &refuse,
                                 const ChipDescription &chip,
                                 const HopperBlocks &blocks, int64_t blockM,
                                 int64_t warps, const GpuProblem &problem) {
  if (failed(refuse.multiple("block-m", blockM, 64, 256,
                             "64 query rows for each warpgroup of sm_90a")) ||
      failed(refuse.multiple("block-n", blocks.blockN, 16, 256,
                             "what wgmma takes on sm_90a")) ||
      failed(refuse.range("stages", blocks.stages, 1, kMostStages))) {
    return failure();
  }
  if (warps != blockM / 16) {
    return refuse.at("warps")
           << "expected " << blockM / 16 << " for block-m = " << blockM
           << " on sm_90a (4 for each 64 query rows), got " << warps;
  }
  int64_t shared = hopperSharedBytes(blocks, problem);
  if (shared > chip.sharedMemory) {
    return refuse.any() << "needs " << shared
                        << " bytes of shared memory with block-m = " << blockM
                        << ", block-n = " << blocks.blockN
                        << " and stages = " << blocks.stages << "; "
                        << chip.name << " has " << chip.sharedMemory
                        << " for a block; use smaller blocks or fewer stages";
  }
  if (!hopperRegistersFit(blocks)) {
    int64_t threads = 128 * (blocks.consumers + 1);
    int64_t share = tile::launchRegisters(threads);
    return refuse.at("registers")
           << "expected at least " << share << ", what a launch of " << threads
           << " threads gives each of them, at most as much for the producer, "
              "and no more than "
           << share * threads << " together, got " << blocks.registers
           << " and " << blocks.producerRegisters << " for the producer";
  }
  return success();
}

static tile::ScheduleAttr hopperAttr(func::FuncOp function,
                                     const HopperBlocks &blocks) {
  MLIRContext *context = function.getContext();
  if (blocks.sharedResult) {
    function->setAttr("tile.shared_result", UnitAttr::get(context));
  }
  return tile::ScheduleAttr::get(
      context, 64 * blocks.consumers, blocks.blockN, 4 * blocks.consumers,
      blocks.stages, blocks.registers, blocks.producerRegisters, blocks.rescale,
      /*ping_pong=*/false, blocks.persistent);
}

/// Results leave through the queries' slots only where there is no room.
static void placeResult(HopperBlocks &blocks, const GpuProblem &problem,
                        int64_t sharedMemory) {
  blocks.sharedResult = false;
  blocks.sharedResult = hopperSharedBytes(blocks, problem) > sharedMemory &&
                        resultsTakeQuerySlot(problem);
}

FailureOr<tile::ScheduleAttr>
ScheduleChoice::chooseHopper(func::FuncOp function, const GpuProblem &problem,
                             HopperBlocks blocks) const {
  int64_t blockM = options.blockM ? options.blockM : 64 * blocks.consumers;
  blocks.blockN = options.blockN ? options.blockN : blocks.blockN;
  blocks.stages = options.stages ? options.stages : blocks.stages;
  blocks.rescale = options.rescale >= 0 ? options.rescale : blocks.rescale;
  if (!options.scheduler.empty()) {
    blocks.persistent = options.scheduler == "counter";
  }
  if (options.blockM) {
    blocks.consumers = blockM / 64;
    std::tie(blocks.registers, blocks.producerRegisters) =
        hopperBudgets(blocks.consumers);
  }
  placeResult(blocks, problem, chip.sharedMemory);
  auto emitError = [&] { return function.emitError(); };
  if (failed(checkHopper(Refusals(emitError, false), chip, blocks, blockM,
                         options.warps ? options.warps : blockM / 16,
                         problem))) {
    return failure();
  }
  return hopperAttr(function, blocks);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

FailureOr<tile::ScheduleAttr> ScheduleChoice::follow(func::FuncOp function,
                                                     tile::ScheduleAttr forced,
                                                     const GpuProblem &problem,
                                                     StringRef whyNot) const {
  auto emitError = [&] { return function.emitError(); };
  Refusals refuse(emitError, /*isAttribute=*/true);
  if (forced.getPingPong()) {
    return refuse.at("ping_pong") << "expected false: it is not built";
  }
  if (!forced.getRegisters()) {
    if (forced.getProducerRegisters() || forced.getRescale() ||
        forced.getPersistent()) {
      return refuse.at("registers")
             << "expected the consumers' budget beside producer_registers, "
                "rescale or persistent, which kernels for sm_90a have";
    }
    GpuBlocks blocks{forced.getBlockM(), forced.getBlockN(), forced.getWarps(),
                     forced.getStages()};
    if (failed(checkPortable(refuse, chip, blocks, problem, false))) {
      return failure();
    }
    return forced;
  }
  if (chip.name != "sm_90a" || !whyNot.empty()) {
    return refuse.at("registers")
           << "expected none, got " << forced.getRegisters()
           << ": that makes a kernel for sm_90a, and "
           << (chip.name != "sm_90a" ? "the chip is " + chip.name
                                     : whyNot.str());
  }
  if (std::max(problem.width, problem.valueWidth) > 256) {
    return refuse.at("registers") << "expected none for widths above 256, "
                                     "which wgmma does not take";
  }
  if (failed(refuse.range("rescale", forced.getRescale(), 0, kMostRescale))) {
    return failure();
  }
  HopperBlocks blocks{forced.getBlockM() / 64,
                      forced.getBlockN(),
                      forced.getStages(),
                      forced.getRegisters(),
                      forced.getProducerRegisters(),
                      forced.getRescale(),
                      forced.getPersistent()};
  placeResult(blocks, problem, chip.sharedMemory);
  if (failed(checkHopper(refuse, chip, blocks, forced.getBlockM(),
                         forced.getWarps(), problem))) {
    return failure();
  }
  return hopperAttr(function, blocks);
}

FailureOr<tile::ScheduleAttr>
ScheduleChoice::choose(func::FuncOp function, const AttentionProgram &program) {
  if (chip.kind != ChipDescription::GPU) {
    return chooseCpu(function, program);
  }
  GpuProblem problem = problemOf(program);
  bool isHopper = chip.name == "sm_90a";
  std::string reason = isHopper ? whyNotHopper(program) : "";
  if (auto forced =
          function->getAttrOfType<tile::ScheduleAttr>("tile.schedule")) {
    return follow(function, forced, problem, reason);
  }
  if (!isHopper) {
    return choosePortable(function, problem);
  }
  std::optional<HopperBlocks> blocks;
  if (reason.empty()) {
    blocks = chooseHopperBlocks(problem, !program.masks.empty(),
                                chip.sharedMemory, &reason);
  }
  if (blocks) {
    return chooseHopper(function, problem, *blocks);
  }
  if (options.path == "hopper") {
    return function.emitError()
           << "option 'path': expected 'portable' or nothing, got 'hopper', "
              "which does not serve this program: "
           << reason;
  }
  function->setAttr("tile.portable",
                    StringAttr::get(function.getContext(), reason));
  return choosePortable(function, problem);
}
