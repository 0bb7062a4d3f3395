//===- ShapeCheck.h - do inputs fit a program? -------------------*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_REFERENCE_SHAPECHECK_H
#define ATTNFUSE_REFERENCE_SHAPECHECK_H

#include "AttnFuse/Support/HostTensor.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace attnfuse::reference {

/// Checks inputs against the argument types and, extents now being known, the
/// operations against one another: what verifiers check of static extents,
/// and rotary tables and positions against lengths. The error names the
/// operation, what was found and what fits, with the location.
llvm::Error checkInputs(mlir::func::FuncOp function,
                        llvm::ArrayRef<HostTensor> inputs);

} // namespace attnfuse::reference

#endif // ATTNFUSE_REFERENCE_SHAPECHECK_H
