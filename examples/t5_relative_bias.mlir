// T5 (Raffel et al. 2020): scores are not scaled, and a learnt bias per head
// depends on the distance of key and query alone. The model's buckets do not tell
// distances above 127 apart, so the bias is a table of 255 distances.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @t5_relative_bias(%q: tensor<1x8x?x32xf32>, %k: tensor<1x8x?x32xf32>, %v: tensor<1x8x?x32xf32>, %table: tensor<8x255xf32>) -> tensor<1x8x?x32xf32> {
  %s = attn.scaled_dot_product %q, %k scale 1.0 : tensor<1x8x?x32xf32>, tensor<1x8x?x32xf32>
  %t0 = attn.score_mod %s : !attn.scores<1x8x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %low = arith.constant -127 : index
    %high = arith.constant 127 : index
    %distance = arith.subi %j, %i : index
    %above = arith.maxsi %distance, %low : index
    %clipped = arith.minsi %above, %high : index
    %place = arith.addi %clipped, %high : index
    %bias = tensor.extract %table[%h, %place] : tensor<8x255xf32>
    %y = arith.addf %x, %bias : f32
    attn.yield %y : f32
  }
  %w = attn.softmax %t0 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x32xf32>
  return %o : tensor<1x8x?x32xf32>
}
