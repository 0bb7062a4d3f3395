// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=sm_80" --cse --canonicalize --split-input-file | FileCheck %s
// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=sm_80 stages=1" --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=sm_80 stages=3" --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=THREE

// The whole kernel once. Query head h reads key head h / 2; the last query tile
// is the grid's first. Two slots: a tile's copies start once the tile before
// it has been waited for, and the test is made only where it is needed.
// CHECK-LABEL: tile.kernel @causal_tile(
// CHECK-SAME:    %[[QV:.*]]: !tile.view<1x4x?x64xbf16>, %[[KV:.*]]: !tile.view<1x2x?x64xbf16>, %[[VV:.*]]: !tile.view<1x2x?x64xbf16>, %[[OV:.*]]: !tile.view<1x4x?x64xbf16>)
// CHECK-SAME:    grid = [#tile.extent<arg = 3, dim = 2, div = 128>, #tile.extent<arg = 3, dim = 1, div = 1>, #tile.extent<arg = 3, dim = 0, div = 1>]
// CHECK-SAME:    num_outputs = 1 : i64
// CHECK-SAME:    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 4, stages = 2>
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[B:.*]] = tile.program_id 2
// CHECK-DAG:     %[[H:.*]] = tile.program_id 1
// CHECK:         %[[T:.*]] = tile.program_id 0
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %{{.*}}, %[[T]] : index
// CHECK-NEXT:    %[[I0:.*]] = arith.muli %[[LAST]], %{{.*}} : index
// CHECK:         %[[HK:.*]] = arith.divui %[[H]], %[[C2]] : index
// CHECK:         %[[Q:.*]] = tile.alloc : !tile.ring<1x128x64xbf16, 128>
// CHECK-NEXT:    %[[K:.*]] = tile.alloc : !tile.ring<2x64x64xbf16, 128>
// CHECK-NEXT:    %[[V:.*]] = tile.alloc : !tile.ring<2x64x64xbf16, 128>
// CHECK-NOT:     tile.alloc
// CHECK:         scf.if %[[SOME:.*]] {
// CHECK-NEXT:      tile.acquire %[[K]][%[[C0]]]
// CHECK-NEXT:      tile.async_load %[[KV]][%[[B]], %[[HK]], %[[FIRST:.*]], %[[C0]]] along [2, 3] to %[[K]][%[[C0]]]
// CHECK-NEXT:      tile.async_load %[[VV]][%[[B]], %[[HK]], %[[FIRST]], %[[C0]]] along [2, 3] to %[[V]][%[[C0]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.commit %[[K]][%[[C0]]]
// CHECK-NEXT:    tile.async_load %[[QV]][%[[B]], %[[H]], %[[I0]], %[[C0]]] along [2, 3] to %[[Q]][%[[C0]]]
// CHECK-NEXT:    tile.commit %[[Q]][%[[C0]]]
// CHECK-NEXT:    tile.wait %[[Q]][%[[C0]]] :
// CHECK:         %[[LOOP:.*]]:3 = scf.for %[[N:[a-z0-9]+]] = %[[C0]] to %{{.*}} step %[[C1]] iter_args({{.*}}) -> (!tile.tile<128x1xf32, #tile.fragment<4>>, !tile.tile<128x1xf32, #tile.fragment<4>>, !tile.tile<128x64xf32, #tile.fragment<4>>)
// CHECK:           %[[TESTED:.*]] = arith.cmpi slt
// CHECK:           %[[NEXT:.*]] = arith.addi %[[N]], %[[C1]]
// CHECK:           %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK:           tile.wait %[[K]][%[[N]]] :
// CHECK-NEXT:      scf.if %[[MORE]] {
// CHECK-NEXT:        tile.acquire %[[K]][%[[NEXT]]]
// CHECK-NEXT:        tile.async_load %[[KV]]{{.*}} to %[[K]][%[[NEXT]]]
// CHECK-NEXT:        tile.async_load %[[VV]]{{.*}} to %[[V]][%[[NEXT]]]
// CHECK-NEXT:      }
// CHECK-NEXT:      tile.commit %[[K]][%[[NEXT]]]
// CHECK-NEXT:      %[[P:.*]] = tile.dot_start %[[Q]][%[[C0]]], %[[K]][%[[N]]] transpose_b
// CHECK-NEXT:      %[[S:.*]] = tile.dot_wait %[[P]] :
// CHECK-NEXT:      tile.release %[[K]][%[[N]]]
// CHECK-NEXT:      %[[X:.*]] = scf.if %[[TESTED]]
// CHECK-NEXT:        %[[MASKED:.*]] = tile.map(%[[S]]
// CHECK:               arith.select
// CHECK:             scf.yield %[[MASKED]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %[[S]]
// CHECK-NEXT:      }
// CHECK-NEXT:      tile.reduce max %[[X]] dim 1 :
// CHECK:           %[[W:.*]] = tile.map(%[[X]], {{.*}}) -> !tile.tile<128x64xf32, #tile.fragment<4>>
// CHECK-NOT:         arith.cmpi
// CHECK:             math.exp2
// CHECK:           tile.reduce add %[[W]] dim 1 partial
// CHECK:           %[[NARROW:.*]] = tile.cast %[[W]]
// CHECK-NEXT:      tile.dot_start %[[NARROW]], %[[V]][%[[N]]] acc
// CHECK-NEXT:      tile.dot_wait
// CHECK-NEXT:      tile.release %[[V]][%[[N]]]
// CHECK-NEXT:      scf.yield
// Weights of 0 may have met values that are not finite: if so, once more.
// CHECK:         %[[AGAIN:.*]] = tile.any block
// CHECK-NEXT:    scf.if %[[AGAIN]]
// CHECK-NOT:       tile.async_load %[[QV]]
// CHECK:           scf.for
// CHECK:             tile.dot_guarded
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2
// Sums are combined across lanes once, results leave through the queries' slot.
// CHECK:         tile.combine add
// CHECK:         tile.put %{{.*}}, %[[Q]][%[[C0]]]
// CHECK-NEXT:    tile.copy_out %[[Q]][%[[C0]]], %[[OV]][%[[B]], %[[H]], %[[I0]], %[[C0]]] along [2, 3] :
// CHECK-NEXT:    tile.return

