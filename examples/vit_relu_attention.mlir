// A vision transformer with ReLU attention (Wortsman et al. 2023): 197 tokens, no
// mask, weights divided by their number.
//
// RUN: attnfuse-run %s --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @vit_relu_attention(%q: tensor<2x12x197x64xf32>, %k: tensor<2x12x197x64xf32>, %v: tensor<2x12x197x64xf32>) -> tensor<2x12x197x64xf32> {
  %s = attn.scaled_dot_product %q, %k : tensor<2x12x197x64xf32>, tensor<2x12x197x64xf32>
  %w = attn.relu_attention %s mean : !attn.scores<2x12x197x197>
  %o = attn.aggregate %w, %v : !attn.weights<2x12x197x197>, tensor<2x12x197x64xf32>
  return %o : tensor<2x12x197x64xf32>
}
