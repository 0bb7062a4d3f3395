//===- Compare.cpp - results against the oracle ----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Reference/Compare.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

static double unitRoundoff(DType type) {
  switch (type) {
  case DType::BF16:
    return 0x1p-8;
  case DType::F16:
    return 0x1p-11;
  default:
    return 0x1p-24;
  }
}

/// The parts of the tolerance that do not depend on the element: 2^-24 V F, and
/// what it is multiplied by.
static std::pair<double, double> arithmeticError(func::FuncOp function,
                                                 ArrayRef<HostTensor> inputs) {
  double largest = 1;
  int64_t keys = 1;
  for (const HostTensor &tensor : inputs) {
    if (!isFloat(tensor.dtype()) || tensor.rank() != 4) {
      continue;
    }
    keys = std::max(keys, tensor.shape()[2]);
    for (double value : tensor.toDouble()) {
      // The lowest finite value stands for a mask in biases.
      if (std::isfinite(value) && std::abs(value) < 1e30) {
        largest = std::max(largest, std::abs(value));
      }
    }
  }
  int64_t width = 1;
  double factor = 0;
  function->getParentOfType<ModuleOp>().walk([&](Operation *op) {
    if (auto product = dyn_cast<attn::ScaledDotProductOp>(op)) {
      width = std::max(width, product.getQuery().getType().getDimSize(3));
      factor += 1;
    }
  });
  factor = std::max(factor, 1.0);
  function->getParentOfType<ModuleOp>().walk([&](attn::ReluAttentionOp relu) {
    factor *= relu.getMean() ? 1 : static_cast<double>(keys);
  });
  return {0x1p-24 * largest * factor,
          16 * std::sqrt(double(width)) + 2 * std::sqrt(double(keys)) + 64};
}

namespace {
/// What matrix units add: half a unit in the last place of the narrowest
/// storage type, and by how much rotated factors move a score, per unit of it.
struct MatrixError {
  double unit = 0, rotation = 0;
};
} // namespace

static MatrixError matrixError(func::FuncOp function,
                               ArrayRef<HostTensor> inputs) {
  MatrixError error;
  double largest = 0, longest = 0;
  for (const HostTensor &tensor : inputs) {
    if (!isFloat(tensor.dtype()) || tensor.rank() != 4) {
      continue;
    }
    if (tensor.dtype() == DType::BF16 || tensor.dtype() == DType::F16) {
      error.unit = std::max(error.unit, unitRoundoff(tensor.dtype()) / 2);
    }
    int64_t width = std::max<int64_t>(tensor.shape()[3], 1);
    double norm = 0;
    int64_t place = 0;
    for (double value : tensor.toDouble()) {
      norm = place++ % width ? norm : 0;
      if (std::isfinite(value) && std::abs(value) < 1e30) {
        largest = std::max(largest, std::abs(value));
        norm += value * value;
        longest = std::max(longest, norm);
      }
    }
  }
  double scale = 0;
  bool rotates = false;
  function->getParentOfType<ModuleOp>().walk([&](Operation *op) {
    rotates |= isa<attn::RopeOp>(op);
    if (auto product = dyn_cast<attn::ScaledDotProductOp>(op)) {
      scale = std::max(scale, std::abs(product.getScaleValue()));
    }
  });
  error.rotation = rotates ? scale * largest * std::sqrt(longest) : 0;
  return error;
}

/// Rows per head such that the oracle needs about that many seconds at most.
static int64_t affordableRows(ArrayRef<HostTensor> inputs, double seconds) {
  double heads = 1, rows = 1, width = 1;
  for (const HostTensor &input : inputs) {
    if (input.rank() == 4) {
      ArrayRef<int64_t> shape = input.shape();
      heads = std::max<double>(heads, shape[0] * shape[1]);
      rows = std::max<double>(rows, shape[2]);
      width = std::max<double>(width, shape[3]);
    }
  }
  constexpr double operationsPerSecond = 1.5e9;
  double perRow = heads * rows * width * 4;
  double affordable = seconds * operationsPerSecond / perRow;
  return affordable >= rows
             ? 0
             : std::max<int64_t>(static_cast<int64_t>(affordable), 4);
}

llvm::Expected<std::vector<Comparison>>
attnfuse::reference::compare(func::FuncOp function, ArrayRef<HostTensor> inputs,
                             ArrayRef<HostTensor> results, Options options,
                             double seconds) {
  if (!options.maxRowsPerHead) {
    options.maxRowsPerHead = affordableRows(inputs, seconds);
  }
  auto exact = evaluate(function, inputs, options);
  if (!exact) {
    return exact.takeError();
  }
  auto [scale, fixed] = arithmeticError(function, inputs);
  MatrixError matrix;
  if (options.matrixUnits) {
    matrix = matrixError(function, inputs);
  }
  std::vector<Comparison> checks;
  for (auto [place, result] : llvm::enumerate(results)) {
    Comparison check;
    const Result &wanted = (*exact)[place];
    std::vector<double> got = result.toDouble();
    std::vector<double> want = wanted.values.toDouble();
    double unit = unitRoundoff(result.dtype());
    int64_t width = result.rank() == 4 ? result.shape()[3] : 1;
    check.worstError = -1;
    for (size_t n = 0; n < got.size(); ++n) {
      if (!wanted.computed.empty() && !wanted.computed[n / width]) {
        continue;
      }
      ++check.compared;
      bool same =
          got[n] == want[n] || (std::isnan(got[n]) && std::isnan(want[n]));
      double error = same ? 0 : std::abs(got[n] - want[n]);
      double magnitude =
          wanted.magnitudes.empty() ? 0 : wanted.magnitudes[n / width];
      double tolerance =
          unit * std::abs(want[n]) + scale * (fixed + 4 * magnitude);
      if (result.dtype() == DType::F16) {
        tolerance += 0x1p-25;
      }
      if (!wanted.spreads.empty()) {
        tolerance +=
            4 * matrix.unit * (1 + matrix.rotation) * wanted.spreads[n];
      } else if (!wanted.magnitudes.empty()) {
        tolerance += 4 * matrix.unit * matrix.rotation;
      }
      // NaN and infinity where a number is due are beyond every tolerance.
      double share = std::isfinite(error) && std::isfinite(tolerance)
                         ? error / tolerance
                         : std::numeric_limits<double>::infinity();
      share = same ? 0 : share;
      if (share > check.worstShare || check.worstError < 0) {
        check.worstShare = share;
        check.worstError = error;
        int64_t rest = n;
        SmallVector<int64_t> index(result.rank());
        for (int64_t dim = result.rank() - 1; dim >= 0; --dim) {
          index[dim] = rest % result.shape()[dim];
          rest /= result.shape()[dim];
        }
        check.worstPlace.clear();
        for (int64_t at : index) {
          check.worstPlace +=
              (check.worstPlace.empty() ? "" : ", ") + std::to_string(at);
        }
      }
    }
    check.worstError = std::max(check.worstError, 0.0);
    checks.push_back(check);
  }
  return checks;
}
