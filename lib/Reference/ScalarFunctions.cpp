//===- ScalarFunctions.cpp - what scalar operations compute ----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScalarFunctions.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse::reference;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int64_t attnfuse::reference::wrap(int64_t value, unsigned bits) {
  if (bits >= 64) {
    return value;
  }
  if (bits == 1) {
    return value & 1;
  }
  auto shifted = static_cast<uint64_t>(value) << (64 - bits);
  return static_cast<int64_t>(shifted) >> (64 - bits);
}

int64_t attnfuse::reference::signedOf(int64_t value, unsigned bits) {
  return bits == 1 ? -(value & 1) : value;
}

uint64_t attnfuse::reference::unsignedOf(int64_t value, unsigned bits) {
  return bits >= 64 ? static_cast<uint64_t>(value)
                    : static_cast<uint64_t>(value) & ((1ull << bits) - 1);
}

// The quotient of the lowest number and -1 does not fit; it wraps.
static int64_t divide(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}

static int64_t remainder(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t floorDiv(int64_t a, int64_t b) {
  return divide(a, b) - (remainder(a, b) != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

static int64_t ceilDiv(int64_t a, int64_t b) {
  return divide(a, b) + (remainder(a, b) != 0 && (a < 0) == (b < 0) ? 1 : 0);
}

const llvm::StringMap<UnaryFloat> &attnfuse::reference::unaryFloats() {
  static const llvm::StringMap<UnaryFloat> table = {
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
      {"math.asinh", [](double x) { return std::asinh(x); }},
      {"math.acosh", [](double x) { return std::acosh(x); }},
      {"math.atanh", [](double x) { return std::atanh(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.erfc", [](double x) { return std::erfc(x); }},
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

const llvm::StringMap<BinaryFloat> &attnfuse::reference::binaryFloats() {
  static const llvm::StringMap<BinaryFloat> table = {
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

const llvm::StringMap<FloatTest> &attnfuse::reference::floatTests() {
  static const llvm::StringMap<FloatTest> table = {
      {"math.isnan", [](double x) { return std::isnan(x); }},
      {"math.isinf", [](double x) { return std::isinf(x); }},
      {"math.isfinite", [](double x) { return std::isfinite(x); }}};
  return table;
}

const llvm::StringMap<BinaryInteger> &attnfuse::reference::binaryIntegers() {
  static const llvm::StringMap<BinaryInteger> table = {
      {"arith.addi",
       [](int64_t a, int64_t b, unsigned) {
         return int64_t(uint64_t(a) + uint64_t(b));
       }},
      {"arith.subi",
       [](int64_t a, int64_t b, unsigned) {
         return int64_t(uint64_t(a) - uint64_t(b));
       }},
      {"arith.muli",
       [](int64_t a, int64_t b, unsigned) {
         return int64_t(uint64_t(a) * uint64_t(b));
       }},
      {"arith.andi", [](int64_t a, int64_t b, unsigned) { return a & b; }},
      {"arith.ori", [](int64_t a, int64_t b, unsigned) { return a | b; }},
      {"arith.xori", [](int64_t a, int64_t b, unsigned) { return a ^ b; }},
      {"arith.divsi",
       [](int64_t a, int64_t b, unsigned) { return divide(a, b); }},
      {"arith.remsi",
       [](int64_t a, int64_t b, unsigned) { return remainder(a, b); }},
      {"arith.floordivsi",
       [](int64_t a, int64_t b, unsigned) { return floorDiv(a, b); }},
      {"arith.ceildivsi",
       [](int64_t a, int64_t b, unsigned) { return ceilDiv(a, b); }},
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
         uint64_t x = unsignedOf(a, n), y = unsignedOf(b, n);
         return y ? int64_t(x / y + (x % y != 0)) : 0;
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

bool attnfuse::reference::compareFloats(arith::CmpFPredicate predicate,
                                        double a, double b) {
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

bool attnfuse::reference::compareIntegers(arith::CmpIPredicate predicate,
                                          int64_t a, int64_t b, unsigned bits) {
  uint64_t x = unsignedOf(a, bits), y = unsignedOf(b, bits);
  int64_t s = signedOf(a, bits), t = signedOf(b, bits);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return s < t;
  case arith::CmpIPredicate::sle:
    return s <= t;
  case arith::CmpIPredicate::sgt:
    return s > t;
  case arith::CmpIPredicate::sge:
    return s >= t;
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
