//===- ScalarProgramTest.cpp - scalar operations ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"

using namespace attnfuse;
using namespace attnfuse::reference;
using namespace attnfuse::reference::test;

/// The value of scalar operations on %a and %b that define %r.
static double evaluateScalar(const std::string &type, double a, double b,
                             const std::string &ops,
                             const std::string &resultType) {
  std::string text = "func.func @f(%a: " + type + ", %b: " + type + ") -> " +
                     resultType + " {\n" + ops + "\nreturn %r : " + resultType +
                     "\n}";
  DType dtype = type == "f32"   ? DType::F32
                : type == "i32" ? DType::I32
                : type == "i1"  ? DType::I1
                : type == "i8"  ? DType::I8
                                : DType::I64;
  std::vector<double> result =
      runOne(text, {scalarTensor(dtype, a), scalarTensor(dtype, b)});
  return result.empty() ? kNaN : result[0];
}

static double binary(const std::string &op, const std::string &type, double a,
                     double b) {
  return evaluateScalar(type, a, b, "%r = " + op + " %a, %b : " + type, type);
}

static double unary(const std::string &op, const std::string &type, double a) {
  return evaluateScalar(type, a, 0, "%r = " + op + " %a : " + type, type);
}

TEST(ScalarProgramTest, Floats) {
  EXPECT_EQ(binary("arith.addf", "f32", 1.5, 2), 3.5);
  EXPECT_EQ(binary("arith.subf", "f32", 1.5, 2), -0.5);
  EXPECT_EQ(binary("arith.mulf", "f32", 1.5, 2), 3);
  EXPECT_EQ(binary("arith.divf", "f32", 1, 3), 1. / 3);
  EXPECT_EQ(binary("arith.remf", "f32", -7, 3), -1);
  EXPECT_TRUE(std::isnan(binary("arith.maximumf", "f32", 1, kNaN)));
  EXPECT_TRUE(std::isnan(binary("arith.minimumf", "f32", kNaN, 1)));
  EXPECT_EQ(binary("arith.maxnumf", "f32", 1, kNaN), 1);
  EXPECT_EQ(binary("arith.minnumf", "f32", kNaN, 1), 1);
  EXPECT_EQ(binary("arith.maximumf", "f32", 1, 2), 2);
  EXPECT_EQ(binary("math.powf", "f32", 2, 10), 1024);
  EXPECT_EQ(binary("math.atan2", "f32", 1, -1), std::atan2(1., -1.));
  EXPECT_EQ(binary("math.copysign", "f32", 3, -0.5), -3);
  EXPECT_EQ(
      evaluateScalar("f32", 3, 4, "%r = math.fma %a, %b, %a : f32", "f32"), 15);
}

TEST(ScalarProgramTest, Functions) {
  const double x = 0.625;
  EXPECT_EQ(unary("arith.negf", "f32", x), -x);
  EXPECT_EQ(unary("math.exp", "f32", x), std::exp(x));
  EXPECT_EQ(unary("math.exp2", "f32", x), std::exp2(x));
  EXPECT_EQ(unary("math.expm1", "f32", x), std::expm1(x));
  EXPECT_EQ(unary("math.log", "f32", x), std::log(x));
  EXPECT_EQ(unary("math.log2", "f32", x), std::log2(x));
  EXPECT_EQ(unary("math.log10", "f32", x), std::log10(x));
  EXPECT_EQ(unary("math.log1p", "f32", x), std::log1p(x));
  EXPECT_EQ(unary("math.sqrt", "f32", x), std::sqrt(x));
  EXPECT_EQ(unary("math.rsqrt", "f32", 4), 0.5);
  EXPECT_EQ(unary("math.tanh", "f32", x), std::tanh(x));
  EXPECT_EQ(unary("math.sin", "f32", x), std::sin(x));
  EXPECT_EQ(unary("math.cos", "f32", x), std::cos(x));
  EXPECT_EQ(unary("math.tan", "f32", x), std::tan(x));
  EXPECT_EQ(unary("math.atan", "f32", x), std::atan(x));
  EXPECT_EQ(unary("math.sinh", "f32", x), std::sinh(x));
  EXPECT_EQ(unary("math.cosh", "f32", x), std::cosh(x));
  EXPECT_EQ(unary("math.erf", "f32", x), std::erf(x));
  EXPECT_EQ(unary("math.absf", "f32", -x), x);
  EXPECT_EQ(unary("math.floor", "f32", -x), -1);
  EXPECT_EQ(unary("math.ceil", "f32", x), 1);
  // Halfway cases: away from 0, and to even.
  EXPECT_EQ(unary("math.round", "f32", 2.5), 3);
  EXPECT_EQ(unary("math.roundeven", "f32", 2.5), 2);
  EXPECT_EQ(unary("math.absi", "i32", -5), 5);
}

