//===- Oracle.h - programs and tensors of the oracle's tests ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TEST_UNIT_REFERENCE_ORACLE_H
#define ATTNFUSE_TEST_UNIT_REFERENCE_ORACLE_H

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Reference/Evaluator.h"
#include "AttnFuse/Reference/ShapeCheck.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

namespace attnfuse::reference::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A parsed module; its first function is the program.
class Program {
public:
  explicit Program(const std::string &text) {
    context.loadDialect<attn::AttnDialect, mlir::arith::ArithDialect,
                        mlir::func::FuncDialect, mlir::math::MathDialect,
                        mlir::tensor::TensorDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(
        text, mlir::ParserConfig(&context), "program.mlir");
  }

  mlir::func::FuncOp function() {
    return *module->getOps<mlir::func::FuncOp>().begin();
  }
  bool parsed() const { return static_cast<bool>(module); }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

inline HostTensor makeTensor(DType type, llvm::ArrayRef<int64_t> shape) {
  return llvm::cantFail(HostTensor::allocate(type, shape));
}

/// A flat view of a contiguous tensor, for access by place.
inline HostTensor flat(const HostTensor &tensor) {
  return HostTensor::wrap(tensor.dtype(), {tensor.numElements()}, {1},
                          tensor.data(), nullptr);
}

inline HostTensor makeTensor(DType type, llvm::ArrayRef<int64_t> shape,
                             const std::vector<double> &values) {
  HostTensor tensor = makeTensor(type, shape);
  HostTensor elements = flat(tensor);
  for (size_t n = 0; n < values.size(); ++n) {
    elements.set({static_cast<int64_t>(n)}, values[n]);
  }
  return tensor;
}

inline HostTensor randomTensor(llvm::ArrayRef<int64_t> shape, uint64_t seed) {
  HostTensor tensor = makeTensor(DType::F32, shape);
  fillRandomNormal(tensor, seed);
  return tensor;
}

inline HostTensor scalarTensor(DType type, double value) {
  return makeTensor(type, {}, {value});
}

inline HostTensor longTensor(llvm::ArrayRef<int64_t> shape,
                             llvm::ArrayRef<int64_t> values) {
  HostTensor tensor = makeTensor(DType::I64, shape);
  std::copy(values.begin(), values.end(),
            static_cast<int64_t *>(tensor.data()));
  return tensor;
}

/// The results, or none with the error reported to the test.
inline std::vector<Result> run(const std::string &text,
                               llvm::ArrayRef<HostTensor> inputs,
                               const Options &options = {}) {
  Program program(text);
  if (!program.parsed()) {
    ADD_FAILURE() << "the program does not parse";
    return {};
  }
  auto results = evaluate(program.function(), inputs, options);
  if (!results) {
    ADD_FAILURE() << llvm::toString(results.takeError());
    return {};
  }
  return std::move(*results);
}

inline std::vector<double> runOne(const std::string &text,
                                  llvm::ArrayRef<HostTensor> inputs) {
  std::vector<Result> results = run(text, inputs);
  return results.empty() ? std::vector<double>() : results[0].values.toDouble();
}

/// The error's text; empty if there is none.
inline std::string errorOf(const std::string &text,
                           llvm::ArrayRef<HostTensor> inputs) {
  Program program(text);
  if (!program.parsed()) {
    return "the program does not parse";
  }
  auto results = evaluate(program.function(), inputs);
  return results ? "" : llvm::toString(results.takeError());
}

inline void expectNear(const std::vector<double> &got,
                       const std::vector<double> &want,
                       double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t n = 0; n < got.size(); ++n) {
    if (std::isnan(want[n]) || std::isinf(want[n])) {
      EXPECT_TRUE(got[n] == want[n] ||
                  (std::isnan(got[n]) && std::isnan(want[n])))
          << "at " << n << ": " << got[n] << " for " << want[n];
    } else {
      EXPECT_NEAR(got[n], want[n], tolerance * std::max(1.0, std::abs(want[n])))
          << "at " << n;
    }
  }
}

/// A straightforward attention over tensors of rank 4: `score` changes the
/// scaled product of a pair, `keep` says which pairs there are.
struct Naive {
  std::vector<double> output, lse;

  using Score =
      std::function<double(double, int64_t b, int64_t h, int64_t i, int64_t j)>;
  using Keeps = std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)>;

  Naive(const HostTensor &q, const HostTensor &k, const HostTensor &v,
        const Score &score, const Keeps &keep,
        const std::vector<double> &sinks = {}) {
    int64_t batch = q.shape()[0], heads = q.shape()[1], rows = q.shape()[2];
    int64_t keys = k.shape()[2], width = q.shape()[3];
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < rows; ++i) {
          int64_t hk = h / (heads / k.shape()[1]);
          int64_t hv = h / (heads / v.shape()[1]);
          std::vector<double> s(keys, -kInfinity);
          double most = sinks.empty() ? -kInfinity : sinks[h];
          for (int64_t j = 0; j < keys; ++j) {
            double sum = 0;
            for (int64_t d = 0; d < width; ++d) {
              sum += q.at({b, h, i, d}) * k.at({b, hk, j, d});
            }
            if (keep(b, h, i, j)) {
              s[j] = score(sum / std::sqrt(double(width)), b, h, i, j);
              most = std::max(most, s[j]);
            }
          }
          double sum = sinks.empty() ? 0 : std::exp(sinks[h] - most);
          for (double x : s) {
            sum += x == -kInfinity ? 0 : std::exp(x - most);
          }
          lse.push_back(sum == 0 ? -kInfinity : most + std::log(sum));
          for (int64_t e = 0; e < v.shape()[3]; ++e) {
            double out = 0;
            for (int64_t j = 0; j < keys; ++j) {
              if (s[j] != -kInfinity) {
                out += std::exp(s[j] - most) / sum * v.at({b, hv, j, e});
              }
            }
            output.push_back(out);
          }
        }
      }
    }
  }
};

} // namespace attnfuse::reference::test

#endif // ATTNFUSE_TEST_UNIT_REFERENCE_ORACLE_H
