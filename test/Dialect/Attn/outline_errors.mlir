// RUN: attnfuse-opt %s --attn-outline --allow-unregistered-dialect --split-input-file --verify-diagnostics

func.func @foreign_scores(%v: tensor<1x4x8x64xf32>) -> tensor<1x4x8x64xf32> {
  %s = "host.scores"() : () -> !attn.scores<1x4x8x8>
  // expected-error@+1 {{'attn.softmax' op cannot be moved into a kernel: its operand of type '!attn.scores<1x4x8x8>' comes from 'host.scores'; supported: the attn operations of the same function}}
  %w = attn.softmax %s : !attn.scores<1x4x8x8>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x8x8>, tensor<1x4x8x64xf32>
  return %o : tensor<1x4x8x64xf32>
}

// -----

func.func @argument_mask(%m: !attn.mask, %q: tensor<1x4x8x64xf32>) -> tensor<1x4x8x64xf32> {
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  // expected-error@+1 {{its operand of type '!attn.mask' comes from a block argument}}
  %t = attn.mask %s, %m : !attn.scores<1x4x8x8>
  %w = attn.softmax %t : !attn.scores<1x4x8x8>
  %o = attn.aggregate %w, %q : !attn.weights<1x4x8x8>, tensor<1x4x8x64xf32>
  return %o : tensor<1x4x8x64xf32>
}

// -----

func.func @scores_returned(%q: tensor<1x4x8x64xf32>) -> !attn.scores<1x4x8x8> {
  // expected-error@+1 {{is read by 'func.return', which keeps it from becoming part of a kernel}}
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  // expected-note@+1 {{the reader}}
  return %s : !attn.scores<1x4x8x8>
}
