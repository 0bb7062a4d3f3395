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

// -----

func.func @window_both(%p: index) {
  // expected-error @below {{expected an alignment or a runtime offset, got both ('top_left')}}
  %0 = attn.sliding_window left 4 top_left offset(%p : index)
  return
}

// -----

func.func @window_offset(%p: tensor<i32>) {
  // expected-error @below {{expected offset to be a scalar or a rank 1 tensor with one entry per batch entry, got 'tensor<i32>'}}
  %0 = attn.sliding_window left 4 offset(%p : tensor<i32>)
  return
}

// -----

func.func @lengths_rank(%n: tensor<2x2xi32>) {
  // expected-error @below {{expected lengths to be a scalar or a rank 1 tensor with one entry per batch entry, got 'tensor<2x2xi32>'}}
  %0 = attn.prefix lengths(%n : tensor<2x2xi32>)
  return
}

// -----

func.func @table_scalar(%t: tensor<i1>) {
  // expected-error @below {{expected a table of rank 4 (batch, heads, query blocks, key blocks), got rank 0}}
  %0 = attn.block_sparse %t blocks [4, 4] : tensor<i1>
  return
}

// -----

func.func @table_without_blocks(%t: tensor<1x1x4x4xi1>) {
  // expected-error @below {{requires attribute 'blocks'}}
  %0 = "attn.block_sparse"(%t) : (tensor<1x1x4x4xi1>) -> !attn.mask
  return
}

// -----

func.func @key_ids_rank(%t: tensor<1x4xi32>, %u: tensor<4xi32>) {
  // expected-error @below {{expected document ids of rank 2 (batch, length), got 'tensor<4xi32>'}}
  %0 = attn.document %t, %u : tensor<1x4xi32>, tensor<4xi32>
  return
}

// -----

func.func @predicate_arguments() {
  // expected-error @below {{expected block arguments of types ('index', 'index', 'index', 'index'), got ()}}
  %0 = attn.mask_mod {
    %t = arith.constant true
    attn.yield %t : i1
  }
  return
}

// -----

func.func @predicate_operation() {
  // expected-error @below {{has a region with 'attn.causal'; it may hold scalar arith and math operations, tensor.extract and tensor.dim}}
  %0 = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-note @below {{the operation}}
    %m = attn.causal
    %t = arith.constant true
    attn.yield %t : i1
  }
  return
}

// -----

func.func @table_batch(%s: !attn.scores<2x8x100x200>, %t: tensor<3x1x4x4xi1>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.block_sparse %t blocks [32, 64] : tensor<3x1x4x4xi1>
  // expected-error @below {{expected extent 0 (batch) of the block table to be 1 or 2, got 3}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @query_ids_length(%s: !attn.scores<2x8x100x200>, %t: tensor<1x99xi32>, %u: tensor<1x200xi32>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.document %t, %u : tensor<1x99xi32>, tensor<1x200xi32>
  // expected-error @below {{expected one document id per query (100), got 99}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @causal_batch(%s: !attn.scores<2x8x100x200>, %p: tensor<3xi32>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.causal offset(%p : tensor<3xi32>)
  // expected-error @below {{expected one offset per batch entry (2), got 3}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

func.func @window_batch(%s: !attn.scores<2x8x100x200>, %p: tensor<3xi64>) {
  // expected-note @below {{the mask's table is here}}
  %m = attn.sliding_window left 4 offset(%p : tensor<3xi64>)
  // expected-error @below {{expected one offset per batch entry (2), got 3}}
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  return
}

// -----

// Tables are found below the algebra of masks; the first in the order of the
// operands is reported.
func.func @nested(%s: !attn.scores<2x8x100x200>, %n: tensor<5xi32>, %o: tensor<6xi32>) {
  %a = attn.causal
  // expected-note @below {{the mask's table is here}}
  %b = attn.prefix lengths(%n : tensor<5xi32>)
  %c = attn.prefix lengths(%o : tensor<6xi32>)
  %d = attn.not %b
  %e = attn.or %a, %d
  %f = attn.and %a, %e, %c
  // expected-error @below {{expected one length per batch entry (2), got 5}}
  %0 = attn.mask %s, %f : !attn.scores<2x8x100x200>
  return
}

// -----

// A mask that is used ahead of its definition is not verified yet where it is
// used: what is wrong with it is said once, where it is.
func.func @blocks_ahead(%s: !attn.scores<2x8x100x200>, %t: tensor<1x1x4x4xi1>) {
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  // expected-error @below {{expected two block sizes above 0 (queries, keys), got [0, 0]}}
  %m = attn.block_sparse %t blocks [0, 0] : tensor<1x1x4x4xi1>
  return
}

// -----

func.func @no_blocks_ahead(%s: !attn.scores<2x8x100x200>, %t: tensor<1x1x4x4xi1>) {
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  // expected-error @below {{requires attribute 'blocks'}}
  %m = "attn.block_sparse"(%t) : (tensor<1x1x4x4xi1>) -> !attn.mask
  return
}

// -----

func.func @table_ahead(%s: !attn.scores<2x8x100x200>, %t: tensor<i1>) {
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  // expected-error @below {{expected a table of rank 4 (batch, heads, query blocks, key blocks), got rank 0}}
  %m = attn.block_sparse %t blocks [32, 64] : tensor<i1>
  return
}

// -----

func.func @operands_ahead(%s: !attn.scores<2x8x100x200>) {
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  // expected-error @below {{expected 1 or more operands, but found 0}}
  %m = "attn.document"() : () -> !attn.mask
  return
}

// -----

func.func @ids_ahead(%s: !attn.scores<2x8x100x200>, %t: tensor<i32>) {
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  // expected-error @below {{expected document ids of rank 2 (batch, length), got 'tensor<i32>'}}
  %m = attn.document %t : tensor<i32>
  return
}

// -----

func.func @offset_ahead(%s: !attn.scores<2x8x100x200>, %p: tensor<i32>) {
  %0 = attn.mask %s, %m : !attn.scores<2x8x100x200>
  // expected-error @below {{expected offset to be a scalar or a rank 1 tensor}}
  %m = attn.causal offset(%p : tensor<i32>)
  return
}

// -----

func.func @cycle(%s: !attn.scores<2x8x100x200>) {
  // expected-error @below {{operand #1 does not dominate this use}}
  %0 = attn.mask %s, %a : !attn.scores<2x8x100x200>
  // expected-note @below {{operand defined here}}
  %a = attn.not %b
  %b = attn.not %a
  return
}
