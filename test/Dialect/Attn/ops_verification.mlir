// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @rank(%q: tensor<2x?x64xf32>) {
  // expected-error @below {{expected input of rank 4 (batch, heads, length, width), got rank 3: 'tensor<2x?x64xf32>'}}
  %0 = attn.rope %q : tensor<2x?x64xf32>
  return
}

// -----

func.func @dynamic_width(%q: tensor<2x8x4x?xf32>) {
  // expected-error @below {{expected input with static heads and width (batch and length may be '?')}}
  %0 = attn.rope %q : tensor<2x8x4x?xf32>
  return
}

// -----

func.func @no_heads(%q: tensor<2x0x4x8xf32>) {
  // expected-error @below {{expected input with at least one head and a width above 0}}
  %0 = attn.rope %q : tensor<2x0x4x8xf32>
  return
}

// -----

func.func @element_type(%q: tensor<2x8x4x8xf64>) {
  // expected-error @below {{operand #0 must be ranked tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<2x8x4x8xf64>'}}
  %0 = attn.rope %q : tensor<2x8x4x8xf64>
  return
}

// -----

func.func @odd_rotary(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected an even rotary width between 2 and the width 64, got 31}}
  %0 = attn.rope %q {rotary_dim = 31 : i64} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @negative_rotary(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected an even rotary width between 2 and the width 64, got -2}}
  %0 = attn.rope %q {rotary_dim = -2 : i64} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @wide_rotary(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected an even rotary width between 2 and the width 64, got 66}}
  %0 = attn.rope %q {rotary_dim = 66 : i64} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @base(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected a finite base above 0, got}}
  %0 = attn.rope %q {base = -1.0} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @position(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected a position of at least 0, got -4}}
  %0 = attn.rope %q {position = -4 : i64} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @offset_rank(%q: tensor<2x8x?x64xf32>, %p: tensor<2x2xi32>) {
  // expected-error @below {{expected offset to be a scalar or a rank 1 tensor with one entry per batch entry}}
  %0 = attn.rope %q at %p : tensor<2x2xi32> : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @offset_batch(%q: tensor<2x8x?x64xf32>, %p: tensor<3xi32>) {
  // expected-error @below {{expected one offset per batch entry (2)}}
  %0 = attn.rope %q at %p : tensor<3xi32> : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @table_width(%q: tensor<2x8x?x64xf32>, %c: tensor<9x8xf32>) {
  // expected-error @below {{expected cos and sin tables of type tensor<?x32xf32>, one column per rotated pair}}
  %0 = attn.rope %q tables(%c, %c : tensor<9x8xf32>, tensor<9x8xf32>) : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @table_rows(%q: tensor<2x8x10x64xf32>, %c: tensor<9x32xf32>) {
  // expected-error @below {{expected tables with a row for each of the 10 positions that are used, got 9}}
  %0 = attn.rope %q tables(%c, %c : tensor<9x32xf32>, tensor<9x32xf32>) : tensor<2x8x10x64xf32>
  return
}

// -----

func.func @table_and_scaling(%q: tensor<2x8x?x64xf32>, %c: tensor<9x32xf32>) {
  // expected-error @below {{expected either tables or 'scaling', got both}}
  %0 = attn.rope %q tables(%c, %c : tensor<9x32xf32>, tensor<9x32xf32>) {scaling = #attn.rope_scaling<linear, factor = 2.0>} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @scaling_kind(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{unknown rope scaling 'dynamic'; supported: linear, ntk, yarn, llama3}}
  %0 = attn.rope %q {scaling = #attn.rope_scaling<dynamic, factor = 2.0>} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @scaling_field(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{unknown field 'speed'; supported: factor, original, low, high, attention}}
  %0 = attn.rope %q {scaling = #attn.rope_scaling<linear, speed = 2.0>} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @scaling_factor(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected a finite factor of at least 1, got}}
  %0 = attn.rope %q {scaling = #attn.rope_scaling<linear, factor = 0.5>} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @scaling_length(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{'yarn' scaling needs 'original', the context length of training, above 0; got 0}}
  %0 = attn.rope %q {scaling = #attn.rope_scaling<yarn, factor = 2.0>} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @scaling_band(%q: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected 0 < low < high}}
  %0 = attn.rope %q {scaling = #attn.rope_scaling<llama3, factor = 2.0, original = 9, low = 4.0, high = 1.0>} : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @product_types(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xbf16>) {
  // expected-error @below {{expected query and key of one element type, got 'f32' and 'bf16'}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x8x?x64xbf16>
  return
}

// -----

func.func @product_batch(%q: tensor<2x8x?x64xf32>, %k: tensor<3x8x?x64xf32>) {
  // expected-error @below {{expected query and key of one batch size, got 2 and 3}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<3x8x?x64xf32>
  return
}

// -----

func.func @product_width(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x32xf32>) {
  // expected-error @below {{expected query and key of one width, got 64 and 32}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x8x?x32xf32>
  return
}

// -----

func.func @product_heads(%q: tensor<2x8x?x64xf32>, %k: tensor<2x3x?x64xf32>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of key heads, got 8 and 3}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x3x?x64xf32>
  return
}

// -----

func.func @product_rank(%q: tensor<2x8x?x64xf32>, %k: tensor<2x?x64xf32>) {
  // expected-error @below {{expected key of rank 4 (batch, heads, length, width), got rank 3}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x?x64xf32>
  return
}

// -----

func.func @product_scale(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>) {
  // expected-error @below {{expected a finite scale, got}}
  %s = attn.scaled_dot_product %q, %k scale 0x7FF0000000000000 : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>
  return
}

// -----

func.func @value_batch(%w: !attn.weights<2x8x10x20>, %v: tensor<3x8x20x64xf32>) {
  // expected-error @below {{expected weights and value of one batch size, got 2 and 3}}
  %o = attn.aggregate %w, %v : !attn.weights<2x8x10x20>, tensor<3x8x20x64xf32>
  return
}

// -----

func.func @value_rows(%w: !attn.weights<2x8x10x20>, %v: tensor<2x8x21x64xf32>) {
  // expected-error @below {{expected one value row per key, got 20 keys and 21 rows}}
  %o = attn.aggregate %w, %v : !attn.weights<2x8x10x20>, tensor<2x8x21x64xf32>
  return
}

// -----

func.func @value_heads(%w: !attn.weights<2x8x10x20>, %v: tensor<2x3x20x64xf32>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of value heads, got 8 and 3}}
  %o = attn.aggregate %w, %v : !attn.weights<2x8x10x20>, tensor<2x3x20x64xf32>
  return
}

// -----

func.func @slopes(%s: !attn.scores<2x8x?x?>, %z: tensor<7xf32>) {
  // expected-error @below {{expected slopes of type tensor<8xf32>, one per query head, got 'tensor<7xf32>'}}
  %0 = attn.alibi %s slopes(%z : tensor<7xf32>) : !attn.scores<2x8x?x?>
  return
}

// -----

func.func @bias_rank(%s: !attn.scores<2x8x?x?>, %b: tensor<8x?x?xf32>) {
  // expected-error @below {{expected a bias of rank 4 (batch, heads, queries, keys; 1 where it is broadcast), got rank 3}}
  %0 = attn.additive_bias %s, %b : !attn.scores<2x8x?x?>, tensor<8x?x?xf32>
  return
}

// -----

func.func @bias_heads(%s: !attn.scores<2x8x?x?>, %b: tensor<1x4x?x?xf32>) {
  // expected-error @below {{expected extent 1 (heads) of the bias to be 1 or 8, got 4}}
  %0 = attn.additive_bias %s, %b : !attn.scores<2x8x?x?>, tensor<1x4x?x?xf32>
  return
}

// -----

func.func @cap(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{expected a finite cap above 0, got}}
  %0 = attn.softcap %s cap 0.0 : !attn.scores<2x8x?x?>
  return
}

// -----

func.func @sinks(%s: !attn.scores<2x8x?x?>, %z: tensor<2xf32>) {
  // expected-error @below {{expected sinks of type tensor<8xf32>, one per query head, got 'tensor<2xf32>'}}
  %0 = attn.softmax %s sinks(%z : tensor<2xf32>) : !attn.scores<2x8x?x?>
  return
}

// -----

func.func @region_arguments(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{expected block arguments of types ('f32', 'index', 'index', 'index', 'index'), got ('f32', 'index')}}
  %0 = attn.score_mod %s : !attn.scores<2x8x?x?> {
  ^bb0(%x: f32, %b: index):
    attn.yield %x : f32
  }
  return
}

// -----

func.func @region_yield(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{expected its region to yield one 'f32', got 'i1'}}
  %0 = attn.score_mod %s : !attn.scores<2x8x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %t = arith.constant true
    attn.yield %t : i1
  }
  return
}

// -----

func.func @region_operation(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{has a region with 'some.thing'; it may hold scalar arith and math operations, tensor.extract and tensor.dim}}
  %0 = attn.score_mod %s : !attn.scores<2x8x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
  // expected-note @below {{the operation}}
    %y = "some.thing"(%x) : (f32) -> f32
    attn.yield %y : f32
  }
  return
}

