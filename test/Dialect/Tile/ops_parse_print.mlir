// RUN: attnfuse-opt %s | attnfuse-opt | FileCheck %s
// RUN: attnfuse-opt %s --mlir-print-op-generic | attnfuse-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @all(
// CHECK-SAME: %{{.*}}: !tile.view<?x8x?x64xbf16>, %{{.*}}: !tile.view<8xf32>, %{{.*}}: index, %{{.*}}: !tile.view<?x8x?x64xf32>) attributes {
// CHECK-SAME: grid = [#tile.extent<arg = 3, dim = 2, div = 32>, #tile.extent<arg = 3, dim = 1, div = 1>, #tile.extent<arg = 3, dim = 0, div = 1>]
// CHECK-SAME: num_outputs = 1 : i64, schedule = #tile.schedule<block_m = 32, block_n = 16>
tile.kernel @all(%x: !tile.view<?x8x?x64xbf16>, %slopes: !tile.view<8xf32>, %p: index,
                 %y: !tile.view<?x8x?x64xf32>) attributes {
    grid = [#tile.extent<arg = 3, dim = 2, div = 32>, #tile.extent<arg = 3, dim = 1, div = 1>,
            #tile.extent<arg = 3, dim = 0, div = 1>],
    num_outputs = 1 : i64, schedule = #tile.schedule<block_m = 32, block_n = 16>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[T:.*]] = tile.program_id 0
  %t = tile.program_id 0
  %h = tile.program_id 1
  %b = tile.program_id 2
  // CHECK: tile.dim %{{.*}}, 2 : !tile.view<?x8x?x64xbf16>
  %n = tile.dim %x, 2 : !tile.view<?x8x?x64xbf16>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] along [2, 3] : !tile.view<?x8x?x64xbf16> -> !tile.tile<32x64xbf16>
  %q = tile.load %x[%b, %h, %t, %c0] along [2, 3] : !tile.view<?x8x?x64xbf16> -> !tile.tile<32x64xbf16>
  %k = tile.load %x[%b, %h, %c0, %c0] along [2, 3] : !tile.view<?x8x?x64xbf16> -> !tile.tile<16x64xbf16>
  // CHECK: tile.read %{{.*}}[%{{.*}}] : !tile.view<8xf32>
  %m = tile.read %slopes[%h] : !tile.view<8xf32>
  // CHECK: tile.angles %{{.*}} {frequencies = array<f64: 1.000000e+00, 1.000000e-02>} : !tile.tile<32x2xf32>
  %c, %s = tile.angles %p {frequencies = array<f64: 1.0, 0.01>} : !tile.tile<32x2xf32>
  // CHECK: tile.rotate %{{.*}}, %{{.*}}, %{{.*}} interleaved : !tile.tile<32x64xbf16>, !tile.tile<32x2xf32> -> !tile.tile<32x64xf32>
  %r = tile.rotate %q, %c, %s interleaved : !tile.tile<32x64xbf16>, !tile.tile<32x2xf32> -> !tile.tile<32x64xf32>
  // CHECK: tile.splat %{{.*}} : f32 -> !tile.tile<32x16xf32>
  %z = tile.splat %zero : f32 -> !tile.tile<32x16xf32>
  %o = tile.splat %zero : f32 -> !tile.tile<32x64xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} transpose_b : !tile.tile<32x64xf32>, !tile.tile<16x64xbf16>, !tile.tile<32x16xf32>
  %d = tile.dot %r, %k, %z transpose_b : !tile.tile<32x64xf32>, !tile.tile<16x64xbf16>, !tile.tile<32x16xf32>
  // CHECK: tile.reduce max %{{.*}} dim 1 : !tile.tile<32x16xf32> -> !tile.tile<32x1xf32>
  %top = tile.reduce max %d dim 1 : !tile.tile<32x16xf32> -> !tile.tile<32x1xf32>
  // CHECK: tile.map(%{{.*}}, %{{.*}} : !tile.tile<32x16xf32>, !tile.tile<32x1xf32>) -> !tile.tile<32x16xf32> {
  %w = tile.map(%d, %top : !tile.tile<32x16xf32>, !tile.tile<32x1xf32>) -> !tile.tile<32x16xf32> {
  ^bb0(%a: f32, %f: f32, %row: index, %column: index):
    %g = arith.subf %a, %f : f32
    // CHECK: tile.yield %{{.*}} : f32
    tile.yield %g : f32
  }
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} guard_zeros : !tile.tile<32x16xf32>, !tile.tile<16x64xbf16>, !tile.tile<32x64xf32>
  %e = tile.dot %w, %k, %o guard_zeros : !tile.tile<32x16xf32>, !tile.tile<16x64xbf16>, !tile.tile<32x64xf32>
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (!tile.tile<32x64xf32>)
  %l = scf.for %i = %c0 to %n step %c16 iter_args(%u = %e) -> (!tile.tile<32x64xf32>) {
    scf.yield %u : !tile.tile<32x64xf32>
  }
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] along [2, 3] : !tile.tile<32x64xf32>, !tile.view<?x8x?x64xf32>
  tile.store %l, %y[%b, %h, %t, %c0] along [2, 3] : !tile.tile<32x64xf32>, !tile.view<?x8x?x64xf32>
  %one = tile.reduce min %top dim 0 : !tile.tile<32x1xf32> -> !tile.tile<1x1xf32>
  // CHECK: tile.extract %{{.*}} : !tile.tile<1x1xf32> -> f32
  %first = tile.extract %one : !tile.tile<1x1xf32> -> f32
  // CHECK: tile.return
  tile.return
}

// CHECK-LABEL: func.func @host(
func.func @host(%x: tensor<?x8x?x64xbf16>, %s: tensor<8xf32>, %p: index, %e: tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32> {
  // CHECK: tile.launch @all ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x8x?x64xbf16>, tensor<8xf32>, index) outs(%{{.*}} : tensor<?x8x?x64xf32>)
  %y = tile.launch @all ins(%x, %s, %p : tensor<?x8x?x64xbf16>, tensor<8xf32>, index) outs(%e : tensor<?x8x?x64xf32>)
  return %y : tensor<?x8x?x64xf32>
}
