//===- ExecutionTest.cpp - generated programs against the oracle -*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every combinator alone and in compositions, in every storage type, over
// lengths, widths and head ratios: compiled once with lengths left dynamic, run
// on outputs poisoned with NaN, twice with the same bits, and compared with
// the float64 oracle under its derived tolerance.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"
#include "Session.h"

#include "AttnFuse/Reference/Compare.h"
#include "AttnFuse/Reference/ShapeCheck.h"
#include "AttnFuse/Support/ElementTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::test;

namespace {

/// Fills an argument by the rule of Programs.cpp.
void fillArgument(HostTensor &tensor, const std::string &rule, uint64_t seed) {
  HostTensor flat = HostTensor::wrap(tensor.dtype(), {tensor.numElements()},
                                     {1}, tensor.data(), nullptr);
  auto setAll = [&](auto value) {
    for (int64_t n = 0; n < tensor.numElements(); ++n) {
      flat.set({n}, value(n));
    }
  };
  int64_t last = tensor.rank() ? tensor.shape().back() : 1;
  if (rule == "normal") {
    fillRandomNormal(tensor, seed);
  } else if (rule == "unit") {
    setAll([](int64_t n) { return 0.25 + 0.5 * ((n * 37) % 101) / 101; });
  } else if (rule.rfind("value ", 0) == 0) {
    setAll([&](int64_t) { return std::stod(rule.substr(6)); });
  } else if (rule.rfind("documents ", 0) == 0) {
    int64_t length = std::stol(rule.substr(10));
    setAll([&](int64_t n) { return double((n % last) / length); });
  } else if (rule.rfind("randint ", 0) == 0) {
    int64_t low = 0, high = 0;
    std::sscanf(rule.c_str(), "randint %ld %ld", &low, &high);
    fillRandomInts(tensor, seed, low, high);
  } else if (rule == "infinite" || rule == "lowest") {
    // Whole rows and single pairs.
    double low = rule == "infinite" ? -std::numeric_limits<double>::infinity()
                                    : -std::numeric_limits<float>::max();
    setAll([&](int64_t n) {
      int64_t row = n / last;
      return row % 11 == 4 || n % 7 == 3 ? low : 0.5 * (n % 5);
    });
  } else {
    fillRandomBools(tensor, seed, 0.6);
  }
}

HostTensor makeArgument(Type type, const std::string &name,
                        const std::string &rule, int64_t queries, int64_t keys,
                        uint64_t seed) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  if (tensor) {
    shape.assign(tensor.getShape().begin(), tensor.getShape().end());
    int blockQ = 1, blockK = 1;
    std::sscanf(rule.c_str(), "blocks %d %d", &blockQ, &blockK);
    bool isKeySide = name[0] == 'k' || name == "v" || name == "nk" ||
                     rule.rfind("keys", 0) == 0;
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      if (!ShapedType::isDynamic(extent)) {
        continue;
      }
      // Activations and biases have queries in dimension 2, keys in 3.
      bool keySide = isKeySide || (tensor.getRank() == 4 && dim == 3);
      int64_t block = keySide ? blockK : blockQ;
      extent = ((keySide ? keys : queries) + block - 1) / block;
    }
  }
  HostTensor result = llvm::cantFail(HostTensor::allocate(
      *dtypeOf(tensor ? tensor.getElementType() : type), shape));
  fillArgument(result, rule, seed);
  return result;
}

std::vector<HostTensor> makeArguments(const Session &session,
                                      const Program &program, int64_t queries,
                                      int64_t keys) {
  std::vector<HostTensor> arguments;
  func::FuncOp function = session.function();
  for (BlockArgument parameter : function.getArguments()) {
    unsigned place = parameter.getArgNumber();
    static const char *const names[] = {"q", "k", "v"};
    std::string name =
        place < 3 ? names[place] : program.extras[place - 3].name;
    std::string rule = place < 3 ? "normal" : program.extras[place - 3].fill;
    arguments.push_back(makeArgument(parameter.getType(), name, rule, queries,
                                     keys, place + 1));
  }
  return arguments;
}

