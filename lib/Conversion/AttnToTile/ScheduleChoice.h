//===- ScheduleChoice.h - schedules of a program's kernels -----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_SCHEDULECHOICE_H
#define ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_SCHEDULECHOICE_H

#include "Program.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

namespace attnfuse {

/// What the pass's options ask for; 0, -1 for `rescale`, and empty strings
/// leave a choice to the chip's table.
struct ScheduleOptions {
  int64_t blockM = 0, blockN = 0, warps = 0, stages = 0, rescale = -1;
  std::string scheduler, path;
};

/// Schedules from, in this order, the function's `tile.schedule`, the options
/// and the chip's table. What is asked for and cannot be is an error that names
/// the option, what was found and what is supported.
class ScheduleChoice {
public:
  ScheduleChoice(ChipDescription chip, ScheduleOptions options)
      : chip(std::move(chip)), options(std::move(options)) {}

  /// Refuses options that no program can follow on the chip.
  mlir::LogicalResult
  check(llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;

  /// The schedule of the program's main kernel. On sm_90a the function gets
  /// `tile.portable`, the reason for a kernel that is not one for sm_90a, or
  /// `tile.shared_result` if results leave through the queries' slots.
  mlir::FailureOr<tile::ScheduleAttr> choose(mlir::func::FuncOp function,
                                             const AttentionProgram &program);

  /// The schedule of the portable kernel beside one for sm_90a: the table's.
  mlir::FailureOr<tile::ScheduleAttr>
  standIn(mlir::func::FuncOp function, const AttentionProgram &program) const;

private:
  mlir::FailureOr<tile::ScheduleAttr>
  chooseCpu(mlir::func::FuncOp function, const AttentionProgram &program) const;
  mlir::FailureOr<tile::ScheduleAttr>
  choosePortable(mlir::func::FuncOp function, const GpuProblem &problem) const;
  mlir::FailureOr<tile::ScheduleAttr> chooseHopper(mlir::func::FuncOp function,
                                                   const GpuProblem &problem,
                                                   HopperBlocks blocks) const;
  mlir::FailureOr<tile::ScheduleAttr>
  follow(mlir::func::FuncOp function, tile::ScheduleAttr forced,
         const GpuProblem &problem, llvm::StringRef whyNotHopper) const;

  std::string whyNotHopper(AttentionProgram program) const;
  std::optional<GpuBlocks> tableBlocks(mlir::func::FuncOp function,
                                       const GpuProblem &problem,
                                       bool required) const;

  ChipDescription chip;
  ScheduleOptions options;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNTOTILE_SCHEDULECHOICE_H
