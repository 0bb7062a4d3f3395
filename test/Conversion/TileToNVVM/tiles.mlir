// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s

// A row's maximum: a lane's own values first, then two shuffles among the four
// lanes of the row. A partial one leaves the lanes' parts.
// CHECK-LABEL: llvm.func @reduce(
// 64 x 32 over 4 warps: 2 rows of 8 values each per lane.
// CHECK-COUNT-7: llvm.intr.maxnum
// CHECK:         %[[PART:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[X:.*]], %c1_i32, %c31_i32 : f32 -> f32
// CHECK-NEXT:    %[[TWO:.*]] = llvm.intr.maxnum(%[[X]], %[[PART]])
// CHECK-NEXT:    %[[OTHER:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[TWO]], %c2_i32, %c31_i32 : f32 -> f32
// CHECK-NEXT:    llvm.intr.maxnum(%[[TWO]], %[[OTHER]])
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// Sums: combined once.
// CHECK-COUNT-14: arith.addf
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT:     nvvm.shfl.sync bfly
// CHECK:         llvm.return
tile.kernel @reduce(%x: !tile.view<64x32xf32>, %m: !tile.view<64xf32>, %s: !tile.view<64xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 2 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] along [0, 1] : !tile.view<64x32xf32> -> !tile.tile<64x32xf32, #tile.fragment<4>>
  %top = tile.reduce max %t dim 1 : !tile.tile<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x1xf32, #tile.fragment<4>>
  %part = tile.reduce add %t dim 1 partial : !tile.tile<64x32xf32, #tile.fragment<4>> -> !tile.tile<64x1xf32, #tile.fragment<4>>
  %sum = tile.combine add %part : !tile.tile<64x1xf32, #tile.fragment<4>>
  tile.store %top, %m[%c0] along [0, -1] : !tile.tile<64x1xf32, #tile.fragment<4>>, !tile.view<64xf32>
  tile.store %sum, %s[%c0] along [0, -1] : !tile.tile<64x1xf32, #tile.fragment<4>>, !tile.view<64xf32>
  tile.return
}

// -----

// Votes: of a warp, or of the block by a barrier.
// CHECK-LABEL: llvm.func @votes(
// CHECK:         nvvm.vote.sync any %{{.*}}, %{{.*}} -> i1
// CHECK:         %[[ALL:.*]] = llvm.inline_asm has_side_effects {{.*}}bar.red.or.pred q, 0, p;
// CHECK-NEXT:    arith.cmpi ne, %[[ALL]], %c0_i32 : i32
// The vote was a barrier.
// CHECK-NOT:     nvvm.barrier0
// CHECK:         llvm.return
tile.kernel @votes(%x: !tile.view<64xi1>, %y: !tile.view<1xi1>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %t = tile.load %x[%c0] along [0, -1] : !tile.view<64xi1> -> !tile.tile<64x1xi1, #tile.fragment<4>>
  %a = tile.any warp %t : !tile.tile<64x1xi1, #tile.fragment<4>>
  %b = tile.any block %t : !tile.tile<64x1xi1, #tile.fragment<4>>
  tile.acquire %r[%c0] : !tile.ring<1x64x64xbf16, 128>
  %c = arith.ori %a, %b : i1
  %s = tile.splat %c : i1 -> !tile.tile<1x1xi1, #tile.fragment<4>>
  tile.store %s, %y[%c0] along [0, -1] : !tile.tile<1x1xi1, #tile.fragment<4>>, !tile.view<1xi1>
  tile.return
}

// -----

