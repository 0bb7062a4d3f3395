// RUN: attnfuse-opt %s --pass-pipeline="builtin.module(func.func(attn-canonicalize))" --split-input-file | FileCheck %s

// Masks merge, move behind the changes of the scores, and `full` is nothing.
// CHECK-LABEL: func.func @merge_and_move(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-NEXT:    %[[A:.*]] = attn.alibi %[[S]]
// CHECK-NEXT:    %[[C:.*]] = attn.softcap %[[A]]
// CHECK-NEXT:    %[[W:.*]] = attn.sliding_window left 8 right 1
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[C]], %[[W]]
// CHECK-NEXT:    return %[[M]]
func.func @merge_and_move(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>) -> !attn.scores<1x4x?x?> {
  %f = attn.full
  %c = attn.causal
  %w = attn.sliding_window left 8
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %a = attn.alibi %m : !attn.scores<1x4x?x?>
  %n = attn.mask %a, %w : !attn.scores<1x4x?x?>
  %x = attn.softcap %n cap 50.0 : !attn.scores<1x4x?x?>
  %o = attn.mask %x, %f : !attn.scores<1x4x?x?>
  return %o : !attn.scores<1x4x?x?>
}

// -----

// A mask with a reader of its own stays for that reader.
// CHECK-LABEL: func.func @two_readers(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-NEXT:    %[[C:.*]] = attn.causal
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[S]], %[[C]]
// CHECK-NEXT:    %[[A:.*]] = attn.alibi %[[S]]
// CHECK-NEXT:    %[[N:.*]] = attn.mask %[[A]], %[[C]]
// CHECK-NEXT:    return %[[M]], %[[N]]
func.func @two_readers(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>) -> (!attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>) {
  %c = attn.causal
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %a = attn.alibi %m : !attn.scores<1x4x?x?>
  return %m, %a : !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>
}

// -----

// One mask in five ways: Mistral's window.
// CHECK-LABEL: func.func @windows(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-NEXT:    %[[W:.*]] = attn.sliding_window left 4096 right 1
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[S]], %[[W]]
// CHECK-NEXT:    return %[[M]], %[[M]], %[[M]], %[[M]], %[[M]]
func.func @windows(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>)
    -> (!attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %a = attn.sliding_window left 4096 right 1
  %m0 = attn.mask %s, %a : !attn.scores<1x4x?x?>

  %causal = attn.causal
  %left = attn.sliding_window left 4096
  %b = attn.and %causal, %left
  %m1 = attn.mask %s, %b : !attn.scores<1x4x?x?>

  %far = attn.causal shift -4096
  %near = attn.not %far
  %c = attn.and %near, %causal
  %m2 = attn.mask %s, %c : !attn.scores<1x4x?x?>

  %later = attn.not %causal
  %outside = attn.or %later, %far
  %d = attn.not %outside
  %m3 = attn.mask %s, %d : !attn.scores<1x4x?x?>

  %wide = attn.sliding_window left 4096 right 100
  %e = attn.and %wide, %causal, %left, %wide
  %m4 = attn.mask %s, %e : !attn.scores<1x4x?x?>
  return %m0, %m1, %m2, %m3, %m4 : !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>
}

// -----

// Everything and nothing.
// CHECK-LABEL: func.func @constants(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-NEXT:    %[[F:.*]] = attn.full
// CHECK-NEXT:    %[[E:.*]] = attn.not %[[F]]
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[S]], %[[E]]
// CHECK-NEXT:    return %[[S]], %[[M]], %[[S]], %[[M]]
func.func @constants(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %ids: tensor<1x?xi32>)
    -> (!attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %c = attn.causal
  %n = attn.not %c
  %all = attn.or %c, %n
  %m0 = attn.mask %s, %all : !attn.scores<1x4x?x?>
  %none = attn.and %c, %n
  %m1 = attn.mask %s, %none : !attn.scores<1x4x?x?>
  %d = attn.document %ids : tensor<1x?xi32>
  %nd = attn.not %d
  %alld = attn.or %nd, %n, %d
  %m2 = attn.mask %s, %alld : !attn.scores<1x4x?x?>
  %p = attn.prefix 0
  %m3 = attn.mask %s, %p : !attn.scores<1x4x?x?>
  return %m0, %m1, %m2, %m3 : !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>
}