// One slot: values are copied under the product of queries and keys, the next
// keys under the one of weights and values.
// ONE-LABEL:   tile.kernel @causal_tile(
// ONE-SAME:      %[[QV:.*]]: !tile.view<1x4x?x64xbf16>, %[[KV:.*]]: !tile.view<1x2x?x64xbf16>, %[[VV:.*]]: !tile.view<1x2x?x64xbf16>, %{{.*}}: !tile.view<1x4x?x64xbf16>)
// ONE-SAME:      stages = 1>
// ONE:           %[[Q:.*]] = tile.alloc : !tile.ring<1x128x64xbf16, 128>
// ONE-NEXT:      %[[K:.*]] = tile.alloc : !tile.ring<1x64x64xbf16, 128>
// ONE-NEXT:      %[[V:.*]] = tile.alloc : !tile.ring<1x64x64xbf16, 128>
// ONE:           scf.if
// ONE-NEXT:        tile.acquire %[[K]]
// ONE-NEXT:        tile.async_load %[[KV]]
// ONE-NEXT:      }
// ONE-NEXT:      tile.commit %[[K]]
// ONE-NEXT:      tile.async_load %[[QV]]
// ONE:           scf.for %[[N:[a-z0-9]+]] =
// ONE:             tile.wait %[[K]][%[[N]]] :
// ONE-NEXT:        tile.acquire %[[V]][%[[N]]]
// ONE-NEXT:        tile.async_load %[[VV]]{{.*}} to %[[V]][%[[N]]]
// ONE-NEXT:        tile.commit %[[V]][%[[N]]]
// ONE-NEXT:        tile.dot_start %[[Q]]{{.*}} transpose_b
// ONE-NEXT:        tile.dot_wait
// ONE-NEXT:        tile.release %[[K]][%[[N]]]
// ONE-NEXT:        tile.wait %[[V]][%[[N]]] :
// ONE-NEXT:        scf.if
// ONE-NEXT:          tile.acquire %[[K]][%[[NEXT:.*]]] :
// ONE-NEXT:          tile.async_load %[[KV]]{{.*}} to %[[K]][%[[NEXT]]]
// ONE-NEXT:        }
// ONE-NEXT:        tile.commit %[[K]][%[[NEXT]]]
// ONE:             tile.dot_start %{{.*}}, %[[V]][%[[N]]] acc

