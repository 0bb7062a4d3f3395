//===- AttnBase.td - attn dialect, types and attributes ----*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_ATTNBASE
#define ATTNFUSE_DIALECT_ATTN_IR_ATTNBASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attnfuse::attn";
  let summary = "composable attention: what is computed";
  let description = [{
    A program is a function whose body combines these operations on tensors
    laid out `batch x heads x length x width`. Three types exist only between
    operations and are never in memory: `!attn.scores`, `!attn.weights` and
    `!attn.mask`; only `attn.aggregate` turns weights into a tensor.

    Semantics common to all operations:
    * A query row `i` reads key row `j` unless a mask removes the pair. A mask
      is final: no later operation on the scores brings a pair back, so the
      place of `attn.mask` among the score operations is of no consequence.
    * A row with no pair left gives 0 in the output and -inf as log-sum-exp.
      A pair that is removed, or whose weight is exactly 0, contributes nothing
      whatever its key and value hold, NaN included.
    * Scores, softmax and sums are in f32 whatever the storage type.
    * Query head `h` reads key and value head `h * Hk / Hq` (integer division).
    * Diagonal masks are aligned at the bottom right when Nq and Nk differ
      (the last query stands beside the last key), unless they say otherwise.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Attn_Type<string name, string typeMnemonic>
    : TypeDef<Attn_Dialect, name> {
  let mnemonic = typeMnemonic;
}

class Attn_ShapedToken<string name, string typeMnemonic>
    : Attn_Type<name, typeMnemonic> {
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape);
  let assemblyFormat = "`<` custom<ScoreShape>($shape) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBatch() const { return getShape()[0]; }
    int64_t getHeads() const { return getShape()[1]; }
    int64_t getQueries() const { return getShape()[2]; }
    int64_t getKeys() const { return getShape()[3]; }
  }];
}

def Attn_Scores : Attn_ShapedToken<"Scores", "scores"> {
  let summary = "scores of every query against every key, f32, never in memory";
  let description = [{
    `!attn.scores<BxHxNqxNk>`; each extent is a number or `?`.
    Example: `!attn.scores<1x32x?x?>`.
  }];
}

def Attn_Weights : Attn_ShapedToken<"Weights", "weights"> {
  let summary = "normalised scores, f32, never in memory";
  let description = [{
    `!attn.weights<BxHxNqxNk>`; each extent is a number or `?`. Made by
    `attn.softmax` or `attn.relu_attention`, consumed by `attn.aggregate`.
  }];
}

def Attn_Mask : Attn_Type<"Mask", "mask"> {
  let summary = "a predicate over (batch, head, query, key), never in memory";
  let description = [{
    True where the query may read the key. A mask has no extents of its own;
    those of its tables are checked where it is applied.
  }];
  let assemblyFormat = "";
}

//===----------------------------------------------------------------------===//
// Enumerations and attributes
//===----------------------------------------------------------------------===//

def Attn_RopeStyle : I32EnumAttr<"RopeStyle", "which dimensions are rotated together", [
    I32EnumAttrCase<"HalfSplit", 0, "half_split">,
    I32EnumAttrCase<"Interleaved", 1, "interleaved">]> {
  let cppNamespace = "::attnfuse::attn";
}

def Attn_Alignment : I32EnumAttr<"Alignment", "where the diagonal of a mask runs", [
    I32EnumAttrCase<"BottomRight", 0, "bottom_right">,
    I32EnumAttrCase<"TopLeft", 1, "top_left">]> {
  let cppNamespace = "::attnfuse::attn";
}

def Attn_RopeScalingKind : I32EnumAttr<"RopeScalingKind", "how rope frequencies are scaled", [
    I32EnumAttrCase<"Linear", 0, "linear">,
    I32EnumAttrCase<"NTK", 1, "ntk">,
    I32EnumAttrCase<"Yarn", 2, "yarn">,
    I32EnumAttrCase<"Llama3", 3, "llama3">]> {
  let cppNamespace = "::attnfuse::attn";
}

def Attn_RopeScaling : AttrDef<Attn_Dialect, "RopeScaling"> {
  let mnemonic = "rope_scaling";
  let summary = "context extension of rotary position embedding";
  let description = [{
    With `theta_t = base^(-2t/R)` the frequency of pair `t`, `R` the rotary
    width, `s` the factor and `L` the original context length:

    | kind | frequency | magnitude of cos and sin |
    |---|---|---|
    | `linear` (Chen et al. 2023) | `theta_t / s` | 1 |
    | `ntk` | base replaced by `base * s^(R/(R-2))` | 1 |
    | `yarn` (Peng et al. 2023) | `theta_t * (g_t / s + 1 - g_t)`, with `g_t` the ramp 0..1 over t from `floor(corr(high))` to `ceil(corr(low))`, `corr(r) = R ln(L / (2 pi r)) / (2 ln base)`, clamped to 0..R-1 | `attention`, else `0.1 ln s + 1` |
    | `llama3` (Llama 3.1) | wavelength `w = 2 pi / theta_t`: `theta_t` if `w < L/high`, `theta_t / s` if `w > L/low`, between them interpolated by `(L/w - low)/(high - low)` | 1 |

    `low` and `high` default to 1 and 32 for `yarn` (its beta_slow and
    beta_fast) and to 1 and 4 for `llama3`. `original` (L) is required by
    `yarn` and `llama3`.

    Example:
    `#attn.rope_scaling<llama3, factor = 8.0, original = 8192, low = 1.0, high = 4.0>`
  }];
  let parameters = (ins
    "::attnfuse::attn::RopeScalingKind":$kind,
    APFloatParameter<"">:$factor_value,
    "int64_t":$original,
    APFloatParameter<"">:$low_value,
    APFloatParameter<"">:$high_value,
    APFloatParameter<"">:$attention_value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    double getFactor() const { return getFactorValue().convertToDouble(); }
    double getLow() const { return getLowValue().convertToDouble(); }
    double getHigh() const { return getHighValue().convertToDouble(); }
    double getAttention() const { return getAttentionValue().convertToDouble(); }
  }];
}

#endif // ATTNFUSE_DIALECT_ATTN_IR_ATTNBASE
