//===- TileOps.td - tile operations, unscheduled state -----*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_TILE_IR_TILEOPS
#define ATTNFUSE_DIALECT_TILE_IR_TILEOPS

include "AttnFuse/Dialect/Tile/IR/TileBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

class Tile_PureOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([Pure], traits)>;

def Tile_Scalar : AnyTypeOf<[F32, BF16, F16, I64, I32, I8, I1, Index]>;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel",
    [IsolatedFromAbove, FunctionOpInterface, Symbol]> {
  let summary = "a kernel, run once per point of its grid";
  let description = [{
    Arguments are views and scalars; there are no results, outputs are stored
    to views. `grid` gives the extents, the first varying fastest. The
    attribute `schedule` records the tiling; `num_outputs` says how many of the
    last arguments are written.

    Example:
    ```mlir
    tile.kernel @copy(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>) attributes {
        grid = [#tile.extent<arg = 0, dim = 0, div = 16>], num_outputs = 1 : i64} {
      %t = tile.program_id 0
      %c16 = arith.constant 16 : index
      %c0 = arith.constant 0 : index
      %r = arith.muli %t, %c16 : index
      %a = tile.load %x[%r, %c0] along [0, 1] : !tile.view<?x64xf32> -> !tile.tile<16x64xf32>
      tile.store %a, %y[%r, %c0] along [0, 1] : !tile.tile<16x64xf32>, !tile.view<?x64xf32>
      tile.return
    }
    ```
    Errors: an argument that is neither view nor scalar, a grid that names an
    argument or dimension that does not exist, more outputs than views; views
    or rings that are made or carried by control flow; in the scheduled state
    tiles without a fragment of the warps that compute them.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       ArrayAttr:$grid,
                       DefaultValuedAttr<I64Attr, "0">:$num_outputs,
                       OptionalAttr<Tile_Schedule>:$schedule,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "end of a kernel";
  let assemblyFormat = "attr-dict";
}

def Tile_LaunchOp : Tile_Op<"launch", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a kernel over its grid";
  let description = [{
    Passes the tensors and scalars `ins` and the tensors `outs` to the kernel;
    the results are `outs` after the run. Host code. Once kernels are lowered,
    the symbol names the function in a module of kernels that replaced them.

    Example:
    ```mlir
    func.func @host(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %y = tile.launch @copy ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>)
      return %y : tensor<?x64xf32>
    }
    ```
    Errors: an unknown kernel, operands that do not match its arguments.
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Variadic<AnyType>:$inputs,
                       Variadic<AnyRankedTensor>:$inits);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kernel (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` custom<LaunchOuts>($inits, type($inits), type($outputs)) `)` attr-dict
  }];
}

def Tile_ProgramIdOp : Tile_PureOp<"program_id"> {
  let summary = "where in the grid this instance runs";
  let description = [{
    The index along one dimension of the kernel's grid.

    Example:
    ```mlir
    %t = tile.program_id 0
    ```
  }];
  let arguments = (ins I64Attr:$dimension);
  let results = (outs Index:$result);
  let assemblyFormat = "$dimension attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Tile_DimOp : Tile_PureOp<"dim"> {
  let summary = "an extent of a view";
  let description = [{
    Example:
    ```mlir
    %n = tile.dim %v, 2 : !tile.view<1x8x?x64xf32>
    ```
    Errors: a dimension the view does not have.
  }];
  let arguments = (ins Tile_View:$view, I64Attr:$dimension);
  let results = (outs Index:$result);
  let assemblyFormat = "$view `,` $dimension attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "read a tile of a view";
  let description = [{
    Element (r, c) of the tile is the view's element at `indices` plus r in
    dimension `along[0]` and c in dimension `along[1]`; -1 in place of a
    dimension goes with an extent of 1. Elements outside the view are 0 and
    not read. The tile's element type is the view's, or f32 for a narrower
    float.

    Example:
    ```mlir
    %k = tile.load %v[%b, %h, %j, %c0] along [2, 3] : !tile.view<1x8x?x64xbf16> -> !tile.tile<64x64xbf16>
    ```
    Errors: an index count other than the rank, dimensions out of range or
    equal, element types that do not go together.
  }];
  let arguments = (ins Tile_View:$view, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$along);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $view `[` $indices `]` `along` $along attr-dict
    `:` qualified(type($view)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "write a tile to a view";
  let description = [{
    The inverse of `tile.load`: elements outside the view are dropped. f32 is
    rounded to nearest even where the view holds a narrower float.

    Example:
    ```mlir
    tile.store %o, %v[%b, %h, %i, %c0] along [2, 3] : !tile.tile<64x64xf32>, !tile.view<1x8x?x64xbf16>
    ```
  }];
  let arguments = (ins Tile_Tile:$tile, Tile_View:$view, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$along);
  let assemblyFormat = [{
    $tile `,` $view `[` $indices `]` `along` $along attr-dict
    `:` qualified(type($tile)) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_ReadOp : Tile_Op<"read", [MemoryEffects<[MemRead]>,
    TypesMatchWith<"the result has the view's element type", "view", "result",
                   "::llvm::cast<ViewType>($_self).getElementType()">]> {
  let summary = "read one element of a view";
  let description = [{
    Each index is first brought into the view's range, so that lanes beyond
    the end of a row read memory that exists. Inside a `tile.map` the indices
    may vary from element to element (a gather).

    Example:
    ```mlir
    %m = tile.read %slopes[%h] : !tile.view<12xf32>
    ```
    Errors: an index count other than the rank.
  }];
  let arguments = (ins Tile_View:$view, Variadic<Index>:$indices);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Tile_SplatOp : Tile_PureOp<"splat"> {
  let summary = "a tile of one value";
  let description = [{
    Example:
    ```mlir
    %z = tile.splat %zero : f32 -> !tile.tile<64x64xf32>
    ```
    Errors: a scalar of another type than the tile's.
  }];
  let arguments = (ins Tile_Scalar:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_ExtractOp : Tile_PureOp<"extract"> {
  let summary = "the element of a 1x1 tile";
  let description = [{
    Example:
    ```mlir
    %x = tile.extract %t : !tile.tile<1x1xi32> -> i32
    ```
    Errors: a tile with more than one element.
  }];
  let arguments = (ins Tile_Tile:$tile);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$tile attr-dict `:` qualified(type($tile)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_PureOp<"dot", [AllTypesMatch<["acc", "result"]>]> {
  let summary = "matrix product with accumulation";
  let description = [{
    `R = acc + A B`, or `R = acc + A B^T` with `transpose_b`; products and sums
    in f32. With `guard_zeros` an element of A that is exactly 0 contributes
    nothing, whatever B holds (0 times NaN is left out).

    | operand | type |
    |---|---|
    | `lhs` | `MxK`, float |
    | `rhs` | `KxN`, or `NxK` with `transpose_b`, float |
    | `acc` | `MxN`, f32 |

    Example:
    ```mlir
    %s = tile.dot %q, %k, %z transpose_b : !tile.tile<64x64xbf16>, !tile.tile<32x64xbf16>, !tile.tile<64x32xf32>
    ```
    Errors: extents that do not go together, an accumulator other than f32.
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Tile:$rhs, Tile_Tile:$acc,
                       UnitAttr:$transpose_b, UnitAttr:$guard_zeros);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $acc (`transpose_b` $transpose_b^)? (`guard_zeros` $guard_zeros^)?
    attr-dict `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_PureOp<"map", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "a scalar function applied to every element";
  let description = [{
    The region gets one scalar per operand and the element's row and column
    within the tile, and yields one scalar per result. An operand of extent 1
    in a dimension broadcasts. The region holds scalar `arith` and `math`
    operations and `tile.read`.

    Example:
    ```mlir
    %p = tile.map(%s, %m : !tile.tile<64x32xf32>, !tile.tile<64x1xf32>) -> !tile.tile<64x32xf32> {
    ^bb0(%x: f32, %y: f32, %row: index, %column: index):
      %d = arith.subf %x, %y : f32
      %e = math.exp2 %d : f32
      tile.yield %e : f32
    }
    ```
    Errors: extents that do not broadcast, block arguments or yielded types
    that do not match.
  }];
  let arguments = (ins Variadic<Tile_Tile>:$inputs);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` ($inputs^ `:` qualified(type($inputs)))? `)` `->` qualified(type($results))
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"MapOp">]> {
  let summary = "the values of an element";
  let arguments = (ins Variadic<Tile_Scalar>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Tile_ReduceOp : Tile_PureOp<"reduce"> {
  let summary = "combine the rows or columns of a tile";
  let description = [{
    `max`, `min` or `add` over dimension 0 (rows) or 1 (columns), whose extent
    becomes 1. A float maximum ignores NaN unless every element is NaN. With
    `partial` a lane combines only what it holds of each row; `tile.combine`
    does the rest (scheduled state).

    Example:
    ```mlir
    %m = tile.reduce max %s dim 1 : !tile.tile<64x32xf32> -> !tile.tile<64x1xf32>
    ```
    Errors: a dimension other than 0 and 1, a result of other extents.
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_Tile:$tile, I64Attr:$dimension,
                       UnitAttr:$partial);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $kind $tile `dim` $dimension (`partial` $partial^)? attr-dict
    `:` qualified(type($tile)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

def Tile_AnglesOp : Tile_PureOp<"angles", [AllTypesMatch<["cos", "sin"]>]> {
  let summary = "cosines and sines of rotary angles";
  let description = [{
    Row r, column t: `magnitude * cos(a)` and `magnitude * sin(a)`, with
    `a = (start + r) * frequencies[t]`, within 2e-4 of the exact values for
    positions up to 2^20 (so the product is formed beyond f32).

    Example:
    ```mlir
    %c, %s = tile.angles %p {frequencies = array<f64: 1.0, 0.01>, magnitude = 1.0} : !tile.tile<64x2xf32>
    ```
    Errors: another number of frequencies than columns.
  }];
  let arguments = (ins Index:$start, DenseF64ArrayAttr:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$magnitude);
  let results = (outs Tile_Tile:$cos, Tile_Tile:$sin);
  let assemblyFormat = "$start attr-dict `:` qualified(type($cos))";
  let hasVerifier = 1;
}

def Tile_RotateOp : Tile_PureOp<"rotate", [AllTypesMatch<["cos", "sin"]>]> {
  let summary = "rotate pairs of columns";
  let description = [{
    With R = 2 * columns of `cos`, pair t is columns `(t, t + R/2)`, or
    `(2t, 2t + 1)` with `interleaved`: `y[u] = x[u] cos - x[w] sin`,
    `y[w] = x[w] cos + x[u] sin`, in f32. Columns from R on are copied.

    Example:
    ```mlir
    %y = tile.rotate %x, %c, %s interleaved : !tile.tile<64x128xbf16>, !tile.tile<64x32xf32> -> !tile.tile<64x128xf32>
    ```
    Errors: more rotated columns than there are, other numbers of rows.
  }];
  let arguments = (ins Tile_Tile:$input, Tile_Tile:$cos, Tile_Tile:$sin,
                       UnitAttr:$interleaved);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin (`interleaved` $interleaved^)? attr-dict
    `:` qualified(type($input)) `,` qualified(type($cos)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

#endif // ATTNFUSE_DIALECT_TILE_IR_TILEOPS
