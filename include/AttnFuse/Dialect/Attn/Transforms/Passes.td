//===- Passes.td - passes within the attn dialect ----------*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_TRANSFORMS_PASSES
#define ATTNFUSE_DIALECT_ATTN_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

// Passes over functions are tied to no operation: they run on a function, or
// on the functions directly inside whatever else they are given.

def AttnCanonicalize : Pass<"attn-canonicalize"> {
  let summary = "bring attention programs to one normal form";
  let description = [{
    Masks are merged into one `attn.mask` per chain of scores, last in it, in
    the normal form of the mask algebra; `attn.full` is removed; scales are
    folded into `attn.scaled_dot_product`; neighbouring alibi and biases are
    ordered; repeated operations are merged. A program equal to another up to
    this algebra prints the same.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numMasksMerged", "masks-merged", "Number of attn.mask operations merged or removed">,
    Statistic<"numScalesFolded", "scales-folded", "Number of scale factors folded into a scaled dot product">
  ];
}

def AttnOutline : Pass<"attn-outline", "::mlir::ModuleOp"> {
  let summary = "move each attention root into a kernel function";
  let description = [{
    Each `attn.aggregate` (with the log-sum-exp of its softmax), each
    log-sum-exp without an aggregate, and each rotated tensor that is used
    outside an attention, becomes a private function marked `attn.kernel`
    that holds what only it needs; the host function keeps a call. Functions
    already marked are left alone.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let statistics = [
    Statistic<"numKernels", "kernels", "Number of kernel functions made">
  ];
}

def AttnAnalyzeMasks : Pass<"attn-analyze-masks"> {
  let summary = "annotate each mask with the key intervals it lets through";
  let description = [{
    Annotates each `attn.mask` with, for a tile of query rows, the interval of
    keys outside of which nothing is readable and the interval within which
    everything is, as closed forms of the rows and the extents; with the block
    lists of constant tables; and with the tests that remain.
  }];
}

def AttnPlaceRope : Pass<"attn-place-rope"> {
  let summary = "decide where each rotation runs (the Rotation Calculus)";
  let description = [{
    Annotates each `attn.rope` with its place: `prologue` (a query tile, in
    registers, once), `in_loop` (a key tile at each visit) or `once` (a kernel
    of its own ahead of the main one), and with the predicted times of the
    choices on the chip.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"cpu\"", "Chip whose description gives the costs">,
    Option<"force", "force", "std::string", "\"\"", "Place for every key rotation: in_loop or once">,
    Option<"length", "length", "int64_t", "4096", "Length assumed for an extent that is dynamic">
  ];
}

#endif // ATTNFUSE_DIALECT_ATTN_TRANSFORMS_PASSES
