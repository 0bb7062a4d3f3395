// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics

tile.kernel @load_rank(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected one index per dimension of the view, 2, got 1}}
  %0 = tile.load %x[%c0] along [0, 1] : !tile.view<?x64xf32> -> !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @load_along(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 'along' to name two dimensions, got 1}}
  %0 = tile.load %x[%c0, %c0] along [0] : !tile.view<?x64xf32> -> !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @load_dimension(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 'along' to hold -1 or a dimension below the rank 2, got 2}}
  %0 = tile.load %x[%c0, %c0] along [0, 2] : !tile.view<?x64xf32> -> !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @load_nowhere(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected one of the rows, which run along no dimension, got 16}}
  %0 = tile.load %x[%c0, %c0] along [-1, 1] : !tile.view<?x64xf32> -> !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @load_twice(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected rows and columns along different dimensions, got 1 twice}}
  %0 = tile.load %x[%c0, %c0] along [1, 1] : !tile.view<?x64xf32> -> !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @load_type(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a tile of 'f32' or f32, got 'bf16'}}
  %0 = tile.load %x[%c0, %c0] along [0, 1] : !tile.view<?x64xf32> -> !tile.tile<16x64xbf16>
  tile.return
}

// -----

tile.kernel @store_type(%x: !tile.view<?x64xi32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected a tile of 'i32', got 'f32'}}
  tile.store %t, %x[%c0, %c0] along [0, 1] : !tile.tile<16x64xf32>, !tile.view<?x64xi32>
  tile.return
}

// -----

tile.kernel @read_rank(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected one index per dimension of the view, 2, got 1}}
  %0 = tile.read %x[%c0] : !tile.view<?x64xf32>
  tile.return
}

// -----

tile.kernel @dim(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  // expected-error @below {{expected a dimension below the rank 2, got 2}}
  %0 = tile.dim %x, 2 : !tile.view<?x64xf32>
  tile.return
}

// -----

tile.kernel @program_id(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  // expected-error @below {{expected a dimension of the grid, 0 to 0, got 1}}
  %0 = tile.program_id 1
  tile.return
}

// -----

tile.kernel @splat(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0 : i32
  // expected-error @below {{expected a value of type 'f32', got 'i32'}}
  %0 = tile.splat %z : i32 -> !tile.tile<4x4xf32>
  tile.return
}

// -----

tile.kernel @extract(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected a tile of one element}}
  %0 = tile.extract %t : !tile.tile<16x64xf32> -> f32
  tile.return
}

// -----

tile.kernel @dot_extents(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected MxK times KxN plus MxN}}
  %0 = tile.dot %t, %t, %t : !tile.tile<16x64xf32>, !tile.tile<16x64xf32>, !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @dot_transposed(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected MxK times NxK (transposed) plus MxN}}
  %0 = tile.dot %t, %t, %t transpose_b : !tile.tile<16x64xf32>, !tile.tile<16x64xf32>, !tile.tile<16x64xf32>
  tile.return
}

// -----

tile.kernel @dot_types(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0 : i32
  %t = tile.splat %z : i32 -> !tile.tile<4x4xi32>
  // expected-error @below {{expected float factors}}
  %0 = tile.dot %t, %t, %t : !tile.tile<4x4xi32>, !tile.tile<4x4xi32>, !tile.tile<4x4xi32>
  tile.return
}

// -----

tile.kernel @map_broadcast(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected operands that broadcast to}}
  %0 = tile.map(%t : !tile.tile<16x64xf32>) -> !tile.tile<16x32xf32> {
  ^bb0(%a: f32, %r: index, %c: index):
    tile.yield %a : f32
  }
  tile.return
}

// -----

tile.kernel @map_arguments(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected block arguments of types ('f32', 'index', 'index'), got ('f32')}}
  %0 = tile.map(%t : !tile.tile<16x64xf32>) -> !tile.tile<16x64xf32> {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  tile.return
}

// -----

tile.kernel @map_yield(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected to yield 'i32', got 'f32'}}
  %0 = tile.map(%t : !tile.tile<16x64xf32>) -> !tile.tile<16x64xi32> {
  ^bb0(%a: f32, %r: index, %c: index):
    tile.yield %a : f32
  }
  tile.return
}

// -----

tile.kernel @reduce_dim(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected dimension 0 or 1, got 2}}
  %0 = tile.reduce max %t dim 2 : !tile.tile<16x64xf32> -> !tile.tile<16x1xf32>
  tile.return
}

// -----

tile.kernel @reduce_result(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected a result of extents 1x64}}
  %0 = tile.reduce max %t dim 0 : !tile.tile<16x64xf32> -> !tile.tile<16x1xf32>
  tile.return
}

// -----

tile.kernel @angles(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected one frequency per column (2), got 1}}
  %c, %s = tile.angles %c0 {frequencies = array<f64: 1.0>} : !tile.tile<16x2xf32>
  tile.return
}

// -----

tile.kernel @rotate(%x: !tile.view<?x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x64xf32>
  // expected-error @below {{expected at most 64 rotated columns, got 128}}
  %0 = tile.rotate %t, %t, %t : !tile.tile<16x64xf32>, !tile.tile<16x64xf32> -> !tile.tile<16x64xf32>
  tile.return
}

// -----

// expected-error @below {{expected argument 0 to be a view or a scalar}}
tile.kernel @a(%x: tensor<4xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  tile.return
}

// -----

// expected-error @below {{expected a grid of 1 to 3 dimensions, got 0}}
tile.kernel @b(%x: !tile.view<?xf32>) attributes {grid = []} {
  tile.return
}

// -----

// expected-error @below {{expected #tile.extent in the grid, got 4 : i64}}
tile.kernel @c(%x: !tile.view<?xf32>) attributes {grid = [4]} {
  tile.return
}

// -----

// expected-error @below {{has a grid that names dimension 1 of argument 0, which does not exist}}
tile.kernel @d(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 1, div = 16>]} {
  tile.return
}

// -----

// expected-error @below {{expected between 0 and 1 outputs, got 2}}
tile.kernel @e(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>], num_outputs = 2 : i64} {
  tile.return
}

// -----

// expected-error @below {{expected outputs to be views}}
tile.kernel @f(%y: !tile.view<?xf32>, %x: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>], num_outputs = 1 : i64} {
  tile.return
}

// -----

tile.kernel @k(%x: !tile.view<?xf32>, %y: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>], num_outputs = 1 : i64} {
  tile.return
}
func.func @operands(%x: tensor<?xf16>, %y: tensor<?xf32>) {
  // expected-error @below {{expected operand 0 to fit '!tile.view<?xf32>', got 'tensor<?xf16>'}}
  %0 = tile.launch @k ins(%x : tensor<?xf16>) outs(%y : tensor<?xf32>)
  return
}

// -----

func.func @unknown(%y: tensor<?xf32>) {
  // expected-error @below {{expected the name of a tile.kernel, got @nobody}}
  %0 = tile.launch @nobody outs(%y : tensor<?xf32>)
  return
}

// -----

// expected-error @below {{expected two extents between 1 and 65536, got [0, 4]}}
func.func private @type(!tile.tile<0x4xf32>)

// -----

// expected-error @below {{expected an element type of f32, bf16, f16, i64, i32, i8 or i1, got 'f64'}}
func.func private @element(!tile.tile<4x4xf64>)

// -----

// expected-error @below {{expected block_m and block_n above 0, got 0 and 4}}
func.func private @schedule() attributes {s = #tile.schedule<block_m = 0, block_n = 4>}
