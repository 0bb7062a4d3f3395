// RUN: attnfuse-opt %s --attn-place-rope="force=once" --attn-to-tile="chip=sm_80" --cse --canonicalize | FileCheck %s --check-prefix=ONCE
// RUN: attnfuse-opt %s --attn-place-rope="force=in_loop" --attn-to-tile="chip=sm_80" --cse --canonicalize | FileCheck %s --check-prefix=LOOP

// Once: a kernel of its own rotates the keys, to the type they have: matrix
// units take no other.
// ONCE-LABEL: func.func @k(
// ONCE:         %[[R:.*]] = tile.launch @k_rotate_k ins({{.*}}) outs({{.*}} : tensor<1x2x?x64xbf16>)
// ONCE:         tile.launch @k_tile ins({{.*}}%[[R]] : {{.*}}tensor<1x2x?x64xbf16>)
// ONCE-LABEL: tile.kernel @k_tile(
// ONCE:         %[[Q:.*]] = tile.alloc : !tile.ring<1x128x64xbf16, 128>
// ONCE:         tile.wait %[[Q]]
// ONCE-NEXT:    tile.rotate_slot %[[Q]][%{{.*}}], %[[I0:.*]] {frequencies = array<f64: 1.000000e+00, {{.*}}>, pairs = 32 : i64}
// ONCE-NOT:     tile.rotate_slot
// ONCE:         tile.return
// ONCE-LABEL: tile.kernel @k_rotate_k(
// ONCE-SAME:    %[[OUT:[^: ]*]]: !tile.view<1x2x?x64xbf16>) attributes
// ONCE-SAME:    schedule = #tile.schedule<block_m = 64, block_n = 8, warps = 4, stages = 1>
// ONCE:         %[[RING:.*]] = tile.alloc : !tile.ring<1x64x64xbf16, 128>
// ONCE:         tile.async_load %{{.*}} along [2, 3] to %[[RING]]
// ONCE-NEXT:    tile.commit %[[RING]]
// ONCE-NEXT:    tile.wait %[[RING]]
// ONCE-NEXT:    tile.rotate_slot %[[RING]]{{.*}} interleaved {frequencies
// ONCE-NEXT:    tile.copy_out %[[RING]][%{{.*}}], %[[OUT]]
// ONCE-NEXT:    tile.return

// In the loop: each key tile is rotated once it is there, while the next is
// copied.
// LOOP-LABEL: func.func @k(
// LOOP-COUNT-1: tile.launch
// LOOP-NOT:     tile.launch
// LOOP-LABEL: tile.kernel @k_tile(
// LOOP:         %[[Q:.*]] = tile.alloc : !tile.ring<1x128x64xbf16, 128>
// LOOP-NEXT:    %[[K:.*]] = tile.alloc : !tile.ring<2x64x64xbf16, 128>
// LOOP:         tile.rotate_slot %[[Q]]
// LOOP:         scf.for %[[N:[a-z0-9]+]] =
// LOOP:           %[[KEY:.*]] = arith.muli %[[N]], %c64 : index
// LOOP:           tile.wait %[[K]][%[[N]]]
// LOOP:           tile.commit %[[K]]
// LOOP-NEXT:      tile.rotate_slot %[[K]][%[[N]]], %[[KEY]] interleaved
// LOOP-NEXT:      tile.dot_start %[[Q]]
// LOOP-NOT:     tile.kernel
func.func @k(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %qr = attn.rope %q : tensor<1x4x?x64xbf16>
  %kr = attn.rope %k interleaved : tensor<1x2x?x64xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x2x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}
