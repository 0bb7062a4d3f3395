// The prefix-LM mask (T5, Raffel et al. 2020): the first 48 keys are read by
// every query, the others causally.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @prefix_lm(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %c = attn.causal
  %p = attn.prefix 48
  %either = attn.or %c, %p
  %m3 = attn.mask %s, %either : !attn.scores<1x8x?x?>
  %w = attn.softmax %m3 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
