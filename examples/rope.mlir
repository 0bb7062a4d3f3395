// Rotary position embedding, half-split pairs (Llama, GPT-NeoX), on queries and
// keys.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @rope(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %qr = attn.rope %q : tensor<1x8x?x64xbf16>
  %kr = attn.rope %k : tensor<1x8x?x64xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
