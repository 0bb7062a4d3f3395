//===- HashTest.cpp - SHA-256 and base64 ------------------ -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Runtime/Base64.h"
#include "Runtime/Sha256.h"

#include "gtest/gtest.h"

using namespace attnfuse::runtime;

namespace {

// From FIPS 180-4's examples and RFC 4648.

TEST(Sha256Test, Vectors) {
  EXPECT_EQ(Sha256::hex(Sha256::of("")), "e3b0c44298fc1c149afbf4c8996fb924"
                                         "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256::hex(Sha256::of("abc")), "ba7816bf8f01cfea414140de5dae2223"
                                            "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256::hex(Sha256::of("abcdbcdecdefdefgefghfghighijhijkijkljklmklm"
                                   "nlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039"
            "a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256::hex(Sha256::of(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67"
            "f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += static_cast<char>(i);
    for (size_t cut : {size_t(0), text.size() / 3, text.size() - 1}) {
      Sha256 hash;
      hash.update(std::string_view(text).substr(0, cut));
      hash.update(std::string_view(text).substr(cut));
      EXPECT_EQ(hash.finish(), Sha256::of(text)) << text.size() << " " << cut;
    }
  }
}

TEST(Base64Test, Vectors) {
  EXPECT_EQ(decodeBase64(""), "");
  EXPECT_EQ(decodeBase64("Zg=="), "f");
  EXPECT_EQ(decodeBase64("Zm8="), "fo");
  EXPECT_EQ(decodeBase64("Zm9v"), "foo");
  EXPECT_EQ(decodeBase64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decodeBase64("+/+/"), "\xfb\xff\xbf");
}

TEST(Base64Test, Malformed) {
  EXPECT_EQ(decodeBase64("Zg"), std::nullopt);
  EXPECT_EQ(decodeBase64("Z==="), std::nullopt);
  EXPECT_EQ(decodeBase64("Zm 9"), std::nullopt);
  EXPECT_EQ(decodeBase64("=Zm9"), std::nullopt);
}

} // namespace
