//===- Explain.cpp - what was chosen, in lines -----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Pipelines/Explain.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using namespace attnfuse;

namespace {
std::string toText(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// Reads the decisions off the module as attn-to-tile finds and leaves it.
class Explainer : public PassInstrumentation {
public:
  Explainer(ModuleOp module, std::vector<std::string> &lines)
      : module(module), lines(lines) {}

  void runBeforePass(Pass *pass, Operation *) override {
    if (pass->getArgument() != "attn-to-tile") {
      return;
    }
    module.walk([&](func::FuncOp function) {
      if (!function->hasAttr(attn::kKernelAttrName)) {
        return;
      }
      lines.push_back("kernel " + function.getSymName().str());
      function.walk([&](Operation *op) {
        if (Attribute tiles = op->getDiscardableAttr(attn::kTilesAttrName)) {
          lines.push_back("  mask: " + toText(tiles));
        }
        if (Attribute place =
                op->getDiscardableAttr(attn::kPlacementAttrName)) {
          lines.push_back("  rotation: " + toText(place));
        }
      });
    });
  }

  void runAfterPass(Pass *pass, Operation *) override {
    if (pass->getArgument() != "attn-to-tile") {
      return;
    }
    module.walk([&](tile::KernelOp kernel) {
      std::string line = "tile kernel " + kernel.getSymName().str();
      if (kernel.getScheduleAttr()) {
        line += ": " + toText(kernel.getScheduleAttr());
      }
      lines.push_back(line);
    });
  }

private:
  ModuleOp module;
  std::vector<std::string> &lines;
};
} // namespace

std::unique_ptr<PassInstrumentation>
attnfuse::makeExplainer(ModuleOp module, std::vector<std::string> &lines) {
  return std::make_unique<Explainer>(module, lines);
}
