// RUN: attnfuse-opt %s --convert-tile-to-nvvm --cse --canonicalize --split-input-file | FileCheck %s

// A kernel's parameters: per view its address and for each dimension extent and
// stride, then scalars. Launches name the function, with the grid's rule beside.
// CHECK-LABEL: func.func @host(
// CHECK:         tile.launch @kernels::@arguments ins({{.*}}) outs({{.*}}) {grid = [#tile.extent<arg = 0, dim = 0, div = 32>, #tile.extent<arg = 3, dim = 0, div = 1>]}
// CHECK-LABEL: gpu.module @kernels {
// CHECK:         llvm.mlir.global external @attnfuse_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK:         llvm.func @arguments(%{{[a-z0-9]*}}: !llvm.ptr<1>, %[[ROWS:[a-z0-9]*]]: i64, %{{[a-z0-9]*}}: i64, %{{[a-z0-9]*}}: i64, %{{[a-z0-9]*}}: i64, %[[SCALE:[a-z0-9]*]]: f32, %{{[a-z0-9]*}}: i64,
// CHECK-SAME:    attnfuse.shared_bytes = 0 : i64, attnfuse.threads = 64 : i64, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>
// CHECK:         arith.trunci %[[ROWS]] : i64 to i32
// The grid has one dimension, the product of the kernel's: the first varies
// fastest.
// CHECK:         %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK:         arith.remui %[[BLOCK]], %[[TILES:.*]] : i32
// CHECK:         arith.divui %[[BLOCK]], %[[TILES]] : i32
// CHECK:         arith.mulf %{{.*}}, %[[SCALE]]
tile.kernel @arguments(%x: !tile.view<?x64xf32>, %f: f32, %n: index, %y: !tile.view<?x64xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 32>, #tile.extent<arg = 3, dim = 0, div = 1>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 32, block_n = 8, warps = 2, stages = 1>} {
  %t = tile.program_id 0
  %u = tile.program_id 1
  %a = tile.load %x[%t, %u] along [0, 1] : !tile.view<?x64xf32> -> !tile.tile<32x8xf32, #tile.fragment<2>>
  %b = tile.map(%a : !tile.tile<32x8xf32, #tile.fragment<2>>) -> !tile.tile<32x8xf32, #tile.fragment<2>> {
  ^bb0(%e: f32, %row: index, %column: index):
    %g = arith.mulf %e, %f : f32
    tile.yield %g : f32
  }
  tile.store %b, %y[%t, %n] along [0, 1] : !tile.tile<32x8xf32, #tile.fragment<2>>, !tile.view<?x64xf32>
  tile.return
}
func.func @host(%x: tensor<?x64xf32>, %f: f32, %n: index, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = tile.launch @arguments ins(%x, %f, %n : tensor<?x64xf32>, f32, index) outs(%e : tensor<?x64xf32>)
  return %y : tensor<?x64xf32>
}

// -----

// 16 bytes at a time where address and strides allow it; of a row beyond the
// end 0 bytes are read, and the rest of the 16 becomes 0. Else one by one.
// CHECK-LABEL: llvm.func @copy(
// CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq, %{{.*}}, %c0_i64 : i64
// CHECK:         scf.if %[[ALIGNED]] {
// CHECK:           %[[IN:.*]] = arith.cmpi slt
// CHECK:           %[[BYTES:.*]] = arith.select %[[IN]], %c16_i32, %c0_i32 : i32
// CHECK:           nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[BYTES]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// 64 rows of 8 chunks over 128 threads.
// CHECK-COUNT-3:   nvvm.cp.async.shared.global
// CHECK-NOT:       nvvm.cp.async.shared.global
// CHECK:         } else {
// CHECK-NEXT:      scf.for
// CHECK-NOT:         cp.async
// CHECK:             %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> bf16
// CHECK-NEXT:        %[[KEPT:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : bf16
// CHECK:             llvm.store %[[KEPT]], %{{.*}} : bf16, !llvm.ptr<3>
// CHECK:         nvvm.cp.async.commit.group
tile.kernel @copy(%x: !tile.view<?x64xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  tile.async_load %x[%c0, %c0] along [0, 1] to %r[%c0] : !tile.view<?x64xbf16>, !tile.ring<1x64x64xbf16, 128>
  tile.commit %r[%c0] : !tile.ring<1x64x64xbf16, 128>
  tile.return
}

// -----

// 36 columns in a slot of 48: a chunk reads 16, 8 or 0 bytes.
// CHECK-LABEL: llvm.func @padded(
// CHECK:           %[[LEFT:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:      %[[LOW:.*]] = arith.maxsi %[[LEFT]], %c0_i32 : i32
// CHECK-NEXT:      %[[HERE:.*]] = arith.minsi %[[LOW]], %c8_i32 : i32
// CHECK-NEXT:      %[[WIDE:.*]] = arith.muli %[[HERE]], %c2_i32 : i32
// CHECK-NEXT:      %[[BYTES:.*]] = arith.select %{{.*}}, %[[WIDE]], %c0_i32 : i32
// CHECK:           nvvm.cp.async.shared.global {{.*}}, %[[BYTES]] :
tile.kernel @padded(%x: !tile.view<?x36xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x48xbf16, 32>
  tile.async_load %x[%c0, %c0] along [0, 1] to %r[%c0] : !tile.view<?x36xbf16>, !tile.ring<1x64x48xbf16, 32>
  tile.return
}

