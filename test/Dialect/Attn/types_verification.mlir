// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @rank() {
  // expected-error @below {{expected 4 extents (batch, heads, queries, keys), got 3}}
  "use"() : () -> !attn.scores<2x8x4>
  return
}

// -----

func.func @heads() {
  // expected-error @below {{the number of heads has to be static}}
  "use"() : () -> !attn.weights<2x?x4x4>
  return
}
