// RUN: attnfuse-opt %s --convert-tile-to-nvvm="chip=sm_86" --split-input-file --verify-diagnostics --allow-unregistered-dialect
// RUN: not attnfuse-opt %s --convert-tile-to-nvvm="chip=sm_75" --split-input-file --allow-unregistered-dialect 2>&1 | FileCheck %s
// RUN: not attnfuse-opt %s --convert-tile-to-nvvm="chip=cpu" --split-input-file --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: option 'chip': expected a GPU, got 'cpu'
// CHECK: error: unknown chip 'sm_75'; known: {{.*}}, sm_80,

// expected-error @below {{expected a scheduled kernel (a schedule with warps); compile with a GPU as the chip of attn-to-tile}}
tile.kernel @unscheduled(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>]} {
  tile.return
}

// -----

// expected-error @below {{expected a scheduled kernel (a schedule with warps); compile with a GPU as the chip of attn-to-tile}}
tile.kernel @no_warps(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>],
    schedule = #tile.schedule<block_m = 16, block_n = 16>} {
  tile.return
}

// -----

// Two slots of 128 x 128 f32 are 131072 bytes.
// expected-error @below {{needs 131072 bytes of shared memory, and sm_86 has 101376 for a block; use smaller blocks or fewer stages}}
tile.kernel @shared(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>],
    schedule = #tile.schedule<block_m = 16, block_n = 16, warps = 4, stages = 1>} {
  %k = tile.alloc : !tile.ring<2x128x128xf32, 128>
  tile.return
}

// -----

// What fits to the last byte fits: 99 KiB.
tile.kernel @just_fits(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>],
    schedule = #tile.schedule<block_m = 16, block_n = 16, warps = 4, stages = 1>} {
  %a = tile.alloc : !tile.ring<6x128x64xbf16, 128>
  %b = tile.alloc : !tile.ring<3x8x64xbf16, 128>
  tile.return
}

// -----

tile.kernel @rows(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<64x64xf32, #tile.fragment<4>>
  // expected-error @below {{is not supported over rows on a GPU, where they lie in different warps}}
  %m = tile.reduce max %t dim 0 : !tile.tile<64x64xf32, #tile.fragment<4>> -> !tile.tile<1x64xf32, #tile.fragment<4>>
  tile.return
}

// -----

tile.kernel @one_row(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<1x64xf32, #tile.fragment<4>>
  %m = tile.reduce max %t dim 0 : !tile.tile<1x64xf32, #tile.fragment<4>> -> !tile.tile<1x64xf32, #tile.fragment<4>>
  tile.return
}

// -----

tile.kernel @unknown(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>],
    schedule = #tile.schedule<block_m = 16, block_n = 16, warps = 4, stages = 1>} {
  // expected-error @below {{is not supported in a scheduled tile.kernel; supported: the tile dialect's scheduled operations, scf.for, scf.while, scf.if and scalar arith and math operations}}
  "some.thing"() : () -> ()
  tile.return
}

// -----

// An operation of the unscheduled state.
tile.kernel @dot(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 16>],
    schedule = #tile.schedule<block_m = 16, block_n = 16, warps = 1, stages = 1>} {
  %z = arith.constant 0.0 : f32
  %t = tile.splat %z : f32 -> !tile.tile<16x16xf32, #tile.fragment<1>>
  // expected-error @below {{is not supported in a scheduled tile.kernel}}
  %d = tile.dot %t, %t, %t : !tile.tile<16x16xf32, #tile.fragment<1>>, !tile.tile<16x16xf32, #tile.fragment<1>>, !tile.tile<16x16xf32, #tile.fragment<1>>
  tile.return
}

// -----

// expected-error @below {{expected a name that PTX takes (letters, digits, _ and $) other than attnfuse_shared, got 'a b'}}
tile.kernel @"a b"(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  tile.return
}

// -----

// expected-error @below {{other than attnfuse_shared, got 'attnfuse_shared'}}
tile.kernel @attnfuse_shared(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  tile.return
}

// -----

// expected-error @below {{expected scalar arguments of f32, index, i64, i32, i8 or i1 on a GPU, got 'f16' for argument 1}}
tile.kernel @half(%x: !tile.view<64x64xf32>, %s: f16) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  tile.return
}

// -----

// Before anything is made of it.
// expected-error @below {{needs 68719476736 bytes of shared memory}}
tile.kernel @big_ring(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %k = tile.alloc : !tile.ring<8x65536x65536xbf16, 128>
  %c0 = arith.constant 0 : index
  tile.wait %k[%c0] : !tile.ring<8x65536x65536xbf16, 128>
  tile.return
}

// -----

tile.kernel @big_tile(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 0.0 : f32
  // expected-error @below {{has a tile of which a lane holds 33554432 elements, at most 1024 are supported, got '!tile.tile<65536x65536xf32, #tile.fragment<4>>'; use smaller blocks or more warps}}
  %t = tile.splat %z : f32 -> !tile.tile<65536x65536xf32, #tile.fragment<4>>
  tile.return
}

// -----

tile.kernel @roles(%x: !tile.view<1x1x?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  // expected-error @below {{needs sm_90a (setmaxnreg, wgmma and bulk copies), and the chip is sm_86; use a schedule without roles, or compile for sm_90a}}
  tile.roles producer 24 {
  } consumer 256 {
  }
  tile.return
}

// -----

tile.kernel @vectors(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  // expected-error @below {{is not supported in a scheduled tile.kernel; supported: the tile dialect's scheduled operations, scf.for, scf.while, scf.if and scalar arith and math operations}}
  %v = arith.constant dense<0> : vector<4xindex>
  tile.return
}

// -----

tile.kernel @select(%x: !tile.view<64x64xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %z = arith.constant 0.0 : f32
  %b = arith.constant true
  %t = tile.splat %z : f32 -> !tile.tile<64x64xf32, #tile.fragment<4>>
  // expected-error @below {{is not supported in a scheduled tile.kernel}}
  %r = arith.select %b, %t, %t : !tile.tile<64x64xf32, #tile.fragment<4>>
  tile.return
}