// Three slots: two tiles are under way ahead of the loop, one stays so.
// THREE-LABEL: tile.kernel @causal_tile(
// THREE-SAME:    stages = 3>
// THREE:         %[[Q:.*]] = tile.alloc : !tile.ring<1x128x64xbf16, 128>
// THREE-NEXT:    %[[K:.*]] = tile.alloc : !tile.ring<3x64x64xbf16, 128>
// THREE:         scf.if
// THREE:         tile.commit %[[K]]
// THREE:         scf.if
// THREE:         tile.commit %[[K]]
// THREE:         tile.commit %[[Q]]
// THREE:         scf.for %[[N:[a-z0-9]+]] =
// THREE:           %[[AHEAD:.*]] = arith.addi %[[N]], %c2 : index
// THREE:           tile.wait %[[K]][%[[N]]] outstanding 1 :
// THREE-NEXT:      scf.if
// THREE-NEXT:        tile.acquire %[[K]][%[[AHEAD]]]
func.func @causal(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>
  %c = attn.causal
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x2x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// -----

// No mask: only what lies beyond the last key is tested, and no weight that
// counts is 0 by decision, so nothing is computed again.
// CHECK-LABEL: tile.kernel @plain_tile(
// CHECK:         scf.for
// CHECK:           scf.if %{{.*}} -> (!tile.tile<128x64xf32, #tile.fragment<4>>)
// CHECK-NOT:     tile.any
// CHECK-NOT:     tile.dot_guarded
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @plain_tile(
// ONE-NOT:     tile.any
// ONE:         tile.return
// THREE-LABEL: tile.kernel @plain_tile(
func.func @plain(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// -----

// A static length that tiles divide: no test at all.
// CHECK-LABEL: tile.kernel @static_tile(
// CHECK:         scf.for
// CHECK-NOT:       scf.if %{{.*}} -> (!tile.tile
// CHECK-NOT:     tile.any
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @static_tile(
// THREE-LABEL: tile.kernel @static_tile(
func.func @static(%q: tensor<1x4x128x64xbf16>, %k: tensor<1x4x128x64xbf16>, %v: tensor<1x4x128x64xbf16>) -> tensor<1x4x128x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x128x128>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x128x128>, tensor<1x4x128x64xbf16>
  return %o : tensor<1x4x128x64xbf16>
}

// -----

// A bias may be -inf: a weight of 0 by decision, with neither mask nor tail.
// CHECK-LABEL: tile.kernel @bias_tile(
// CHECK:         scf.for
// CHECK:           tile.load %{{.*}} : !tile.view<1x4x128x128xbf16> -> !tile.tile<128x64xf32, #tile.fragment<4>>
// CHECK:         tile.any block
// CHECK:           tile.dot_guarded
// ONE-LABEL: tile.kernel @bias_tile(
// THREE-LABEL: tile.kernel @bias_tile(
func.func @bias(%q: tensor<1x4x128x64xbf16>, %k: tensor<1x4x128x64xbf16>, %v: tensor<1x4x128x64xbf16>, %bias: tensor<1x4x128x128xbf16>) -> tensor<1x4x128x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>
  %a = attn.additive_bias %s, %bias : !attn.scores<1x4x128x128>, tensor<1x4x128x128xbf16>
  %w = attn.softmax %a : !attn.scores<1x4x128x128>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x128x128>, tensor<1x4x128x64xbf16>
  return %o : tensor<1x4x128x64xbf16>
}

// -----

// A soft cap gives no -inf.
// CHECK-LABEL: tile.kernel @softcap_tile(
// CHECK:         scf.for
// CHECK:           math.tanh
// CHECK-NOT:     tile.any
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @softcap_tile(
// THREE-LABEL: tile.kernel @softcap_tile(
func.func @softcap(%q: tensor<1x4x128x64xbf16>, %k: tensor<1x4x128x64xbf16>, %v: tensor<1x4x128x64xbf16>) -> tensor<1x4x128x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>
  %a = attn.softcap %s cap 50.0 : !attn.scores<1x4x128x128>
  %w = attn.softmax %a : !attn.scores<1x4x128x128>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x128x128>, tensor<1x4x128x64xbf16>
  return %o : tensor<1x4x128x64xbf16>
}

// -----

// Rectified scores are 0 where they were negative; no row has a maximum.
// CHECK-LABEL: tile.kernel @relu_tile(
// CHECK-NOT:     tile.reduce max
// CHECK:         arith.maximumf
// CHECK:         tile.any block
// CHECK:           tile.dot_guarded
// CHECK-NOT:     tile.combine
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @relu_tile(
// THREE-LABEL: tile.kernel @relu_tile(
func.func @relu(%q: tensor<1x4x128x64xbf16>, %k: tensor<1x4x128x64xbf16>, %v: tensor<1x4x128x64xbf16>) -> tensor<1x4x128x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>
  %w = attn.relu_attention %s : !attn.scores<1x4x128x128>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x128x128>, tensor<1x4x128x64xbf16>
  return %o : tensor<1x4x128x64xbf16>
}

// -----

// A table tells tile by tile what is visited: one loop looks for the next tile,
// the other computes. Its copies start one tile ahead of it.
// CHECK-LABEL: tile.kernel @table_tile(
// CHECK:         %[[K:.*]] = tile.alloc : !tile.ring<2x64x64xbf16, 128>
// The first tile that is visited.
// CHECK:         %[[FOUND:.*]]:2 = scf.while
// CHECK:           scf.for
// CHECK:             tile.read %{{.*}} : !tile.view<1x1x?x?xi1>
// CHECK:           scf.condition
// CHECK:         scf.if
// CHECK-NEXT:      tile.acquire %[[K]]
// CHECK-NEXT:      tile.async_load %{{.*}}[%{{.*}}, %{{.*}}, %[[FOUND]]#0, %{{.*}}]
// CHECK:         scf.while
// CHECK:           scf.condition
// CHECK:           %[[AHEAD:.*]]:2 = scf.while
// CHECK:             tile.read %{{.*}} : !tile.view<1x1x?x?xi1>
// CHECK:             scf.condition
// CHECK:           tile.wait %[[K]]
// CHECK:           scf.if
// CHECK-NEXT:        tile.acquire %[[K]]
// CHECK-NEXT:        tile.async_load %{{.*}}[%{{.*}}, %{{.*}}, %[[AHEAD]]#0, %{{.*}}]
// CHECK:           tile.dot_start
// CHECK:           scf.if %{{.*}} -> (!tile.tile<128x64xf32, #tile.fragment<4>>)
// CHECK:         tile.any block
// ONE-LABEL: tile.kernel @table_tile(
// ONE:         scf.while
func.func @table(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>, %t: tensor<1x1x?x?xi1>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %c = attn.block_sparse %t blocks [128, 128] : tensor<1x1x?x?xi1>
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// -----

// The least and the greatest id of the query tile are of a row vector, which
// every lane holds: nothing is reduced over rows, which lie in several warps.
// CHECK-LABEL: tile.kernel @document_tile(
// CHECK-NOT:     dim 0
// CHECK:         tile.reduce min %{{.*}} dim 1 : !tile.tile<1x128xi32, #tile.fragment<4>> -> !tile.tile<1x1xi32, #tile.fragment<4>>
// CHECK:         tile.extract
// CHECK:         tile.reduce max %{{.*}} dim 1 : !tile.tile<1x128xi32, #tile.fragment<4>>
// CHECK-NOT:     dim 0
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @document_tile(
func.func @document(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>, %ids: tensor<1x?xi32>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %c = attn.document %ids : tensor<1x?xi32>
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// -----

// The log-sum-exp is one value per row.
// CHECK-LABEL: tile.kernel @lse_tile(
// CHECK-SAME:    %[[OUT:[^: ]*]]: !tile.view<1x4x?x64xf16>, %[[LSE:[^: ]*]]: !tile.view<1x4x?xf32>)
// CHECK-SAME:    num_outputs = 2 : i64
// CHECK:         %[[ROW:.*]]:2 = tile.map({{.*}}) -> !tile.tile<128x1xf32, #tile.fragment<4>>, !tile.tile<128x1xf32, #tile.fragment<4>>
// CHECK:           math.log2
// CHECK:         tile.copy_out %{{.*}}, %[[OUT]]
// CHECK-NEXT:    tile.store %[[ROW]]#1, %[[LSE]][%{{.*}}, %{{.*}}, %{{.*}}] along [2, -1] : !tile.tile<128x1xf32, #tile.fragment<4>>, !tile.view<1x4x?xf32>
// CHECK-NEXT:    tile.return
// ONE-LABEL: tile.kernel @lse_tile(
func.func @lse(%q: tensor<1x4x?x64xf16>, %k: tensor<1x4x?x64xf16>, %v: tensor<1x4x?x64xf16>) -> (tensor<1x4x?x64xf16>, tensor<1x4x?xf32>) attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>
  %w, %l = attn.softmax %s lse : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf16>
  return %o, %l : tensor<1x4x?x64xf16>, tensor<1x4x?xf32>
}

// -----

// The log-sum-exp alone: no values are read.
// CHECK-LABEL: tile.kernel @lse_alone_tile(
// CHECK:         tile.alloc : !tile.ring<1x128x64xf16, 128>
// CHECK-NEXT:    tile.alloc : !tile.ring<2x64x64xf16, 128>
// CHECK-NOT:     tile.alloc
// CHECK-NOT:     acc
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @lse_alone_tile(
func.func @lse_alone(%q: tensor<1x4x?x64xf16>, %k: tensor<1x4x?x64xf16>) -> tensor<1x4x?xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>
  %w, %l = attn.softmax %s lse : !attn.scores<1x4x?x?>
  return %l : tensor<1x4x?xf32>
}

// -----

// Widths are padded to whole steps in shared memory; values of another width
// leave through a slot of their own.
// CHECK-LABEL: tile.kernel @widths_tile(
// CHECK:         tile.alloc : !tile.ring<1x128x48xbf16, 32>
// CHECK-NEXT:    tile.alloc : !tile.ring<1x128x32xbf16, 64>
// CHECK-NEXT:    tile.alloc : !tile.ring<2x64x32xbf16, 64>
// CHECK-NEXT:    tile.alloc : !tile.ring<2x64x48xbf16, 32>
// CHECK:         tile.put %{{.*}} : !tile.tile<128x48xf32, #tile.fragment<4>>, !tile.ring<1x128x48xbf16, 32>
// ONE-LABEL: tile.kernel @widths_tile(
func.func @widths(%q: tensor<1x4x?x20xbf16>, %k: tensor<1x4x?x20xbf16>, %v: tensor<1x4x?x33xbf16>) -> tensor<1x4x?x33xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x20xbf16>, tensor<1x4x?x20xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x33xbf16>
  return %o : tensor<1x4x?x33xbf16>
}

// -----

// f32 is computed in f32: weights are not rounded.
// CHECK-LABEL: tile.kernel @single_tile(
// CHECK-NOT:     tile.cast
// CHECK:         tile.dot_start %{{.*}} acc %{{.*}} : !tile.tile<{{.*}}x64xf32, #tile.fragment<4>>, !tile.ring<{{.*}}xf32, 128>
// CHECK-NOT:     tile.cast
// CHECK:         tile.return
// ONE-LABEL: tile.kernel @single_tile(
func.func @single(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}
