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

    In the *unscheduled* state, the one described here, a program says which
    tiles are loaded, multiplied and stored, and in what order the results
    depend on one another, but not where a tile lives nor who works on it;
    nothing in it assumes a CPU or a GPU.
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

def Tile_Schedule : AttrDef<Tile_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how an attention program is tiled";
  let description = [{
    `block_m` query rows and `block_n` key rows per tile. From the chip's
    table and cost model, or forced by a pass option; the tuner sweeps it.

    Example: `#tile.schedule<block_m = 96, block_n = 64>`
  }];
  let parameters = (ins "int64_t":$block_m, "int64_t":$block_n);
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
