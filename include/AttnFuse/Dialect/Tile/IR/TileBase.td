//===- TileBase.td - tile dialect, types and attributes ----*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_TILE_IR_TILEBASE
#define ATTNFUSE_DIALECT_TILE_IR_TILEBASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::attnfuse::tile";
  let summary = "attention kernels as programs over tiles: how it is computed";
  let description = [{
    A `tile.kernel` is run once per point of its grid. Its body holds tiles
    (small two-dimensional values), views of tensors in memory, index
    arithmetic (`arith`), and control flow (`scf`, whose loops may carry
    tiles). `tile.launch` in a host function runs a kernel over its grid.

    In the *unscheduled* state a program says which tiles are loaded,
    multiplied and stored, and in what order the results depend on one
    another, but not where a tile lives nor who works on it; nothing in it
    assumes a CPU or a GPU.

    In the *scheduled* state, that of GPUs, tiles in registers have a fragment
    layout, operands of products are staged in rings of shared memory, copies
    and products are started and waited for, and roles share out the warps.
    What makes a kernel scheduled is a `schedule` with `warps`; the verifier
    then holds it to the chip's budgets and to the rings' protocol.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Tile_Type<string name, string typeMnemonic>
    : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_Tile : Tile_Type<"Tile", "tile"> {
  let summary = "a two-dimensional value of static extents";
  let description = [{
    `!tile.tile<MxNxT>` with M rows and N columns of T (f32, bf16, f16, i32,
    i64, i8 or i1), optionally followed by a layout, an attribute that says
    which lane holds which element: inferred by a target, explicit once
    scheduled. `Mx1` is a column vector (one value per row), `1xN` a row
    vector; both broadcast in `tile.map`.

    Example: `!tile.tile<64x128xf32>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType,
                        OptionalParameter<"::mlir::Attribute">:$layout);
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
                                   "::mlir::Type":$elementType), [{
    return $_get($_ctxt, shape, elementType, ::mlir::Attribute());
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRows() const { return getShape()[0]; }
    int64_t getColumns() const { return getShape()[1]; }
    /// The same extents with another element type.
    TileType withElementType(::mlir::Type type) const {
      return TileType::get(getContext(), getShape(), type, getLayout());
    }
  }];
}

def Tile_View : Tile_Type<"View", "view"> {
  let summary = "a strided tensor in memory";
  let description = [{
    `!tile.view<AxBx...xT>`: a base address, extents (static or `?`) and one
    stride per dimension, in elements, known at run time only; a stride of 0
    broadcasts. A target turns it into pointers, a memref, or a TMA recipe.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
  }];
}

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Max", 0, "max">,
    I32EnumAttrCase<"Min", 1, "min">,
    I32EnumAttrCase<"Add", 2, "add">]> {
  let cppNamespace = "::attnfuse::tile";
}

def Tile_Fragment : AttrDef<Tile_Dialect, "Fragment"> {
  let mnemonic = "fragment";
  let summary = "which lane of which warp holds which element";
  let description = [{
    The layout of the accumulators of `mma.sync` and `wgmma` (PTX ISA, matrix
    fragments for m16n8): the rows of a tile are shared out in equal,
    contiguous parts among `warps` warps; within 16 rows and 8 columns lane l
    holds rows l/4 and l/4 + 8 and columns 2(l%4) and 2(l%4) + 1. A column
    vector is held by every lane of its row, a row vector by every lane of its
    column, in every warp.

    Example: `!tile.tile<128x64xf32, #tile.fragment<4>>`
  }];
  let parameters = (ins "int64_t":$warps);
  let assemblyFormat = "`<` $warps `>`";
  let genVerifyDecl = 1;
}

def Tile_Ring : Tile_Type<"Ring", "ring"> {
  let summary = "staged buffers in shared memory";
  let description = [{
    `!tile.ring<SxMxNxT, swizzle>`: S slots of M rows and N columns. Use number
    n of a ring is slot n mod S. A slot is stored in panels of `swizzle` bytes
    of every row; within 8 rows of a panel the 16-byte chunks are permuted by
    an exclusive or with the row, so that the accesses of matrix instructions
    meet no bank twice (the 32-, 64- and 128-byte modes of TMA and wgmma).

    Example: `!tile.ring<2x64x128xbf16, 128>`
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$rows, "int64_t":$columns,
                        "::mlir::Type":$elementType, "int64_t":$swizzle);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one slot, and of all.
    int64_t getSlotBytes() const;
    int64_t getBytes() const { return getStages() * getSlotBytes(); }
  }];
}

def Tile_Pending : Tile_Type<"Pending", "pending"> {
  let summary = "the result of a product that may still be under way";
  let description = [{
    Only `tile.dot_wait` takes it and gives back the tile: what is in flight
    can be neither read nor written.

    Example: `!tile.pending<128x64xf32, #tile.fragment<4>>`
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType,
                        OptionalParameter<"::mlir::Attribute">:$layout);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    TileType getTile() const {
      return TileType::get(getContext(), getShape(), getElementType(), getLayout());
    }
    static PendingType get(TileType tile) {
      return get(tile.getContext(), tile.getShape(), tile.getElementType(), tile.getLayout());
    }
  }];
}

def Tile_Schedule : AttrDef<Tile_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how an attention program is tiled and pipelined";
  let description = [{
    `block_m` query rows and `block_n` key rows per tile. From the chip's
    table and cost model, or forced by a pass option; the tuner sweeps it.

    On GPUs: `warps` that share a query tile, `stages` of the rings of keys
    and values, and, where warps are specialised, `registers` per consumer
    thread and `producer_registers`; `rescale` is the growth of a row's
    maximum, in log2 units, below which accumulators are not rescaled (0:
    always rescale); `ping_pong` alternates the matrix phases of warpgroups;
    `persistent` blocks take tiles from a counter.

    Example: `#tile.schedule<block_m = 128, block_n = 64, warps = 4, stages = 2>`
  }];
  let parameters = (ins "int64_t":$block_m, "int64_t":$block_n,
      DefaultValuedParameter<"int64_t", "0">:$warps,
      DefaultValuedParameter<"int64_t", "0">:$stages,
      DefaultValuedParameter<"int64_t", "0">:$registers,
      DefaultValuedParameter<"int64_t", "0">:$producer_registers,
      DefaultValuedParameter<"int64_t", "0">:$rescale,
      DefaultValuedParameter<"bool", "false">:$ping_pong,
      DefaultValuedParameter<"bool", "false">:$persistent);
  let builders = [AttrBuilder<(ins "int64_t":$block_m, "int64_t":$block_n), [{
    return $_get($_ctxt, block_m, block_n, 0, 0, 0, 0, 0, false, false);
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_Extent : AttrDef<Tile_Dialect, "Extent"> {
  let mnemonic = "extent";
  let summary = "one extent of a grid, as a function of the arguments";
  let description = [{
    `ceildiv(extent of dimension dim of argument arg, div)`. A grid is a rule,
    not code, so that a runtime can evaluate it.

    Example: `#tile.extent<arg = 0, dim = 2, div = 64>`
  }];
  let parameters = (ins "int64_t":$arg, "int64_t":$dim, "int64_t":$div);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // ATTNFUSE_DIALECT_TILE_IR_TILEBASE
