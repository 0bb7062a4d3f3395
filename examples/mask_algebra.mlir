// Masks combine with and, or and not: here, far keys only, without the nearest
// 32 on either side, and nothing of the future.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @mask_algebra(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %near = attn.sliding_window left 32 right 32
  %far = attn.not %near
  %past = attn.causal
  %both = attn.and %far, %past
  %m4 = attn.mask %s, %both : !attn.scores<1x8x?x?>
  %w = attn.softmax %m4 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