TEST(ScalarProgramTest, Integers) {
  EXPECT_EQ(binary("arith.addi", "i32", 2147483647, 1), -2147483648.);
  EXPECT_EQ(binary("arith.subi", "i8", -128, 1), 127);
  EXPECT_EQ(binary("arith.muli", "i32", 65536, 65536), 0);
  EXPECT_EQ(binary("arith.divsi", "i32", -7, 2), -3);
  EXPECT_EQ(binary("arith.remsi", "i32", -7, 2), -1);
  EXPECT_EQ(binary("arith.floordivsi", "i32", -7, 2), -4);
  EXPECT_EQ(binary("arith.floordivsi", "i32", 7, -2), -4);
  EXPECT_EQ(binary("arith.floordivsi", "i32", -6, 2), -3);
  EXPECT_EQ(binary("arith.ceildivsi", "i32", 7, 2), 4);
  EXPECT_EQ(binary("arith.ceildivsi", "i32", -7, 2), -3);
  EXPECT_EQ(binary("arith.divui", "i8", -1, 2), 127);
  EXPECT_EQ(binary("arith.remui", "i8", -1, 2), 1);
  EXPECT_EQ(binary("arith.ceildivui", "i32", 7, 2), 4);
  EXPECT_EQ(binary("arith.andi", "i32", 12, 10), 8);
  EXPECT_EQ(binary("arith.ori", "i32", 12, 10), 14);
  EXPECT_EQ(binary("arith.xori", "i32", 12, 10), 6);
  EXPECT_EQ(binary("arith.shli", "i8", 3, 7), -128);
  EXPECT_EQ(binary("arith.shrsi", "i8", -128, 3), -16);
  EXPECT_EQ(binary("arith.shrui", "i8", -128, 3), 16);
  EXPECT_EQ(binary("arith.maxsi", "i32", -1, 1), 1);
  EXPECT_EQ(binary("arith.minsi", "i32", -1, 1), -1);
  EXPECT_EQ(binary("arith.maxui", "i32", -1, 1), -1);
  EXPECT_EQ(binary("arith.minui", "i32", -1, 1), 1);
}

TEST(ScalarProgramTest, WhatTheIrLeavesUndefinedDoesNotTrap) {
  for (const char *op :
       {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui",
        "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"}) {
    EXPECT_EQ(binary(op, "i64", 5, 0), 0) << op;
  }
  HostTensor lowest = longTensor({}, {INT64_MIN});
  HostTensor minusOne = longTensor({}, {-1});
  for (const char *op :
       {"arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"}) {
    run(std::string("func.func @f(%a: i64, %b: i64) -> i64 {\n%r = ") + op +
            " %a, %b : i64\nreturn %r : i64\n}",
        {lowest, minusOne});
  }
  EXPECT_EQ(binary("arith.shli", "i32", 1, 40), 0);
}

TEST(ScalarProgramTest, ComparisonsOfIntegers) {
  auto compare = [](const std::string &predicate, const std::string &type,
                    double a, double b) {
    return evaluateScalar(type, a, b,
                          "%r = arith.cmpi " + predicate + ", %a, %b : " + type,
                          "i1");
  };
  EXPECT_EQ(compare("eq", "i32", 3, 3), 1);
  EXPECT_EQ(compare("ne", "i32", 3, 3), 0);
  EXPECT_EQ(compare("slt", "i32", -1, 0), 1);
  EXPECT_EQ(compare("ult", "i32", -1, 0), 0);
  EXPECT_EQ(compare("sle", "i32", 0, 0), 1);
  EXPECT_EQ(compare("sgt", "i32", 0, -1), 1);
  EXPECT_EQ(compare("ugt", "i32", 0, -1), 0);
  EXPECT_EQ(compare("uge", "index", -1, 5), 1);
  EXPECT_EQ(compare("sge", "index", -1, 5), 0);
  EXPECT_EQ(compare("ule", "i32", 5, -1), 1);
  // The signed value of a true predicate is -1.
  EXPECT_EQ(compare("slt", "i1", 1, 0), 1);
  EXPECT_EQ(compare("ult", "i1", 1, 0), 0);
}

