//===- Scores.cpp - rows of scores and weights -----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Scores.h"

#include "ScalarProgram.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// ALiBi's slopes (Press et al. 2021), as its code makes them: a geometric
/// sequence for a power of two, else that of the power below, filled up with
/// every other term of that of the power above.
static std::vector<double> alibiSlopes(int64_t heads) {
  auto forPower = [](int64_t n) {
    std::vector<double> slopes;
    double start = std::pow(2.0, -std::pow(2.0, -(std::log2(double(n)) - 3)));
    for (int64_t h = 0; h < n; ++h) {
      slopes.push_back(std::pow(start, h + 1));
    }
    return slopes;
  };
  int64_t power = 1;
  while (power * 2 <= heads) {
    power *= 2;
  }
  std::vector<double> slopes = forPower(power);
  std::vector<double> more = forPower(2 * power);
  for (int64_t h = 0; static_cast<int64_t>(slopes.size()) < heads; h += 2) {
    slopes.push_back(more[h]);
  }
  return slopes;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

llvm::Error WeightProgram::decodeStep(Operation *op, const Values &values) {
  if (auto alibi = dyn_cast<attn::AlibiOp>(op)) {
    std::vector<double> slopes = alibi.getSlopes()
                                     ? values.lookup(alibi.getSlopes())->data
                                     : alibiSlopes(query->shape[1]);
    steps.push_back([slopes](const Row &row, auto &s, auto &, auto &) {
      for (int64_t j = 0; j < row.keys; ++j) {
        int64_t distance = row.query + row.keys - row.queries - j;
        s[j] -= slopes[row.head] * static_cast<double>(std::abs(distance));
      }
    });
    return llvm::Error::success();
  }
  if (auto bias = dyn_cast<attn::AdditiveBiasOp>(op)) {
    steps.push_back([array = values.lookup(bias.getBias())](
                        const Row &row, auto &s, auto &, auto &) {
      for (int64_t j = 0; j < row.keys; ++j) {
        s[j] += array->data[array->offset({row.batch, row.head, row.query, j})];
      }
    });
    return llvm::Error::success();
  }
  if (auto cap = dyn_cast<attn::SoftcapOp>(op)) {
    steps.push_back([c = cap.getCap().convertToDouble()](
                        const Row &row, auto &s, const Keep &keep, auto &) {
      for (int64_t j = 0; j < row.keys; ++j) {
        if (keep[j]) {
          s[j] = c * std::tanh(s[j] / c);
        }
      }
    });
    return llvm::Error::success();
  }
  if (auto mod = dyn_cast<attn::ScoreModOp>(op)) {
    auto region = ScalarProgram::decode(mod.getBody(), values);
    if (!region) {
      return region.takeError();
    }
    steps.push_back([body = *region](const Row &row, auto &s, const Keep &keep,
                                     std::string &error) {
      std::vector<Scalar> slots = body.begin();
      for (int64_t j = 0; j < row.keys && error.empty(); ++j) {
        if (keep[j]) {
          Scalar arguments[] = {
              {s[j], 0}, {0, row.batch}, {0, row.head}, {0, row.query}, {0, j}};
          s[j] = body.run(arguments, slots, error).f;
        }
      }
    });
    return llvm::Error::success();
  }
  return errorAt(op->getLoc(), "the oracle does not know '" +
                                   op->getName().getStringRef() + "'");
}

llvm::Expected<WeightProgram> WeightProgram::decode(Value weights,
                                                    const Values &values) {
  WeightProgram program;
  Operation *op = weights.getDefiningOp();
  Value scores;
  if (auto softmax = dyn_cast_or_null<attn::SoftmaxOp>(op)) {
    program.isSoftmax = true;
    program.sinks =
        softmax.getSinks() ? values.lookup(softmax.getSinks()) : nullptr;
    scores = softmax.getScores();
  } else if (auto relu = dyn_cast_or_null<attn::ReluAttentionOp>(op)) {
    program.divides = relu.getMean();
    scores = relu.getScores();
  } else {
    return errorAt(weights.getLoc(),
                   "the oracle knows weights made in the function that uses "
                   "them, got " +
                       describeValue(weights));
  }
  SmallVector<Operation *> chain;
  SmallVector<Value> masks;
  while (!scores.getDefiningOp<attn::ScaledDotProductOp>()) {
    op = scores.getDefiningOp();
    if (!isa_and_nonnull<attn::AttnDialect>(op ? op->getDialect() : nullptr)) {
      return errorAt(scores.getLoc(),
                     "the oracle knows scores made in the function that uses "
                     "them, got " +
                         describeValue(scores));
    }
    // Where a mask stands among the operations is of no consequence.
    if (auto mask = dyn_cast<attn::MaskOp>(op)) {
      masks.push_back(mask.getMask());
    } else {
      chain.push_back(op);
    }
    scores = op->getOperand(0);
  }
  auto product = scores.getDefiningOp<attn::ScaledDotProductOp>();
  program.query = values.lookup(product.getQuery());
  program.key = values.lookup(product.getKey());
  program.scale =
      product.getScale()
          ? product.getScale()->convertToDouble()
          : 1 / std::sqrt(static_cast<double>(program.query->shape[3]));
  auto mask = MaskProgram::decode(masks, values);
  if (!mask) {
    return mask.takeError();
  }
  program.mask = std::move(*mask);
  for (Operation *step : llvm::reverse(chain)) {
    if (llvm::Error error = program.decodeStep(step, values)) {
      return std::move(error);
    }
  }
  return program;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// In several sums, so that the compiler may use vectors.
static double dot(const double *a, const double *b, int64_t count) {
  double sums[8] = {};
  int64_t n = 0;
  for (; n + 8 <= count; n += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      sums[lane] += a[n + lane] * b[n + lane];
    }
  }
  for (; n < count; ++n) {
    sums[0] += a[n] * b[n];
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
         ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void WeightProgram::run(const Row &row, WeightRow &out,
                        std::string &error) const {
  int64_t width = query->shape[3], keyHeads = key->shape[1];
  int64_t keyHead = row.head * keyHeads / query->shape[1];
  const double *q =
      query->data.data() +
      ((row.batch * query->shape[1] + row.head) * row.queries + row.query) *
          width;
  const double *k =
      key->data.data() + (row.batch * keyHeads + keyHead) * row.keys * width;
  mask.run(row, out.keep, out.scratch, error);
  if (!error.empty()) {
    return;
  }
  out.weights.assign(row.keys, 0);
  for (int64_t j = 0; j < row.keys; ++j) {
    if (out.keep[j]) {
      out.weights[j] = scale * dot(q, k + j * width, width);
    }
  }
  for (const Step &step : steps) {
    step(row, out.weights, out.keep, error);
    if (!error.empty()) {
      return;
    }
  }
  out.lse = out.magnitude = 0;
  isSoftmax ? softmax(row, out) : rectify(row, out);
}

void WeightProgram::rectify(const Row &row, WeightRow &out) const {
  for (int64_t j = 0; j < row.keys; ++j) {
    double &s = out.weights[j];
    if (!out.keep[j]) {
      s = 0;
      continue;
    }
    out.magnitude = std::max(out.magnitude, std::abs(s));
    s = s < 0 ? 0 : s;
    if (divides) {
      s /= static_cast<double>(row.keys);
    }
  }
}

void WeightProgram::softmax(const Row &row, WeightRow &out) const {
  double sink = sinks ? sinks->data[row.head] : -kInfinity;
  double maximum = sink;
  bool hasNaN = std::isnan(sink);
  for (int64_t j = 0; j < row.keys; ++j) {
    if (out.keep[j]) {
      hasNaN |= std::isnan(out.weights[j]);
      maximum = std::max(maximum, out.weights[j]);
    }
  }
  // Nothing is left, or all that is left has score -inf.
  if (maximum == -kInfinity && !hasNaN) {
    out.weights.assign(row.keys, 0);
    out.lse = -kInfinity;
    return;
  }
  double sum = sink == -kInfinity ? 0 : std::exp(sink - maximum);
  for (int64_t j = 0; j < row.keys; ++j) {
    double score = out.weights[j];
    double &weight = out.weights[j];
    weight = out.keep[j] && score != -kInfinity ? std::exp(score - maximum) : 0;
    sum += weight;
    // The lowest finite value stands for a mask.
    if (weight > 1e-7 && std::abs(score) < 1e30) {
      out.magnitude = std::max(out.magnitude, std::abs(score));
    }
  }
  out.lse = maximum + std::log(sum);
  for (double &weight : out.weights) {
    weight /= sum;
  }
}
