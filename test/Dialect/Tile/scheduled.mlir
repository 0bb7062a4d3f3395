// RUN: attnfuse-opt %s | attnfuse-opt | FileCheck %s
// RUN: attnfuse-opt %s --mlir-print-op-generic | attnfuse-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @portable(
// CHECK-SAME: schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 4, stages = 2>
tile.kernel @portable(%q: !tile.view<1x8x?x128xbf16>, %k: !tile.view<1x8x?x128xbf16>, %t: !tile.view<?x64xf32>,
                      %o: !tile.view<1x8x?x128xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 2, div = 128>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %i = tile.program_id 0
  // CHECK: %[[Q:.*]] = tile.alloc : !tile.ring<1x128x128xbf16, 128>
  %rq = tile.alloc : !tile.ring<1x128x128xbf16, 128>
  // CHECK: %[[K:.*]] = tile.alloc : !tile.ring<2x64x128xbf16, 128>
  %rk = tile.alloc : !tile.ring<2x64x128xbf16, 128>
  // CHECK: tile.async_load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] along [2, 3] to %[[Q]][%{{.*}}] : !tile.view<1x8x?x128xbf16>, !tile.ring<1x128x128xbf16, 128>
  tile.async_load %q[%c0, %c0, %i, %c0] along [2, 3] to %rq[%c0] : !tile.view<1x8x?x128xbf16>, !tile.ring<1x128x128xbf16, 128>
  // CHECK: tile.commit %[[Q]][%{{.*}}] : !tile.ring<1x128x128xbf16, 128>
  tile.commit %rq[%c0] : !tile.ring<1x128x128xbf16, 128>
  // CHECK: tile.acquire %[[K]][%{{.*}}] : !tile.ring<2x64x128xbf16, 128>
  tile.acquire %rk[%c1] : !tile.ring<2x64x128xbf16, 128>
  tile.async_load %k[%c0, %c0, %c0, %c0] along [2, 3] to %rk[%c1] : !tile.view<1x8x?x128xbf16>, !tile.ring<2x64x128xbf16, 128>
  tile.commit %rk[%c1] : !tile.ring<2x64x128xbf16, 128>
  // CHECK: tile.wait %[[Q]][%{{.*}}] outstanding 1 : !tile.ring<1x128x128xbf16, 128>
  tile.wait %rq[%c0] outstanding 1 : !tile.ring<1x128x128xbf16, 128>
  // An explicit 0 is the default.
  // CHECK: tile.wait %[[K]][%{{.*}}] : !tile.ring<2x64x128xbf16, 128>
  tile.wait %rk[%c1] outstanding 0 : !tile.ring<2x64x128xbf16, 128>
  // CHECK: tile.rotate_slot %[[Q]][%{{.*}}], %[[I:.*]] {frequencies = array<f64: 1.000000e+00, 1.000000e-02>, magnitude = 1.250000e+00 : f64, pairs = 2 : i64} : !tile.ring<1x128x128xbf16, 128>
  tile.rotate_slot %rq[%c0], %i {frequencies = array<f64: 1.0, 0.01>, magnitude = 1.25, pairs = 2 : i64} : !tile.ring<1x128x128xbf16, 128>
  // CHECK: tile.rotate_slot %[[Q]][%{{.*}}], %[[I]] tables %[[T:.*]], %[[T]] : !tile.view<?x64xf32>, !tile.view<?x64xf32> interleaved {pairs = 64 : i64} : !tile.ring<1x128x128xbf16, 128>
  tile.rotate_slot %rq[%c0], %i tables %t, %t : !tile.view<?x64xf32>, !tile.view<?x64xf32> interleaved {pairs = 64 : i64} : !tile.ring<1x128x128xbf16, 128>
  // CHECK: %[[P:.*]] = tile.dot_start %[[Q]][%{{.*}}], %[[K]][%{{.*}}] transpose_b : !tile.ring<1x128x128xbf16, 128>, !tile.ring<2x64x128xbf16, 128> -> !tile.pending<128x64xf32, #tile.fragment<4>>
  %p = tile.dot_start %rq[%c0], %rk[%c1] transpose_b : !tile.ring<1x128x128xbf16, 128>, !tile.ring<2x64x128xbf16, 128> -> !tile.pending<128x64xf32, #tile.fragment<4>>
  // CHECK: %[[S:.*]] = tile.dot_wait %[[P]] outstanding 1 : !tile.pending<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xf32, #tile.fragment<4>>
  %s = tile.dot_wait %p outstanding 1 : !tile.pending<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xf32, #tile.fragment<4>>
  // CHECK: %[[PART:.*]] = tile.reduce add %[[S]] dim 1 partial : !tile.tile<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x1xf32, #tile.fragment<4>>
  %part = tile.reduce add %s dim 1 partial : !tile.tile<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x1xf32, #tile.fragment<4>>
  // CHECK: tile.combine add %[[PART]] : !tile.tile<128x1xf32, #tile.fragment<4>>
  %sum = tile.combine add %part : !tile.tile<128x1xf32, #tile.fragment<4>>
  // CHECK: %[[W:.*]] = tile.cast %[[S]] : !tile.tile<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xbf16, #tile.fragment<4>>
  %w = tile.cast %s : !tile.tile<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xbf16, #tile.fragment<4>>
  // CHECK: %[[Z:.*]] = tile.splat
  %z = tile.splat %zero : f32 -> !tile.tile<128x128xf32, #tile.fragment<4>>
  // CHECK: tile.dot_start %[[W]], %[[K]][%{{.*}}] acc %[[Z]] : !tile.tile<128x128xf32, #tile.fragment<4>> : !tile.tile<128x64xbf16, #tile.fragment<4>>, !tile.ring<2x64x128xbf16, 128> -> !tile.pending<128x128xf32, #tile.fragment<4>>
  %a = tile.dot_start %w, %rk[%c1] acc %z : !tile.tile<128x128xf32, #tile.fragment<4>> : !tile.tile<128x64xbf16, #tile.fragment<4>>, !tile.ring<2x64x128xbf16, 128> -> !tile.pending<128x128xf32, #tile.fragment<4>>
  // CHECK: %[[R:.*]] = tile.dot_wait %{{.*}} : !tile.pending<128x128xf32, #tile.fragment<4>> -> !tile.tile<128x128xf32, #tile.fragment<4>>
  %r = tile.dot_wait %a : !tile.pending<128x128xf32, #tile.fragment<4>> -> !tile.tile<128x128xf32, #tile.fragment<4>>
  // CHECK: %[[G:.*]] = tile.dot_guarded %[[S]], %[[K]][%{{.*}}], %[[R]] : !tile.tile<128x64xf32, #tile.fragment<4>>, !tile.ring<2x64x128xbf16, 128>, !tile.tile<128x128xf32, #tile.fragment<4>>
  %g = tile.dot_guarded %s, %rk[%c1], %r : !tile.tile<128x64xf32, #tile.fragment<4>>, !tile.ring<2x64x128xbf16, 128>, !tile.tile<128x128xf32, #tile.fragment<4>>
  // CHECK: tile.release %[[K]][%{{.*}}] : !tile.ring<2x64x128xbf16, 128>
  tile.release %rk[%c1] : !tile.ring<2x64x128xbf16, 128>
  // CHECK: %[[BAD:.*]] = tile.map(%{{.*}} : !tile.tile<128x1xf32, #tile.fragment<4>>) -> !tile.tile<128x1xi1, #tile.fragment<4>>
  %bad = tile.map(%sum : !tile.tile<128x1xf32, #tile.fragment<4>>) -> !tile.tile<128x1xi1, #tile.fragment<4>> {
  ^bb0(%x: f32, %row: index, %column: index):
    %u = arith.cmpf une, %x, %zero : f32
    tile.yield %u : i1
  }
  // CHECK: tile.any warp %[[BAD]] : !tile.tile<128x1xi1, #tile.fragment<4>>
  %any = tile.any warp %bad : !tile.tile<128x1xi1, #tile.fragment<4>>
  // CHECK: tile.any block %[[BAD]] : !tile.tile<128x1xi1, #tile.fragment<4>>
  %all = tile.any block %bad : !tile.tile<128x1xi1, #tile.fragment<4>>
  // CHECK: tile.put %[[G]], %[[Q]][%{{.*}}] : !tile.tile<128x128xf32, #tile.fragment<4>>, !tile.ring<1x128x128xbf16, 128>
  tile.put %g, %rq[%c0] : !tile.tile<128x128xf32, #tile.fragment<4>>, !tile.ring<1x128x128xbf16, 128>
  // CHECK: tile.copy_out %[[Q]][%{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] along [2, 3] : !tile.ring<1x128x128xbf16, 128>, !tile.view<1x8x?x128xbf16>
  tile.copy_out %rq[%c0], %o[%c0, %c0, %i, %c0] along [2, 3] : !tile.ring<1x128x128xbf16, 128>, !tile.view<1x8x?x128xbf16>
  // CHECK: tile.copy_out {{.*}} along [2, 3] drained : !tile.ring<1x128x128xbf16, 128>, !tile.view<1x8x?x128xbf16>
  tile.copy_out %rq[%c0], %o[%c0, %c0, %i, %c0] along [2, 3] drained : !tile.ring<1x128x128xbf16, 128>, !tile.view<1x8x?x128xbf16>
  tile.return
}