// -----

// Prefix language model within documents, distributed and not; ids given once
// or twice; operands in another order.
// CHECK-LABEL: func.func @distributed(
// CHECK:         %[[S:.*]] = attn.scaled_dot_product
// CHECK:         %[[M:.*]] = attn.mask %[[S]], %{{[0-9]+}}
// CHECK-NEXT:    return %[[M]], %[[M]], %[[M]]
func.func @distributed(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %ids: tensor<1x?xi32>, %n: index)
    -> (!attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %d = attn.document %ids : tensor<1x?xi32>
  %p = attn.prefix lengths(%n : index)
  %c = attn.causal
  %pc = attn.or %p, %c
  %a = attn.and %pc, %d
  %m0 = attn.mask %s, %a : !attn.scores<1x4x?x?>

  %p2 = attn.prefix lengths(%n : index)
  %d2 = attn.document %ids, %ids : tensor<1x?xi32>, tensor<1x?xi32>
  %cd = attn.and %c, %d2
  %pd = attn.and %d2, %p2
  %b = attn.or %cd, %pd
  %m1 = attn.mask %s, %b : !attn.scores<1x4x?x?>

  %redundant = attn.and %d, %p, %c
  %e = attn.or %pd, %redundant, %cd
  %m2 = attn.mask %s, %e : !attn.scores<1x4x?x?>
  return %m0, %m1, %m2 : !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>
}

// -----

// With static lengths the two alignments are one diagonal, and what every pair
// satisfies is no mask: one query reads all keys under a causal mask.
// CHECK-LABEL: func.func @static_lengths(
// CHECK:         %[[S:.*]] = attn.scaled_dot_product %arg0
// CHECK:         %[[C:.*]] = attn.causal shift -4
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[S]], %[[C]]
// CHECK:         %[[T:.*]] = attn.scaled_dot_product %arg2
// CHECK-NEXT:    return %[[M]], %[[M]], %[[T]]
func.func @static_lengths(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x12x64xf32>, %r: tensor<1x4x1x64xf32>)
    -> (!attn.scores<1x4x8x12>, !attn.scores<1x4x8x12>, !attn.scores<1x4x1x12>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x8x64xf32>, tensor<1x4x12x64xf32>
  %a = attn.causal top_left
  %m0 = attn.mask %s, %a : !attn.scores<1x4x8x12>
  %b = attn.causal shift -4
  %w = attn.sliding_window left 12
  %bw = attn.and %b, %w
  %m1 = attn.mask %s, %bw : !attn.scores<1x4x8x12>
  %t = attn.scaled_dot_product %r, %k : tensor<1x4x1x64xf32>, tensor<1x4x12x64xf32>
  %c = attn.causal
  %m2 = attn.mask %t, %c : !attn.scores<1x4x1x12>
  return %m0, %m1, %m2 : !attn.scores<1x4x8x12>, !attn.scores<1x4x8x12>, !attn.scores<1x4x1x12>
}

// -----

// Diagonals that are not known to be one stay apart; a constant offset is a
// shift of the top left one; offsets that are one value are one diagonal.
// CHECK-LABEL: func.func @diagonals(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-DAG:     %[[A:.*]] = attn.causal{{$}}
// CHECK-DAG:     %[[B:.*]] = attn.causal top_left shift 3
// CHECK-DAG:     %[[C:.*]] = attn.sliding_window left 4 right 1 offset(%arg2 : index)
// CHECK:         %[[M:.*]] = attn.mask %[[S]]
// CHECK-NEXT:    return %[[M]]
func.func @diagonals(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %p: index) -> !attn.scores<1x4x?x?> {
  %c3 = arith.constant 3 : i32
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %a = attn.causal
  %b = attn.causal offset(%c3 : i32)
  %c = attn.causal offset(%p : index)
  %d = attn.sliding_window left 4 offset(%p : index)
  %m = attn.and %d, %a, %c, %b
  %t = attn.mask %s, %m : !attn.scores<1x4x?x?>
  return %t : !attn.scores<1x4x?x?>
}

