//===- Attention.cpp - attention, row by row -------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "Scores.h"

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

namespace {
/// Runs a function on every chosen row, on several threads; the first error
/// ends it.
class RowLoop {
public:
  /// Consumes the weights of row number `place` of the result.
  using Body = llvm::function_ref<void(const Row &row, int64_t place,
                                       const WeightRow &weights)>;

  RowLoop(const WeightProgram &program, const Options &options, Body body)
      : program(program), body(body), batch(program.query->shape[0]),
        heads(program.query->shape[1]), queries(program.query->shape[2]),
        keys(program.key->shape[2]), chosen(queries) {
    result.magnitudes.assign(batch * heads * queries, 0);
    if (options.maxRowsPerHead > 0 && options.maxRowsPerHead < queries) {
      chosen = options.maxRowsPerHead;
      result.computed.assign(batch * heads * queries, 0);
    }
    threads = options.threads
                  ? options.threads
                  : std::max(1u, std::thread::hardware_concurrency());
  }

  llvm::Expected<RowResult> run(ArrayRefPtr values) {
    std::vector<std::thread> helpers;
    for (unsigned n = 1; n < threads && n < batch * heads * chosen; ++n) {
      helpers.emplace_back([this] { work(); });
    }
    work();
    for (std::thread &helper : helpers) {
      helper.join();
    }
    if (!error.empty()) {
      return llvm::createStringError(error);
    }
    result.values = std::move(values);
    return std::move(result);
  }

private:
  /// The n-th chosen row: evenly spaced, the first and the last among them; a
  /// single one is the last.
  int64_t queryAt(int64_t n) const {
    return chosen == queries ? n
           : chosen == 1     ? queries - 1
                             : n * (queries - 1) / (chosen - 1);
  }

  void work() {
    int64_t count = batch * heads * chosen;
    WeightRow weights;
    for (int64_t n = next++; n < count; n = next++) {
      Row row{n / chosen / heads, n / chosen % heads, queryAt(n % chosen),
              queries, keys};
      int64_t place = (row.batch * heads + row.head) * queries + row.query;
      std::string mine;
      program.run(row, weights, mine);
      if (!mine.empty()) {
        std::lock_guard<std::mutex> lock(mutex);
        error = error.empty() ? mine : error;
        next = count;
        return;
      }
      body(row, place, weights);
      result.magnitudes[place] = weights.magnitude;
      if (!result.computed.empty()) {
        result.computed[place] = 1;
      }
    }
  }

  const WeightProgram &program;
  Body body;
  int64_t batch, heads, queries, keys, chosen;
  unsigned threads;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::string error;
  RowResult result;
};
} // namespace

llvm::Expected<RowResult> attnfuse::reference::evaluateAggregate(
    attn::AggregateOp op, const Values &values, const Options &options) {
  auto program = WeightProgram::decode(op.getWeights(), values);
  if (!program) {
    return program.takeError();
  }
  ArrayRefPtr value = values.lookup(op.getValue());
  const SmallVector<int64_t> &shape = program->query->shape;
  int64_t heads = shape[1], valueHeads = value->shape[1];
  int64_t width = value->shape[3];
  auto result = std::make_shared<Array>();
  result->shape = {shape[0], heads, shape[2], width};
  result->data.assign(result->size(), 0);
  std::vector<double> spreads(options.matrixUnits ? result->size() : 0, 0);
  auto sum = [&](const Row &row, int64_t place, const WeightRow &weights) {
    int64_t valueHead = row.head * valueHeads / heads;
    const double *v = value->data.data() +
                      (row.batch * valueHeads + valueHead) * row.keys * width;
    double *out = result->data.data() + place * width;
    for (int64_t j = 0; j < row.keys; ++j) {
      double weight = weights.weights[j];
      // A weight of exactly 0 contributes nothing, whatever V holds.
      if (weight != 0) {
        for (int64_t e = 0; e < width; ++e) {
          out[e] += weight * v[j * width + e];
        }
        for (int64_t e = 0; e < (options.matrixUnits ? width : 0); ++e) {
          double term = weight * v[j * width + e];
          spreads[place * width + e] += term * term;
        }
      }
    }
    for (int64_t e = 0; e < (options.matrixUnits ? width : 0); ++e) {
      double &spread = spreads[place * width + e];
      spread = std::sqrt(spread);
    }
  };
  auto rows = RowLoop(*program, options, sum).run(result);
  if (rows) {
    rows->spreads = std::move(spreads);
  }
  return rows;
}

llvm::Expected<RowResult>
attnfuse::reference::evaluateLse(attn::SoftmaxOp op, const Values &values,
                                 const Options &options) {
  auto program = WeightProgram::decode(op.getWeights(), values);
  if (!program) {
    return program.takeError();
  }
  auto result = std::make_shared<Array>();
  result->shape.assign(program->query->shape.begin(),
                       program->query->shape.begin() + 3);
  result->data.assign(result->size(), 0);
  auto keep = [&](const Row &, int64_t place, const WeightRow &weights) {
    result->data[place] = weights.lse;
  };
  return RowLoop(*program, options, keep).run(result);
}
