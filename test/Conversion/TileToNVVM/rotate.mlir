// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s

// Angles in turns: 1 / 2 pi and 0.01 / 2 pi as sums of two floats each, one
// table for all rotations of the module by the same frequencies. Products of
// positions are reduced to half a turn before the sine.
// CHECK-LABEL: gpu.module @kernels {
// CHECK:         llvm.mlir.global internal constant @attnfuse_turns_0(dense<[0.159154937, 6.42063824E-9, 0.00159154949, -5.68655505E-11]> : tensor<4xf32>) {addr_space = 1 : i32, alignment = 8 : i64} : !llvm.array<4 x f32>
// CHECK-NOT:     @attnfuse_turns_1
// CHECK:         llvm.func @angles(
// CHECK:         %[[TABLE:.*]] = llvm.mlir.addressof @attnfuse_turns_0
// 64 rows of 2 pairs over 128 threads.
// CHECK:         scf.for %[[N:.*]] = %{{.*}} to %c128_i32 step %c128_i32
// CHECK-NEXT:      %[[ROW:.*]] = arith.divui %[[N]], %c2_i32 : i32
// CHECK-NEXT:      %[[PAIR:.*]] = arith.remui %[[N]], %c2_i32 : i32
// CHECK-NEXT:      %[[POSITION:.*]] = arith.addi %{{.*}}, %[[ROW]] : i32
// CHECK:           llvm.getelementptr %[[TABLE]]
// CHECK:           %[[HIGH:.*]] = llvm.load {{.*}} -> f32
// CHECK:           %[[LOW:.*]] = llvm.load {{.*}} -> f32
// CHECK:           %[[REAL:.*]] = arith.sitofp %[[POSITION]] : i32 to f32
// CHECK-NEXT:      %[[TURNS:.*]] = arith.mulf %[[REAL]], %[[HIGH]] : f32
// CHECK-NEXT:      %[[WHOLE:.*]] = llvm.call_intrinsic "llvm.nvvm.round.f"(%[[TURNS]])
// CHECK:           math.fma %[[REAL]], %[[HIGH]], %{{.*}} : f32
// CHECK-NEXT:      math.fma %[[REAL]], %[[LOW]], %{{.*}} : f32
// CHECK-NEXT:      arith.subf %[[TURNS]], %[[WHOLE]] : f32
// CHECK:           %[[C:.*]] = llvm.call_intrinsic "llvm.nvvm.cos.approx.f"
// CHECK:           %[[S:.*]] = llvm.call_intrinsic "llvm.nvvm.sin.approx.f"
// CHECK-NOT:       arith.mulf %[[C]]
// The partner of column p is p + 2.
// CHECK:           arith.addi %[[PAIR]], %c2_i32 : i32
// In f32, whatever the slot holds.
// CHECK:           %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> bf16
// CHECK-NEXT:      %[[XW:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK:           math.fma %[[XW]], %[[C]]
// CHECK:           arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT:      llvm.store %{{.*}} : bf16, !llvm.ptr<3>
// CHECK:         }
// CHECK-NEXT:    nvvm.barrier0
// Interleaved: columns 2p and 2p + 1; a magnitude.
// CHECK:         scf.for
// CHECK:           %[[C2:.*]] = llvm.call_intrinsic "llvm.nvvm.cos.approx.f"
// CHECK:           arith.mulf %[[C2]], %{{.*}} : f32
// CHECK:           %[[EVEN:.*]] = arith.shli %{{.*}}, %c1_i32 : i32
// CHECK-NEXT:      arith.addi %[[EVEN]], %c1_i32 : i32
// CHECK:         }
// CHECK-NEXT:    nvvm.barrier0
tile.kernel @angles(%x: !tile.view<?x64xbf16>, %p: index) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  tile.rotate_slot %r[%c0], %p {frequencies = array<f64: 1.0, 0.01>, pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  tile.rotate_slot %r[%c0], %p interleaved {frequencies = array<f64: 1.0, 0.01>, magnitude = 1.5, pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  tile.return
}

// -----

// Tables of their own are read at the position, brought into their range.
// CHECK-LABEL: llvm.func @tables(
// CHECK-NOT:     sin.approx
// CHECK:         scf.for
// CHECK:           arith.maxsi
// CHECK-NEXT:      arith.minsi
// CHECK:           %[[C:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f16
// CHECK-NEXT:      arith.extf %[[C]] : f16 to f32
// CHECK:           llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK-NOT:     sin.approx
// CHECK:         llvm.return
tile.kernel @tables(%x: !tile.view<?x64xbf16>, %p: index, %c: !tile.view<?x32xf16>, %s: !tile.view<?x?xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  tile.rotate_slot %r[%c0], %p tables %c, %s : !tile.view<?x32xf16>, !tile.view<?x?xf32> {pairs = 32 : i64} : !tile.ring<1x64x64xbf16, 128>
  tile.return
}
