// GPT-OSS: grouped heads, a causal window of 128, and a learnt sink per head.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @gpt_oss_sinks(%q: tensor<1x64x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>, %sinks: tensor<64xf32>) -> tensor<1x64x?x64xbf16> {
  %qr = attn.rope %q {base = 150000.0} : tensor<1x64x?x64xbf16>
  %kr = attn.rope %k {base = 150000.0} : tensor<1x8x?x64xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x64x?x64xbf16>, tensor<1x8x?x64xbf16>
  %c = attn.sliding_window left 128 right 1
  %m1 = attn.mask %s, %c : !attn.scores<1x64x?x?>
  %w = attn.softmax %m1 sinks(%sinks : tensor<64xf32>) : !attn.scores<1x64x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x64x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x64x?x64xbf16>
}