// CHECK-LABEL: tile.kernel @roles(
// CHECK-SAME: schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 2, registers = 240, producer_registers = 24, rescale = 8, ping_pong = true, persistent = true>
tile.kernel @roles(%x: !tile.view<1x8x?x64xf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 2, div = 128>],
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 2, registers = 240,
                              producer_registers = 24, rescale = 8, ping_pong = true, persistent = true>} {
  %c0 = arith.constant 0 : index
  // CHECK: tile.alloc readers 1 : !tile.ring<8x64x64xf16, 64>
  %k = tile.alloc readers 1 : !tile.ring<8x64x64xf16, 64>
  // 0 readers: every consumer.
  // CHECK: tile.alloc : !tile.ring<1x8x8xf32, 32>
  %v = tile.alloc readers 0 : !tile.ring<1x8x8xf32, 32>
  // CHECK: tile.roles producer 24 {
  tile.roles producer 24 {
    // CHECK: %[[N:.*]] = tile.next_work %{{.*}}
    %n = tile.next_work %c0
    tile.acquire %k[%n] : !tile.ring<8x64x64xf16, 64>
    tile.commit %k[%n] : !tile.ring<8x64x64xf16, 64>
  // CHECK: } consumer 240 {
  } consumer 240 {
    // CHECK: tile.warpgroup
    %g = tile.warpgroup
    tile.wait %k[%g] : !tile.ring<8x64x64xf16, 64>
    tile.release %k[%g] : !tile.ring<8x64x64xf16, 64>
  // CHECK: }
  // CHECK-NEXT: tile.return
  }
  tile.return
}

