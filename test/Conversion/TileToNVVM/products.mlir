// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s
// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=MMA
// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=TOTAL

// 64 x 64 times (32 x 64)^T over 4 warps: 4 steps of k, in each one ldmatrix for
// the warp's 16 query rows and two for 32 keys, and 4 products of m16n8k16.
// CHECK-LABEL: llvm.func @scores(
// CHECK-SAME:    attnfuse.shared_bytes = 12288 : i64, attnfuse.threads = 128 : i64, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK-COUNT-12: nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK-NOT:     nvvm.ldmatrix
// CHECK:         llvm.return
// MMA-LABEL:   llvm.func @scores(
// MMA-COUNT-16:  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// MMA-NOT:       mma.sync
// MMA:           llvm.return
// A step of k is 32 bytes: two chunks on, permuted by the row's phase.
// TOTAL-LABEL: llvm.func @scores(
// TOTAL:         %[[LOW:.*]] = arith.andi %{{.*}}, %c7_i32 : i32
// TOTAL:         nvvm.ldmatrix
// TOTAL:         arith.xori %{{.*}}, %c32_i32 : i32
// TOTAL:         arith.xori %{{.*}}, %c64_i32 : i32
// TOTAL:         arith.xori %{{.*}}, %c96_i32 : i32
// TOTAL:         llvm.return
tile.kernel @scores(%q: !tile.view<64x64xbf16>, %o: !tile.view<64x32xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %rq = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %rk = tile.alloc : !tile.ring<1x32x64xbf16, 128>
  %p = tile.dot_start %rq[%c0], %rk[%c0] transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x32x64xbf16, 128> -> !tile.pending<64x32xf32, #tile.fragment<4>>
  %s = tile.dot_wait %p : !tile.pending<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x32xf32, #tile.fragment<4>>
  tile.store %s, %o[%c0, %c0] along [0, 1] : !tile.tile<64x32xf32, #tile.fragment<4>>, !tile.view<64x32xf32>
  tile.return
}

// -----

// Weights in registers are a left factor as they are, two to a register, and
// values are read transposed: 2 steps of 16 keys, 4 loads of 16 columns in each.
// 32 rows per warp are two tiles, which share what is loaded.
// CHECK-LABEL: llvm.func @values(
// CHECK-COUNT-8: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK-NOT:     nvvm.ldmatrix
// CHECK:         llvm.return
// MMA-LABEL:   llvm.func @values(
// MMA-COUNT-32:  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// MMA-NOT:       mma.sync
// MMA:           llvm.return
// TOTAL-LABEL: llvm.func @values(
// TOTAL-COUNT-16: cvt.rn.f16x2.f32 $0, $1, $2;
// TOTAL-NOT:     cvt.rn
// TOTAL:         llvm.return
tile.kernel @values(%q: !tile.view<128x32xf32>, %o: !tile.view<128x64xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 128>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 128, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %rv = tile.alloc : !tile.ring<1x32x64xf16, 128>
  %w = tile.load %q[%c0, %c0] along [0, 1] : !tile.view<128x32xf32> -> !tile.tile<128x32xf32, #tile.fragment<4>>
  %n = tile.cast %w : !tile.tile<128x32xf32, #tile.fragment<4>> -> !tile.tile<128x32xf16, #tile.fragment<4>>
  %p = tile.dot_start %n, %rv[%c0] : !tile.tile<128x32xf16, #tile.fragment<4>>, !tile.ring<1x32x64xf16, 128> -> !tile.pending<128x64xf32, #tile.fragment<4>>
  %s = tile.dot_wait %p : !tile.pending<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xf32, #tile.fragment<4>>
  tile.store %s, %o[%c0, %c0] along [0, 1] : !tile.tile<128x64xf32, #tile.fragment<4>>, !tile.view<128x64xf32>
  tile.return
}

// -----

