// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=sm_90a" --cse --canonicalize --split-input-file | FileCheck %s
// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=sm_90a path=portable" --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=PORTABLE
// RUN: attnfuse-opt %s --attn-canonicalize --attn-to-tile="chip=sm_90a block-m=128 block-n=32 stages=3 rescale=0 scheduler=grid" --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=FORCED

// Rows that came out not finite are marked, and computed again by the portable
// kernel: it looks at its rows' marks before anything else.
// CHECK-LABEL: func.func @causal(
// CHECK:         %[[FIRST:.*]]:2 = tile.launch @causal_tile ins({{.*}}) outs(%{{.*}}, %{{.*}} : tensor<1x4x?x64xbf16>, tensor<1x4x?xi8>) {otherwise}
// CHECK-NEXT:    tile.launch @causal_portable ins({{.*}}, %[[FIRST]]#1 : {{.*}}, tensor<1x4x?xi8>) outs(%[[FIRST]]#0 : tensor<1x4x?x64xbf16>)
// CHECK-LABEL: tile.kernel @causal_portable(
// CHECK-SAME:    %[[MARKS:[a-z0-9]*]]: !tile.view<1x4x?xi8>, %{{[a-z0-9]*}}: !tile.view<1x4x?x64xbf16>)
// CHECK:         %[[MARK:.*]] = tile.load %[[MARKS]]
// CHECK:         %[[MARKED:.*]] = tile.any block
// CHECK-NEXT:    scf.if %[[MARKED]] {
// CHECK:           tile.dot_guarded
// CHECK-NOT:     tile.roles

// Four consumers of 64 rows each, and a producer. Slots of queries and results
// have one reader each, those of keys and values every consumer.
// CHECK-LABEL: tile.kernel @causal_tile(
// CHECK-SAME:    %[[QV:[a-z0-9]*]]: !tile.view<1x4x?x64xbf16>, %[[KV:[a-z0-9]*]]: !tile.view<1x2x?x64xbf16>, %[[VV:[a-z0-9]*]]: !tile.view<1x2x?x64xbf16>, %[[OV:[a-z0-9]*]]: !tile.view<1x4x?x64xbf16>, %[[MV:[a-z0-9]*]]: !tile.view<1x4x?xi8>)
// CHECK-SAME:    grid = [#tile.extent<arg = 3, dim = 2, div = 256>,
// CHECK-SAME:    schedule = #tile.schedule<block_m = 256, block_n = 64, warps = 16, stages = 2, registers = 112, producer_registers = 24, rescale = 8, persistent = true>
// CHECK:         %[[Q:.*]] = tile.alloc readers 1 : !tile.ring<4x64x64xbf16, 128>
// CHECK-NEXT:    %[[K:.*]] = tile.alloc : !tile.ring<2x64x64xbf16, 128>
// CHECK-NEXT:    %[[V:.*]] = tile.alloc : !tile.ring<2x64x64xbf16, 128>
// CHECK-NEXT:    %[[O:.*]] = tile.alloc readers 1 : !tile.ring<4x64x64xbf16, 128>
// CHECK-NOT:     tile.alloc

// The producer: queries of each consumer, then keys one tile ahead of values.
// CHECK:         tile.roles producer 24 {
// CHECK:           scf.while (%[[PN:[a-z0-9]+]] = %c0, %[[PB:[a-z0-9]+]] = %c0)
// CHECK-NEXT:        %[[WORK:.*]] = tile.next_work %[[PN]]
// CHECK-NEXT:        %[[LEFT:.*]] = arith.cmpi slt, %[[WORK]], %{{.*}} : index
// CHECK-NEXT:        scf.condition(%[[LEFT]]) %[[PN]], %[[PB]], %[[WORK]]
// CHECK:           ^bb0(%{{[a-z0-9]+}}: index, %[[BEFORE:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: index):
// CHECK-COUNT-4:     tile.async_load %[[QV]]{{.*}} to %[[Q]]
// CHECK-NOT:         tile.async_load %[[QV]]
// CHECK:             tile.acquire %[[K]][%[[BEFORE]]]
// CHECK-NEXT:        tile.async_load %[[KV]]{{.*}} to %[[K]][%[[BEFORE]]]
// CHECK-NEXT:        tile.commit %[[K]][%[[BEFORE]]]
// CHECK-NEXT:        scf.for
// CHECK:               scf.if
// CHECK:                 tile.acquire %[[K]][%[[AHEAD:.*]]] :
// CHECK-NEXT:            tile.async_load %[[KV]]{{.*}} to %[[K]][%[[AHEAD]]]
// CHECK-NEXT:            tile.commit %[[K]][%[[AHEAD]]]
// CHECK-NEXT:          }
// CHECK:               tile.acquire %[[V]][%[[NOW:.*]]] :
// CHECK-NEXT:          tile.async_load %[[VV]]{{.*}} to %[[V]][%[[NOW]]]
// CHECK-NEXT:          tile.commit %[[V]][%[[NOW]]]
// CHECK-NEXT:        }
// The number of tiles of keys is carried on: a ring's uses never start again.
// CHECK:             scf.yield
// CHECK-NOT:       tile.wait
// CHECK-NOT:       tile.release
// CHECK-NOT:       tile.dot_start

