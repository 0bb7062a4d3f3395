// A decoder in the manner of BLOOM: ALiBi and a causal mask, no positions in the
// tensors.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @alibi_decoder(%q: tensor<1x16x?x64xbf16>, %k: tensor<1x16x?x64xbf16>, %v: tensor<1x16x?x64xbf16>) -> tensor<1x16x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x16x?x64xbf16>, tensor<1x16x?x64xbf16>
  %t0 = attn.alibi %s : !attn.scores<1x16x?x?>
  %c = attn.causal
  %m2 = attn.mask %t0, %c : !attn.scores<1x16x?x?>
  %w = attn.softmax %m2 : !attn.scores<1x16x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x16x?x?>, tensor<1x16x?x64xbf16>
  return %o : tensor<1x16x?x64xbf16>
}
