// Any predicate over (batch, head, query, key), reading a tensor of the function:
// keys that are marked valid.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @mask_mod(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x8x?x64xbf16>, %v: tensor<1x8x?x64xbf16>, %valid: tensor<1x?xi1> {attn.init = "bernoulli 0.8"}) -> tensor<1x8x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x8x?x64xbf16>, tensor<1x8x?x64xbf16>
  %c = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = tensor.extract %valid[%b, %j] : tensor<1x?xi1>
    attn.yield %keep : i1
  }
  %m5 = attn.mask %s, %c : !attn.scores<1x8x?x?>
  %w = attn.softmax %m5 : !attn.scores<1x8x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x8x?x?>, tensor<1x8x?x64xbf16>
  return %o : tensor<1x8x?x64xbf16>
}
