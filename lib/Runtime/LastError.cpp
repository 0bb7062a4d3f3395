//===- LastError.cpp - a thread's last failure ------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "LastError.h"

using namespace attnfuse::runtime;

static std::string &lastMessage() {
  thread_local std::string message;
  return message;
}

attnfuse_status attnfuse::runtime::report(Status status) {
  if (!status.ok()) {
    lastMessage() = std::move(status.message);
  }
  return status.code;
}

const char *attnfuse_last_error(void) { return lastMessage().c_str(); }
