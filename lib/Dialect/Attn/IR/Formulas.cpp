//===- Formulas.cpp - published formulas -----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Attn/IR/Formulas.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include <cmath>

using namespace attnfuse::attn;

static constexpr double kTwoPi = 6.283185307179586476925286766559;

/// YaRN (Peng et al. 2023, section 3.2): the share of pair t that keeps its
/// frequency, 1 for fast pairs and 0 for slow ones.
static double yarnRamp(RopeScalingAttr scaling, double base, int64_t rotary,
                       int64_t pair) {
  auto correction = [&](double rotations) {
    return rotary * std::log(scaling.getOriginal() / (rotations * kTwoPi)) /
           (2 * std::log(base));
  };
  double low = std::max(std::floor(correction(scaling.getHigh())), 0.0);
  double high = std::min(std::ceil(correction(scaling.getLow())),
                         static_cast<double>(rotary - 1));
  // The published code widens an empty ramp by a thousandth.
  double width = high == low ? 0.001 : high - low;
  return 1 - std::clamp((pair - low) / width, 0.0, 1.0);
}

RopeAngles attnfuse::attn::computeRopeAngles(RopeOp rope) {
  RopeAngles angles;
  int64_t rotary = rope.getRotaryWidth();
  double base = rope.getBase().convertToDouble();
  RopeScalingAttr scaling = rope.getScalingAttr();
  double factor = scaling ? scaling.getFactor() : 1.0;
  if (scaling && scaling.getKind() == RopeScalingKind::NTK && rotary > 2) {
    base *= std::pow(factor, rotary / static_cast<double>(rotary - 2));
  }
  for (int64_t pair = 0; pair < rotary / 2; ++pair) {
    double theta = std::pow(base, -2.0 * pair / rotary);
    if (scaling) {
      switch (scaling.getKind()) {
      case RopeScalingKind::NTK:
        break;
      case RopeScalingKind::Linear:
        theta /= factor;
        break;
      case RopeScalingKind::Yarn: {
        double kept = yarnRamp(scaling, base, rotary, pair);
        theta = theta / factor * (1 - kept) + theta * kept;
        break;
      }
      case RopeScalingKind::Llama3: {
        double turns = scaling.getOriginal() * theta / kTwoPi;
        double smooth = std::clamp((turns - scaling.getLow()) /
                                       (scaling.getHigh() - scaling.getLow()),
                                   0.0, 1.0);
        theta = (1 - smooth) * theta / factor + smooth * theta;
        break;
      }
      }
    }
    angles.frequencies.push_back(theta);
  }
  if (scaling && scaling.getKind() == RopeScalingKind::Yarn) {
    angles.magnitude = scaling.getAttention();
  }
  return angles;
}