// Types and attributes at the ends of their ranges.
// CHECK-LABEL: func.func private @types(
// CHECK-SAME: !tile.tile<16x8xf32, #tile.fragment<1>>, !tile.tile<1x8xf32, #tile.fragment<32>>, !tile.tile<512x1xi1, #tile.fragment<32>>, !tile.tile<1x1xi64, #tile.fragment<4>>
// CHECK-SAME: !tile.pending<16x8xf32, #tile.fragment<1>>, !tile.pending<16x8xf32>
// CHECK-SAME: !tile.ring<1x8x16xbf16, 32>, !tile.ring<8x128x256xf32, 128>
func.func private @types(!tile.tile<16x8xf32, #tile.fragment<1>>, !tile.tile<1x8xf32, #tile.fragment<32>>,
    !tile.tile<512x1xi1, #tile.fragment<32>>, !tile.tile<1x1xi64, #tile.fragment<4>>,
    !tile.pending<16x8xf32, #tile.fragment<1>>, !tile.pending<16x8xf32>,
    !tile.ring<1x8x16xbf16, 32>, !tile.ring<8x128x256xf32, 128>)
// CHECK: func.func private @schedules() attributes {a = #tile.schedule<block_m = 1, block_n = 1>, b = #tile.schedule<block_m = 128, block_n = 64, warps = 32, stages = 8, registers = 255>}
func.func private @schedules() attributes {
    a = #tile.schedule<block_n = 1, block_m = 1, warps = 0, ping_pong = false>,
    b = #tile.schedule<block_m = 128, block_n = 64, warps = 32, stages = 8, registers = 255>}
