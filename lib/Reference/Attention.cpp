//===- Attention.cpp - attention, row by row -------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

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
  double magnitude;
  std::vector<double> theta = frequencies(op, magnitude);
  bool interleaved = op.getStyle() == attn::RopeStyle::Interleaved;
  for (int64_t b = 0; b < input->shape[0]; ++b) {
    int64_t start = static_cast<int64_t>(op.getPosition());
    if (op.getOffset()) {
      start += positionOf(*values.lookup(op.getOffset()), b);
    }
    for (int64_t n = 0; n < rows; ++n) {
      int64_t position = start + n;
      if (cosTable && (position < 0 || position >= cosTable->shape[0])) {
        return errorAt(op.getLoc(), "position " + llvm::Twine(position) +
                                        " lies outside rotary tables of " +
                                        llvm::Twine(cosTable->shape[0]) +
                                        " rows");
      }
      for (int64_t t = 0; t < width / 2; ++t) {
        double angle = static_cast<double>(position) * theta[t];
        double c = magnitude * std::cos(angle);
        double s = magnitude * std::sin(angle);
        if (cosTable) {
          c = cosTable->at({position, t});
          s = sinTable->at({position, t});
        }
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

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
/// What a row of weights is accompanied by.
struct RowFacts {
  double lse = 0;
  double magnitude = 0;
};

/// The operations between a product and its weights, decoded.
class RowProgram {
public:
  static llvm::Expected<RowProgram> decode(Value weights, const Values &values);

  /// The weights of a row, its log-sum-exp (softmax only) and magnitude.
  void run(const Row &row, std::vector<double> &weights, RowFacts &facts,
           std::string &error) const;

  ArrayRefPtr query, key;

private:
  using Step = std::function<void(const Row &, std::vector<double> &,
                                  std::vector<uint8_t> &, std::vector<Scalar> &,
                                  std::string &)>;
  std::vector<Step> steps;
  double scale = 1;
  bool isSoftmax = false, divides = false;
  ArrayRefPtr sinks;
};
} // namespace

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

llvm::Expected<RowProgram> RowProgram::decode(Value weights,
                                              const Values &values) {
  RowProgram program;
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
    return errorAt(weights.getLoc(), "the oracle knows weights made by "
                                     "attn.softmax or attn.relu_attention");
  }
  SmallVector<Operation *> chain;
  while (true) {
    op = scores.getDefiningOp();
    if (!op) {
      return errorAt(scores.getLoc(),
                     "the oracle knows scores made in the same function");
    }
    if (auto product = dyn_cast<attn::ScaledDotProductOp>(op)) {
      program.query = values.lookup(product.getQuery());
      program.key = values.lookup(product.getKey());
      program.scale =
          product.getScale()
              ? product.getScale()->convertToDouble()
              : 1 / std::sqrt(static_cast<double>(program.query->shape[3]));
      break;
    }
    chain.push_back(op);
    scores = op->getOperand(0);
  }
  for (Operation *step : llvm::reverse(chain)) {
    if (auto mask = dyn_cast<attn::MaskOp>(step)) {
      auto decoded = MaskProgram::decode(mask.getMask(), values);
      if (!decoded) {
        return decoded.takeError();
      }
      program.steps.push_back([m = *decoded](const Row &row, auto &, auto &keep,
                                             auto &slots, std::string &error) {
        std::vector<uint8_t> mine(row.keys);
        m.run(row, mine, slots, error);
        for (int64_t j = 0; j < row.keys; ++j) {
          keep[j] &= mine[j];
        }
      });
    } else if (auto alibi = dyn_cast<attn::AlibiOp>(step)) {
      std::vector<double> slopes = alibi.getSlopes()
                                       ? values.lookup(alibi.getSlopes())->data
                                       : alibiSlopes(program.query->shape[1]);
      program.steps.push_back(
          [slopes](const Row &row, auto &s, auto &, auto &, auto &) {
            for (int64_t j = 0; j < row.keys; ++j) {
              s[j] -= slopes[row.head] *
                      std::abs(row.query + row.keys - row.queries - j);
            }
          });
    } else if (auto bias = dyn_cast<attn::AdditiveBiasOp>(step)) {
      program.steps.push_back(
          [array = values.lookup(bias.getBias())](const Row &row, auto &s,
                                                  auto &, auto &, auto &) {
            for (int64_t j = 0; j < row.keys; ++j) {
              s[j] += array->at({row.batch, row.head, row.query, j});
            }
          });
    } else if (auto cap = dyn_cast<attn::SoftcapOp>(step)) {
      program.steps.push_back(
          [c = cap.getCap().convertToDouble()](const Row &row, auto &s, auto &,
                                               auto &, auto &) {
            for (int64_t j = 0; j < row.keys; ++j) {
              s[j] = c * std::tanh(s[j] / c);
            }
          });
    } else if (auto mod = dyn_cast<attn::ScoreModOp>(step)) {
      auto region = ScalarProgram::decode(mod.getBody(), values);
      if (!region) {
        return region.takeError();
      }
      program.steps.push_back([body = *region](const Row &row, auto &s,
                                               auto &keep, auto &slots,
                                               std::string &error) {
        for (int64_t j = 0; j < row.keys && error.empty(); ++j) {
          if (!keep[j]) {
            continue;
          }
          Scalar arguments[] = {
              {s[j], 0}, {0, row.batch}, {0, row.head}, {0, row.query}, {0, j}};
          s[j] = body.run(arguments, slots, error).f;
        }
      });
    } else {
      return errorAt(step->getLoc(), "the oracle does not know '" +
                                         step->getName().getStringRef() + "'");
    }
  }
  return program;
}

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

void RowProgram::run(const Row &row, std::vector<double> &s, RowFacts &facts,
                     std::string &error) const {
  int64_t width = query->shape[3], keyHeads = key->shape[1];
  int64_t keyHead = row.head * keyHeads / query->shape[1];
  const double *q =
      &query->data[((row.batch * query->shape[1] + row.head) * row.queries +
                    row.query) *
                   width];
  const double *k =
      key->data.data() + (row.batch * keyHeads + keyHead) * row.keys * width;
  s.assign(row.keys, 0);
  std::vector<uint8_t> keep(row.keys, 1);
  std::vector<Scalar> slots;
  for (int64_t j = 0; j < row.keys; ++j) {
    s[j] = scale * dot(q, k + j * width, width);
  }
  for (const Step &step : steps) {
    step(row, s, keep, slots, error);
    if (!error.empty()) {
      return;
    }
  }
  if (!isSoftmax) {
    for (int64_t j = 0; j < row.keys; ++j) {
      double weight = s[j] < 0 ? 0 : s[j];
      if (keep[j]) {
        facts.magnitude = std::max(facts.magnitude, std::abs(s[j]));
      }
      s[j] = keep[j] ? (divides ? weight / row.keys : weight) : 0;
    }
    return;
  }
  double maximum = sinks ? sinks->data[row.head] : -kInfinity;
  bool hasNaN = false;
  for (int64_t j = 0; j < row.keys; ++j) {
    if (keep[j]) {
      hasNaN |= std::isnan(s[j]);
      maximum = std::max(maximum, s[j]);
    }
  }
  double sum = sinks && maximum > -kInfinity
                   ? std::exp(sinks->data[row.head] - maximum)
                   : 0;
  for (int64_t j = 0; j < row.keys; ++j) {
    double score = s[j];
    s[j] = keep[j] && (maximum > -kInfinity || hasNaN)
               ? std::exp(score - maximum)
               : 0;
    sum += s[j];
    // The lowest finite value stands for a mask.
    if (s[j] > 1e-7 && std::abs(score) < 1e30) {
      facts.magnitude = std::max(facts.magnitude, std::abs(score));
    }
  }
  facts.lse = sum == 0 ? -kInfinity : maximum + std::log(sum);
  for (int64_t j = 0; j < row.keys; ++j) {
    s[j] = sum == 0 ? 0 : s[j] / sum;
  }
}

//===----------------------------------------------------------------------===//
// All rows
//===----------------------------------------------------------------------===//

/// Calls `fn(row)` for every chosen row on several threads; the first error
/// ends it.
static llvm::Error
forEachRow(const RowProgram &program, const Options &options,
           std::vector<uint8_t> &computed,
           llvm::function_ref<void(const Row &, std::string &)> fn) {
  int64_t batch = program.query->shape[0], heads = program.query->shape[1];
  int64_t queries = program.query->shape[2], keys = program.key->shape[2];
  int64_t chosen = queries;
  if (options.maxRowsPerHead > 0 && options.maxRowsPerHead < queries) {
    chosen = options.maxRowsPerHead;
    computed.assign(batch * heads * queries, 0);
  }
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::string error;
  auto work = [&] {
    for (int64_t n = next++; n < batch * heads * chosen; n = next++) {
      int64_t place = n % chosen;
      int64_t query = chosen == queries ? place
                      : chosen == 1     ? queries - 1
                                        : place * (queries - 1) / (chosen - 1);
      Row row{n / chosen / heads, n / chosen % heads, query, queries, keys};
      std::string mine;
      fn(row, mine);
      if (!mine.empty()) {
        std::lock_guard<std::mutex> lock(mutex);
        error = mine;
        next = batch * heads * chosen;
        return;
      }
      if (!computed.empty()) {
        computed[(row.batch * heads + row.head) * queries + query] = 1;
      }
    }
  };
  unsigned count = options.threads
                       ? options.threads
                       : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned n = 1; n < count; ++n) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread &thread : threads) {
    thread.join();
  }
  return error.empty() ? llvm::Error::success()
                       : llvm::createStringError(error);
}

