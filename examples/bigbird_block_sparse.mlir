// BigBird (Zaheer et al. 2020): a window of three blocks, global first row and
// column, and random blocks, as a constant table.
//
// RUN: attnfuse-run %s --set N=512 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @bigbird_block_sparse(%q: tensor<1x12x?x64xbf16>, %k: tensor<1x12x?x64xbf16>, %v: tensor<1x12x?x64xbf16>) -> tensor<1x12x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x12x?x64xbf16>, tensor<1x12x?x64xbf16>
  %table = arith.constant dense<[[[[true, true, true, true, true, true, true, true],
      [true, true, true, false, false, false, false, false],
      [true, true, true, true, false, true, false, false],
      [true, false, true, true, true, false, false, false],
      [true, false, false, true, true, true, false, true],
      [true, false, false, false, true, true, true, false],
      [true, true, false, false, false, true, true, true],
      [true, false, false, false, false, false, true, true]]]]> : tensor<1x1x8x8xi1>
  %c = attn.block_sparse %table blocks [64, 64] : tensor<1x1x8x8xi1>
  %m2 = attn.mask %s, %c : !attn.scores<1x12x?x?>
  %w = attn.softmax %m2 : !attn.scores<1x12x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x12x?x?>, tensor<1x12x?x64xbf16>
  return %o : tensor<1x12x?x64xbf16>
}