/// Runs one pair of lengths and compares.
void check(Session &session, const Program &program, int64_t queries,
           int64_t keys) {
  SCOPED_TRACE("Nq = " + std::to_string(queries) +
               ", Nk = " + std::to_string(keys));
  std::vector<HostTensor> arguments =
      makeArguments(session, program, queries, keys);
  if (llvm::Error error =
          reference::checkInputs(session.function(), arguments)) {
    FAIL() << llvm::toString(std::move(error));
  }
  auto results = session.run(arguments);
  ASSERT_TRUE(static_cast<bool>(results))
      << llvm::toString(results.takeError());
  auto again = session.run(arguments);
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  for (auto [one, two] : llvm::zip(*results, *again)) {
    EXPECT_EQ(std::memcmp(one.data(), two.data(), one.sizeInBytes()), 0)
        << "two runs differ";
  }
  auto comparisons = reference::compare(session.function(), arguments, *results,
                                        Session::oracle(), 0.3);
  ASSERT_TRUE(static_cast<bool>(comparisons))
      << llvm::toString(comparisons.takeError());
  for (const reference::Comparison &comparison : *comparisons) {
    EXPECT_LE(comparison.worstShare, 1)
        << "error " << comparison.worstError << " at [" << comparison.worstPlace
        << "]";
    EXPECT_GT(comparison.compared, 0);
  }
}

using Lengths = std::vector<std::pair<int64_t, int64_t>>;

void checkProgram(const ProgramSpec &spec, const Lengths &lengths,
                  const std::string &rope = "") {
  SCOPED_TRACE(spec.name());
  Program program = makeProgram(spec);
  Session session(program.text, rope);
  ASSERT_TRUE(session.ready()) << program.text;
  for (auto [queries, keys] : lengths) {
    check(session, program, queries, keys);
  }
}

/// The cross product {1, 7, 64, 130, 1000}^2.
Lengths allLengths() {
  Lengths lengths;
  for (int64_t queries : {1, 7, 64, 130, 1000}) {
    for (int64_t keys : {1, 7, 64, 130, 1000}) {
      lengths.push_back({queries, keys});
    }
  }
  return lengths;
}

/// A few of each: used where other parameters vary.
const Lengths kFewLengths = {{1, 130}, {7, 7}, {130, 64}, {200, 200}};

const std::vector<std::string> kTypes = {"f32", "bf16", "f16"};

//===----------------------------------------------------------------------===//
// Each piece alone
//===----------------------------------------------------------------------===//

class Alone
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Alone, MatchesOracle) {
  auto [piece, dtype] = GetParam();
  ProgramSpec spec;
  spec.pieces = {piece};
  spec.dtype = dtype;
  spec.width = 32;
  spec.valueWidth = 32;
  checkProgram(spec, allLengths());
}

INSTANTIATE_TEST_SUITE_P(Pieces, Alone,
                         testing::Combine(testing::ValuesIn(allPieces()),
                                          testing::ValuesIn(kTypes)),
                         [](const auto &info) {
                           return std::get<0>(info.param) + "_" +
                                  std::get<1>(info.param);
                         });

//===----------------------------------------------------------------------===//
// Compositions
//===----------------------------------------------------------------------===//

const std::vector<std::vector<std::string>> kCompositions = {
    {"rope", "causal"},
    {"rope", "window"},
    {"rope", "bias", "causal"},
    {"rope", "alibi"},
    {"rope", "softcap", "causal"},
    {"rope_llama3", "causal", "softmax_lse"},
    {"rope_yarn", "window", "softmax_sinks"},
    {"rope_interleaved", "prefix_lm"},
    {"rope_partial", "document", "causal"},
    {"rope_tables", "causal"},
    {"rope_offset", "causal"},
    {"rope_batch_offset", "prefix_lengths"},
    {"alibi", "causal"},
    {"alibi", "window"},
    {"alibi_slopes", "document"},
    {"alibi", "bias", "causal"},
    {"alibi", "softcap"},
    {"alibi", "block_sparse"},
    {"bias", "causal"},
    {"bias", "softcap"},
    {"bias_heads", "block_sparse_wide"},
    {"bias_keys", "causal"},
    {"bias_keys", "bias_queries"},
    {"bias_infinite", "causal"},
    {"bias_infinite", "softmax_sinks"},
    {"bias_lowest", "causal", "softmax_lse"},
    {"softcap", "causal"},
    {"softcap", "window", "causal"},
    {"softcap", "score_mod"},
    {"score_mod", "causal", "softmax_lse"},
    {"score_mod_table", "mask_mod"},
    {"score_mod_table", "window_wide", "softmax_sinks"},
    {"causal", "document"},
    {"causal", "prefix_lengths"},
    {"causal", "mask_mod_table"},
    {"causal", "block_sparse"},
    {"causal_top_left", "window"},
    {"causal_offset", "document"},
    {"window", "document", "softmax_lse"},
    {"window", "block_sparse"},
    {"not_window", "causal"},
    {"not_document", "causal"},
    {"global_window", "causal"},
    {"global_window", "document"},
    {"two_bands", "prefix_lengths"},
    {"mask_mod", "prefix_lengths"},
    {"mask_mod", "document", "causal"},
    {"relu", "causal"},
    {"relu_mean", "window"},
    {"relu_mean", "bias"},
    {"relu", "rope", "block_sparse"},
    {"relu_mean", "document", "softcap"},
    {"nothing", "softmax_sinks"},
    {"full", "causal", "full"},
};

