// Rotary position embedding on interleaved pairs of half of the width, stretched
// to four times its context by YaRN.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @rope_interleaved_yarn(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %qr = attn.rope %q interleaved {rotary_dim = 32 : i64, scaling = #attn.rope_scaling<yarn, factor = 4.0, original = 4096>} : tensor<1x8x?x64xbf16>
  %kr = attn.rope %k interleaved {rotary_dim = 32 : i64, scaling = #attn.rope_scaling<yarn, factor = 4.0, original = 4096>} : tensor<1x8x?x64xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
