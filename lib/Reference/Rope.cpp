//===- Rope.cpp - rotary position embedding --------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

/// Frequencies of Su et al. 2021, with the scalings as their authors give them.
static std::vector<double> frequencies(attn::RopeOp op, double &magnitude) {
  const double twoPi = 2 * std::acos(-1.0);
  int64_t width = op.getRotaryWidth();
  double base = op.getBase().convertToDouble();
  attn::RopeScalingAttr scaling = op.getScalingAttr();
  magnitude = 1;
  std::vector<double> result;
  for (int64_t t = 0; t < width / 2; ++t) {
    double exponent = 2.0 * t / width;
    double theta = 1 / std::pow(base, exponent);
    if (!scaling) {
      result.push_back(theta);
      continue;
    }
    double s = scaling.getFactor(), length = scaling.getOriginal();
    double wavelength = twoPi / theta;
    switch (scaling.getKind()) {
    case attn::RopeScalingKind::Linear:
      theta /= s;
      break;
    case attn::RopeScalingKind::NTK:
      if (width > 2) {
        theta = 1 / std::pow(base * std::pow(s, double(width) / (width - 2)),
                             exponent);
      }
      break;
    case attn::RopeScalingKind::Llama3: {
      double shortest = length / scaling.getHigh();
      double longest = length / scaling.getLow();
      if (wavelength > longest) {
        theta /= s;
      } else if (wavelength >= shortest) {
        double blend = (length / wavelength - scaling.getLow()) /
                       (scaling.getHigh() - scaling.getLow());
        theta = (1 - blend) * (theta / s) + blend * theta;
      }
      break;
    }
    case attn::RopeScalingKind::Yarn: {
      magnitude = scaling.getAttention();
      auto dimension = [&](double rotations) {
        return width * std::log(length / (rotations * twoPi)) /
               (2 * std::log(base));
      };
      double first = std::max(std::floor(dimension(scaling.getHigh())), 0.0);
      double last =
          std::min(std::ceil(dimension(scaling.getLow())), width - 1.0);
      if (first == last) {
        last += 0.001;
      }
      double ramp = std::min(std::max((t - first) / (last - first), 0.0), 1.0);
      theta = theta / s * ramp + theta * (1 - ramp);
      break;
    }
    }
    result.push_back(theta);
  }
  return result;
}

llvm::Expected<ArrayRefPtr>
attnfuse::reference::evaluateRope(attn::RopeOp op, const Values &values) {
  ArrayRefPtr input = values.lookup(op.getInput());
  auto output = std::make_shared<Array>(*input);
  int64_t width = op.getRotaryWidth(), columns = input->shape[3];
  int64_t heads = input->shape[1], rows = input->shape[2];
  ArrayRefPtr cosTable = op.getCos() ? values.lookup(op.getCos()) : nullptr;
  ArrayRefPtr sinTable = op.getSin() ? values.lookup(op.getSin()) : nullptr;
  ArrayRefPtr offset = op.getOffset() ? values.lookup(op.getOffset()) : nullptr;
  int64_t tableRows =
      cosTable ? std::min(cosTable->shape[0], sinTable->shape[0]) : 0;
  double magnitude;
  std::vector<double> theta = frequencies(op, magnitude);
  bool interleaved = op.getStyle() == attn::RopeStyle::Interleaved;
  for (int64_t b = 0; b < input->shape[0]; ++b) {
    int64_t start = static_cast<int64_t>(op.getPosition());
    if (offset) {
      start = addSaturating(start, positionOf(*offset, b));
    }
    if (start < 0) {
      return errorAt(op.getLoc(), "expected positions of at least 0, got " +
                                      llvm::Twine(start));
    }
    for (int64_t n = 0; n < rows; ++n) {
      int64_t position = addSaturating(start, n);
      if (cosTable && position >= tableRows) {
        return errorAt(op.getLoc(), "position " + llvm::Twine(position) +
                                        " lies outside rotary tables of " +
                                        llvm::Twine(tableRows) + " rows");
      }
      for (int64_t t = 0; t < width / 2; ++t) {
        double angle = static_cast<double>(position) * theta[t];
        int64_t place = cosTable ? position * (width / 2) + t : 0;
        double c =
            cosTable ? cosTable->data[place] : magnitude * std::cos(angle);
        double s =
            sinTable ? sinTable->data[place] : magnitude * std::sin(angle);
        int64_t u = interleaved ? 2 * t : t;
        int64_t w = interleaved ? 2 * t + 1 : t + width / 2;
        for (int64_t h = 0; h < heads; ++h) {
          int64_t at = ((b * heads + h) * rows + n) * columns;
          double x = input->data[at + u], y = input->data[at + w];
          output->data[at + u] = x * c - y * s;
          output->data[at + w] = y * c + x * s;
        }
      }
    }
  }
  return ArrayRefPtr(output);
}
