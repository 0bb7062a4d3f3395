//===- Explain.h - what was chosen, in lines --------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_EXPLAIN_H
#define ATTNFUSE_PIPELINES_EXPLAIN_H

#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
class PassInstrumentation;
} // namespace mlir

namespace attnfuse {

/// Reads the decisions off `module` as attn-to-tile finds and leaves it: masks,
/// places of rotations, schedules. One line each is added to `lines`.
std::unique_ptr<mlir::PassInstrumentation>
makeExplainer(mlir::ModuleOp module, std::vector<std::string> &lines);

} // namespace attnfuse

#endif // ATTNFUSE_PIPELINES_EXPLAIN_H
