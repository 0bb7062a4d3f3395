// Plain attention for bench/cpu_peers.py: 12 heads of width 64, f32, full.
func.func @full_f32(%q: tensor<1x12x?x64xf32>, %k: tensor<1x12x?x64xf32>,
                    %v: tensor<1x12x?x64xf32>) -> tensor<1x12x?x64xf32> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x12x?x64xf32>, tensor<1x12x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x12x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x12x?x?>, tensor<1x12x?x64xf32>
  return %o : tensor<1x12x?x64xf32>
}
