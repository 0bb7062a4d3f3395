// Mistral 7B: grouped heads, rotary position embedding, a causal window (4096 in
// the model, 64 here so that a short run shows it).
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @mistral_sliding_window(%q: tensor<1x32x?x128xbf16>, %k: tensor<1x8x?x128xbf16>, %v: tensor<1x8x?x128xbf16>) -> tensor<1x32x?x128xbf16> {
  %qr = attn.rope %q : tensor<1x32x?x128xbf16>
  %kr = attn.rope %k : tensor<1x8x?x128xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x32x?x128xbf16>, tensor<1x8x?x128xbf16>
  %c = attn.sliding_window left 64 right 1
  %m1 = attn.mask %s, %c : !attn.scores<1x32x?x?>
  %w = attn.softmax %m1 : !attn.scores<1x32x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x32x?x?>, tensor<1x8x?x128xbf16>
  return %o : tensor<1x32x?x128xbf16>
}
