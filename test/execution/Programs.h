//===- Programs.h - generated attention programs ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TEST_EXECUTION_PROGRAMS_H
#define ATTNFUSE_TEST_EXECUTION_PROGRAMS_H

#include <string>
#include <vector>

namespace attnfuse::test {

/// A program to be made: the pieces that are combined, and the parameters.
struct ProgramSpec {
  /// Words of the table in Programs.cpp, in order: ropes, score operations,
  /// masks, and one normaliser ("softmax" if none is named).
  std::vector<std::string> pieces;
  std::string dtype = "f32";
  int batch = 2, queryHeads = 4, keyHeads = 2, width = 64, valueWidth = 64;

  std::string name() const;
};

/// How an argument beyond q, k and v is filled and sized.
struct ExtraArgument {
  std::string name, type, fill;
};

struct Program {
  std::string text;
  std::vector<ExtraArgument> extras;
};

/// The text of the program, with lengths left dynamic.
Program makeProgram(const ProgramSpec &spec);

/// Every word that makeProgram knows.
std::vector<std::string> allPieces();

} // namespace attnfuse::test

#endif // ATTNFUSE_TEST_EXECUTION_PROGRAMS_H