// -----

// The last position is above the range of i64.
func.func @table_rows_of_last_position(%q: tensor<2x8x10x64xf32>, %c: tensor<9x32xf32>) {
  // expected-error @below {{expected tables with a row for each of the 9223372036854775817 positions that are used, got 9}}
  %0 = attn.rope %q tables(%c, %c : tensor<9x32xf32>, tensor<9x32xf32>) {position = 9223372036854775807 : i64} : tensor<2x8x10x64xf32>
  return
}

// -----

func.func @table_rank(%q: tensor<2x8x?x64xf32>, %c: tensor<f32>) {
  // expected-error @below {{expected cos and sin tables of type tensor<?x32xf32>, one column per rotated pair, got 'tensor<f32>'}}
  %0 = attn.rope %q tables(%c, %c : tensor<f32>, tensor<f32>) : tensor<2x8x?x64xf32>
  return
}

// -----

func.func @one_table(%q: tensor<2x8x?x64xf32>, %c: tensor<9x32xf32>) {
  // expected-error @below {{expected both tables, cos and sin, or none}}
  %0 = "attn.rope"(%q, %c) {operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (tensor<2x8x?x64xf32>, tensor<9x32xf32>) -> tensor<2x8x?x64xf32>
  return
}

// -----

func.func @missing_operands() {
  // expected-error @below {{expected 2 operands, but found 0}}
  %0 = "attn.scaled_dot_product"() : () -> !attn.scores<2x8x?x?>
  return
}

// -----

func.func @product_key_width(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x?xf32>) {
  // expected-error @below {{expected key with static heads and width (batch and length may be '?')}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x8x?x?xf32>
  return
}

// -----

func.func @product_scalars(%q: tensor<f32>) {
  // expected-error @below {{expected query of rank 4 (batch, heads, length, width), got rank 0}}
  %s = attn.scaled_dot_product %q, %q : tensor<f32>, tensor<f32>
  return
}

// -----

func.func @product_key_heads(%q: tensor<2x8x?x64xf32>, %k: tensor<2x0x?x64xf32>) {
  // expected-error @below {{expected key with at least one head and a width above 0}}
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x0x?x64xf32>
  return
}

// -----

func.func @product_result(%q: tensor<2x8x10x64xf32>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{inferred type(s) '!attn.scores<2x8x10x10>' are incompatible with return type(s) of operation '!attn.scores<2x8x?x?>'}}
  %s = "attn.scaled_dot_product"(%q, %q) : (tensor<2x8x10x64xf32>, tensor<2x8x10x64xf32>) -> !attn.scores<2x8x?x?>
  return
}

