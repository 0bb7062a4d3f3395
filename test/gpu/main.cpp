//===- main.cpp - the GPU suite ------------------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Runtime.h"

#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  int32_t count = 0;
  const char *why = nullptr;
  if (attnfuse_device_count(&count) != ATTNFUSE_OK) {
    why = attnfuse_last_error();
  } else if (count == 0) {
    why = "there is no GPU";
  }
  if (why) {
    std::printf("SKIPPED: %s\n", why);
    return 77;
  }
  return RUN_ALL_TESTS();
}