class Composed
    : public testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(Composed, MatchesOracle) {
  auto [number, dtype] = GetParam();
  // Widths and head ratios take turns.
  static const int widths[] = {32, 40, 64, 80, 96, 128, 256};
  static const std::pair<int, int> heads[] = {{4, 4}, {4, 1}, {6, 2}, {3, 3}};
  size_t turn = number + 3 * (dtype == "bf16") + 5 * (dtype == "f16");
  ProgramSpec spec;
  spec.pieces = kCompositions[number];
  spec.dtype = dtype;
  spec.batch = number % 2 + 1;
  spec.width = widths[turn % 7];
  spec.valueWidth = widths[(turn + turn / 7) % 7];
  std::tie(spec.queryHeads, spec.keyHeads) = heads[turn % 4];
  Lengths lengths = kFewLengths;
  lengths.push_back({65, 192});
  lengths.push_back({1, 1});
  checkProgram(spec, lengths);
}

INSTANTIATE_TEST_SUITE_P(
    Pieces, Composed,
    testing::Combine(testing::Range<size_t>(0, kCompositions.size()),
                     testing::ValuesIn(kTypes)),
    [](const auto &info) {
      std::string name;
      for (const std::string &piece : kCompositions[std::get<0>(info.param)]) {
        name += piece + "_";
      }
      return name + std::get<1>(info.param);
    });

//===----------------------------------------------------------------------===//
// Widths and head ratios
//===----------------------------------------------------------------------===//

class Widths : public testing::TestWithParam<
                   std::tuple<int, std::pair<int, int>, std::string>> {};

TEST_P(Widths, MatchesOracle) {
  auto [width, heads, dtype] = GetParam();
  ProgramSpec spec;
  spec.pieces = {"rope", "causal", "softmax_lse"};
  spec.dtype = dtype;
  spec.batch = 1;
  std::tie(spec.queryHeads, spec.keyHeads) = heads;
  spec.width = width;
  spec.valueWidth = width;
  checkProgram(spec, {{130, 130}, {7, 64}});
}

INSTANTIATE_TEST_SUITE_P(
    Ratios, Widths,
    testing::Combine(testing::Values(16, 32, 40, 64, 72, 80, 96, 128, 192, 256),
                     testing::Values(std::pair(4, 4), std::pair(28, 4),
                                     std::pair(12, 1)),
                     testing::ValuesIn(kTypes)),
    [](const auto &info) {
      auto heads = std::get<1>(info.param);
      return "d" + std::to_string(std::get<0>(info.param)) + "_h" +
             std::to_string(heads.first) + "k" + std::to_string(heads.second) +
             "_" + std::get<2>(info.param);
    });

//===----------------------------------------------------------------------===//
// Places of rotations, ragged lengths, empty extents
//===----------------------------------------------------------------------===//

TEST(Rotation, EveryPlaceAgreesWithTheOracle) {
  for (const char *place : {"in_loop", "once"}) {
    for (const char *piece : {"rope", "rope_interleaved", "rope_partial",
                              "rope_batch_offset", "rope_tables"}) {
      for (const std::string &dtype : kTypes) {
        ProgramSpec spec;
        spec.pieces = {piece, "causal"};
        spec.dtype = dtype;
        checkProgram(spec, kFewLengths, place);
      }
    }
  }
}

