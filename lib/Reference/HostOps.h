//===- HostOps.h - operations between attentions ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_HOSTOPS_H
#define ATTNFUSE_LIB_REFERENCE_HOSTOPS_H

#include "Array.h"

namespace attnfuse::reference {

/// Constants, extents, casts, and arith and math on scalars or, element by
/// element, on tensors. Any other operation is an error that names it.
llvm::Expected<ArrayRefPtr> evaluateHostOp(mlir::Operation &op,
                                           const Values &values);

} // namespace attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_HOSTOPS_H
