//===- TileToNVVM.cpp - scheduled tile kernels to nvvm ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Conversion/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

namespace attnfuse {
#define GEN_PASS_DEF_CONVERTTILETONVVM
#include "AttnFuse/Conversion/Passes.h.inc"
} // namespace attnfuse

using namespace mlir;
using namespace attnfuse;

/// Four times the registers of a thread: code for more is of no use, and takes
/// minutes to make.
static constexpr int64_t kMaxPerLane = 1024;

namespace {
struct ConvertTileToNVVMPass
    : public attnfuse::impl::ConvertTileToNVVMBase<ConvertTileToNVVMPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    Location loc = UnknownLoc::get(context);
    llvm::Expected<ChipDescription> known = lookupChip(chip);
    if (!known) {
      return emitError(loc) << llvm::toString(known.takeError());
    }
    description = *known;
    if (description.kind != ChipDescription::GPU) {
      return emitError(loc) << "option 'chip': expected a GPU, got '"
                            << chip.getValue() << "'";
    }
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
    if (kernels.empty()) {
      return;
    }
    OpBuilder b(module.getBodyRegion());
    b.setInsertionPointToEnd(module.getBody());
    SymbolTable symbols(module);
    auto target = gpu::GPUModuleOp::create(b, module.getLoc(), "kernels");
    symbols.insert(target);
    for (tile::KernelOp kernel : kernels) {
      if (failed(convert(kernel, target))) {
        return signalPassFailure();
      }
    }
    // Launches name the functions, and keep what a manifest needs.
    module.walk([&](tile::LaunchOp launch) {
      auto kernel = module.lookupSymbol<tile::KernelOp>(launch.getKernel());
      if (!kernel) {
        return;
      }
      launch->setAttr("grid", kernel.getGrid());
      if (auto other = launch->getAttrOfType<FlatSymbolRefAttr>("otherwise")) {
        auto second = module.lookupSymbol<tile::KernelOp>(other.getAttr());
        launch->setAttr("otherwise_grid", second.getGrid());
        launch->setAttr("otherwise",
                        SymbolRefAttr::get(target.getSymNameAttr(), {other}));
      }
      launch.setKernelAttr(SymbolRefAttr::get(
          target.getSymNameAttr(),
          {FlatSymbolRefAttr::get(kernel.getSymNameAttr())}));
    });
    for (tile::KernelOp kernel : kernels) {
      kernel.erase();
    }
  }

  LogicalResult convert(tile::KernelOp kernel, gpu::GPUModuleOp target) {
    if (!kernel.getScheduleAttr() || !kernel.getScheduleAttr().getWarps()) {
      return kernel.emitOpError()
             << "expected a scheduled kernel (a schedule with warps); compile "
                "with a GPU as the chip of attn-to-tile";
    }
    if (failed(checkKernel(kernel))) {
      return failure();
    }
    nvvm::KernelLowering lowering(kernel);
    if (lowering.sharedBytes() > description.sharedMemory) {
      return kernel.emitOpError()
             << "needs " << lowering.sharedBytes()
             << " bytes of shared memory, and " << description.name << " has "
             << description.sharedMemory
             << " for a block; use smaller blocks or "
             << "fewer stages";
    }
    auto function = lowering.lower(target);
    if (failed(function)) {
      return failure();
    }
    Builder b(&getContext());
    (*function)->setAttr("attnfuse.shared_bytes",
                         b.getI64IntegerAttr(lowering.sharedBytes()));
    std::string extras = lowering.extras();
    if (!extras.empty()) {
      (*function)->setAttr("attnfuse.extras", b.getStringAttr(extras));
    }
    if (kernel.getScheduleAttr().getPersistent()) {
      (*function)->setAttr("attnfuse.persistent", b.getI64IntegerAttr(1));
    }
    (*function)->setAttr("attnfuse.threads",
                         b.getI64IntegerAttr(lowering.threads()));
    return success();
  }

  /// What verifiers accept and this lowering or the chip cannot do.
  LogicalResult checkKernel(tile::KernelOp kernel) const {
    StringRef name = kernel.getSymName();
    bool isName = !name.empty() && !llvm::isDigit(name.front()) &&
                  llvm::all_of(name, [](char c) {
                    return llvm::isAlnum(c) || c == '_' || c == '$';
                  });
    if (!isName || name == nvvm::kSharedName) {
      return kernel.emitOpError()
             << "expected a name that PTX takes (letters, digits, _ and $) "
                "other than "
             << nvvm::kSharedName << ", got '" << name << "'";
    }
    for (auto [number, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      if (!isa<tile::ViewType>(type) && !type.isF32() && !type.isIndex() &&
          !type.isInteger(64) && !type.isInteger(32) && !type.isInteger(8) &&
          !type.isInteger(1)) {
        return kernel.emitOpError()
               << "expected scalar arguments of f32, index, i64, i32, i8 or "
                  "i1 on a GPU, got "
               << type << " for argument " << number;
      }
    }
    int64_t slots = 0;
    for (auto alloc : kernel.getBody().front().getOps<tile::AllocOp>()) {
      slots += alloc.getRing().getType().getStages();
    }
    for (auto roles : kernel.getBody().front().getOps<tile::RolesOp>()) {
      if (description.name != "sm_90a") {
        return roles.emitOpError()
               << "needs sm_90a (setmaxnreg, wgmma and bulk copies), and the "
                  "chip is "
               << description.name
               << "; use a schedule without roles, or compile for sm_90a";
      }
      if (slots > nvvm::kMaxSlots) {
        return roles.emitOpError() << "expected at most " << nvvm::kMaxSlots
                                   << " slots in all rings together, for "
                                      "which there are barriers, got "
                                   << slots;
      }
    }
    auto perLane = [](Type type) -> int64_t {
      if (auto pending = dyn_cast<tile::PendingType>(type)) {
        type = pending.getTile();
      }
      auto tile = dyn_cast<tile::TileType>(type);
      return tile ? nvvm::KernelLowering::fragmentOf(tile).values() : 0;
    };
    WalkResult result = kernel.walk([&](Operation *op) {
      for (Type type : op->getResultTypes()) {
        if (perLane(type) > kMaxPerLane) {
          op->emitOpError()
              << "has a tile of which a lane holds " << perLane(type)
              << " elements, at most " << kMaxPerLane << " are supported, got "
              << type << "; use smaller blocks or more warps";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  ChipDescription description;
};
} // namespace
