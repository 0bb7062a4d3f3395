//===- ScalarProgram.cpp - regions of score_mod and mask_mod ---*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScalarProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse::reference;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Keeps what an integer type of so many bits keeps; i1 is 0 or 1.
static int64_t wrap(int64_t value, unsigned bits) {
  if (bits >= 64) {
    return value;
  }
  if (bits == 1) {
    return value & 1;
  }
  auto shifted = static_cast<uint64_t>(value) << (64 - bits);
  return static_cast<int64_t>(shifted) >> (64 - bits);
}

static uint64_t unsignedOf(int64_t value, unsigned bits) {
  return bits >= 64 ? static_cast<uint64_t>(value)
                    : static_cast<uint64_t>(value) & ((1ull << bits) - 1);
}

static int64_t floorDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

using Unary = double (*)(double);
using Binary = double (*)(double, double);
using IntBinary = int64_t (*)(int64_t, int64_t, unsigned);

static const llvm::StringMap<Unary> &unaryFloats() {
  static const llvm::StringMap<Unary> table = {
      {"arith.negf", [](double x) { return -x; }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.log10", [](double x) { return std::log10(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"math.cbrt", [](double x) { return std::cbrt(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.sinh", [](double x) { return std::sinh(x); }},
      {"math.cosh", [](double x) { return std::cosh(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.cos", [](double x) { return std::cos(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},
      {"math.asin", [](double x) { return std::asin(x); }},
      {"math.acos", [](double x) { return std::acos(x); }},
      {"math.atan", [](double x) { return std::atan(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.floor", [](double x) { return std::floor(x); }},
      {"math.ceil", [](double x) { return std::ceil(x); }},
      {"math.trunc", [](double x) { return std::trunc(x); }},
      {"math.round", [](double x) { return std::round(x); }},
      {"math.roundeven", [](double x) { return std::nearbyint(x); }},
      {"arith.extf", [](double x) { return x; }},
      {"arith.truncf", [](double x) { return x; }}};
  return table;
}

static const llvm::StringMap<Binary> &binaryFloats() {
  static const llvm::StringMap<Binary> table = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.remf", [](double a, double b) { return std::fmod(a, b); }},
      {"arith.maximumf",
       [](double a, double b) {
         return std::isnan(a) || std::isnan(b) ? kNaN : std::fmax(a, b);
       }},
      {"arith.minimumf",
       [](double a, double b) {
         return std::isnan(a) || std::isnan(b) ? kNaN : std::fmin(a, b);
       }},
      {"arith.maxnumf", [](double a, double b) { return std::fmax(a, b); }},
      {"arith.minnumf", [](double a, double b) { return std::fmin(a, b); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
      {"math.atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"math.copysign",
       [](double a, double b) { return std::copysign(a, b); }}};
  return table;
}

static const llvm::StringMap<IntBinary> &binaryIntegers() {
  // Division by zero is undefined in the IR; here it gives 0.
  static const llvm::StringMap<IntBinary> table = {
      {"arith.addi", [](int64_t a, int64_t b, unsigned) { return a + b; }},
      {"arith.subi", [](int64_t a, int64_t b, unsigned) { return a - b; }},
      {"arith.muli", [](int64_t a, int64_t b, unsigned) { return a * b; }},
      {"arith.andi", [](int64_t a, int64_t b, unsigned) { return a & b; }},
      {"arith.ori", [](int64_t a, int64_t b, unsigned) { return a | b; }},
      {"arith.xori", [](int64_t a, int64_t b, unsigned) { return a ^ b; }},
      {"arith.divsi",
       [](int64_t a, int64_t b, unsigned) { return b ? a / b : 0; }},
      {"arith.remsi",
       [](int64_t a, int64_t b, unsigned) { return b ? a % b : 0; }},
      {"arith.floordivsi",
       [](int64_t a, int64_t b, unsigned) { return b ? floorDiv(a, b) : 0; }},
      {"arith.ceildivsi",
       [](int64_t a, int64_t b, unsigned) { return b ? -floorDiv(-a, b) : 0; }},
      {"arith.divui",
       [](int64_t a, int64_t b, unsigned n) {
         return b ? int64_t(unsignedOf(a, n) / unsignedOf(b, n)) : 0;
       }},
      {"arith.remui",
       [](int64_t a, int64_t b, unsigned n) {
         return b ? int64_t(unsignedOf(a, n) % unsignedOf(b, n)) : 0;
       }},
      {"arith.ceildivui",
       [](int64_t a, int64_t b, unsigned n) {
         return b ? int64_t((unsignedOf(a, n) + unsignedOf(b, n) - 1) /
                            unsignedOf(b, n))
                  : 0;
       }},
      {"arith.maxsi",
       [](int64_t a, int64_t b, unsigned) { return std::max(a, b); }},
      {"arith.minsi",
       [](int64_t a, int64_t b, unsigned) { return std::min(a, b); }},
      {"arith.maxui",
       [](int64_t a, int64_t b, unsigned n) {
         return unsignedOf(a, n) > unsignedOf(b, n) ? a : b;
       }},
      {"arith.minui",
       [](int64_t a, int64_t b, unsigned n) {
         return unsignedOf(a, n) < unsignedOf(b, n) ? a : b;
       }},
      {"arith.shli",
       [](int64_t a, int64_t b, unsigned n) {
         return b >= 0 && b < n ? int64_t(uint64_t(a) << b) : 0;
       }},
      {"arith.shrsi", [](int64_t a, int64_t b,
                         unsigned n) { return b >= 0 && b < n ? a >> b : 0; }},
      {"arith.shrui", [](int64_t a, int64_t b, unsigned n) {
         return b >= 0 && b < n ? int64_t(unsignedOf(a, n) >> b) : 0;
       }}};
  return table;
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::OEQ:
    return !unordered && a == b;
  case arith::CmpFPredicate::OGT:
    return !unordered && a > b;
  case arith::CmpFPredicate::OGE:
    return !unordered && a >= b;
  case arith::CmpFPredicate::OLT:
    return !unordered && a < b;
  case arith::CmpFPredicate::OLE:
    return !unordered && a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  }
  llvm_unreachable("every predicate is handled");
}

static bool compareIntegers(arith::CmpIPredicate predicate, int64_t a,
                            int64_t b, unsigned bits) {
  uint64_t x = unsignedOf(a, bits), y = unsignedOf(b, bits);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return x < y;
  case arith::CmpIPredicate::ule:
    return x <= y;
  case arith::CmpIPredicate::ugt:
    return x > y;
  case arith::CmpIPredicate::uge:
    return x >= y;
  }
  llvm_unreachable("every predicate is handled");
}

namespace attnfuse::reference {
class Decoder {
public:
  explicit Decoder(const Values &values) : values(values) {}

  llvm::Expected<ScalarProgram> decode(Region &region) {
    Block &block = region.front();
    for (Value argument : block.getArguments()) {
      slot(argument);
    }
    for (Operation &op : block.without_terminator()) {
      if (llvm::Error error = decodeOp(op)) {
        return std::move(error);
      }
    }
    auto result = read(block.getTerminator()->getOperand(0));
    if (!result) {
      return result.takeError();
    }
    program.result = *result;
    return std::move(program);
  }

private:
  static unsigned bitsOf(Type type) {
    return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  }

  size_t slot(Value value) {
    auto [place, isNew] = slots.try_emplace(value, program.initial.size());
    if (isNew) {
      program.initial.emplace_back();
    }
    return place->second;
  }

  /// The slot of an operand; a scalar of the function becomes a constant.
  llvm::Expected<size_t> read(Value value) {
    if (slots.count(value)) {
      return slots[value];
    }
    auto captured = values.find(value);
    if (captured == values.end() || !captured->second ||
        !captured->second->shape.empty()) {
      return errorAt(value.getLoc(), "the oracle has no value for what a "
                                     "region captures here");
    }
    size_t place = slot(value);
    double number = captured->second->data[0];
    program.initial[place] = {number, static_cast<int64_t>(number)};
    return place;
  }

  llvm::Error decodeOp(Operation &op) {
    StringRef name = op.getName().getStringRef();
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      return decodeExtract(extract);
    }
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      auto tensor = values.find(dim.getSource());
      auto place = dim.getConstantIndex();
      if (tensor == values.end() || !place) {
        return errorAt(op.getLoc(), "the oracle knows tensor.dim of a tensor "
                                    "of the function, at a constant index");
      }
      program.initial[slot(dim.getResult())].i = tensor->second->shape[*place];
      return llvm::Error::success();
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      Scalar &value = program.initial[slot(constant.getResult())];
      if (auto real = dyn_cast<FloatAttr>(constant.getValue())) {
        value.f = real.getValueAsDouble();
      } else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue())) {
        unsigned bits = bitsOf(integer.getType());
        value.i = wrap(integer.getValue().getSExtValue(), bits);
      }
      return llvm::Error::success();
    }
    SmallVector<size_t> in;
    for (Value operand : op.getOperands()) {
      auto place = read(operand);
      if (!place) {
        return place.takeError();
      }
      in.push_back(*place);
    }
    size_t out = slot(op.getResult(0));
    auto push = [&](ScalarProgram::Step step) {
      program.steps.push_back(std::move(step));
      return llvm::Error::success();
    };
    auto unary = unaryFloats().find(name);
    if (unary != unaryFloats().end()) {
      return push([fn = unary->second, out, a = in[0]](auto &s, auto &) {
        s[out].f = fn(s[a].f);
      });
    }
    auto binary = binaryFloats().find(name);
    if (binary != binaryFloats().end()) {
      return push([fn = binary->second, out, a = in[0], b = in[1]](
                      auto &s, auto &) { s[out].f = fn(s[a].f, s[b].f); });
    }
    auto integer = binaryIntegers().find(name);
    if (integer != binaryIntegers().end()) {
      unsigned bits = bitsOf(op.getResult(0).getType());
      return push([fn = integer->second, out, a = in[0], b = in[1],
                   bits](auto &s, auto &) {
        s[out].i = wrap(fn(s[a].i, s[b].i, bits), bits);
      });
    }
    if (name == "math.fma") {
      return push([out, in](auto &s, auto &) {
        s[out].f = s[in[0]].f * s[in[1]].f + s[in[2]].f;
      });
    }
    if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
      return push([p = cmp.getPredicate(), out, in](auto &s, auto &) {
        s[out].i = compareFloats(p, s[in[0]].f, s[in[1]].f);
      });
    }
    if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
      unsigned bits = bitsOf(cmp.getLhs().getType());
      return push([p = cmp.getPredicate(), out, in, bits](auto &s, auto &) {
        s[out].i = compareIntegers(p, s[in[0]].i, s[in[1]].i, bits);
      });
    }
    if (isa<arith::SelectOp>(op)) {
      return push([out, in](auto &s, auto &) {
        s[out] = s[in[0]].i ? s[in[1]] : s[in[2]];
      });
    }
    Type from = op.getNumOperands() ? op.getOperand(0).getType() : Type();
    unsigned bits = from && from.isIntOrIndex() ? bitsOf(from) : 64;
    unsigned wide = op.getResult(0).getType().isIntOrIndex()
                        ? bitsOf(op.getResult(0).getType())
                        : 64;
    if (isa<arith::SIToFPOp>(op)) {
      return push([out, a = in[0], bits](auto &s, auto &) {
        s[out].f = bits == 1 ? -double(s[a].i) : double(s[a].i);
      });
    }
    if (isa<arith::UIToFPOp>(op)) {
      return push([out, a = in[0], bits](auto &s, auto &) {
        s[out].f = static_cast<double>(unsignedOf(s[a].i, bits));
      });
    }
    if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
      return push([out, a = in[0]](auto &s, auto &) {
        double x = s[a].f;
        s[out].i = std::fabs(x) < 9e18 ? static_cast<int64_t>(x) : 0;
      });
    }
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
      return push([out, a = in[0], bits, wide](auto &s, auto &) {
        int64_t value = bits == 1 ? -s[a].i : s[a].i;
        s[out].i = wrap(value, wide);
      });
    }
    if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
      return push([out, a = in[0], bits, wide](auto &s, auto &) {
        s[out].i = wrap(int64_t(unsignedOf(s[a].i, bits)), wide);
      });
    }
    if (name == "math.absi") {
      return push(
          [out, a = in[0]](auto &s, auto &) { s[out].i = std::abs(s[a].i); });
    }
    return errorAt(op.getLoc(),
                   "the oracle does not know '" + name + "' in a region");
  }

  llvm::Error decodeExtract(tensor::ExtractOp extract) {
    auto tensor = values.find(extract.getTensor());
    if (tensor == values.end() || !tensor->second) {
      return errorAt(extract.getLoc(), "the oracle has no value for the tensor "
                                       "that is read here");
    }
    SmallVector<size_t> in;
    for (Value index : extract.getIndices()) {
      auto place = read(index);
      if (!place) {
        return place.takeError();
      }
      in.push_back(*place);
    }
    bool isFloat = isa<FloatType>(extract.getType());
    std::string where;
    llvm::raw_string_ostream(where) << extract.getLoc();
    program.steps.push_back([array = tensor->second, in, isFloat, where,
                             out = slot(extract.getResult())](
                                std::vector<Scalar> &s, std::string &error) {
      int64_t offset = 0;
      for (size_t dim = 0; dim < in.size(); ++dim) {
        int64_t index = s[in[dim]].i, extent = array->shape[dim];
        if (index < 0 || index >= extent) {
          error = where + ": index " + std::to_string(index) +
                  " in dimension " + std::to_string(dim) +
                  " lies outside a tensor of extent " + std::to_string(extent);
          return;
        }
        offset = offset * extent + index;
      }
      s[out] = isFloat ? Scalar{array->data[offset], 0}
                       : Scalar{0, static_cast<int64_t>(array->data[offset])};
    });
    return llvm::Error::success();
  }

  const Values &values;
  ScalarProgram program;
  llvm::DenseMap<Value, size_t> slots;
};
} // namespace attnfuse::reference

llvm::Expected<ScalarProgram> ScalarProgram::decode(Region &region,
                                                    const Values &values) {
  return Decoder(values).decode(region);
}

Scalar ScalarProgram::run(llvm::ArrayRef<Scalar> arguments,
                          std::vector<Scalar> &slots,
                          std::string &error) const {
  slots = initial;
  std::copy(arguments.begin(), arguments.end(), slots.begin());
  for (const Step &step : steps) {
    step(slots, error);
    if (!error.empty()) {
      return {};
    }
  }
  return slots[result];
}
