// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s

// One barrier per tile: what has been waited for is seen by every warp then,
// and every warp has left the product before. The acquire needs none.
// CHECK-LABEL: llvm.func @two_slots(
// CHECK:         scf.for %[[N:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK-NEXT:      nvvm.barrier0
// CHECK-NOT:       nvvm.barrier0
// CHECK:           nvvm.cp.async.shared.global
// CHECK-NOT:       nvvm.barrier0
// CHECK:           nvvm.cp.async.commit.group
// CHECK-NOT:       nvvm.barrier0
// CHECK:           mma.sync
// CHECK-NOT:       nvvm.barrier0
// CHECK:         llvm.return
tile.kernel @two_slots(%k: !tile.view<?x64xbf16>, %o: !tile.view<64x32xf32>) attributes {
    grid = [#tile.extent<arg = 1, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %count = tile.dim %k, 0 : !tile.view<?x64xbf16>
  %rq = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %rk = tile.alloc : !tile.ring<2x32x64xbf16, 128>
  %z = tile.splat %zero : f32 -> !tile.tile<64x32xf32, #tile.fragment<4>>
  %sum = scf.for %n = %c0 to %count step %c1 iter_args(%acc = %z) -> (!tile.tile<64x32xf32, #tile.fragment<4>>) {
    %next = arith.addi %n, %c1 : index
    %more = arith.cmpi slt, %next, %count : index
    %key = arith.muli %next, %c32 : index
    tile.wait %rk[%n] : !tile.ring<2x32x64xbf16, 128>
    scf.if %more {
      tile.acquire %rk[%next] : !tile.ring<2x32x64xbf16, 128>
      tile.async_load %k[%key, %c0] along [0, 1] to %rk[%next] : !tile.view<?x64xbf16>, !tile.ring<2x32x64xbf16, 128>
    }
    tile.commit %rk[%next] : !tile.ring<2x32x64xbf16, 128>
    %p = tile.dot_start %rq[%c0], %rk[%n] acc %acc : !tile.tile<64x32xf32, #tile.fragment<4>> transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<2x32x64xbf16, 128> -> !tile.pending<64x32xf32, #tile.fragment<4>>
    %s = tile.dot_wait %p : !tile.pending<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x32xf32, #tile.fragment<4>>
    tile.release %rk[%n] : !tile.ring<2x32x64xbf16, 128>
    scf.yield %s : !tile.tile<64x32xf32, #tile.fragment<4>>
  }
  tile.store %sum, %o[%c0, %c0] along [0, 1] : !tile.tile<64x32xf32, #tile.fragment<4>>, !tile.view<64x32xf32>
  tile.return
}

// -----

// A product has read slots since the last barrier: the acquire is one. A second
// acquire right after it is none.
// CHECK-LABEL: llvm.func @after_product(
// CHECK:         nvvm.cp.async.wait.group 2
// CHECK-NEXT:    nvvm.barrier0
// CHECK-NOT:     nvvm.barrier0
// CHECK:         mma.sync
// CHECK:         nvvm.barrier0
// CHECK-NOT:     nvvm.barrier0
// CHECK:         llvm.return
tile.kernel @after_product(%o: !tile.view<64x32xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rq = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %rk = tile.alloc : !tile.ring<1x32x64xbf16, 128>
  tile.wait %rk[%c0] outstanding 2 : !tile.ring<1x32x64xbf16, 128>
  %p = tile.dot_start %rq[%c0], %rk[%c0] transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x32x64xbf16, 128> -> !tile.pending<64x32xf32, #tile.fragment<4>>
  %s = tile.dot_wait %p : !tile.pending<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x32xf32, #tile.fragment<4>>
  tile.acquire %rk[%c1] : !tile.ring<1x32x64xbf16, 128>
  tile.acquire %rq[%c1] : !tile.ring<1x64x64xbf16, 128>
  tile.store %s, %o[%c0, %c0] along [0, 1] : !tile.tile<64x32xf32, #tile.fragment<4>>, !tile.view<64x32xf32>
  tile.return
}

// -----

// The first acquire of a loop's body cannot know what came before.
// CHECK-LABEL: llvm.func @at_loop_start(
// CHECK:         nvvm.barrier0
// CHECK:         scf.for
// CHECK-NEXT:      nvvm.barrier0
// CHECK-NEXT:      nvvm.cp.async.commit.group
// CHECK-NEXT:    }
tile.kernel @at_loop_start(%k: !tile.view<?x64xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = tile.dim %k, 0 : !tile.view<?x64xbf16>
  %rk = tile.alloc : !tile.ring<2x32x64xbf16, 128>
  tile.acquire %rk[%c0] : !tile.ring<2x32x64xbf16, 128>
  scf.for %n = %c0 to %count step %c1 {
    tile.acquire %rk[%n] : !tile.ring<2x32x64xbf16, 128>
    tile.commit %rk[%n] : !tile.ring<2x32x64xbf16, 128>
  }
  tile.return
}

// -----

// A branch that may have read counts as one that has.
// CHECK-LABEL: llvm.func @after_branch(
// CHECK:         nvvm.barrier0
// CHECK:         scf.if
// CHECK:           mma.sync
// CHECK:         nvvm.barrier0
// CHECK-NOT:     nvvm.barrier0
// CHECK:         llvm.return
tile.kernel @after_branch(%o: !tile.view<64x32xf32>, %c: i1) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rq = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %rk = tile.alloc : !tile.ring<1x32x64xbf16, 128>
  tile.wait %rk[%c0] : !tile.ring<1x32x64xbf16, 128>
  scf.if %c {
    %p = tile.dot_start %rq[%c0], %rk[%c0] transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x32x64xbf16, 128> -> !tile.pending<64x32xf32, #tile.fragment<4>>
    %s = tile.dot_wait %p : !tile.pending<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x32xf32, #tile.fragment<4>>
    tile.store %s, %o[%c0, %c0] along [0, 1] : !tile.tile<64x32xf32, #tile.fragment<4>>, !tile.view<64x32xf32>
  }
  tile.acquire %rk[%c1] : !tile.ring<1x32x64xbf16, 128>
  tile.return
}
