// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected a body of one block, got 0}}
tile.kernel @declared(!tile.view<64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>]}

// -----

// expected-error @below {{expected a body of one block, got 2}}
tile.kernel @blocks(%x: !tile.view<64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>]} {
  cf.br ^bb1
^bb1:
  tile.return
}

// -----

tile.kernel @no_layout(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 0.0 : f32
  // expected-error @below {{expected a tile with a fragment as its layout, got '!tile.tile<64x64xf32>'}}
  %t = tile.splat %z : f32 -> !tile.tile<64x64xf32>
  tile.return
}

// -----

tile.kernel @other_warps(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 0.0 : f32
  // expected-error @below {{expected a tile shared out among the 4 warps that compute it, got '!tile.tile<64x64xf32, #tile.fragment<2>>'}}
  %t = tile.splat %z : f32 -> !tile.tile<64x64xf32, #tile.fragment<2>>
  tile.return
}

// -----

tile.kernel @loaded(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a tile with a fragment as its layout}}
  %t = tile.load %x[%c0, %c0] along [0, 1] : !tile.view<64x64xf32> -> !tile.tile<64x64xf32>
  tile.return
}

// -----

tile.kernel @carried(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected views to be arguments of the kernel and rings results of tile.alloc, got a value of type '!tile.view<64x64xf32>'}}
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %x) -> (!tile.view<64x64xf32>) {
    scf.yield %a : !tile.view<64x64xf32>
  }
  tile.return
}

// -----

tile.kernel @chosen(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %b = arith.constant true
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{got a value of type '!tile.ring<2x64x64xbf16, 128>'}}
  %r = arith.select %b, %k, %k : !tile.ring<2x64x64xbf16, 128>
  tile.return
}

// -----

tile.kernel @outside(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  // expected-error @below {{'tile.warpgroup' op expected to be in a consumer of tile.roles}}
  %w = tile.warpgroup
  tile.return
}

// -----

tile.kernel @work(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  // expected-error @below {{'tile.next_work' op expected to be in a role of tile.roles}}
  %w = tile.next_work %n
  tile.return
}

// -----

// expected-error @below {{has a schedule that is persistent, and no tile.next_work to take query tiles with}}
tile.kernel @persists(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1, persistent = true>} {
  tile.return
}

// -----

tile.kernel @outstanding(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{expected 0 to 7 outstanding, got -1}}
  tile.wait %k[%c0] outstanding -1 : !tile.ring<2x64x64xbf16, 128>
  tile.return
}

// -----

tile.kernel @two_results(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 3 : i32
  // expected-error @below {{expected operations on scalars with one result in its region, got 'arith.mului_extended'}}
  %m = tile.map() -> !tile.tile<64x64xi32, #tile.fragment<4>> {
  ^bb0(%r: index, %c: index):
    // expected-note @below {{the operation}}
    %lo, %hi = arith.mului_extended %z, %z : i32
    tile.yield %hi : i32
  }
  tile.return
}

// -----

tile.kernel @vectors(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 3 : i32
  // expected-error @below {{expected operations on scalars with one result in its region, got 'arith.constant'}}
  %m = tile.map() -> !tile.tile<64x64xi32, #tile.fragment<4>> {
  ^bb0(%r: index, %c: index):
    // expected-note @below {{the operation}}
    %v = arith.constant dense<0> : vector<4xi32>
    tile.yield %z : i32
  }
  tile.return
}

// -----

tile.kernel @quad(%x: !tile.view<64x64xf32>, %n: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 3 : i32
  // expected-error @below {{expected operations on scalars with one result in its region, got 'arith.constant'}}
  %m = tile.map() -> !tile.tile<64x64xi32, #tile.fragment<4>> {
  ^bb0(%r: index, %c: index):
    // expected-note @below {{the operation}}
    %v = arith.constant 1.0 : f128
    tile.yield %z : i32
  }
  tile.return
}

// -----

tile.kernel @splat_before(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{expected to be in a role of tile.roles, which shares out all work on tiles and rings}}
    %t = tile.splat %z : f32 -> !tile.tile<64x64xf32, #tile.fragment<4>>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @wait_after(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
    // expected-error @below {{expected to be in a role of tile.roles}}
  tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  tile.return
}

// -----

tile.kernel @producer_computes(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{is not for a producer: it may hold tile.acquire, tile.async_load, tile.commit, tile.next_work and scalar code}}
    %t = tile.splat %z : f32 -> !tile.tile<64x64xf32, #tile.fragment<4>>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @producer_group(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{expected to be in a consumer of tile.roles}}
    %w = tile.warpgroup
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @consumer_copies(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{is not for a consumer: the producer copies}}
    tile.async_load %x[%c0, %c0, %c0, %c0] along [2, 3] to %k[%c0] : !tile.view<1x1x?x64xbf16>, !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @rank(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{expected, in a role, a view of rank 4, along [2, 3] and slots of at most 256 rows, got '!tile.view<?x64xbf16>', along [0, 1]}}
    tile.async_load %y[%c0, %c0] along [0, 1] to %k[%c0] : !tile.view<?x64xbf16>, !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @along(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{along [3, 2]}}
    tile.async_load %x[%c0, %c0, %c0, %c0] along [3, 2] to %k[%c0] : !tile.view<1x1x?x64xbf16>, !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @vote(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    %b = arith.constant true
    %t = tile.splat %b : i1 -> !tile.tile<64x1xi1, #tile.fragment<4>>
    // expected-error @below {{expected the scope 'warp' in a consumer: the producer takes no part in a vote of the block}}
    %a = tile.any block %t : !tile.tile<64x1xi1, #tile.fragment<4>>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @block_fragment(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 8, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 240 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{expected a tile shared out among the 4 warps that compute it}}
    %t = tile.splat %z : f32 -> !tile.tile<128x64xf32, #tile.fragment<8>>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @rows(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  %q = tile.alloc : !tile.ring<1x128x64xbf16, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{expected, in a consumer, factors of f16 or bf16 and a result of 64 rows and at most 256 columns}}
    %p = tile.dot_start %q[%c0], %k[%c0] transpose_b : !tile.ring<1x128x64xbf16, 128>, !tile.ring<2x64x64xbf16, 128> -> !tile.pending<128x64xf32, #tile.fragment<4>>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @f32(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  %q = tile.alloc : !tile.ring<1x64x64xf32, 128>
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    // expected-error @below {{expected, in a consumer, factors of f16 or bf16}}
    %p = tile.dot_start %q[%c0], %q[%c0] transpose_b : !tile.ring<1x64x64xf32, 128>, !tile.ring<1x64x64xf32, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @readers(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-note @below {{the ring}}
  %q = tile.alloc readers 2 : !tile.ring<1x64x64xf32, 128>
  // expected-error @below {{expected rings with 0 (every consumer) to 1 readers, got 2}}
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @many(%x: !tile.view<1x1x?x64xbf16>, %y: !tile.view<?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 32, stages = 2>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{expected at most 7 consumers of 4 warps beside the producer, 1024 threads, got 8}}
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 56 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}
