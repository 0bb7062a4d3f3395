//===- ScalarFunctions.h - what scalar operations compute ------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_SCALARFUNCTIONS_H
#define ATTNFUSE_LIB_REFERENCE_SCALARFUNCTIONS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"

namespace attnfuse::reference {

/// An integer of so many bits: with its sign, without, and as it is kept (a
/// predicate as 0 or 1, all others with their sign).
int64_t signedOf(int64_t value, unsigned bits);
uint64_t unsignedOf(int64_t value, unsigned bits);
int64_t wrap(int64_t value, unsigned bits);

using UnaryFloat = double (*)(double);
using BinaryFloat = double (*)(double, double);
using FloatTest = bool (*)(double);
/// Operands come with their sign; the result is wrapped by the caller.
using BinaryInteger = int64_t (*)(int64_t, int64_t, unsigned);

/// By name of the operation. What the IR leaves undefined (division by zero,
/// shifts by the width or more) gives 0.
const llvm::StringMap<UnaryFloat> &unaryFloats();
const llvm::StringMap<BinaryFloat> &binaryFloats();
const llvm::StringMap<FloatTest> &floatTests();
const llvm::StringMap<BinaryInteger> &binaryIntegers();

bool compareFloats(mlir::arith::CmpFPredicate predicate, double a, double b);
bool compareIntegers(mlir::arith::CmpIPredicate predicate, int64_t a, int64_t b,
                     unsigned bits);

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCALARFUNCTIONS_H
