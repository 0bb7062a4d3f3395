//===- AttnMaskOps.td - masks and their algebra ------------*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_ATTNMASKOPS
#define ATTNFUSE_DIALECT_ATTN_IR_ATTNMASKOPS

include "AttnFuse/Dialect/Attn/IR/AttnBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_MaskLeaf<string mnemonic, list<Trait> traits = []>
    : Attn_PureOp<mnemonic, traits> {
  let results = (outs Attn_Mask:$result);
}

def Attn_FullOp : Attn_MaskLeaf<"full"> {
  let summary = "the mask that keeps every pair";
  let description = [{
    True for every (i, j). `attn.not` of it is the empty mask.

    Example:
    ```mlir
    %m = attn.full
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_CausalOp : Attn_MaskLeaf<"causal"> {
  let summary = "keys not after the query";
  let description = [{
    True where `j <= i + base + shift`. `base` is `Nk - Nq` for `bottom_right`
    (the default), 0 for `top_left`, and the operand's value where one is given.

    Example:
    ```mlir
    %a = attn.causal
    %b = attn.causal top_left
    %c = attn.causal offset(%p : index)
    %d = attn.causal shift -1
    ```
    Errors: both a runtime offset and an alignment.
  }];
  let arguments = (ins
    Optional<Attn_Position>:$offset,
    DefaultValuedAttr<Attn_Alignment, "::attnfuse::attn::Alignment::BottomRight">:$alignment,
    DefaultValuedAttr<I64Attr, "0">:$shift);
  let assemblyFormat = [{
    ($alignment^)? (`offset` `(` $offset^ `:` type($offset) `)`)? (`shift` $shift^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Attn_SlidingWindowOp : Attn_MaskLeaf<"sliding_window"> {
  let summary = "keys near the query";
  let description = [{
    With `c = i + base` the key beside the query, true where
    `c - left < j < c + right`: each width counts keys, the one beside the
    query included; a width that is absent is unlimited. `left 4096 right 1`
    is Mistral's causal window. `base` as for `attn.causal`.

    Example:
    ```mlir
    %a = attn.sliding_window left 4096 right 1
    %b = attn.sliding_window left 128 right 128 top_left
    ```
    Errors: a width below 1, both a runtime offset and an alignment.
  }];
  let arguments = (ins
    Optional<Attn_Position>:$offset,
    OptionalAttr<I64Attr>:$left,
    OptionalAttr<I64Attr>:$right,
    DefaultValuedAttr<Attn_Alignment, "::attnfuse::attn::Alignment::BottomRight">:$alignment);
  let assemblyFormat = [{
    (`left` $left^)? (`right` $right^)? ($alignment^)?
    (`offset` `(` $offset^ `:` type($offset) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Attn_BlockSparseOp : Attn_MaskLeaf<"block_sparse"> {
  let summary = "a table of blocks";
  let description = [{
    True where `table[b, h, i / block_q, j / block_k]` is not 0. The table may
    be a constant or a tensor of the function; its first two extents may be 1,
    the others are `ceil(Nq / block_q)` and `ceil(Nk / block_k)`. The blocks
    need not match the kernel's tiles.

    Example:
    ```mlir
    %m = attn.block_sparse %t blocks [64, 64] : tensor<1x8x16x16xi1>
    ```
    Errors: rank other than 4, blocks other than two numbers above 0, a table
    too short for the scores it is applied to.
  }];
  let arguments = (ins RankedTensorOf<[I1, I8]>:$table, DenseI64ArrayAttr:$blocks);
  let assemblyFormat = "$table `blocks` $blocks attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Attn_DocumentOp : Attn_MaskLeaf<"document"> {
  let summary = "pairs within one document";
  let description = [{
    True where `query_ids[b, i] == key_ids[b, j]`: variable lengths packed into
    one row. The first extent may be 1. One operand serves both sides in self
    attention.

    Example:
    ```mlir
    %a = attn.document %ids : tensor<1x?xi32>
    %b = attn.document %qids, %kids : tensor<1x?xi32>, tensor<1x?xi32>
    ```
    Errors: rank other than 2, lengths other than Nq and Nk.
  }];
  let arguments = (ins Attn_IntTensor:$query_ids, Optional<Attn_IntTensor>:$key_ids);
  let assemblyFormat = [{
    $query_ids (`,` $key_ids^)? attr-dict `:` type($query_ids) (`,` type($key_ids)^)?
  }];
  let hasVerifier = 1;
}

def Attn_PrefixOp : Attn_MaskLeaf<"prefix"> {
  let summary = "keys before a given length";
  let description = [{
    True where `j < length`. The length is a number, a scalar operand, or one
    per batch entry. `or` with `attn.causal` it is the prefix-LM mask (Raffel
    et al. 2020); alone it is key padding.

    Example:
    ```mlir
    %a = attn.prefix 16
    %b = attn.prefix lengths(%n : tensor<4xi32>)
    ```
    Errors: neither or both of the two forms, a negative length.
  }];
  let arguments = (ins Optional<Attn_Position>:$lengths, OptionalAttr<I64Attr>:$length);
  let assemblyFormat = [{
    ($length^)? (`lengths` `(` $lengths^ `:` type($lengths) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Attn_AndOp : Attn_MaskLeaf<"and", [Commutative]> {
  let summary = "pairs kept by every mask";
  let description = [{
    Example:
    ```mlir
    %m = attn.and %a, %b
    ```
    Errors: fewer than one operand.
  }];
  let arguments = (ins Variadic<Attn_Mask>:$masks);
  let assemblyFormat = "$masks attr-dict";
  let hasVerifier = 1;
}

def Attn_OrOp : Attn_MaskLeaf<"or", [Commutative]> {
  let summary = "pairs kept by any mask";
  let description = [{
    Example:
    ```mlir
    %m = attn.or %a, %b
    ```
    Errors: fewer than one operand.
  }];
  let arguments = (ins Variadic<Attn_Mask>:$masks);
  let assemblyFormat = "$masks attr-dict";
  let hasVerifier = 1;
}

def Attn_NotOp : Attn_MaskLeaf<"not"> {
  let summary = "pairs a mask removes";
  let description = [{
    Example:
    ```mlir
    %m = attn.not %a
    ```
  }];
  let arguments = (ins Attn_Mask:$mask);
  let assemblyFormat = "$mask attr-dict";
}

def Attn_MaskModOp : Attn_MaskLeaf<"mask_mod", [SingleBlock]> {
  let summary = "any predicate over place";
  let description = [{
    True where the region yields true for (b, h, i, j). The region holds scalar
    `arith` and `math` operations and `tensor.extract` from tensors of the
    function, at computed indices.

    Example:
    ```mlir
    %m = attn.mask_mod {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c = arith.cmpi sle, %j, %i : index
      attn.yield %c : i1
    }
    ```
    Errors: block arguments other than four of type index, a yielded value
    other than one i1, an operation the region may not hold.
  }];
  let arguments = (ins);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

#endif // ATTNFUSE_DIALECT_ATTN_IR_ATTNMASKOPS
