//===- ArgumentNames.cpp - names of arguments in a source ------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Pipelines/ArgumentNames.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

std::string attnfuse::argumentName(BlockArgument argument, StringRef source) {
  std::string number = std::to_string(argument.getArgNumber());
  auto loc = dyn_cast<FileLineColLoc>(argument.getLoc());
  if (!loc) {
    return number;
  }
  for (unsigned line = 1; line < loc.getLine(); ++line) {
    source = source.split('\n').second;
  }
  source =
      source.drop_front(std::min<size_t>(loc.getColumn() - 1, source.size()));
  if (!source.consume_front("%")) {
    return number;
  }
  return source
      .take_while([](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
               c == '$' || c == '.' || c == '-';
      })
      .str();
}
