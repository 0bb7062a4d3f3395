//===- Base64.cpp - binary data in text ------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Base64.h"

#include <cstdint>

using namespace attnfuse;

static int valueOf(char digit) {
  if (digit >= 'A' && digit <= 'Z') {
    return digit - 'A';
  }
  if (digit >= 'a' && digit <= 'z') {
    return digit - 'a' + 26;
  }
  if (digit >= '0' && digit <= '9') {
    return digit - '0' + 52;
  }
  return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

std::optional<std::string> runtime::decodeBase64(std::string_view text) {
  if (text.size() % 4) {
    return std::nullopt;
  }
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (char digit : text) {
    int value = valueOf(digit);
    if (value < 0) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count);
    }
  }
  return bytes;
}
