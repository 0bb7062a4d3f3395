// Gemma 2 9B, a local layer: width 256, its own scale, scores capped at 50, a
// causal window (4096 in the model).
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @gemma2_softcap(%q: tensor<1x8x?x256xbf16>, %k: tensor<1x4x?x256xbf16>, %v: tensor<1x4x?x256xbf16>) -> tensor<1x8x?x256xbf16> {
  %qr = attn.rope %q : tensor<1x8x?x256xbf16>
  %kr = attn.rope %k : tensor<1x4x?x256xbf16>
  %s = attn.scaled_dot_product %qr, %kr scale 0.0625 : tensor<1x8x?x256xbf16>, tensor<1x4x?x256xbf16>
  %t0 = attn.softcap %s cap 50.0 : !attn.scores<1x8x?x?>
  %c = attn.sliding_window left 128 right 1
  %m2 = attn.mask %t0, %c : !attn.scores<1x8x?x?>
  %w = attn.softmax %m2 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x4x?x256xbf16>
  return %o : tensor<1x8x?x256xbf16>
}
