// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=cpu-avx512 block-m=32 block-n=16" --cse --split-input-file | FileCheck %s

// No mask: one loop without tests, one with them for what is left at the end.
// CHECK-LABEL: func.func @plain(
// CHECK:         tensor.empty
// CHECK-NEXT:    tile.launch @plain_tile
// CHECK-LABEL: tile.kernel @plain_tile(
// CHECK-SAME:      schedule = #tile.schedule<block_m = 32, block_n = 16>
// CHECK:         scf.for
// CHECK:           tile.dot {{.*}} transpose_b :
// CHECK-NOT:       arith.cmpi
// CHECK:           tile.dot
// CHECK-NOT:       guard_zeros
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK:           arith.cmpi slt
// CHECK:           tile.dot {{.*}} guard_zeros
// CHECK-NOT:     scf.for
// CHECK:         tile.store
func.func @plain(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}

// -----

// A static length that tiles divide: no test is left.
// CHECK-LABEL: tile.kernel @static_tile(
// CHECK:         scf.for
// CHECK-NOT:     scf.for
// CHECK-NOT:     guard_zeros
// CHECK:         tile.store
func.func @static(%q: tensor<1x4x64x64xf32>, %k: tensor<1x4x64x64xf32>, %v: tensor<1x4x64x64xf32>) -> tensor<1x4x64x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x64x64xf32>, tensor<1x4x64x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x64x64>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x64x64>, tensor<1x4x64x64xf32>
  return %o : tensor<1x4x64x64xf32>
}

// -----

// A window has partial tiles at both of its ends, which share a loop after that
// of the whole tiles.
// CHECK-LABEL: tile.kernel @window_tile(
// CHECK:         scf.for
// CHECK-NOT:       guard_zeros
// CHECK:         scf.for
// CHECK:           arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK:           guard_zeros
// CHECK-NOT:     scf.for
// CHECK:         tile.store
func.func @window(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %c = attn.sliding_window left 40 right 1
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}

// -----

// A table is looked at per tile of keys: nothing, all, or a test.
// CHECK-LABEL: tile.kernel @table_tile(
// CHECK-SAME:      %{{.*}}: !tile.view<1x1x?x?xi1>
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             tile.read
// CHECK:           scf.if
// CHECK:             scf.if
// CHECK-NOT:           guard_zeros
// CHECK:             } else {
// CHECK:               guard_zeros
func.func @table(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>, %t: tensor<1x1x?x?xi1>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %c = attn.block_sparse %t blocks [64, 64] : tensor<1x1x?x?xi1>
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}