TEST(Rotation, OneQueryAtItsPositionEqualsItsRowOfAFullRun) {
  // Decoding: the last query alone, at its position, against all keys.
  auto text = [](int64_t queries, const std::string &position) {
    std::string q = "tensor<1x2x" + std::to_string(queries) + "x64xf32>";
    std::string k = "tensor<1x2x512x64xf32>";
    std::string s = "<1x2x" + std::to_string(queries) + "x512>";
    return "func.func @main(%q: " + q + ", %k: " + k + ", %v: " + k + ") -> " +
           q + " {\n  %qr = attn.rope %q {position = " + position +
           " : i64} : " + q + "\n  %kr = attn.rope %k : " + k +
           "\n  %s = attn.scaled_dot_product %qr, %kr : " + q + ", " + k +
           "\n  %c = attn.causal\n  %m = attn.mask %s, %c : !attn.scores" + s +
           "\n  %w = attn.softmax %m : !attn.scores" + s +
           "\n  %o = attn.aggregate %w, %v : !attn.weights" + s + ", " + k +
           "\n  return %o : " + q + "\n}\n";
  };
  Session full(text(512, "0"), ""), step(text(1, "511"), "");
  ASSERT_TRUE(full.ready() && step.ready());
  std::vector<HostTensor> arguments;
  for (uint64_t seed : {1, 2, 3}) {
    arguments.push_back(
        llvm::cantFail(HostTensor::allocate(DType::F32, {1, 2, 512, 64})));
    fillRandomNormal(arguments.back(), seed);
  }
  HostTensor whole = llvm::cantFail(full.run(arguments))[0];
  HostTensor last = HostTensor::wrap(
      DType::F32, {1, 2, 1, 64}, {2 * 512 * 64, 512 * 64, 64, 1},
      static_cast<float *>(arguments[0].data()) + 511 * 64, nullptr);
  arguments[0] = last;
  HostTensor alone = llvm::cantFail(step.run(arguments))[0];
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t d = 0; d < 64; ++d) {
      EXPECT_NEAR(alone.at({0, head, 0, d}), whole.at({0, head, 511, d}), 1e-6);
    }
  }
}

TEST(Lengths, RaggedTails) {
  ProgramSpec spec;
  spec.pieces = {"causal", "bias"};
  checkProgram(spec, {{1, 1},
                      {63, 63},
                      {65, 65},
                      {192, 192},
                      {1025, 1025},
                      {128, 384},
                      {1, 16},
                      {2, 5},
                      {8, 4}});
}