llvm::Expected<RowResult> attnfuse::reference::evaluateAggregate(
    attn::AggregateOp op, const Values &values, const Options &options) {
  auto program = RowProgram::decode(op.getWeights(), values);
  if (!program) {
    return program.takeError();
  }
  ArrayRefPtr value = values.lookup(op.getValue());
  int64_t heads = program->query->shape[1], queries = program->query->shape[2];
  int64_t valueHeads = value->shape[1], width = value->shape[3];
  RowResult result;
  result.values = std::make_shared<Array>();
  result.values->shape = {program->query->shape[0], heads, queries, width};
  result.values->data.assign(result.values->size(), 0);
  result.magnitudes.assign(result.values->shape[0] * heads * queries, 0);
  llvm::Error error = forEachRow(
      *program, options, result.computed,
      [&](const Row &row, std::string &message) {
        std::vector<double> weights;
        RowFacts facts;
        program->run(row, weights, facts, message);
        if (!message.empty()) {
          return;
        }
        result
            .magnitudes[(row.batch * heads + row.head) * queries + row.query] =
            facts.magnitude;
        int64_t valueHead = row.head * valueHeads / heads;
        const double *v =
            value->data.data() +
            (row.batch * valueHeads + valueHead) * row.keys * width;
        double *out =
            result.values->data.data() +
            ((row.batch * heads + row.head) * queries + row.query) * width;
        for (int64_t j = 0; j < row.keys; ++j) {
          // A weight of exactly 0 contributes nothing, whatever V holds.
          if (weights[j] != 0) {
            for (int64_t e = 0; e < width; ++e) {
              out[e] += weights[j] * v[j * width + e];
            }
          }
        }
      });
  if (error) {
    return std::move(error);
  }
  return result;
}

llvm::Expected<RowResult>
attnfuse::reference::evaluateLse(attn::SoftmaxOp op, const Values &values,
                                 const Options &options) {
  auto program = RowProgram::decode(op.getWeights(), values);
  if (!program) {
    return program.takeError();
  }
  int64_t heads = program->query->shape[1], queries = program->query->shape[2];
  RowResult result;
  result.values = std::make_shared<Array>();
  result.values->shape = {program->query->shape[0], heads, queries};
  result.values->data.assign(result.values->size(), 0);
  result.magnitudes.assign(result.values->shape[0] * heads * queries, 0);
  llvm::Error error =
      forEachRow(*program, options, result.computed,
                 [&](const Row &row, std::string &message) {
                   std::vector<double> weights;
                   RowFacts facts;
                   program->run(row, weights, facts, message);
                   int64_t place =
                       (row.batch * heads + row.head) * queries + row.query;
                   result.values->data[place] = facts.lse;
                   result.magnitudes[place] = facts.magnitude;
                 });
  if (error) {
    return std::move(error);
  }
  return result;
}
