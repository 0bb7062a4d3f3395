//===- TileToLoops.cpp - tile kernels to vector loops ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Approximation.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attnfuse {
#define GEN_PASS_DEF_CONVERTTILETOLOOPS
#include "AttnFuse/Conversion/Passes.h.inc"
} // namespace attnfuse

using namespace mlir;
using namespace attnfuse;

namespace {
struct ConvertTileToLoopsPass
    : public attnfuse::impl::ConvertTileToLoopsBase<ConvertTileToLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    llvm::Expected<ChipDescription> host = lookupChip("cpu");
    if (!host) {
      getOperation().emitError() << llvm::toString(host.takeError());
      return signalPassFailure();
    }
    int64_t bits = vectorBits ? int64_t(vectorBits) : host->vectorBits;
    if (bits < 128 || bits > 2048 || (bits & (bits - 1)) ||
        vectorRegisters < 0) {
      getOperation().emitError()
          << "expected vector-bits to be a power of two between 128 and 2048 "
             "and vector-registers of at least 0, got "
          << bits << " and " << vectorRegisters;
      return signalPassFailure();
    }
    CpuVectors cpu{bits / 32, vectorRegisters ? int64_t(vectorRegisters)
                                              : host->vectorRegisters};
    SmallVector<tile::KernelOp> kernels(
        getOperation().getOps<tile::KernelOp>());
    if (kernels.empty()) {
      return;
    }
    OpBuilder b(&getContext());
    b.setInsertionPoint(kernels.front());
    SymbolTable symbols(getOperation());
    auto target = ModuleOp::create(b, getOperation().getLoc(), "kernels");
    symbols.insert(target);
    for (tile::KernelOp kernel : kernels) {
      FailureOr<func::FuncOp> function =
          KernelLowering(kernel, cpu).lower(target);
      if (failed(function) || failed(approximateMath(*function))) {
        return signalPassFailure();
      }
    }
    // The launches now name functions of the module of kernels.
    getOperation().walk([&](tile::LaunchOp launch) {
      auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(
          launch, launch.getKernelAttr());
      if (!kernel) {
        return;
      }
      // Whoever runs the launch has to know the grid's rule.
      launch->setAttr("grid", kernel.getGrid());
      launch.setKernelAttr(SymbolRefAttr::get(
          &getContext(), target.getSymName().value(),
          FlatSymbolRefAttr::get(launch.getKernelAttr().getLeafReference())));
    });
    for (tile::KernelOp kernel : kernels) {
      kernel.erase();
    }
  }

private:
  LogicalResult approximateMath(func::FuncOp function) {
    RewritePatternSet patterns(&getContext());
    MathPolynomialApproximationOptions options;
    options.enableAvx2 = false;
    populateMathPolynomialApproximationPatterns(patterns, options);
    return applyPatternsGreedily(function, std::move(patterns));
  }
};
} // namespace
