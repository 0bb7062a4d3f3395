// The mask that keeps every pair: it is dropped, and costs nothing.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @full(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %full = attn.full
  %m1 = attn.mask %s, %full : !attn.scores<1x8x?x?>
  %w = attn.softmax %m1 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