TEST(Lengths, EmptyExtents) {
  for (const char *normaliser : {"softmax_lse", "relu_mean"}) {
    ProgramSpec spec;
    spec.pieces = {"causal", normaliser};
    Program program = makeProgram(spec);
    Session session(program.text, "");
    ASSERT_TRUE(session.ready());
    for (auto [queries, keys] : Lengths{{5, 0}, {0, 5}, {0, 0}}) {
      std::vector<HostTensor> arguments =
          makeArguments(session, program, queries, keys);
      auto results = session.run(arguments);
      ASSERT_TRUE(static_cast<bool>(results));
      for (double value : (*results)[0].toDouble()) {
        EXPECT_EQ(value, 0);
      }
      if (results->size() > 1) {
        for (double value : (*results)[1].toDouble()) {
          EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
        }
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// What is not read does not count
//===----------------------------------------------------------------------===//

class Unread : public testing::TestWithParam<std::string> {};

TEST_P(Unread, NaNInRemovedKeysAndValues) {
  for (const char *mask : {"causal", "window", "prefix_lengths", "document",
                           "block_sparse_wide", "mask_mod_table"}) {
    for (const char *normaliser : {"softmax", "relu_mean"}) {
      SCOPED_TRACE(mask);
      ProgramSpec spec;
      spec.pieces = {mask, normaliser};
      spec.dtype = GetParam();
      spec.batch = 1;
      Program program = makeProgram(spec);
      Session session(program.text, "");
      ASSERT_TRUE(session.ready());
      std::vector<HostTensor> arguments =
          makeArguments(session, program, 150, 150);
      // Keys and values of some rows are not numbers: rows that read them are
      // not either, all others are as if nothing had happened.
      for (int64_t row : {90, 120, 149}) {
        for (int64_t head = 0; head < spec.keyHeads; ++head) {
          for (int64_t d = 0; d < spec.width; ++d) {
            double value = row == 90 ? INFINITY : NAN;
            arguments[1].set({0, head, row, d}, value);
            arguments[2].set({0, head, row, d}, value);
          }
        }
        if (std::string(mask) == "mask_mod_table") {
          arguments[3].set({0, row}, 0);
        }
      }
      auto results = session.run(arguments);
      ASSERT_TRUE(static_cast<bool>(results));
      auto exact = reference::evaluate(session.function(), arguments);
      ASSERT_TRUE(static_cast<bool>(exact));
      std::vector<double> got = (*results)[0].toDouble();
      std::vector<double> want = (*exact)[0].values.toDouble();
      size_t finite = 0;
      for (size_t n = 0; n < got.size(); ++n) {
        if (std::isfinite(want[n])) {
          ++finite;
          EXPECT_NEAR(got[n], want[n], GetParam() == "f32" ? 1e-4 : 3e-2)
              << "element " << n;
        } else {
          EXPECT_FALSE(std::isfinite(got[n])) << "element " << n;
        }
        if (testing::Test::HasFailure()) {
          return;
        }
      }
      EXPECT_GT(finite, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Unread, testing::ValuesIn(kTypes),
                         [](const auto &info) { return info.param; });

class Strides : public testing::TestWithParam<
                    std::tuple<std::string, std::vector<std::string>>> {};

TEST_P(Strides, ViewsEqualCopies) {
  auto [dtype, pieces] = GetParam();
  ProgramSpec spec;
  spec.pieces = pieces;
  spec.dtype = dtype;
  Program program = makeProgram(spec);
  Session session(program.text, "");
  ASSERT_TRUE(session.ready());
  std::vector<HostTensor> arguments = makeArguments(session, program, 77, 77);
  auto plain = session.run(arguments);
  ASSERT_TRUE(static_cast<bool>(plain));
  HostTensor expected = (*plain)[0];
  // Each argument in turn: wider rows than are used, a transposed order, and a
  // last stride other than 1.
  for (size_t place = 0; place < arguments.size(); ++place) {
    const HostTensor &original = arguments[place];
    SmallVector<int64_t> shape(original.shape());
    for (int form = 0; form < 3; ++form) {
      SmallVector<int64_t> order = {0, 1, 2, 3}, padded = shape;
      if (form == 0) {
        padded[3] += 3;
      } else if (form == 1) {
        std::swap(order[1], order[2]);
      } else {
        std::swap(order[2], order[3]);
      }
      SmallVector<int64_t> stored, strides(4);
      for (int64_t dim : order) {
        stored.push_back(padded[dim]);
      }
      HostTensor memory =
          llvm::cantFail(HostTensor::allocate(original.dtype(), stored));
      memory.poison();
      SmallVector<int64_t> step = contiguousStrides(stored);
      for (int dim = 0; dim < 4; ++dim) {
        strides[order[dim]] = step[dim];
      }
      HostTensor view = HostTensor::wrap(original.dtype(), shape, strides,
                                         memory.data(), nullptr);
      for (int64_t a = 0; a < shape[0]; ++a) {
        for (int64_t b = 0; b < shape[1]; ++b) {
          for (int64_t c = 0; c < shape[2]; ++c) {
            for (int64_t d = 0; d < shape[3]; ++d) {
              view.set({a, b, c, d}, original.at({a, b, c, d}));
            }
          }
        }
      }
      std::vector<HostTensor> changed = arguments;
      changed[place] = view;
      auto results = session.run(changed);
      ASSERT_TRUE(static_cast<bool>(results));
      // Another kernel may serve other strides: it rounds elsewhere.
      std::vector<double> got = (*results)[0].toDouble();
      std::vector<double> want = expected.toDouble();
      double worst = 0;
      for (size_t n = 0; n < got.size(); ++n) {
        double error = std::abs(got[n] - want[n]);
        worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
      }
      EXPECT_LE(worst, dtype == "f32" ? 0 : 3e-2)
          << "argument " << place << ", form " << form;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Strides,
    testing::Combine(testing::ValuesIn(kTypes),
                     testing::Values(std::vector<std::string>{"bias", "causal"},
                                     std::vector<std::string>{"full"})),
    [](const auto &info) {
      return std::get<0>(info.param) + "_" + std::get<1>(info.param).back();
    });

} // namespace
