//===- LastError.h - a thread's last failure --------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_LASTERROR_H
#define ATTNFUSE_LIB_RUNTIME_LASTERROR_H

#include "Status.h"

namespace attnfuse::runtime {

/// Keeps the message of a failure for attnfuse_last_error() of this thread;
/// returns the code. A success leaves the last message as it is.
attnfuse_status report(Status status);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_LASTERROR_H
