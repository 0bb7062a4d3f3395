//===- AttnOps.td - attn operations on tensors and scores --*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_ATTNOPS
#define ATTNFUSE_DIALECT_ATTN_IR_ATTNOPS

include "AttnFuse/Dialect/Attn/IR/AttnBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits>;

class Attn_PureOp<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, !listconcat([Pure], traits)>;

def Attn_Tensor : RankedTensorOf<[F16, BF16, F32]>;
def Attn_F32Tensor : RankedTensorOf<[F32]>;
def Attn_IntTensor : RankedTensorOf<[I32, I64]>;
def Attn_Position : AnyTypeOf<[Index, I32, I64, Attn_IntTensor],
    "a position: index, i32, i64, or a tensor<Bxi32> with one per batch entry">;

//===----------------------------------------------------------------------===//
// Rotation and products
//===----------------------------------------------------------------------===//

def Attn_RopeOp : Attn_PureOp<"rope",
    [AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotary position embedding of a query or key tensor";
  let description = [{
    Rotates pairs of the first `R` (`rotary_dim`, default the width) of a row's
    dimensions by angles proportional to the row's position (Su et al. 2021).
    For row `n`, pair `t` in `0 .. R/2`, position `p = n + position + offset`:

    ```
    a = p * theta_t          theta_t = base^(-2t/R), changed by `scaling`
    y[u] = x[u] cos a - x[w] sin a
    y[w] = x[w] cos a + x[u] sin a
    ```

    with `(u, w) = (t, t + R/2)` in `half_split` style (Llama, GPT-NeoX) and
    `(2t, 2t + 1)` in `interleaved` style (GPT-J, RoFormer). Dimensions from
    `R` on are copied. Angles are computed beyond f32 and are within 2e-4 of
    the exact ones for positions up to 2^20.

    | operand | type | meaning |
    |---|---|---|
    | `input` | `tensor<BxHxNxDxT>`, T in f16, bf16, f32; D static | rows to rotate |
    | `offset` | index, i32, i64 or `tensor<Bxi32>` | position of row 0, added to `position` |
    | `cos`, `sin` | `tensor<PxR/2xf32>` | tables in place of `base` and `scaling`; row p serves position p |

    Example:
    ```mlir
    %r = attn.rope %q : tensor<1x8x?x64xf32>
    %s = attn.rope %q at %p : index interleaved {base = 5.0e+05, rotary_dim = 32} : tensor<1x8x?x64xf32>
    ```
    Errors: rank other than 4, dynamic width, rotary width odd or above the
    width, base not above 0, table width other than R/2, fewer table rows than
    positions (when both are known).
  }];
  let arguments = (ins
    Attn_Tensor:$input,
    Optional<Attn_Position>:$offset,
    Optional<Attn_F32Tensor>:$cos,
    Optional<Attn_F32Tensor>:$sin,
    DefaultValuedAttr<Attn_RopeStyle, "::attnfuse::attn::RopeStyle::HalfSplit">:$style,
    OptionalAttr<I64Attr>:$rotary_dim,
    DefaultValuedAttr<F64Attr, "10000.0">:$base,
    DefaultValuedAttr<I64Attr, "0">:$position,
    OptionalAttr<Attn_RopeScaling>:$scaling);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = [{
    $input (`at` $offset^ `:` type($offset))?
    (`tables` `(` $cos^ `,` $sin `:` type($cos) `,` type($sin) `)`)?
    ($style^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The number of leading dimensions that are rotated.
    int64_t getRotaryWidth();
  }];
}

def Attn_ScaledDotProductOp : Attn_PureOp<"scaled_dot_product",
    [InferTypeOpAdaptor]> {
  let summary = "scores of queries against keys";
  let description = [{
    `S[b,h,i,j] = scale * sum_d Q[b,h,i,d] K[b,h*Hk/Hq,j,d]`, in f32. `scale`
    defaults to `1/sqrt(D)`.

    | operand | type |
    |---|---|
    | `query` | `tensor<BxHqxNqxDxT>`, T in f16, bf16, f32; D static |
    | `key` | `tensor<BxHkxNkxDxT>`, the same T; Hq a multiple of Hk |

    Example:
    ```mlir
    %s = attn.scaled_dot_product %q, %k scale 0.125 : tensor<2x8x?x64xbf16>, tensor<2x2x?x64xbf16>
    ```
    Errors: rank other than 4, batch, width or element types that differ, a
    head ratio that is not whole, a scale that is not finite.
  }];
  let arguments = (ins Attn_Tensor:$query, Attn_Tensor:$key,
                       OptionalAttr<F64Attr>:$scale);
  let results = (outs Attn_Scores:$scores);
  let assemblyFormat = [{
    $query `,` $key (`scale` $scale^)? attr-dict `:` type($query) `,` type($key)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The factor on the product: the attribute, or 1/sqrt(D).
    double getScaleValue();
  }];
}

def Attn_AggregateOp : Attn_PureOp<"aggregate",
    [InferTypeOpAdaptor]> {
  let summary = "weighted sum of value rows";
  let description = [{
    `O[b,h,i,e] = sum_j W[b,h,i,j] V[b,h*Hk/Hq,j,e]`, summed in f32 and
    rounded once to V's type. V's width may differ from that of the keys.

    Example:
    ```mlir
    %o = attn.aggregate %w, %v : !attn.weights<2x8x?x?>, tensor<2x2x?x64xbf16>
    ```
    Errors: rank other than 4, dynamic width, batch or key extents that differ,
    a head ratio that is not whole.
  }];
  let arguments = (ins Attn_Weights:$weights, Attn_Tensor:$value);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$weights `,` $value attr-dict `:` qualified(type($weights)) `,` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Operations on scores
//===----------------------------------------------------------------------===//

class Attn_ScoreOp<string mnemonic, list<Trait> traits = []>
    : Attn_PureOp<mnemonic, !listconcat([AllTypesMatch<["scores", "result"]>], traits)> {
  let results = (outs Attn_Scores:$result);
}

def Attn_MaskOp : Attn_ScoreOp<"mask"> {
  let summary = "remove the pairs for which a mask is false";
  let description = [{
    Pairs (i, j) for which the mask is false are not part of the row any more:
    they get no weight in softmax and relu attention.

    Example:
    ```mlir
    %m = attn.causal
    %t = attn.mask %s, %m : !attn.scores<1x8x?x?>
    ```
    Errors: a table of the mask with extents other than the scores'.
  }];
  let arguments = (ins Attn_Scores:$scores, Attn_Mask:$mask);
  let assemblyFormat = "$scores `,` $mask attr-dict `:` qualified(type($scores))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_AlibiOp : Attn_ScoreOp<"alibi"> {
  let summary = "linear distance penalty";
  let description = [{
    `S'[b,h,i,j] = S[b,h,i,j] - m_h * |i + Nk - Nq - j|` (Press et al. 2021;
    under a causal mask the distance is `i + Nk - Nq - j`). Without `slopes`,
    `m_h` is the published sequence for H heads: with `P` the largest power of
    two not above H, the first P slopes are `2^(-8(h+1)/P)`, the others, in
    order, the terms at even places (0, 2, ...) of the sequence for 2P heads.

    Example:
    ```mlir
    %t = attn.alibi %s : !attn.scores<1x12x?x?>
    %u = attn.alibi %s slopes(%m : tensor<12xf32>) : !attn.scores<1x12x?x?>
    ```
    Errors: slopes of rank other than 1 or of another number of heads.
  }];
  let arguments = (ins Attn_Scores:$scores, Optional<Attn_F32Tensor>:$slopes);
  let assemblyFormat = [{
    $scores (`slopes` `(` $slopes^ `:` type($slopes) `)`)? attr-dict `:` qualified(type($scores))
  }];
  let hasVerifier = 1;
}

def Attn_AdditiveBiasOp : Attn_ScoreOp<"additive_bias"> {
  let summary = "add a bias tensor to the scores";
  let description = [{
    `S' = S + bias`, the bias broadcast over each of its extents that is 1.
    -inf gives the pair no weight; the lowest finite value is an ordinary one.

    | operand | type |
    |---|---|
    | `bias` | `tensor<B'xH'xNq'xNk'xT>`, each extent the scores' or 1; T in f16, bf16, f32 |

    Example:
    ```mlir
    %t = attn.additive_bias %s, %bias : !attn.scores<2x8x?x?>, tensor<1x8x?x?xbf16>
    ```
    Errors: rank other than 4; an extent that is neither 1 nor the scores'.
  }];
  let arguments = (ins Attn_Scores:$scores, Attn_Tensor:$bias);
  let assemblyFormat = "$scores `,` $bias attr-dict `:` qualified(type($scores)) `,` type($bias)";
  let hasVerifier = 1;
}

def Attn_SoftcapOp : Attn_ScoreOp<"softcap"> {
  let summary = "bound the scores by a hyperbolic tangent";
  let description = [{
    `S' = cap * tanh(S / cap)` (Gemma 2).

    Example:
    ```mlir
    %t = attn.softcap %s cap 50.0 : !attn.scores<1x8x?x?>
    ```
    Errors: a cap that is not finite or not above 0.
  }];
  let arguments = (ins Attn_Scores:$scores, F64Attr:$cap);
  let assemblyFormat = "$scores `cap` $cap attr-dict `:` qualified(type($scores))";
  let hasVerifier = 1;
}

def Attn_ScoreModOp : Attn_ScoreOp<"score_mod",
    [SingleBlock]> {
  let summary = "any scalar function of score and place";
  let description = [{
    `S'[b,h,i,j] = f(S[b,h,i,j], b, h, i, j)`. The region holds scalar `arith`
    and `math` operations and `tensor.extract` from tensors of the function,
    at computed indices.

    Example:
    ```mlir
    %t = attn.score_mod %s : !attn.scores<1x8x?x?> {
    ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
      %c = arith.constant 2.0 : f32
      %y = arith.mulf %x, %c : f32
      attn.yield %y : f32
    }
    ```
    Errors: block arguments other than (f32, index, index, index, index), a
    yielded value other than one f32, an operation the region may not hold.
  }];
  let arguments = (ins Attn_Scores:$scores);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$scores `:` qualified(type($scores)) attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Attn_SoftmaxOp : Attn_PureOp<"softmax",
    [InferTypeOpAdaptor]> {
  let summary = "scores to weights by softmax over the keys";
  let description = [{
    `W[b,h,i,j] = exp(S[b,h,i,j]) / (sum_j' exp(S[b,h,i,j']) + exp(sink[h]))`,
    the sum over the pairs that no mask removed; computed stably. The sink term
    is there only with `sinks` (per-head logits, as in GPT-OSS). With `lse` the
    second result is the natural log of the denominator,
    `tensor<BxHxNqxf32>`; -inf for a row with nothing left and no sink.

    Example:
    ```mlir
    %w = attn.softmax %s : !attn.scores<1x8x?x?>
    %w2, %l = attn.softmax %s sinks(%z : tensor<8xf32>) lse : !attn.scores<1x8x?x?>
    ```
    Errors: sinks of rank other than 1 or of another number of heads.
  }];
  let arguments = (ins Attn_Scores:$scores, Optional<Attn_F32Tensor>:$sinks,
                       UnitAttr:$return_lse);
  let results = (outs Attn_Weights:$weights, Optional<Attn_F32Tensor>:$lse);
  let assemblyFormat = [{
    $scores (`sinks` `(` $sinks^ `:` type($sinks) `)`)? (`lse` $return_lse^)?
    attr-dict `:` qualified(type($scores))
  }];
  let hasVerifier = 1;
}

def Attn_ReluAttentionOp : Attn_PureOp<"relu_attention",
    [InferTypeOpAdaptor]> {
  let summary = "scores to weights by a rectifier";
  let description = [{
    `W = max(S, 0)`, or with `mean` `W = max(S, 0) / Nk` (Wortsman et al.
    2023, "Replacing softmax with ReLU in vision transformers"). Removed pairs
    get 0. Nk is the number of keys, masked ones included.

    Example:
    ```mlir
    %w = attn.relu_attention %s mean : !attn.scores<1x12x?x?>
    ```
  }];
  let arguments = (ins Attn_Scores:$scores, UnitAttr:$mean);
  let results = (outs Attn_Weights:$weights);
  let assemblyFormat = "$scores (`mean` $mean^)? attr-dict `:` qualified(type($scores))";
}

def Attn_YieldOp : Attn_Op<"yield",
    [Pure, Terminator, ReturnLike, ParentOneOf<["ScoreModOp", "MaskModOp"]>]> {
  let summary = "the value of a score_mod or mask_mod";
  let arguments = (ins AnyTypeOf<[F32, I1]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

include "AttnFuse/Dialect/Attn/IR/AttnAnalysisAttrs.td"
include "AttnFuse/Dialect/Attn/IR/AttnMaskOps.td"

#endif // ATTNFUSE_DIALECT_ATTN_IR_ATTNOPS
