// One layer of a trained sentence transformer (all-MiniLM-L6-v2) on four real
// sentences: 12 heads of width 32, keys beyond a sentence's end not read. The
// data and the model's own output are in test/data/minilm.
//
// RUN: attnfuse-run %s --input q=%data/minilm/q.npy --input k=%data/minilm/k.npy --input v=%data/minilm/v.npy --input lengths=%data/minilm/lengths.npy --output %t.npy --check | FileCheck %s
// RUN: %python %source/test/compare_npy.py %t.npy %data/minilm/expected.npy --atol 1e-4
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @minilm_layer(%q: tensor<4x12x?x32xf32>, %k: tensor<4x12x?x32xf32>,
                        %v: tensor<4x12x?x32xf32>,
                        %lengths: tensor<4xi32> {attn.init = "value 20"}) -> tensor<4x12x?x32xf32> {
  %s = attn.scaled_dot_product %q, %k : tensor<4x12x?x32xf32>, tensor<4x12x?x32xf32>
  %valid = attn.prefix lengths(%lengths : tensor<4xi32>)
  %m = attn.mask %s, %valid : !attn.scores<4x12x?x?>
  %w = attn.softmax %m : !attn.scores<4x12x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<4x12x?x?>, tensor<4x12x?x32xf32>
  return %o : tensor<4x12x?x32xf32>
}
