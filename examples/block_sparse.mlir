// A table says which blocks of 64 queries and 64 keys are read. Blocks that are
// not are skipped.
//
// RUN: attnfuse-run %s --set N=200 --seed=3 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @block_sparse(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>, %table: tensor<1x8x4x4xi1> {attn.init = "bernoulli 0.5"}) -> tensor<1x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %c = attn.block_sparse %table blocks [64, 64] : tensor<1x8x4x4xi1>
  %m1 = attn.mask %s, %c : !attn.scores<1x8x?x?>
  %w = attn.softmax %m1 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
