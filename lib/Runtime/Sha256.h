//===- Sha256.h - the hash SHA-256 ------------------------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_SHA256_H
#define ATTNFUSE_LIB_RUNTIME_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attnfuse::runtime {

/// FIPS 180-4.
class Sha256 {
public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();
  void update(std::string_view bytes);
  /// Of all that was given; the object is spent.
  Digest finish();

  static Digest of(std::string_view bytes);
  static std::string hex(const Digest &digest);

private:
  void block(const uint8_t *bytes);

  std::array<uint32_t, 8> state;
  std::array<uint8_t, 64> buffer;
  size_t buffered = 0;
  uint64_t length = 0;
};

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_SHA256_H
