// RUN: attnfuse-opt %s --convert-tile-to-loops --verify-diagnostics --allow-unregistered-dialect

tile.kernel @unknown(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  // expected-error @below {{is not supported in a tile.kernel on a CPU; supported: the tile dialect's operations, scf.for, scf.if and scalar arith and math operations}}
  "some.thing"() : () -> ()
  tile.return
}
