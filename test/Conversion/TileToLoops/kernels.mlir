// RUN: attnfuse-opt %s --convert-tile-to-loops="vector-bits=512 vector-registers=32" --cse --canonicalize --split-input-file | FileCheck %s

// The grid is a loop over a range of points, and the launch names the function
// that took the kernel's place, with the grid's rule beside it.
// CHECK-LABEL: module @kernels {
// CHECK:         func.func @scale(%{{.*}}: memref<?x64xf32, strided<[?, ?], offset: ?>>, %{{.*}}: memref<?x64xf32, strided<[?, ?], offset: ?>>, %[[FIRST:.*]]: index, %[[LAST:.*]]: index) attributes {llvm.emit_c_interface}
// CHECK:           memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK-NOT:       memref.alloca
// CHECK:           scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// The map overwrites what it reads.
// CHECK:             vector.load %{{.*}} : memref<64x32xf32>, vector<16xf32>
// CHECK:             arith.mulf %{{.*}} : vector<16xf32>
// CHECK:             vector.store
// CHECK-LABEL: func.func @host(
// CHECK:         tile.launch @kernels::@scale {{.*}} {grid = [#tile.extent<arg = 0, dim = 0, div = 32>]}
tile.kernel @scale(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 32>], num_outputs = 1 : i64} {
  %t = tile.program_id 0
  %c32 = arith.constant 32 : index
  %c0 = arith.constant 0 : index
  %r = arith.muli %t, %c32 : index
  %a = tile.load %x[%r, %c0] along [0, 1] : !tile.view<?x64xf32> -> !tile.tile<32x64xf32>
  %b = tile.map(%a : !tile.tile<32x64xf32>) -> !tile.tile<32x64xf32> {
  ^bb0(%e: f32, %row: index, %column: index):
    %f = arith.mulf %e, %e : f32
    tile.yield %f : f32
  }
  tile.store %b, %y[%r, %c0] along [0, 1] : !tile.tile<32x64xf32>, !tile.view<?x64xf32>
  tile.return
}
func.func @host(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = tile.launch @scale ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>)
  return %y : tensor<?x64xf32>
}

// -----

// A product: the right factor stays as memory has it, a block of accumulators
// is carried in registers, and the carried tile is never copied.
// CHECK-LABEL: func.func @product(
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>
// CHECK-COUNT-24:    vector.fma
// CHECK-NOT:         vector.fma
// CHECK:             scf.yield
tile.kernel @product(%a: !tile.view<32x64xf32>, %b: !tile.view<?x64xf32>, %y: !tile.view<32x48xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 32>], num_outputs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %l = tile.load %a[%c0, %c0] along [0, 1] : !tile.view<32x64xf32> -> !tile.tile<32x64xf32>
  %r = tile.load %b[%c0, %c0] along [0, 1] : !tile.view<?x64xf32> -> !tile.tile<48x64xf32>
  %z = tile.splat %zero : f32 -> !tile.tile<32x48xf32>
  %d = tile.dot %l, %r, %z transpose_b : !tile.tile<32x64xf32>, !tile.tile<48x64xf32>, !tile.tile<32x48xf32>
  tile.store %d, %y[%c0, %c0] along [0, 1] : !tile.tile<32x48xf32>, !tile.view<32x48xf32>
  tile.return
}
