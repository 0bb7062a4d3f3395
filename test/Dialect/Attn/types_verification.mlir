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

// -----

func.func @no_extents() {
  // expected-error @below {{expected 4 extents (batch, heads, queries, keys), got 0}}
  "use"() : () -> !attn.scores<f32>
  return
}

// -----

func.func @extent_range() {
  // expected-error @below {{invalid dimension}}
  "use"() : () -> !attn.scores<99999999999999999999x1x1x1>
  return
}

// -----

// expected-error @below {{expected a finite attention factor, got -1.0}}
func.func private @attention() attributes {a = #attn.rope_scaling<yarn, factor = 2.0, original = 9, attention = -1.0>}

// -----

// expected-error @below {{integer value too large}}
func.func private @factor_range() attributes {a = #attn.rope_scaling<linear, factor = 99999999999999999999999>}

// -----

// expected-error @below {{'llama3' scaling needs 'original', the context length of training, above 0; got -8}}
func.func private @original() attributes {a = #attn.rope_scaling<llama3, factor = 2.0, original = -8>}
