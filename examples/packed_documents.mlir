// Several documents packed into one row for training: causal within each.
//
// RUN: attnfuse-run %s --set N=200 --check | FileCheck %s
// CHECK: device: cpu
// CHECK: check: ok, result 0

func.func @packed_documents(%q: tensor<1x16x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>, %ids: tensor<1x?xi32> {attn.init = "documents 70"}) -> tensor<1x16x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x16x?x64xbf16>, tensor<1x4x?x64xbf16>
  %c = attn.causal
  %d = attn.document %ids : tensor<1x?xi32>
  %both = attn.and %c, %d
  %m3 = attn.mask %s, %both : !attn.scores<1x16x?x?>
  %w = attn.softmax %m3 : !attn.scores<1x16x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x16x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x16x?x64xbf16>
}