TEST(ScalarProgramTest, ComparisonsOfFloats) {
  auto compare = [](const std::string &predicate, double a, double b) {
    return evaluateScalar(
        "f32", a, b, "%r = arith.cmpf " + predicate + ", %a, %b : f32", "i1");
  };
  for (auto [predicate, less, equal, more, unordered] :
       {std::tuple("oeq", 0, 1, 0, 0), std::tuple("ogt", 0, 0, 1, 0),
        std::tuple("oge", 0, 1, 1, 0), std::tuple("olt", 1, 0, 0, 0),
        std::tuple("ole", 1, 1, 0, 0), std::tuple("one", 1, 0, 1, 0),
        std::tuple("ord", 1, 1, 1, 0), std::tuple("ueq", 0, 1, 0, 1),
        std::tuple("ugt", 0, 0, 1, 1), std::tuple("uge", 0, 1, 1, 1),
        std::tuple("ult", 1, 0, 0, 1), std::tuple("ule", 1, 1, 0, 1),
        std::tuple("une", 1, 0, 1, 1), std::tuple("uno", 0, 0, 0, 1),
        std::tuple("true", 1, 1, 1, 1), std::tuple("false", 0, 0, 0, 0)}) {
    EXPECT_EQ(compare(predicate, 1, 2), less) << predicate;
    EXPECT_EQ(compare(predicate, 2, 2), equal) << predicate;
    EXPECT_EQ(compare(predicate, 3, 2), more) << predicate;
    EXPECT_EQ(compare(predicate, kNaN, 2), unordered) << predicate;
  }
}

TEST(ScalarProgramTest, Conversions) {
  auto convert = [](const std::string &op, const std::string &from,
                    const std::string &to, double a) {
    return evaluateScalar(from, a, 0,
                          "%r = " + op + " %a : " + from + " to " + to, to);
  };
  EXPECT_EQ(convert("arith.sitofp", "i8", "f32", -3), -3);
  EXPECT_EQ(convert("arith.uitofp", "i8", "f32", -3), 253);
  EXPECT_EQ(convert("arith.sitofp", "i1", "f32", 1), -1);
  EXPECT_EQ(convert("arith.uitofp", "i1", "f32", 1), 1);
  EXPECT_EQ(convert("arith.fptosi", "f32", "i32", -2.75), -2);
  EXPECT_EQ(convert("arith.fptoui", "f32", "i32", 2.75), 2);
  EXPECT_EQ(convert("arith.fptosi", "f32", "i32", kNaN), 0);
  EXPECT_EQ(convert("arith.extsi", "i8", "i32", -3), -3);
  EXPECT_EQ(convert("arith.extui", "i8", "i32", -3), 253);
  EXPECT_EQ(convert("arith.extsi", "i1", "i32", 1), -1);
  EXPECT_EQ(convert("arith.extui", "i1", "i32", 1), 1);
  EXPECT_EQ(convert("arith.trunci", "i32", "i8", 384), -128);
  EXPECT_EQ(convert("arith.trunci", "i32", "i1", 3), 1);
  EXPECT_EQ(convert("arith.index_cast", "i32", "index", -3), -3);
  EXPECT_EQ(convert("arith.index_castui", "i32", "index", -1), 4294967295.);
  EXPECT_EQ(convert("arith.extf", "f32", "f64", 0.5), 0.5);
}

TEST(ScalarProgramTest, NothingIsRounded) {
  EXPECT_EQ(evaluateScalar("f32", 1, 3,
                           "%x = arith.divf %a, %b : f32\n"
                           "%y = arith.truncf %x : f32 to f16\n"
                           "%r = arith.extf %y : f16 to f32",
                           "f32"),
            1. / 3);
}

TEST(ScalarProgramTest, SelectAndConstants) {
  EXPECT_EQ(evaluateScalar("f32", 1, 3,
                           "%c = arith.constant 2.0 : f32\n"
                           "%p = arith.cmpf olt, %a, %c : f32\n"
                           "%r = arith.select %p, %b, %c : f32",
                           "f32"),
            3);
  EXPECT_EQ(evaluateScalar("i1", 0, 0,
                           "%t = arith.constant true\n"
                           "%r = arith.xori %a, %t : i1",
                           "i1"),
            1);
}

TEST(ScalarProgramTest, UnknownOperationsAreNamed) {
  std::string error = errorOf("func.func @f(%a: f32) -> i32 {\n"
                              "%r = arith.bitcast %a : f32 to i32\n"
                              "return %r : i32\n}",
                              {scalarTensor(DType::F32, 1)});
  EXPECT_THAT(error, testing::HasSubstr("program.mlir\":2:6"));
  EXPECT_THAT(error, testing::HasSubstr("'arith.bitcast'"));
}
