// T5 (Raffel et al. 2020): scores are not scaled, and a learnt bias per head
// depends on the distance of query and key alone.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @t5_relative_bias(%q: tensor<1x8x?x32xf32>, %k: tensor<1x8x?x32xf32>, %v: tensor<1x8x?x32xf32>, %bias: tensor<1x8x?x?xf32>) -> tensor<1x8x?x32xf32> {
  %s = attn.scaled_dot_product %q, %k scale 1.0 : tensor<1x8x?x32xf32>, tensor<1x8x?x32xf32>
  %t0 = attn.additive_bias %s, %bias : !attn.scores<1x8x?x?>, tensor<1x8x?x?xf32>
  %w = attn.softmax %t0 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x32xf32>
  return %o : tensor<1x8x?x32xf32>
}