// -----

func.func @value_rank(%w: !attn.weights<2x8x10x20>, %v: tensor<20x64xf32>) {
  // expected-error @below {{expected value of rank 4 (batch, heads, length, width), got rank 2}}
  %o = attn.aggregate %w, %v : !attn.weights<2x8x10x20>, tensor<20x64xf32>
  return
}

// -----

func.func @value_width(%w: !attn.weights<2x8x10x20>, %v: tensor<2x8x20x?xf32>) {
  // expected-error @below {{expected value with static heads and width (batch and length may be '?')}}
  %o = attn.aggregate %w, %v : !attn.weights<2x8x10x20>, tensor<2x8x20x?xf32>
  return
}

// -----

func.func @mask_result(%s: !attn.scores<2x8x10x20>, %m: !attn.mask) {
  // expected-error @below {{failed to verify that all of {scores, result} have same type}}
  %0 = "attn.mask"(%s, %m) : (!attn.scores<2x8x10x20>, !attn.mask) -> !attn.scores<2x8x10x21>
  return
}

// -----

func.func @slopes_rank(%s: !attn.scores<2x8x?x?>, %z: tensor<f32>) {
  // expected-error @below {{expected slopes of type tensor<8xf32>, one per query head, got 'tensor<f32>'}}
  %0 = attn.alibi %s slopes(%z : tensor<f32>) : !attn.scores<2x8x?x?>
  return
}

