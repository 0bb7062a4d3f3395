// RUN: attnfuse-opt %s --convert-tile-to-nvvm="chip=sm_90a" --cse --canonicalize | FileCheck %s
// RUN: attnfuse-opt %s --convert-tile-to-nvvm="chip=sm_90a" --cse --canonicalize | FileCheck %s --check-prefix=INIT

// Two consumers and a producer are 384 threads. After the views' parameters come
// a tensor map per view that is copied from or to, and the counter; what a
// runtime has to pass is recorded.
// CHECK-LABEL: llvm.func @roles(
// CHECK-SAME:    %[[MAPQ:[a-z0-9]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %[[MAPK:[a-z0-9]*]]: !llvm.ptr {{{[^}]*}}nvvm.grid_constant}, %[[MAPV:[a-z0-9]*]]: !llvm.ptr {{{[^}]*}}nvvm.grid_constant}, %[[MAPO:[a-z0-9]*]]: !llvm.ptr {{{[^}]*}}nvvm.grid_constant}, %[[COUNTER:[a-z0-9]*]]: !llvm.ptr<1>)
// CHECK-SAME:    attnfuse.extras = "[{\22tensor_map\22:0,\22box\22:[64,64],\22swizzle\22:128},{\22tensor_map\22:1,\22box\22:[64,32],\22swizzle\22:128},{\22tensor_map\22:2,\22box\22:[64,32],\22swizzle\22:128},{\22tensor_map\22:3,\22box\22:[64,64],\22swizzle\22:128},{\22counter\22:true}]"
// CHECK-SAME:    attnfuse.threads = 384 : i64
// CHECK-SAME:    nvvm.maxntid = array<i32: 384, 1, 1>

// A full and an empty barrier per slot. The producer alone arrives at the full
// one; at the empty one the 4 warps of the only reader, or those of both
// consumers. The two of next_work come last.
// INIT-LABEL:  llvm.func @roles(
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c4_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c4_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c8_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c8_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c8_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c8_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c4_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c4_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c8_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c1_i32
// INIT:          nvvm.mbarrier.init %{{.*}}, %c8_i32
// INIT-NOT:      nvvm.mbarrier.init
// INIT:          nvvm.fence.mbarrier.init
// INIT-NEXT:   }
// INIT-NEXT:   nvvm.barrier0

// The producer: one thread of it works. A slot that was never used is free:
// parity 1.
// CHECK:         nvvm.barrier0
// CHECK:         scf.if
// CHECK-NEXT:      nvvm.setmaxregister decrease 24
// CHECK:           scf.if
// CHECK:             nvvm.prefetch tensormap, %[[MAPQ]]
// CHECK:             %[[WORK:.*]] = llvm.atomicrmw add %[[COUNTER]], %c1_i32 monotonic
// CHECK:             nvvm.mbarrier.try_wait.parity %{{.*}}, %c1_i32,
// CHECK-NEXT:        llvm.store %[[WORK]], %{{.*}} : i32, !llvm.ptr<3>
// CHECK:             nvvm.mbarrier.arrive
// CHECK-NOT:         scf.if
// Queries: 64 x 64 bf16 are 8192 bytes.
// CHECK:             nvvm.mbarrier.try_wait.parity %{{.*}}, %c1_i32,
// CHECK:               nvvm.mbarrier.arrive.expect_tx %[[QB:.*]], %c8192_i32
// CHECK:               nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAPQ]], %[[QB]], box[%c0_i32, %[[WORK]], %c0_i32, %c0_i32]
// CHECK:             nvvm.mbarrier.try_wait.parity
// CHECK:               nvvm.mbarrier.arrive.expect_tx %[[KB:.*]], %c4096_i32
// CHECK:               nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAPK]], %[[KB]], box
// CHECK:             nvvm.mbarrier.try_wait.parity
// CHECK:               nvvm.mbarrier.arrive.expect_tx %[[VB:.*]], %c4096_i32
// CHECK:               nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAPV]], %[[VB]], box

