// RUN: attnfuse-opt %s --attn-analyze-masks | FileCheck %s
// RUN: attnfuse-opt %s --pass-pipeline="builtin.module(func.func(attn-analyze-masks))" | attnfuse-opt | FileCheck %s

// CHECK-LABEL: func.func @causal(
// CHECK: attn.tiles = #attn.tile_map<partial, [{touched = 0 to i1 + Nk - Nq, full = 0 to i0 + Nk - Nq + 1}]>
func.func @causal(%s: !attn.scores<1x8x?x?>) -> !attn.scores<1x8x?x?> {
  %c = attn.causal
  %m = attn.mask %s, %c : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// Nothing tells how far the first row lies from the end of the keys.
// CHECK-LABEL: func.func @top_left(
// CHECK: <partial, [{touched = 0 to min(i1 + 2, Nk), full = 0 to min(i0 + 3, Nk)}]>
func.func @top_left(%s: !attn.scores<1x8x?x?>) -> !attn.scores<1x8x?x?> {
  %c = attn.causal top_left shift 2
  %m = attn.mask %s, %c : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// CHECK-LABEL: func.func @window(
// CHECK: <partial, [{touched = max(i0 + Nk - Nq - 7, 0) to i1 + Nk - Nq, full = max(i1 + Nk - Nq - 8, 0) to i0 + Nk - Nq + 1}]>
func.func @window(%s: !attn.scores<1x8x?x?>) -> !attn.scores<1x8x?x?> {
  %w = attn.sliding_window left 8 right 1
  %m = attn.mask %s, %w : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// What is known at run time alone has a name; a union has a term for each part.
// CHECK-LABEL: func.func @symbols(
// CHECK: <partial, symbols = [length0, offset1], [
// CHECK-SAME: {touched = 0 to min(length0, Nk), full = 0 to min(length0, Nk), tests = [prefix]},
// CHECK-SAME: {touched = 0 to min(i1 + offset1, Nk), full = 0 to min(i0 + offset1 + 1, Nk)}
// CHECK-SAME: ]>
func.func @symbols(%s: !attn.scores<1x8x?x?>, %p: index, %n: tensor<1xi32>) -> !attn.scores<1x8x?x?> {
  %c = attn.causal offset(%p : index)
  %x = attn.prefix lengths(%n : tensor<1xi32>)
  %o = attn.or %c, %x
  %m = attn.mask %s, %o : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// CHECK-LABEL: func.func @beyond_a_prefix(
// CHECK: <partial, [{touched = max(i0 - 3, 16) to min(i1 + 3, Nk), full = max(i1 - 4, 16) to min(i0 + 4, Nk), tests = [prefix]}]>
func.func @beyond_a_prefix(%s: !attn.scores<1x8x?x?>) -> !attn.scores<1x8x?x?> {
  %x = attn.prefix 16
  %n = attn.not %x
  %w = attn.sliding_window left 4 right 4 top_left
  %a = attn.and %n, %w
  %m = attn.mask %s, %a : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// CHECK-LABEL: func.func @causal_documents(
// CHECK: <partial, [{touched = 0 to i1 + Nk - Nq, full = none, tests = [document]}]>
func.func @causal_documents(%s: !attn.scores<1x8x?x?>, %ids: tensor<1x?xi32>) -> !attn.scores<1x8x?x?> {
  %d = attn.document %ids : tensor<1x?xi32>
  %c = attn.causal
  %a = attn.and %c, %d
  %m = attn.mask %s, %a : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// CHECK-LABEL: func.func @documents(
// CHECK: <unknown, [{touched = 0 to Nk, full = none, tests = [document]}]>
func.func @documents(%s: !attn.scores<1x8x?x?>, %ids: tensor<1x?xi32>) -> !attn.scores<1x8x?x?> {
  %d = attn.document %ids : tensor<1x?xi32>
  %m = attn.mask %s, %d : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// CHECK-LABEL: func.func @predicate(
// CHECK: <unknown, [{touched = 0 to Nk, full = none, tests = [mask_mod]}]>
func.func @predicate(%s: !attn.scores<1x8x?x?>) -> !attn.scores<1x8x?x?> {
  %p = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpi sle, %j, %h : index
    attn.yield %c : i1
  }
  %m = attn.mask %s, %p : !attn.scores<1x8x?x?>
  return %m : !attn.scores<1x8x?x?>
}

// CHECK-LABEL: func.func @constant_table(
// CHECK: <partial, [{touched = 0 to Nk, full = none, tests = [block_sparse]}], tables = [
// CHECK-SAME: #attn.block_lists<blocks = [64, 64], rows = [1, 1, 3], starts = [0, 1, 1, 3], keys = [0, 0, 2]>
func.func @constant_table(%s: !attn.scores<1x1x192x192>) -> !attn.scores<1x1x192x192> {
  %t = arith.constant dense<[[[[1, 0, 0], [0, 0, 0], [1, 0, 1]]]]> : tensor<1x1x3x3xi8>
  %b = attn.block_sparse %t blocks [64, 64] : tensor<1x1x3x3xi8>
  %m = attn.mask %s, %b : !attn.scores<1x1x192x192>
  return %m : !attn.scores<1x1x192x192>
}

// CHECK-LABEL: func.func @runtime_table(
// CHECK: <unknown, [{touched = 0 to Nk, full = none, tests = [block_sparse]}]>
func.func @runtime_table(%s: !attn.scores<1x1x192x192>, %t: tensor<1x1x3x3xi1>) -> !attn.scores<1x1x192x192> {
  %b = attn.block_sparse %t blocks [64, 64] : tensor<1x1x3x3xi1>
  %m = attn.mask %s, %b : !attn.scores<1x1x192x192>
  return %m : !attn.scores<1x1x192x192>
}

// CHECK-LABEL: func.func @whole_classes(
// CHECK: attn.tiles = #attn.tile_map<full>
// CHECK: attn.tiles = #attn.tile_map<empty>
// CHECK: attn.tiles = #attn.tile_map<unknown>
func.func @whole_classes(%s: !attn.scores<1x1x8x8>, %from_outside: !attn.mask) -> !attn.scores<1x1x8x8> {
  %beyond = attn.causal shift 50
  %a = attn.mask %s, %beyond : !attn.scores<1x1x8x8>
  %before = attn.causal shift -50
  %b = attn.mask %a, %before : !attn.scores<1x1x8x8>
  %c = attn.mask %b, %from_outside : !attn.scores<1x1x8x8>
  return %c : !attn.scores<1x1x8x8>
}

// A declaration is nothing to work on.
// CHECK: func.func private @declared
func.func private @declared(!attn.mask)
