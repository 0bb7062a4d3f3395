// Softmax with a learnt sink per head in the denominator, and the log-sum-exp as a
// second result.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0
// CHECK: check: ok, result 1

func.func @softmax(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>, %sinks: tensor<8xf32>) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %c = attn.causal
  %m1 = attn.mask %s, %c : !attn.scores<1x8x?x?>
  %w, %lse = attn.softmax %m1 sinks(%sinks : tensor<8xf32>) lse : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o, %lse : tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
}
