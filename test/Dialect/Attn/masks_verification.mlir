// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @causal_both(%p: index) {
  // expected-error @below {{expected an alignment or a runtime offset, got both ('top_left')}}
  %0 = attn.causal top_left offset(%p : index)
  return
}

// -----

func.func @causal_offset(%p: tensor<2x2xi32>) {
  // expected-error @below {{expected offset to be a scalar or a rank 1 tensor}}
  %0 = attn.causal offset(%p : tensor<2x2xi32>)
  return
}

// -----

func.func @window_left() {
  // expected-error @below {{expected a left width of at least 1 (it counts the key beside the query), got 0}}
  %0 = attn.sliding_window left 0
  return
}

// -----

func.func @window_right() {
  // expected-error @below {{expected a right width of at least 1 (it counts the key beside the query), got -3}}
  %0 = attn.sliding_window right -3
  return
}

// -----

func.func @table_rank(%t: tensor<4x4xi1>) {
  // expected-error @below {{expected a table of rank 4 (batch, heads, query blocks, key blocks), got rank 2}}
  %0 = attn.block_sparse %t blocks [4, 4] : tensor<4x4xi1>
  return
}

// -----

func.func @table_blocks(%t: tensor<1x1x4x4xi1>) {
  // expected-error @below {{expected two block sizes above 0 (queries, keys), got [4]}}
  %0 = attn.block_sparse %t blocks [4] : tensor<1x1x4x4xi1>
  return
}

// -----

func.func @table_block_size(%t: tensor<1x1x4x4xi1>) {
  // expected-error @below {{expected two block sizes above 0 (queries, keys), got [4, 0]}}
  %0 = attn.block_sparse %t blocks [4, 0] : tensor<1x1x4x4xi1>
  return
}

// -----

func.func @document_rank(%t: tensor<4xi32>) {
  // expected-error @below {{expected document ids of rank 2 (batch, length)}}
  %0 = attn.document %t : tensor<4xi32>
  return
}

// -----

func.func @document_types(%t: tensor<1x4xi32>, %u: tensor<1x4xi64>) {
  // expected-error @below {{expected query and key ids of one element type}}
  %0 = attn.document %t, %u : tensor<1x4xi32>, tensor<1x4xi64>
  return
}

// -----

func.func @prefix_neither() {
  // expected-error @below {{expected either a length or 'lengths(...)', got neither}}
  %0 = attn.prefix
  return
}

// -----

func.func @prefix_both(%n: tensor<2xi32>) {
  // expected-error @below {{expected either a length or 'lengths(...)', got both}}
  %0 = attn.prefix 4 lengths(%n : tensor<2xi32>)
  return
}

// -----

func.func @prefix_negative() {
  // expected-error @below {{expected a length of at least 0, got -4}}
  %0 = attn.prefix -4
  return
}

// -----

func.func @and_nothing() {
  // expected-error @below {{expected at least one mask}}
  %0 = "attn.and"() : () -> !attn.mask
  return
}

// -----

func.func @or_nothing() {
  // expected-error @below {{expected at least one mask}}
  %0 = "attn.or"() : () -> !attn.mask
  return
}

// -----

func.func @table_queries(%s: !attn.scores<2x8x100x200>, %t: tensor<1x1x3x4xi1>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.block_sparse %t blocks [32, 64] : tensor<1x1x3x4xi1>
  // expected-error @below {{expected 4 query blocks of 32 for 100 rows, got a table with 3}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @table_keys(%s: !attn.scores<2x8x100x200>, %t: tensor<1x1x4x5xi1>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.block_sparse %t blocks [32, 64] : tensor<1x1x4x5xi1>
  // expected-error @below {{expected 4 key blocks of 64 for 200 rows, got a table with 5}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @table_heads(%s: !attn.scores<2x8x100x200>, %t: tensor<1x2x4x4xi1>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.block_sparse %t blocks [32, 64] : tensor<1x2x4x4xi1>
  // expected-error @below {{expected extent 1 (heads) of the block table to be 1 or 8, got 2}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @ids_batch(%s: !attn.scores<2x8x100x200>, %t: tensor<3x100xi32>, %u: tensor<3x200xi32>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.document %t, %u : tensor<3x100xi32>, tensor<3x200xi32>
  // expected-error @below {{expected document ids for 1 or 2 batch entries, got 3}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @ids_length(%s: !attn.scores<2x8x100x200>, %t: tensor<1x100xi32>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.document %t : tensor<1x100xi32>
  // expected-error @below {{expected one document id per key (200), got 100}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @lengths_batch(%s: !attn.scores<2x8x100x200>, %n: tensor<5xi32>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.prefix lengths(%n : tensor<5xi32>)
  // expected-error @below {{expected one length per batch entry (2), got 5}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}
