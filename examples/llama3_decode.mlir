// Llama 3.1 8B, one step of decoding: a single query per head at a position that
// is known at run time, keys rotated as they were cached, and the frequencies
// scaled as the model does.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @llama3_decode(%q: tensor<1x32x1x128xbf16>, %k: tensor<1x8x?x128xbf16>,
                         %v: tensor<1x8x?x128xbf16>,
                         %position: index {attn.init = "value 199"}) -> tensor<1x32x1x128xbf16> {
  %qr = attn.rope %q at %position : index {base = 500000.0,
      scaling = #attn.rope_scaling<llama3, factor = 8.0, original = 8192, low = 1.0, high = 4.0>}
      : tensor<1x32x1x128xbf16>
  %s = attn.scaled_dot_product %qr, %k : tensor<1x32x1x128xbf16>, tensor<1x8x?x128xbf16>
  %w = attn.softmax %s : !attn.scores<1x32x1x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x32x1x?>, tensor<1x8x?x128xbf16>
  return %o : tensor<1x32x1x128xbf16>
}
