// RUN: attnfuse-opt %s --convert-tile-to-nvvm="chip=sm_80" --cse | FileCheck %s
// RUN: attnfuse-opt %s --attnfuse-to-ptx="chip=sm_80" | FileCheck %s --check-prefix=LLVM

// Tiles of 16-bit floats have one form, two to a register, wherever they come
// from and go to: 64 x 64 over 4 warps are 16 registers for each lane.

// LLVM-LABEL: llvm.func @carried(
// CHECK-LABEL: llvm.func @carried(
// CHECK:         %[[LOW:.*]] = llvm.insertelement %{{.*}}, %{{.*}} : vector<2xbf16>
// CHECK-NEXT:    %[[PAIR:.*]] = llvm.insertelement %{{.*}}, %[[LOW]][%c1_i32 : i32] : vector<2xbf16>
// CHECK:         llvm.bitcast %[[PAIR]] : vector<2xbf16> to i32
// CHECK:         scf.for {{.*}} -> (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
tile.kernel @carried(%h: !tile.view<64x64xbf16>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.load %h[%c0, %c0] along [0, 1] : !tile.view<64x64xbf16> -> !tile.tile<64x64xbf16, #tile.fragment<4>>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %t) -> (!tile.tile<64x64xbf16, #tile.fragment<4>>) {
    %u = tile.load %h[%c0, %j] along [0, 1] : !tile.view<64x64xbf16> -> !tile.tile<64x64xbf16, #tile.fragment<4>>
    scf.yield %u : !tile.tile<64x64xbf16, #tile.fragment<4>>
  }
  tile.store %r, %h[%c0, %c0] along [0, 1] : !tile.tile<64x64xbf16, #tile.fragment<4>>, !tile.view<64x64xbf16>
  tile.return
}

// LLVM-LABEL: llvm.func @mapped(
// CHECK-LABEL: llvm.func @mapped(
// CHECK:         cvt.rn.bf16x2.f32
// CHECK:         %[[BOTH:.*]] = llvm.bitcast %{{.*}} : i32 to vector<2xbf16>
// CHECK:         %[[ONE:.*]] = llvm.extractelement %[[BOTH]]
// CHECK:         arith.extf %[[ONE]] : bf16 to f32
tile.kernel @mapped(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] along [0, 1] : !tile.view<64x64xf32> -> !tile.tile<64x64xf32, #tile.fragment<4>>
  %b = tile.cast %t : !tile.tile<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xbf16, #tile.fragment<4>>
  %m = tile.map(%b : !tile.tile<64x64xbf16, #tile.fragment<4>>) -> !tile.tile<64x64xf32, #tile.fragment<4>> {
  ^bb0(%e: bf16, %r: index, %c: index):
    %w = arith.extf %e : bf16 to f32
    tile.yield %w : f32
  }
  tile.store %m, %x[%c0, %c0] along [0, 1] : !tile.tile<64x64xf32, #tile.fragment<4>>, !tile.view<64x64xf32>
  tile.return
}

// Lanes exchange narrow floats as f32. A single element has no neighbour.
// LLVM-LABEL: llvm.func @reduced(
// CHECK-LABEL: llvm.func @reduced(
// CHECK:         %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:    nvvm.shfl.sync bfly %{{.*}}, %[[WIDE]]
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK:         llvm.store %{{.*}} : bf16, !llvm.ptr<1>
tile.kernel @reduced(%h: !tile.view<64x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %h[%c0, %c0] along [0, 1] : !tile.view<64x64xbf16> -> !tile.tile<64x64xbf16, #tile.fragment<4>>
  %s = tile.reduce add %t dim 1 : !tile.tile<64x64xbf16, #tile.fragment<4>> -> !tile.tile<64x1xbf16, #tile.fragment<4>>
  tile.store %s, %h[%c0, %c0] along [0, -1] : !tile.tile<64x1xbf16, #tile.fragment<4>>, !tile.view<64x64xbf16>
  %one = tile.load %h[%c0, %c0] along [-1, -1] : !tile.view<64x64xbf16> -> !tile.tile<1x1xbf16, #tile.fragment<4>>
  %e = tile.extract %one : !tile.tile<1x1xbf16, #tile.fragment<4>> -> bf16
  %all = tile.splat %e : bf16 -> !tile.tile<64x64xbf16, #tile.fragment<4>>
  tile.store %all, %h[%c0, %c0] along [0, 1] : !tile.tile<64x64xbf16, #tile.fragment<4>>, !tile.view<64x64xbf16>
  tile.store %one, %h[%c0, %c0] along [-1, -1] : !tile.tile<1x1xbf16, #tile.fragment<4>>, !tile.view<64x64xbf16>
  tile.return
}
