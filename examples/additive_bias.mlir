// A bias per head, shared by the batch.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @additive_bias(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>, %v: tensor<2x8x?x64xbf16>, %bias: tensor<1x8x?x?xbf16>) -> tensor<2x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>
  %t0 = attn.additive_bias %s, %bias : !attn.scores<2x8x?x?>, tensor<1x8x?x?xbf16>
  %w = attn.softmax %t0 : !attn.scores<2x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<2x8x?x?>, tensor<2x8x?x64xbf16>
  return %o : tensor<2x8x?x64xbf16>
}
