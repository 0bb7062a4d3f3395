// Any scalar function of a score and its place, reading a tensor of the function:
// a learnt scale per head.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @score_mod(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>, %gain: tensor<8xf32>) -> tensor<1x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %t0 = attn.score_mod %s : !attn.scores<1x8x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %g = tensor.extract %gain[%h] : tensor<8xf32>
    %y = arith.mulf %x, %g : f32
    attn.yield %y : f32
  }
  %w = attn.softmax %t0 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
