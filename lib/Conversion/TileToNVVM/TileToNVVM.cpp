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

namespace attnfuse {
#define GEN_PASS_DEF_CONVERTTILETONVVM
#include "AttnFuse/Conversion/Passes.h.inc"
} // namespace attnfuse

using namespace mlir;
using namespace attnfuse;

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
    auto target = gpu::GPUModuleOp::create(b, module.getLoc(), "kernels");
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
    nvvm::KernelLowering lowering(kernel);
    auto function = lowering.lower(target);
    if (failed(function)) {
      return failure();
    }
    if (lowering.sharedBytes() > description.sharedMemory) {
      return kernel.emitOpError()
             << "needs " << lowering.sharedBytes()
             << " bytes of shared memory, and " << description.name << " has "
             << description.sharedMemory
             << " for a block; use smaller blocks or "
             << "fewer stages";
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

  ChipDescription description;
};
} // namespace
