//===- AttnAnalysisAttrs.td - what analyses find out -------*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_ATTNANALYSISATTRS
#define ATTNFUSE_DIALECT_ATTN_IR_ATTNANALYSISATTRS

include "AttnFuse/Dialect/Attn/IR/AttnBase.td"

def Attn_Placement : I32Enum<"Placement", "where a rotation runs", [
    I32EnumAttrCase<"Prologue", 0, "prologue">,
    I32EnumAttrCase<"InLoop", 1, "in_loop">,
    I32EnumAttrCase<"Once", 2, "once">]> {
  let cppNamespace = "::attnfuse::attn";
}

def Attn_PlacementAttr : AttrDef<Attn_Dialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "where a rotation runs, and what the choices cost";
  let description = [{
    | place | the rotation runs |
    |---|---|
    | `prologue` | on a query tile, in registers, when the kernel takes it up |
    | `in_loop` | on a key tile, at each visit |
    | `once` | in a kernel of its own ahead of the main one |

    A rotation of keys has the predicted times of the two choices in
    microseconds, to three digits, and the length Nq = Nk from which on `once`
    is the faster (`never` if there is none).

    Example:
    `#attn.placement<once, in_loop_us = 12.5, once_us = 3.1, crossover = 512>`
  }];
  let parameters = (ins
    "::attnfuse::attn::Placement":$place,
    "bool":$has_costs,
    APFloatParameter<"">:$in_loop_value,
    APFloatParameter<"">:$once_value,
    "int64_t":$crossover);
  let builders = [
    AttrBuilder<(ins "::attnfuse::attn::Placement":$place), [{
      return $_get($_ctxt, place, false, ::llvm::APFloat(0.0),
                   ::llvm::APFloat(0.0), 0);
    }]>,
    AttrBuilder<(ins "::attnfuse::attn::Placement":$place, "double":$in_loop_us,
                     "double":$once_us, "int64_t":$crossover), [{
      return $_get($_ctxt, place, true,
                   ::llvm::APFloat(roundToThreeDigits(in_loop_us)),
                   ::llvm::APFloat(roundToThreeDigits(once_us)), crossover);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    double getInLoopUs() const { return getInLoopValue().convertToDouble(); }
    double getOnceUs() const { return getOnceValue().convertToDouble(); }
    /// The crossover of a choice that never pays.
    static constexpr int64_t kNever = INT64_MAX;
    static double roundToThreeDigits(double value);
  }];
}

def Attn_TileClass : I32Enum<"TileClass", "what is known of the tiles of a mask", [
    I32EnumAttrCase<"Empty", 0, "empty">,
    I32EnumAttrCase<"Full", 1, "full">,
    I32EnumAttrCase<"Partial", 2, "partial">,
    I32EnumAttrCase<"Unknown", 3, "unknown">]> {
  let cppNamespace = "::attnfuse::attn";
}

def Attn_BlockListsAttr : AttrDef<Attn_Dialect, "BlockLists"> {
  let mnemonic = "block_lists";
  let summary = "the blocks that a constant table keeps, by row of blocks";
  let description = [{
    Compressed rows: the blocks of keys that row `r` of blocks of queries reads
    are `keys[starts[r]]` up to `keys[starts[r + 1]]`, in ascending order; rows
    are numbered through the table's batches, heads and rows.

    Example:
    `#attn.block_lists<blocks = [64, 64], rows = [1, 1, 2], starts = [0, 1, 3], keys = [0, 0, 1]>`
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$blocks,
    ArrayRefParameter<"int64_t">:$rows,
    ArrayRefParameter<"int64_t">:$starts,
    ArrayRefParameter<"int64_t">:$keys);
  let assemblyFormat = [{
    `<` `blocks` `=` `[` $blocks `]` `,` `rows` `=` `[` $rows `]` `,`
    `starts` `=` `[` $starts `]` `,` `keys` `=` custom<IntegerList>($keys) `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_TileMapAttr : AttrDef<Attn_Dialect, "TileMap"> {
  let mnemonic = "tile_map";
  let summary = "the keys that a tile of query rows reads";
  let description = [{
    For query rows `i0 <= i < i1`, by term of the mask (a union of terms):
    outside `touched` no pair is kept, within `full` every pair is, and between
    the two the pairs are tested. Bounds are linear in `i0`, `i1`, `Nq`, `Nk`
    and `symbols` (values known at run time, each per batch entry: the offset of
    a diagonal, the length of a prefix). An interval whose end is not above its
    begin is empty; intervals are within `[0, Nk)`. `tests` names the kinds of
    operations, other than diagonals, that are asked for the pairs in between.

    | class | meaning |
    |---|---|
    | `empty`, `full` | no pair, every pair |
    | `partial` | bounds or block lists decide some tiles ahead of time |
    | `unknown` | nothing is known before run time |

    `tables` are the block lists of constant tables, in the order of the terms.

    Example, the causal mask:
    ```
    #attn.tile_map<partial, [
      {touched = 0 to i1 + Nk - Nq, full = 0 to i0 + Nk - Nq + 1}
    ]>
    ```
  }];
  let parameters = (ins
    "::attnfuse::attn::TileClass":$tile_class,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$symbols,
    OptionalArrayRefParameter<"::attnfuse::attn::TileTerm">:$terms,
    OptionalArrayRefParameter<"::attnfuse::attn::BlockListsAttr">:$tables);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // ATTNFUSE_DIALECT_ATTN_IR_ATTNANALYSISATTRS
