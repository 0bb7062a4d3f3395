// Cross attention: queries and keys of different lengths, an explicit scale, and
// values of another width than the keys. The name of an extent is given by
// attn.dims.
//
// RUN: attnfuse-run %s --set N=70 --set M=300 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @scaled_dot_product(%q: tensor<2x8x?x64xf32>,
    %k: tensor<2x8x?x64xf32> {attn.dims = ["", "", "M", ""]},
    %v: tensor<2x8x?x32xf32> {attn.dims = ["", "", "M", ""]}) -> tensor<2x8x?x32xf32> {
  %s = attn.scaled_dot_product %q, %k scale 0.1 : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>
  %w = attn.softmax %s : !attn.scores<2x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<2x8x?x?>, tensor<2x8x?x32xf32>
  return %o : tensor<2x8x?x32xf32>
}
