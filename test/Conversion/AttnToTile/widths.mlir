// RUN: attnfuse-opt %s --attn-to-tile --verify-diagnostics

// expected-error @below {{expected widths of at most 4096, which tiles can hold}}
func.func @wide(%q: tensor<1x1x?x1099511627776xf32>) -> tensor<1x1x?x1099511627776xf32> attributes {attn.kernel} {
  %r = attn.rope %q : tensor<1x1x?x1099511627776xf32>
  return %r : tensor<1x1x?x1099511627776xf32>
}