// -----

func.func @bias_scalar(%s: !attn.scores<2x8x?x?>, %b: tensor<f32>) {
  // expected-error @below {{expected a bias of rank 4 (batch, heads, queries, keys; 1 where it is broadcast), got rank 0}}
  %0 = attn.additive_bias %s, %b : !attn.scores<2x8x?x?>, tensor<f32>
  return
}

// -----

func.func @bias_keys(%s: !attn.scores<2x8x10x20>, %b: tensor<1x1x10x21xf32>) {
  // expected-error @below {{expected extent 3 (keys) of the bias to be 1 or 20, got 21}}
  %0 = attn.additive_bias %s, %b : !attn.scores<2x8x10x20>, tensor<1x1x10x21xf32>
  return
}

// -----

func.func @lse_unasked(%s: !attn.scores<2x8x10x20>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{inferred type(s) '!attn.weights<2x8x10x20>' are incompatible with return type(s) of operation '!attn.weights<2x8x10x20>', 'tensor<2x8x10xf32>'}}
  %0, %1 = "attn.softmax"(%s) : (!attn.scores<2x8x10x20>) -> (!attn.weights<2x8x10x20>, tensor<2x8x10xf32>)
  return
}

// -----

func.func @region_end(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{expected its region to end in 'attn.yield' of one 'f32'}}
  %0 = attn.score_mod %s : !attn.scores<2x8x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %y = arith.addf %x, %x : f32
  }
  return
}

// -----

func.func @region_empty(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{expects a non-empty block}}
  %0 = attn.score_mod %s : !attn.scores<2x8x?x?> {
  }
  return
}

// -----

func.func @region_vector(%s: !attn.scores<2x8x?x?>) {
  // expected-error @below {{has a region with 'arith.constant'; it may hold scalar arith and math operations, tensor.extract and tensor.dim}}
  %0 = attn.score_mod %s : !attn.scores<2x8x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-note @below {{the operation}}
    %y = arith.constant dense<1.0> : vector<4xf32>
    attn.yield %x : f32
  }
  return
}

// -----

func.func @yield_outside(%x: f32) {
  // expected-error @below {{expects parent op to be one of 'attn.score_mod, attn.mask_mod'}}
  attn.yield %x : f32
}