// -----

// Bands that no single operation says.
// CHECK-LABEL: func.func @odd_bands(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-NEXT:    %[[H:.*]] = attn.causal shift 9
// CHECK-NEXT:    %[[L:.*]] = attn.causal shift 4
// CHECK-NEXT:    %[[N:.*]] = attn.not %[[L]]
// CHECK-NEXT:    %[[A:.*]] = attn.and %[[H]], %[[N]]
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[S]], %[[A]]
// CHECK-NEXT:    %[[O:.*]] = attn.mask %[[S]], %[[N]]
// CHECK-NEXT:    return %[[M]], %[[O]]
func.func @odd_bands(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>) -> (!attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %far = attn.sliding_window right 10
  %near = attn.causal shift 4
  %not = attn.not %near
  %a = attn.and %not, %far
  %m0 = attn.mask %s, %a : !attn.scores<1x4x?x?>
  %m1 = attn.mask %s, %not : !attn.scores<1x4x?x?>
  return %m0, %m1 : !attn.scores<1x4x?x?>, !attn.scores<1x4x?x?>
}

// -----

// Predicates are one if their regions are, whatever the order of operands and
// the place of constants; a table that is all true is no mask.
// CHECK-LABEL: func.func @predicates(
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product
// CHECK-NEXT:    %[[P:.*]] = attn.mask_mod
// CHECK:         %[[M:.*]] = attn.mask %[[S]], %[[P]]
// CHECK-NEXT:    return %[[M]], %[[M]]
func.func @predicates(%q: tensor<1x4x64x64xf32>, %t: tensor<64xi32>) -> (!attn.scores<1x4x64x64>, !attn.scores<1x4x64x64>) {
  %c5 = arith.constant 5 : index
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x64x64xf32>, tensor<1x4x64x64xf32>
  %a = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.addi %c5, %j : index
    %y = arith.cmpi ne, %x, %i : index
    attn.yield %y : i1
  }
  %m0 = attn.mask %s, %a : !attn.scores<1x4x64x64>
  %c = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %k5 = arith.constant 5 : index
    %x = arith.addi %j, %k5 : index
    %y = arith.cmpi ne, %x, %i : index
    attn.yield %y : i1
  }
  %ones = arith.constant dense<1> : tensor<1x1x2x2xi8>
  %d = attn.block_sparse %ones blocks [32, 32] : tensor<1x1x2x2xi8>
  %e = attn.and %c, %d, %a
  %m1 = attn.mask %s, %e : !attn.scores<1x4x64x64>
  return %m0, %m1 : !attn.scores<1x4x64x64>, !attn.scores<1x4x64x64>
}

// -----

// A mask from elsewhere has no normal form; it is merged all the same.
// CHECK-LABEL: func.func @foreign(
// CHECK:         %[[C:.*]] = attn.causal
// CHECK-NEXT:    %[[A:.*]] = attn.and %[[C]], %arg1
// CHECK-NEXT:    attn.mask %{{.*}}, %[[A]]
func.func @foreign(%q: tensor<1x4x8x64xf32>, %f: !attn.mask) -> !attn.scores<1x4x8x8> {
  %c = attn.causal
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %m0 = attn.mask %s, %c : !attn.scores<1x4x8x8>
  %m1 = attn.mask %m0, %f : !attn.scores<1x4x8x8>
  return %m1 : !attn.scores<1x4x8x8>
}