// Consumers: a warp reads the work's number before it gives the word back.
// CHECK:         } else {
// CHECK-NEXT:      nvvm.setmaxregister increase 240
// CHECK:           nvvm.mbarrier.try_wait.parity %{{.*}}, %c0_i32,
// CHECK-NEXT:      %[[READ:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NEXT:      nvvm.bar.warp.sync
// CHECK:             nvvm.mbarrier.arrive
// CHECK-COUNT-2:   nvvm.mbarrier.try_wait.parity
// Queries times keys, both in shared memory: 4 steps of 16, the first of which
// starts from 0.
// CHECK:           llvm.inline_asm has_side_effects asm_dialect = att "{{.*}}wgmma.fence.sync.aligned;
// CHECK-SAME:      wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{[^;]*}}, none, 1, 1, 0, 0;
// CHECK-SAME:      wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{[^;]*}}, some, 1, 1, 0, 0;
// CHECK-SAME:      wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{[^;]*}}, some, 1, 1, 0, 0;
// CHECK-SAME:      wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{[^;]*}}, some, 1, 1, 0, 0;
// CHECK-SAME:      wgmma.commit_group.sync.aligned;
// CHECK:           wgmma.wait_group.sync.aligned 0;
// CHECK-COUNT-2:   nvvm.mbarrier.arrive %
// Weights in registers times values, which are read transposed.
// CHECK:           cvt.rn.bf16x2.f32
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK:           wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, {{{[^}]*}}}, {{[^,]*}}, none, 1, 1, 1;
// CHECK-SAME:      wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, {{{[^}]*}}}, {{[^,]*}}, some, 1, 1, 1;
// CHECK:           wgmma.wait_group.sync.aligned 0;
// CHECK:             nvvm.mbarrier.arrive %
// The slot of the result: what left through it has been read, the warpgroup's
// own barrier passed; then what is written is made visible to the bulk copy.
// CHECK:             nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:           nvvm.barrier id = %[[OWN:.*]] number_of_threads = %c128_i32
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT:      nvvm.barrier id = %[[OWN]] number_of_threads = %c128_i32
// CHECK:             nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAPO]], %{{.*}}, box[%c0_i32, %[[READ]], %c0_i32, %c0_i32]
// CHECK-NEXT:        nvvm.cp.async.bulk.commit.group
// Nobody leaves before that copy has.
// CHECK:             nvvm.cp.async.bulk.wait_group 0
// CHECK:         llvm.return
// CHECK-NOT:     mma.sync
// CHECK-NOT:     ldmatrix
tile.kernel @roles(%q: !tile.view<1x4x?x64xbf16>, %k: !tile.view<1x4x?x64xbf16>, %v: !tile.view<1x4x?x64xbf16>, %o: !tile.view<1x4x?x64xbf16>) attributes {
    grid = [#tile.extent<arg = 3, dim = 2, div = 128>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 128, block_n = 32, warps = 8, stages = 2, registers = 240, producer_registers = 24>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rq = tile.alloc readers 1 : !tile.ring<2x64x64xbf16, 128>
  %rk = tile.alloc : !tile.ring<2x32x64xbf16, 128>
  %rv = tile.alloc : !tile.ring<2x32x64xbf16, 128>
  %ro = tile.alloc readers 1 : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    %t = tile.next_work %c0
    tile.acquire %rq[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.async_load %q[%c0, %c0, %t, %c0] along [2, 3] to %rq[%c0] : !tile.view<1x4x?x64xbf16>, !tile.ring<2x64x64xbf16, 128>
    tile.commit %rq[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.acquire %rk[%c1] : !tile.ring<2x32x64xbf16, 128>
    tile.async_load %k[%c0, %c0, %t, %c0] along [2, 3] to %rk[%c1] : !tile.view<1x4x?x64xbf16>, !tile.ring<2x32x64xbf16, 128>
    tile.commit %rk[%c1] : !tile.ring<2x32x64xbf16, 128>
    tile.acquire %rv[%c1] : !tile.ring<2x32x64xbf16, 128>
    tile.async_load %v[%c0, %c0, %t, %c0] along [2, 3] to %rv[%c1] : !tile.view<1x4x?x64xbf16>, !tile.ring<2x32x64xbf16, 128>
    tile.commit %rv[%c1] : !tile.ring<2x32x64xbf16, 128>
  } consumer 240 {
    %t = tile.next_work %c0
    %g = tile.warpgroup
    tile.wait %rq[%g] : !tile.ring<2x64x64xbf16, 128>
    tile.wait %rk[%c1] : !tile.ring<2x32x64xbf16, 128>
    %s = tile.dot_start %rq[%g], %rk[%c1] transpose_b : !tile.ring<2x64x64xbf16, 128>, !tile.ring<2x32x64xbf16, 128> -> !tile.pending<64x32xf32, #tile.fragment<4>>
    %x = tile.dot_wait %s : !tile.pending<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x32xf32, #tile.fragment<4>>
    tile.release %rk[%c1] : !tile.ring<2x32x64xbf16, 128>
    tile.release %rq[%g] : !tile.ring<2x64x64xbf16, 128>
    %w = tile.cast %x : !tile.tile<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x32xbf16, #tile.fragment<4>>
    tile.wait %rv[%c1] : !tile.ring<2x32x64xbf16, 128>
    %p = tile.dot_start %w, %rv[%c1] : !tile.tile<64x32xbf16, #tile.fragment<4>>, !tile.ring<2x32x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
    %y = tile.dot_wait %p outstanding 0 : !tile.pending<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xf32, #tile.fragment<4>>
    tile.release %rv[%c1] : !tile.ring<2x32x64xbf16, 128>
    tile.put %y, %ro[%g] : !tile.tile<64x64xf32, #tile.fragment<4>>, !tile.ring<2x64x64xbf16, 128>
    tile.copy_out %ro[%g], %o[%c0, %c0, %t, %c0] along [2, 3] : !tile.ring<2x64x64xbf16, 128>, !tile.view<1x4x?x64xbf16>
  }
  tile.return
}