// What varies with rows alone is computed once per row, with columns alone once
// per column: 2 rows, 4 columns, 8 elements.
// CHECK-LABEL: llvm.func @map(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-NOT:     ex2.approx
// CHECK:         llvm.return
tile.kernel @map(%x: !tile.view<64x16xf32>, %m: !tile.view<64xf32>, %y: !tile.view<64x16xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 16, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] along [0, 1] : !tile.view<64x16xf32> -> !tile.tile<64x16xf32, #tile.fragment<4>>
  %r = tile.load %m[%c0] along [0, -1] : !tile.view<64xf32> -> !tile.tile<64x1xf32, #tile.fragment<4>>
  %s = tile.map(%t, %r : !tile.tile<64x16xf32, #tile.fragment<4>>, !tile.tile<64x1xf32, #tile.fragment<4>>) -> !tile.tile<64x16xf32, #tile.fragment<4>> {
  ^bb0(%a: f32, %b: f32, %row: index, %column: index):
    %e = math.exp2 %b : f32
    %f = arith.mulf %a, %e : f32
    tile.yield %f : f32
  }
  tile.store %s, %y[%c0, %c0] along [0, 1] : !tile.tile<64x16xf32, #tile.fragment<4>>, !tile.view<64x16xf32>
  tile.return
}

// -----

// Loops carry a lane's values: 2 rows' and 8 elements'.
// CHECK-LABEL: llvm.func @carried(
// CHECK:         scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) : i32 {
// CHECK-LABEL: llvm.func @carried_while(
// CHECK:         scf.while {{.*}} : (i32, f32, f32) -> (i32, f32, f32)
tile.kernel @carried(%x: !tile.view<?x16xf32>, %y: !tile.view<64x16xf32>, %z: !tile.view<64xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 2 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 16, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = tile.dim %x, 0 : !tile.view<?x16xf32>
  %zero = arith.constant 0.0 : f32
  %a = tile.splat %zero : f32 -> !tile.tile<64x1xf32, #tile.fragment<4>>
  %b = tile.splat %zero : f32 -> !tile.tile<64x16xf32, #tile.fragment<4>>
  %r:2 = scf.for %i = %c0 to %count step %c1 iter_args(%u = %a, %v = %b) -> (!tile.tile<64x1xf32, #tile.fragment<4>>, !tile.tile<64x16xf32, #tile.fragment<4>>) {
    %t = tile.load %x[%i, %c0] along [0, 1] : !tile.view<?x16xf32> -> !tile.tile<64x16xf32, #tile.fragment<4>>
    %m = tile.reduce max %t dim 1 : !tile.tile<64x16xf32, #tile.fragment<4>> -> !tile.tile<64x1xf32, #tile.fragment<4>>
    scf.yield %m, %t : !tile.tile<64x1xf32, #tile.fragment<4>>, !tile.tile<64x16xf32, #tile.fragment<4>>
  }
  tile.store %r#1, %y[%c0, %c0] along [0, 1] : !tile.tile<64x16xf32, #tile.fragment<4>>, !tile.view<64x16xf32>
  tile.store %r#0, %z[%c0] along [0, -1] : !tile.tile<64x1xf32, #tile.fragment<4>>, !tile.view<64xf32>
  tile.return
}
tile.kernel @carried_while(%x: !tile.view<?xf32>, %z: !tile.view<64xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 16, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %count = tile.dim %x, 0 : !tile.view<?xf32>
  %zero = arith.constant 0.0 : f32
  %a = tile.splat %zero : f32 -> !tile.tile<64x1xf32, #tile.fragment<4>>
  %r:2 = scf.while (%i = %c0, %u = %a) : (index, !tile.tile<64x1xf32, #tile.fragment<4>>) -> (index, !tile.tile<64x1xf32, #tile.fragment<4>>) {
    %more = arith.cmpi slt, %i, %count : index
    scf.condition(%more) %i, %u : index, !tile.tile<64x1xf32, #tile.fragment<4>>
  } do {
  ^bb0(%i: index, %u: !tile.tile<64x1xf32, #tile.fragment<4>>):
    %t = tile.load %x[%i] along [0, -1] : !tile.view<?xf32> -> !tile.tile<64x1xf32, #tile.fragment<4>>
    %next = arith.addi %i, %c64 : index
    scf.yield %next, %t : index, !tile.tile<64x1xf32, #tile.fragment<4>>
  }
  tile.store %r#1, %z[%c0] along [0, -1] : !tile.tile<64x1xf32, #tile.fragment<4>>, !tile.view<64xf32>
  tile.return
}