// f32: each of 2 steps of 8 by 2 tiles of 8 columns is three products of tf32,
// lo hi, hi lo and hi hi; hi is x without its low 13 bits.
// CHECK-LABEL: llvm.func @single(
// CHECK-NOT:     nvvm.ldmatrix
// CHECK:         llvm.return
// MMA-LABEL:   llvm.func @single(
// MMA:           %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// MMA-NEXT:      %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// MMA-NEXT:      %[[HI:.*]] = arith.andi %[[BITS]], %c-8192_i32 : i32
// MMA-NEXT:      %[[HIGH:.*]] = arith.bitcast %[[HI]] : i32 to f32
// MMA-NEXT:      %[[REST:.*]] = arith.subf %[[X]], %[[HIGH]] : f32
// MMA-NEXT:      %[[SAME:.*]] = arith.cmpf oeq, %[[X]], %[[HIGH]] : f32
// MMA-NEXT:      %[[LEFT:.*]] = arith.select %[[SAME]], %{{.*}}, %[[REST]] : f32
// MMA-NEXT:      %[[LO:.*]] = arith.bitcast %[[LEFT]] : f32 to i32
// MMA:           mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{.*}} %[[LO]],
// MMA:           mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{.*}} %[[HI]],
// MMA:           mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{.*}} %[[HI]],
// MMA-COUNT-9:   mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// MMA-NOT:       mma.sync
// MMA:           llvm.return
// TOTAL-LABEL: llvm.func @single(
tile.kernel @single(%q: !tile.view<64x16xf32>, %o: !tile.view<64x16xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 16, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %rq = tile.alloc : !tile.ring<1x64x16xf32, 64>
  %rk = tile.alloc : !tile.ring<1x16x16xf32, 64>
  %p = tile.dot_start %rq[%c0], %rk[%c0] transpose_b : !tile.ring<1x64x16xf32, 64>, !tile.ring<1x16x16xf32, 64> -> !tile.pending<64x16xf32, #tile.fragment<4>>
  %s = tile.dot_wait %p : !tile.pending<64x16xf32, #tile.fragment<4>> -> !tile.tile<64x16xf32, #tile.fragment<4>>
  tile.store %s, %o[%c0, %c0] along [0, 1] : !tile.tile<64x16xf32, #tile.fragment<4>>, !tile.view<64x16xf32>
  tile.return
}

// -----

// Guarded: for each of 8 columns of each of 4 tiles of weights, the column's
// lane hands them out; where one is 0 the sum stays what it was.
// CHECK-LABEL: llvm.func @guarded(
// CHECK:         scf.for %[[STEP:.*]] = %c0_i32 to %c4_i32 step %c1_i32
// CHECK:           scf.for %[[COLUMN:.*]] = %c0_i32 to %c8_i32 step %c1_i32 iter_args(%[[SUM:[a-z0-9]+]] =
// CHECK:             %[[EVEN:.*]] = nvvm.shfl.sync idx
// CHECK:             %[[ODD:.*]] = nvvm.shfl.sync idx
// CHECK:             %[[P:.*]] = arith.select %{{.*}}, %[[ODD]], %[[EVEN]] : f32
// CHECK:             %[[V:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> bf16
// CHECK:             %[[WIDE:.*]] = arith.extf %[[V]] : bf16 to f32
// CHECK:             %[[ZERO:.*]] = arith.cmpf oeq, %[[P]], %{{.*}} : f32
// CHECK:             %[[NEW:.*]] = math.fma %[[P]], %[[WIDE]], %[[SUM]] : f32
// CHECK:             arith.select %[[ZERO]], %[[SUM]], %[[NEW]] : f32
// MMA-LABEL:   llvm.func @guarded(
// MMA-NOT:       mma.sync
// MMA-NOT:       ldmatrix
// MMA:           llvm.return
// TOTAL-LABEL: llvm.func @guarded(
// 8 tiles of 8 columns of the result, 4 values in each.
// TOTAL-COUNT-32: math.fma
// TOTAL-NOT:     math.fma
// TOTAL:         llvm.return
tile.kernel @guarded(%q: !tile.view<64x32xf32>, %o: !tile.view<64x64xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rv = tile.alloc : !tile.ring<1x32x64xbf16, 128>
  %w = tile.load %q[%c0, %c0] along [0, 1] : !tile.view<64x32xf32> -> !tile.tile<64x32xf32, #tile.fragment<4>>
  %z = tile.splat %zero : f32 -> !tile.tile<64x64xf32, #tile.fragment<4>>
  %s = tile.dot_guarded %w, %rv[%c0], %z : !tile.tile<64x32xf32, #tile.fragment<4>>, !tile.ring<1x32x64xbf16, 128>, !tile.tile<64x64xf32, #tile.fragment<4>>
  tile.store %s, %o[%c0, %c0] along [0, 1] : !tile.tile<64x64xf32, #tile.fragment<4>>, !tile.view<64x64xf32>
  tile.return
}