// A consumer: it passes over what only others visit, yet releases it.
// CHECK:         } consumer 112 {
// CHECK-NOT:       tile.acquire
// CHECK-NOT:       tile.async_load
// CHECK:           %[[CW:.*]] = tile.next_work
// CHECK:           %[[G:.*]] = tile.warpgroup
// CHECK:           tile.wait %[[Q]][%[[QU:.*]]] :
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        %[[OVER:.*]] = arith.addi
// CHECK-NEXT:        tile.wait %[[K]][%[[OVER]]]
// CHECK-NEXT:        tile.release %[[K]][%[[OVER]]]
// CHECK-NEXT:        tile.wait %[[V]][%[[OVER]]]
// CHECK-NEXT:        tile.release %[[V]][%[[OVER]]]
// CHECK-NEXT:      }
// The first tile of keys, before the loop.
// CHECK:           tile.wait %[[K]][%[[K0:.*]]] :
// CHECK-NEXT:      tile.dot_start %[[Q]][%[[QU]]], %[[K]][%[[K0]]] transpose_b
// CHECK-NEXT:      tile.dot_wait %{{[0-9]+}} :
// CHECK-NEXT:      tile.release %[[K]][%[[K0]]]
// CHECK-NEXT:      scf.if %{{.*}} -> (!tile.tile<64x64xf32, #tile.fragment<4>>)
// CHECK:           tile.cast
// CHECK-NOT:       tile.dot_start

// Scores of one tile and the values of the one before are under way together;
// softmax runs under the latter. Accumulators are left alone unless a row has
// grown.
// CHECK:           %[[LOOP:.*]]:4 = scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = {{.*}}, %{{[a-z0-9]+}} = {{.*}}, %[[ACC:[a-z0-9]+]] = {{.*}}, %[[W:[a-z0-9]+]] = %{{.*}}) -> ({{.*}}, !tile.tile<64x64xbf16, #tile.fragment<4>>)
// CHECK:             %[[VU:.*]] = arith.addi %[[KU:.*]], %c-1 : index
// CHECK-NEXT:        tile.wait %[[K]][%[[KU]]] :
// CHECK-NEXT:        %[[S:.*]] = tile.dot_start %[[Q]][%[[QU]]], %[[K]][%[[KU]]] transpose_b
// CHECK-NEXT:        tile.wait %[[V]][%[[VU]]] :
// CHECK-NEXT:        %[[P:.*]] = tile.dot_start %[[W]], %[[V]][%[[VU]]] acc %[[ACC]]
// CHECK-NEXT:        %[[X:.*]] = tile.dot_wait %[[S]] outstanding 1 :
// CHECK-NEXT:        tile.release %[[K]][%[[KU]]]
// CHECK-NEXT:        %[[T:.*]] = scf.if %{{.*}} -> (!tile.tile<64x64xf32, #tile.fragment<4>>)
// CHECK-NEXT:          tile.map(%[[X]]
// CHECK:             tile.reduce max %[[T]] dim 1 partial
// CHECK-NOT:         tile.combine
// CHECK:             %[[GREW:.*]] = tile.any warp
// CHECK-NEXT:        scf.if %[[GREW]]
// CHECK-NEXT:          tile.combine max
// CHECK:             math.exp2
// CHECK:             %[[Y:.*]] = tile.dot_wait %[[P]] :
// CHECK-NEXT:        tile.release %[[V]][%[[VU]]]
// CHECK-NEXT:        tile.cast
// CHECK-NEXT:        scf.if %[[GREW]]
// CHECK:             } else {
// CHECK-NEXT:          scf.yield %{{.*}}, %[[Y]]
// CHECK:             scf.yield

