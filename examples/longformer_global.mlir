// Longformer (Beltagy et al. 2020): a window on either side, and the first 16
// tokens read everything and are read by all.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @longformer_global(%q: tensor<1x12x?x64xbf16>, %k: tensor<1x12x?x64xbf16>, %v: tensor<1x12x?x64xbf16>) -> tensor<1x12x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x12x?x64xbf16>, tensor<1x12x?x64xbf16>
  %window = attn.sliding_window left 33 right 33
  %columns = attn.prefix 16
  %rows = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c16 = arith.constant 16 : index
    %global = arith.cmpi ult, %i, %c16 : index
    attn.yield %global : i1
  }
  %mask = attn.or %window, %columns, %rows
  %m9 = attn.mask %s, %mask : !attn.scores<1x12x?x?>
  %w = attn.softmax %m9 : !attn.scores<1x12x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x12x?x?>, tensor<1x12x?x64xbf16>
  return %o : tensor<1x12x?x64xbf16>
}
