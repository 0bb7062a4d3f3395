//===- Passes.td - passes between dialects -----------------*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_CONVERSION_PASSES
#define ATTNFUSE_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def AttnToTile : Pass<"attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "turn attention kernels into tile programs";
  let description = [{
    Each function marked `attn.kernel` becomes one `tile.kernel` (and one more
    per rotation placed `once`); the function keeps the launches. Softmax is
    computed online over tiles of keys: tiles that the mask leaves empty are
    not visited, tiles that it leaves whole are not tested.

    The tiling is the function's `tile.schedule` attribute if it has one, else
    that of the options, else the chip's. What a chip cannot do is refused:

    | option | portable kernels | sm_90a |
    |---|---|---|
    | `block-m` | 16 query rows or a multiple for each warp | 64, 128, 192 or 256 |
    | `block-n` | a multiple of 16, of 8 for values in f32 | a multiple of 16 up to 256 |
    | `warps` | 1 to 32 | 4 for each 64 query rows |
    | `stages` | 1 to 8 | 1 to 8 |
    | `rescale` | none | 0 to 15 |
    | `scheduler` | none | `grid` or `counter` |

    On a CPU `block-m` and `block-n` may be any that fit the stack; the other
    options are for GPUs.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"cpu\"", "Chip whose table gives the schedule">,
    Option<"blockM", "block-m", "int64_t", "0", "Query rows per tile; 0: from the chip's table">,
    Option<"blockN", "block-n", "int64_t", "0", "Key rows per tile; 0: from the chip's table">,
    Option<"warps", "warps", "int64_t", "0", "Warps that share a query tile on a GPU; 0: from the chip's table">,
    Option<"stages", "stages", "int64_t", "0", "Slots of the rings of keys and values on a GPU; 0: from the chip's table">,
    Option<"rescale", "rescale", "int64_t", "-1", "Growth of a maximum, in log2 units, that leaves accumulators alone (sm_90a); -1: from the table">,
    Option<"scheduler", "scheduler", "std::string", "\"\"", "Who hands out query tiles (sm_90a): grid or counter; empty: from the table">,
    Option<"path", "path", "std::string", "\"\"", "Kernels for sm_90a: hopper or portable; empty: hopper where it serves">
  ];
  let dependentDialects = ["::attnfuse::tile::TileDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numKernels", "kernels", "Number of tile kernels made">];
}

def ConvertTileToLoops : Pass<"convert-tile-to-loops", "::mlir::ModuleOp"> {
  let summary = "lower tile kernels to vector loops for a CPU";
  let description = [{
    Each `tile.kernel` becomes a function over memrefs and two more arguments:
    the first and one past the last grid point to run, in linear order, so that
    a thread pool may share out the grid. Tiles become buffers of f32 on the
    stack with query rows in vector lanes; products are register-blocked.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "0", "Width of a vector register; 0: the host's">,
    Option<"vectorRegisters", "vector-registers", "int64_t", "0", "Number of vector registers; 0: the host's">
  ];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::vector::VectorDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def ConvertTileToNVVM : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "lower scheduled tile kernels to the nvvm and llvm dialects";
  let description = [{
    Each `tile.kernel` becomes an `llvm.func` in a `gpu.module`: what one
    thread does. Parameters are, per view, its address and for each dimension
    its extent and stride (i64); per scalar its value. The grid has one
    dimension, the product of the kernel's. Control flow stays `scf`, scalar
    code `arith` and `math`.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"", "Chip whose limits hold">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

#endif // ATTNFUSE_CONVERSION_PASSES