// The queries' slot is free before the last values; then marks and results.
// CHECK:           tile.release %[[Q]][%[[QU]]]
// CHECK:           tile.wait %[[V]][%[[VL:.*]]] :
// CHECK-NEXT:      tile.dot_start %[[LOOP]]#3, %[[V]][%[[VL]]] acc %[[LOOP]]#2
// CHECK-NEXT:      tile.dot_wait
// CHECK-NEXT:      tile.release %[[V]][%[[VL]]]
// CHECK:           tile.store %{{.*}}, %[[MV]]{{.*}} along [2, -1]
// CHECK:           tile.combine add
// CHECK:           tile.put %{{.*}}, %[[O]][%[[G]]]
// CHECK-NEXT:      tile.copy_out %[[O]][%[[G]]], %[[OV]]{{.*}} along [2, 3] :
// CHECK-NEXT:      scf.for
// CHECK:             tile.release %[[K]]
// CHECK:             tile.release %[[V]]
// CHECK:         tile.return

// PORTABLE-NOT:  tile.roles
// PORTABLE-LABEL: tile.kernel @causal_tile(
// PORTABLE:      warps = 4, stages = 2>
// PORTABLE-NOT:  tile.roles

// What is forced: two consumers, three slots, every maximum taken at once, and
// the grid instead of the counter.
// FORCED-LABEL: tile.kernel @causal_tile(
// FORCED-SAME:    #tile.extent<arg = 3, dim = 2, div = 128>
// FORCED-SAME:    block_m = 128, block_n = 32, warps = 8, stages = 3
// FORCED-NOT:     rescale
// FORCED:         tile.alloc readers 1 : !tile.ring<2x64x64xbf16, 128>
// FORCED-NEXT:    tile.alloc : !tile.ring<3x32x64xbf16, 128>
// FORCED-NOT:     tile.next_work
// FORCED-NOT:     tile.any warp
// FORCED:         tile.return
func.func @causal(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>
  %c = attn.causal
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x2x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// -----

// Without a mask nothing is marked. The portable kernel is for what TMA cannot address.
// CHECK-LABEL: func.func @plain(
// CHECK:         tile.launch @plain_tile {{.*}} {otherwise = @plain_portable}
// CHECK-NOT:     tile.launch
// CHECK-LABEL: tile.kernel @plain_portable(
// CHECK-NOT:     tile.dot_guarded
// CHECK-LABEL: tile.kernel @plain_tile(
// CHECK-SAME:    block_m = 256, block_n = 64, warps = 16, stages = 2, registers = 112, producer_registers = 24, rescale = 8, persistent = true>
// CHECK:         tile.roles producer 24 {
// CHECK:           tile.next_work
// CHECK-COUNT-4:   tile.async_load %{{.*}} : !tile.view<1x4x?x64xbf16>, !tile.ring<4x64x64xbf16, 128>
// CHECK:         } consumer 112 {
// CHECK:           tile.next_work
// CHECK-NOT:     i8
// CHECK:         tile.return
// PORTABLE-LABEL: tile.kernel @plain_tile(
// PORTABLE-NOT:  tile.roles
// FORCED-LABEL: tile.kernel @plain_tile(
func.func @plain(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x2x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// -----

// f32 has no wgmma that keeps its accuracy: the portable kernel alone.
// CHECK-LABEL: func.func @single(
// CHECK:         tile.launch @single_tile
// CHECK-NOT:     otherwise
// CHECK-LABEL: tile.kernel @single_tile(
// CHECK-NOT:     tile.roles
// CHECK:         tile.return
// PORTABLE-LABEL: tile.kernel @single_tile(
func.func @single(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}
