// RUN: attnfuse-opt %s --attn-to-tile --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @below {{expected an attention kernel to return a tensor}}
func.func @nothing(%q: tensor<1x4x?x64xf32>) attributes {attn.kernel} {
  return
}

// -----

func.func @intermediate(%q: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %k = "some.thing"(%q) : (tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32>
  // expected-error @below {{expected its tensor to be an argument of the kernel function; run attn-outline first}}
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}
