// Llama 3 8B, prefill: 32 query heads over 8 key heads of width 128, rotary
// position embedding (base 500000) on queries and keys, causal.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @llama3_prefill(%q: tensor<1x32x?x128xbf16>, %k: tensor<1x8x?x128xbf16>,
                          %v: tensor<1x8x?x128xbf16>) -> tensor<1x32x?x128xbf16> {
  %qr = attn.rope %q {base = 500000.0} : tensor<1x32x?x128xbf16>
  %kr = attn.rope %k {base = 500000.0} : tensor<1x8x?x128xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x32x?x128xbf16>, tensor<1x8x?x128xbf16>
  %c = attn.causal
  %m = attn.mask %s, %c : !attn.scores<1x32x?x?>
  %w = attn.softmax %m : !attn.scores<1x32x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x32x?x?>, tensor<1x8x?x128xbf16>
  return %o : tensor<1x32x?x128xbf16>
}
