//===- ShapeCheck.h - do inputs fit a program? ----------------*- C++ -*-===//
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
/// operations of the function and of those it calls against one another: what
/// verifiers check of static extents, and rotary tables and positions against
/// lengths. Nothing is computed but scalars. The error names the operation,
/// what was found and what fits, with the location.
llvm::Error checkInputs(mlir::func::FuncOp function,
                        llvm::ArrayRef<HostTensor> inputs);

/// The same from shapes alone (a scalar has rank 0), so that positions that
/// depend on values go unchecked; gives the shapes of the results. A result
/// that an unknown operation makes has to have a static type.
llvm::Expected<std::vector<llvm::SmallVector<int64_t>>>
inferResultShapes(mlir::func::FuncOp function,
                  llvm::ArrayRef<llvm::SmallVector<int64_t>> inputShapes);

} // namespace attnfuse::reference

#endif // ATTNFUSE_REFERENCE_SHAPECHECK_H