// -----

// Columns along another dimension than the last are not contiguous.
// CHECK-LABEL: llvm.func @transposed(
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         scf.for
// CHECK:           llvm.store %{{.*}} : bf16, !llvm.ptr<3>
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         llvm.return
tile.kernel @transposed(%x: !tile.view<64x?xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  tile.async_load %x[%c0, %c0] along [1, 0] to %r[%c0] : !tile.view<64x?xbf16>, !tile.ring<1x64x64xbf16, 128>
  tile.return
}

// -----

// Slots: use n is slot n mod S; rings lie one after the other at multiples of
// 1024 bytes.
// CHECK-LABEL: llvm.func @slots(
// CHECK-SAME:    attnfuse.shared_bytes = 13312 : i64
// CHECK:         %[[SLOT:.*]] = arith.andi %{{.*}}, %c1_i32 : i32
// CHECK-NEXT:    arith.muli %[[SLOT]], %c512_i32 : i32
// CHECK:         %[[THIRD:.*]] = arith.remui %{{.*}}, %c3_i32 : i32
// CHECK-NEXT:    arith.muli %[[THIRD]], %c4096_i32 : i32
tile.kernel @slots(%x: !tile.view<?x64xbf16>, %n: index) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %a = tile.alloc : !tile.ring<2x8x32xbf16, 64>
  %b = tile.alloc : !tile.ring<3x32x64xbf16, 128>
  tile.async_load %x[%c0, %c0] along [0, 1] to %a[%n] : !tile.view<?x64xbf16>, !tile.ring<2x8x32xbf16, 64>
  tile.async_load %x[%c0, %c0] along [0, 1] to %b[%n] : !tile.view<?x64xbf16>, !tile.ring<3x32x64xbf16, 128>
  tile.return
}

// -----

// Accumulators are rounded two at a time and stored as one word each; the slot
// leaves 16 bytes at a time after a barrier.
// CHECK-LABEL: llvm.func @result(
// CHECK:         %[[PAIR:.*]] = llvm.inline_asm asm_dialect = att "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f"
// CHECK:         llvm.store %[[PAIR]], %{{.*}} : i32, !llvm.ptr<3>
// CHECK-COUNT-15: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK-NOT:     llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK:         nvvm.barrier0
// CHECK:         scf.if
// CHECK:           scf.if
// CHECK:             %[[CHUNK:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:             llvm.store %[[CHUNK]], %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK:         } else {
// CHECK:           scf.for
// CHECK:             llvm.store %{{.*}} : bf16, !llvm.ptr<1>
tile.kernel @result(%o: !tile.view<?x64xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 1.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<64x64xf32, #tile.fragment<4>>
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  tile.put %t, %r[%c0] : !tile.tile<64x64xf32, #tile.fragment<4>>, !tile.ring<1x64x64xbf16, 128>
  tile.copy_out %r[%c0], %o[%c0, %c0] along [0, 1] : !tile.ring<1x64x64xbf16, 128>, !tile.view<?x64xbf16>
  tile.return
}

// -----

// Rows of 36 columns end within a chunk: they leave one by one.
// CHECK-LABEL: llvm.func @result_padded(
// CHECK-NOT:     vector<4xi32>
// CHECK:         scf.for
// CHECK:           llvm.store %{{.*}} : bf16, !llvm.ptr<1>
// CHECK-NOT:     vector<4xi32>
// CHECK:         llvm.return
tile.kernel @result_padded(%o: !tile.view<?x36xbf16>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc : !tile.ring<1x64x48xbf16, 32>
  tile.copy_out %r[%c0], %o[%c0, %c0] along [0, 1] : !tile.ring<1x64x48xbf16, 32>, !tile.view<?x36xbf16>
  tile.return
}

// -----

// Of the four lanes that hold a row's value one stores it, if the row exists.
// CHECK-LABEL: llvm.func @column(
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32 : i32
// CHECK:         %[[STORES:.*]] = arith.andi %{{.*}}, %[[FIRST]] : i1
// CHECK:         scf.if %[[STORES]] {
// CHECK:           llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK:         scf.if
// CHECK:           llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK-NOT:     llvm.store
// CHECK:         llvm.return
tile.kernel @column(%o: !tile.view<?xf32>) attributes {
    grid = [#tile.extent<arg = 0, dim = 0, div = 64>], num_outputs = 1 : i64,
    schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 1.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<64x1xf32, #tile.fragment<4>>
  tile.store %t, %o[%c0] along [0, -1] : !tile.tile<64x1xf32, #tile.fragment<4>>, !tile.view<?xf32>
  tile.return
}
