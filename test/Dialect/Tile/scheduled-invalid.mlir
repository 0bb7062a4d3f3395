// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

// expected-error @below {{expected 1 to 32 warps, got 0}}
func.func private @fragment_none(!tile.tile<64x64xf32, #tile.fragment<0>>)

// -----

// expected-error @below {{expected 1 to 32 warps, got 33}}
func.func private @fragment_many() attributes {l = #tile.fragment<33>}

// -----

// expected-error @below {{expected rows in multiples of 16 for each of 4 warps and columns in multiples of 8 (or an extent of 1), got 32x64}}
func.func private @fragment_rows(!tile.tile<32x64xf32, #tile.fragment<4>>)

// -----

// expected-error @below {{expected rows in multiples of 16 for each of 1 warps and columns in multiples of 8 (or an extent of 1), got 16x12}}
func.func private @fragment_columns(!tile.tile<16x12xf32, #tile.fragment<1>>)

// -----

// expected-error @below {{expected stages, rows and columns, got 2 extents}}
func.func private @ring_extents(!tile.ring<64x64xbf16, 128>)

// -----

// expected-error @below {{expected a ring of f32, bf16 or f16, got 'i32'}}
func.func private @ring_element(!tile.ring<1x64x64xi32, 128>)

// -----

// expected-error @below {{expected 1 to 8 slots of rows in multiples of 8 and panels of 32, 64 or 128 bytes that divide the columns, got 0x64x64x'bf16' in panels of 128}}
func.func private @ring_stages(!tile.ring<0x64x64xbf16, 128>)

// -----

// expected-error @below {{got 9x64x64x'bf16' in panels of 128}}
func.func private @ring_many(!tile.ring<9x64x64xbf16, 128>)

// -----

// expected-error @below {{got 1x12x64x'bf16' in panels of 128}}
func.func private @ring_rows(!tile.ring<1x12x64xbf16, 128>)

// -----

// expected-error @below {{got 1x64x96x'bf16' in panels of 128}}
func.func private @ring_panels(!tile.ring<1x64x96xbf16, 128>)

// -----

// expected-error @below {{got 1x64x64x'bf16' in panels of 256}}
func.func private @ring_swizzle(!tile.ring<1x64x64xbf16, 256>)

// -----

// expected-error @below {{expected integer value}}
func.func private @ring_no_swizzle(!tile.ring<1x64x64xbf16, f32>)

// -----

// expected-error @below {{expected 0 to 32 warps, 0 to 8 stages and a rescale of at least 0, got 33, 0 and 0}}
func.func private @schedule_warps() attributes {s = #tile.schedule<block_m = 64, block_n = 64, warps = 33>}

// -----

// expected-error @below {{expected 0 to 32 warps, 0 to 8 stages and a rescale of at least 0, got 4, 9 and 0}}
func.func private @schedule_stages() attributes {s = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 9>}

// -----

// expected-error @below {{expected 0 to 32 warps, 0 to 8 stages and a rescale of at least 0, got 4, 2 and -1}}
func.func private @schedule_rescale() attributes {s = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2, rescale = -1>}

// -----

// expected-error @below {{expected register budgets of 24 to 256, got 257}}
func.func private @schedule_registers() attributes {s = #tile.schedule<block_m = 64, block_n = 64, warps = 4, registers = 257>}

// -----

// expected-error @below {{expected register budgets of 24 to 256, got 8}}
func.func private @schedule_producer() attributes {s = #tile.schedule<block_m = 64, block_n = 64, warps = 4, producer_registers = 8>}

// -----

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

func.func @alloc_outside() {
  // expected-error @below {{expects parent op 'tile.kernel'}}
  %r = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @async_load_rank(%v: !tile.view<?x64xbf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected one index per dimension of the view, 2, got 1}}
  tile.async_load %v[%i] along [0, 1] to %r[%i] : !tile.view<?x64xbf16>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @async_load_along(%v: !tile.view<?x64xbf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected 'along' to name two dimensions of '!tile.view<?x64xbf16>'}}
  tile.async_load %v[%i, %i] along [0] to %r[%i] : !tile.view<?x64xbf16>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @async_load_twice(%v: !tile.view<?x64xbf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected 'along' to name two dimensions of '!tile.view<?x64xbf16>'}}
  tile.async_load %v[%i, %i] along [1, 1] to %r[%i] : !tile.view<?x64xbf16>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

// Unlike tile.load: a slot has no extent of 1.
func.func @async_load_nowhere(%v: !tile.view<?x64xbf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected 'along' to name two dimensions of '!tile.view<?x64xbf16>'}}
  tile.async_load %v[%i, %i] along [-1, 1] to %r[%i] : !tile.view<?x64xbf16>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @async_load_type(%v: !tile.view<?x64xf32>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a ring of 'f32', got '!tile.ring<1x64x64xbf16, 128>'}}
  tile.async_load %v[%i, %i] along [0, 1] to %r[%i] : !tile.view<?x64xf32>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @copy_out_rank(%v: !tile.view<?x64xbf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected one index per dimension of the view, 2, got 3}}
  tile.copy_out %r[%i], %v[%i, %i, %i] along [0, 1] : !tile.ring<1x64x64xbf16, 128>, !tile.view<?x64xbf16>
  return
}

// -----

func.func @copy_out_along(%v: !tile.view<?x64xbf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected 'along' to name two dimensions of '!tile.view<?x64xbf16>'}}
  tile.copy_out %r[%i], %v[%i, %i] along [0, 2] : !tile.ring<1x64x64xbf16, 128>, !tile.view<?x64xbf16>
  return
}

// -----

func.func @copy_out_type(%v: !tile.view<?x64xf16>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a ring of 'f16', got '!tile.ring<1x64x64xbf16, 128>'}}
  tile.copy_out %r[%i], %v[%i, %i] along [0, 1] : !tile.ring<1x64x64xbf16, 128>, !tile.view<?x64xf16>
  return
}

// -----

func.func @rotate_none(%r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected 1 to 32 pairs of columns, got 0}}
  tile.rotate_slot %r[%i], %i {pairs = 0 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_wide(%r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected 1 to 32 pairs of columns, got 33}}
  tile.rotate_slot %r[%i], %i {pairs = 33 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_frequencies(%r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected one frequency per pair (2), got 1}}
  tile.rotate_slot %r[%i], %i {frequencies = array<f64: 1.0>, pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_one_table(%r: !tile.ring<1x64x64xbf16, 128>, %i: index, %t: !tile.view<?x2xf32>) {
  // expected-error @below {{expected both tables or none}}
  "tile.rotate_slot"(%r, %i, %i, %t) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, pairs = 2 : i64}>
      : (!tile.ring<1x64x64xbf16, 128>, index, index, !tile.view<?x2xf32>) -> ()
  return
}

// -----

func.func @rotate_table_rank(%r: !tile.ring<1x64x64xbf16, 128>, %i: index, %t: !tile.view<4x?x2xf32>) {
  // expected-error @below {{expected tables of floats with 2 columns, one per pair, got '!tile.view<4x?x2xf32>'}}
  tile.rotate_slot %r[%i], %i tables %t, %t : !tile.view<4x?x2xf32>, !tile.view<4x?x2xf32> {pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_table_columns(%r: !tile.ring<1x64x64xbf16, 128>, %i: index, %s: !tile.view<?x2xf32>, %t: !tile.view<?x4xf32>) {
  // expected-error @below {{expected tables of floats with 2 columns, one per pair, got '!tile.view<?x4xf32>'}}
  tile.rotate_slot %r[%i], %i tables %s, %t : !tile.view<?x2xf32>, !tile.view<?x4xf32> {pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_table_type(%r: !tile.ring<1x64x64xbf16, 128>, %i: index, %t: !tile.view<?x2xi32>) {
  // expected-error @below {{expected tables of floats with 2 columns, one per pair, got '!tile.view<?x2xi32>'}}
  tile.rotate_slot %r[%i], %i tables %t, %t : !tile.view<?x2xi32>, !tile.view<?x2xi32> {pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_both(%r: !tile.ring<1x64x64xbf16, 128>, %i: index, %t: !tile.view<?x2xf32>) {
  // expected-error @below {{expected neither frequencies nor a magnitude beside tables}}
  tile.rotate_slot %r[%i], %i tables %t, %t : !tile.view<?x2xf32>, !tile.view<?x2xf32> {frequencies = array<f64: 1.0, 2.0>, pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @rotate_magnitude(%r: !tile.ring<1x64x64xbf16, 128>, %i: index, %t: !tile.view<?x2xf32>) {
  // expected-error @below {{expected neither frequencies nor a magnitude beside tables}}
  tile.rotate_slot %r[%i], %i tables %t, %t : !tile.view<?x2xf32>, !tile.view<?x2xf32> {magnitude = 2.0, pairs = 2 : i64} : !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @put_extents(%t: !tile.tile<64x64xf32, #tile.fragment<4>>, %r: !tile.ring<1x64x128xbf16, 128>, %i: index) {
  // expected-error @below {{expected a slot of the tile's extents, got '!tile.tile<64x64xf32, #tile.fragment<4>>' and '!tile.ring<1x64x128xbf16, 128>'}}
  tile.put %t, %r[%i] : !tile.tile<64x64xf32, #tile.fragment<4>>, !tile.ring<1x64x128xbf16, 128>
  return
}

// -----

func.func @put_type(%t: !tile.tile<64x64xbf16, #tile.fragment<4>>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a tile of f32, got '!tile.tile<64x64xbf16, #tile.fragment<4>>'}}
  tile.put %t, %r[%i] : !tile.tile<64x64xbf16, #tile.fragment<4>>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

func.func @put_layout(%t: !tile.tile<64x64xf32>, %r: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a tile with a fragment as its layout, got '!tile.tile<64x64xf32>'}}
  tile.put %t, %r[%i] : !tile.tile<64x64xf32>, !tile.ring<1x64x64xbf16, 128>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

func.func @dot_inner(%q: !tile.ring<1x64x64xbf16, 128>, %k: !tile.ring<1x64x128xbf16, 128>, %i: index) {
  // expected-error @below {{expected MxK times NxK (transposed) to give MxN, got '!tile.ring<1x64x64xbf16, 128>', '!tile.ring<1x64x128xbf16, 128>' and '!tile.pending<64x64xf32, #tile.fragment<4>>'}}
  %0 = tile.dot_start %q[%i], %k[%i] transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x128xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_result(%q: !tile.ring<1x64x64xbf16, 128>, %k: !tile.ring<1x64x128xbf16, 128>, %i: index) {
  // expected-error @below {{expected MxK times KxN to give MxN}}
  %0 = tile.dot_start %q[%i], %k[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x128xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_acc(%q: !tile.ring<1x64x64xbf16, 128>, %k: !tile.ring<1x64x64xbf16, 128>, %i: index, %a: !tile.tile<64x64xf32, #tile.fragment<2>>) {
  // expected-error @below {{expected MxK times KxN to give MxN}}
  %0 = tile.dot_start %q[%i], %k[%i] acc %a : !tile.tile<64x64xf32, #tile.fragment<2>> : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_types(%q: !tile.ring<1x64x64xf16, 128>, %k: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected factors of one type and a result of f32, got 'f16', 'bf16' and 'f32'}}
  %0 = tile.dot_start %q[%i], %k[%i] : !tile.ring<1x64x64xf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_result_type(%q: !tile.ring<1x64x64xf16, 128>, %i: index) {
  // expected-error @below {{expected factors of one type and a result of f32, got 'f16', 'f16' and 'f16'}}
  %0 = tile.dot_start %q[%i], %q[%i] : !tile.ring<1x64x64xf16, 128>, !tile.ring<1x64x64xf16, 128> -> !tile.pending<64x64xf16, #tile.fragment<4>>
  return
}

// -----

func.func @dot_without_use(%q: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected the use of the left ring}}
  %0 = tile.dot_start %q, %q[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_with_use(%t: !tile.tile<64x64xbf16, #tile.fragment<4>>, %q: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected no use for a left factor in registers}}
  %0 = tile.dot_start %t[%i], %q[%i] : !tile.tile<64x64xbf16, #tile.fragment<4>>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_left_layout(%t: !tile.tile<64x64xbf16, #tile.fragment<2>>, %q: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a left factor with the result's layout, got '!tile.tile<64x64xbf16, #tile.fragment<2>>' and '!tile.pending<64x64xf32, #tile.fragment<4>>'}}
  %0 = tile.dot_start %t, %q[%i] : !tile.tile<64x64xbf16, #tile.fragment<2>>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_no_layout(%q: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a tile with a fragment as its layout, got '!tile.tile<64x64xf32>'}}
  %0 = tile.dot_start %q[%i], %q[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32>
  return
}

// -----

func.func @dot_pending_rank(%q: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected two extents between 1 and 65536, got [64]}}
  %0 = tile.dot_start %q[%i], %q[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_pending_layout(%q: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected rows in multiples of 16 for each of 3 warps}}
  %0 = tile.dot_start %q[%i], %q[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<3>>
  return
}

// -----

// Eight key rows are half a step of the product of weights and values.
func.func @dot_step(%t: !tile.tile<64x24xbf16, #tile.fragment<4>>, %v: !tile.ring<1x24x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected an inner extent and columns in multiples of 16 for factors of 'bf16', got 24 and 64}}
  %0 = tile.dot_start %t, %v[%i] : !tile.tile<64x24xbf16, #tile.fragment<4>>, !tile.ring<1x24x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_columns(%q: !tile.ring<1x64x64xbf16, 128>, %k: !tile.ring<1x24x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected an inner extent and columns in multiples of 16 for factors of 'bf16', got 64 and 24}}
  %0 = tile.dot_start %q[%i], %k[%i] transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x24x64xbf16, 128> -> !tile.pending<64x24xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_f32_step(%q: !tile.ring<1x64x64xf32, 128>, %k: !tile.ring<1x24x64xf32, 128>, %i: index) {
  // Steps of f32 are 8.
  %0 = tile.dot_start %q[%i], %k[%i] transpose_b : !tile.ring<1x64x64xf32, 128>, !tile.ring<1x24x64xf32, 128> -> !tile.pending<64x24xf32, #tile.fragment<4>>
  return
}

// -----

func.func @dot_wait(%p: !tile.pending<64x64xf32, #tile.fragment<4>>) {
  // expected-error @below {{expected a result of type '!tile.tile<64x64xf32, #tile.fragment<4>>', got '!tile.tile<64x64xf32, #tile.fragment<2>>'}}
  %0 = tile.dot_wait %p : !tile.pending<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xf32, #tile.fragment<2>>
  return
}

// -----

func.func @dot_wait_pending(%p: !tile.pending<0x64xf32>) {
  // expected-error @below {{expected two extents between 1 and 65536, got [0, 64]}}
  %0 = tile.dot_wait %p : !tile.pending<0x64xf32> -> !tile.tile<64x64xf32>
  return
}

// -----

func.func @guarded_extents(%p: !tile.tile<64x32xf32, #tile.fragment<4>>, %v: !tile.ring<1x64x64xbf16, 128>, %o: !tile.tile<64x64xf32, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{expected MxK times KxN plus MxN, got '!tile.tile<64x32xf32, #tile.fragment<4>>', '!tile.ring<1x64x64xbf16, 128>' and '!tile.tile<64x64xf32, #tile.fragment<4>>'}}
  %0 = tile.dot_guarded %p, %v[%i], %o : !tile.tile<64x32xf32, #tile.fragment<4>>, !tile.ring<1x64x64xbf16, 128>, !tile.tile<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @guarded_types(%p: !tile.tile<64x64xbf16, #tile.fragment<4>>, %v: !tile.ring<1x64x64xbf16, 128>, %o: !tile.tile<64x64xf32, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{expected tiles of f32 with one layout}}
  %0 = tile.dot_guarded %p, %v[%i], %o : !tile.tile<64x64xbf16, #tile.fragment<4>>, !tile.ring<1x64x64xbf16, 128>, !tile.tile<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @guarded_layouts(%p: !tile.tile<64x64xf32, #tile.fragment<4>>, %v: !tile.ring<1x64x64xbf16, 128>, %o: !tile.tile<64x64xf32, #tile.fragment<2>>, %i: index) {
  // expected-error @below {{expected tiles of f32 with one layout}}
  %0 = tile.dot_guarded %p, %v[%i], %o : !tile.tile<64x64xf32, #tile.fragment<4>>, !tile.ring<1x64x64xbf16, 128>, !tile.tile<64x64xf32, #tile.fragment<2>>
  return
}

// -----

func.func @guarded_no_layout(%p: !tile.tile<64x64xf32>, %v: !tile.ring<1x64x64xbf16, 128>, %i: index) {
  // expected-error @below {{expected a tile with a fragment as its layout}}
  %0 = tile.dot_guarded %p, %v[%i], %p : !tile.tile<64x64xf32>, !tile.ring<1x64x64xbf16, 128>, !tile.tile<64x64xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Within a kernel
//===----------------------------------------------------------------------===//

tile.kernel @other_warps(%x: !tile.view<?xf32>, %i: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %q = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  // expected-error @below {{expected a tile shared out among the 4 warps that compute it, got '!tile.tile<64x64xf32, #tile.fragment<2>>'}}
  %p = tile.dot_start %q[%i], %q[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<2>>
  tile.return
}

// -----

// A consumer is a warpgroup, however many there are.
tile.kernel @warpgroups(%x: !tile.view<?xf32>, %i: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 1>} {
  %q = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  tile.roles producer 24 {
  } consumer 240 {
    %p = tile.dot_start %q[%i], %q[%i] : !tile.ring<1x64x64xbf16, 128>, !tile.ring<1x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  }
  tile.return
}

// -----

tile.kernel @warpgroups_warps(%x: !tile.view<?xf32>, %i: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 1>} {
  %q = tile.alloc : !tile.ring<1x128x64xbf16, 128>
  tile.roles producer 24 {
  } consumer 240 {
    // expected-error @below {{expected a tile shared out among the 4 warps that compute it}}
    %p = tile.dot_start %q[%i], %q[%i] transpose_b : !tile.ring<1x128x64xbf16, 128>, !tile.ring<1x128x64xbf16, 128> -> !tile.pending<128x128xf32, #tile.fragment<8>>
  }
  tile.return
}

// -----

tile.kernel @ring_carried(%x: !tile.view<64x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%u = %a) -> (!tile.ring<1x64x64xbf16, 128>) {
    // expected-error @below {{expected a ring of a tile.alloc}}
    tile.async_load %x[%c0, %c0] along [0, 1] to %u[%i] : !tile.view<64x64xbf16>, !tile.ring<1x64x64xbf16, 128>
    scf.yield %u : !tile.ring<1x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @ring_chosen(%x: !tile.view<64x64xbf16>, %c: i1, %i: index) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 1>} {
  %a = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %b = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %r = arith.select %c, %a, %b : !tile.ring<1x64x64xbf16, 128>
  // expected-error @below {{expected a ring of a tile.alloc}}
  tile.rotate_slot %r[%i], %i {frequencies = array<f64: 1.0>, pairs = 1 : i64} : !tile.ring<1x64x64xbf16, 128>
  tile.return
}

// -----

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

func.func @cast_extents(%t: !tile.tile<64x64xf32, #tile.fragment<4>>) {
  // expected-error @below {{expected a tile of f32 and one of floats with the same extents and layout, got '!tile.tile<64x64xf32, #tile.fragment<4>>' and '!tile.tile<64x32xbf16, #tile.fragment<4>>'}}
  %0 = tile.cast %t : !tile.tile<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x32xbf16, #tile.fragment<4>>
  return
}

// -----

func.func @cast_to_integers(%t: !tile.tile<64x64xf32, #tile.fragment<4>>) {
  // expected-error @below {{expected a tile of f32 and one of floats}}
  %0 = tile.cast %t : !tile.tile<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xi32, #tile.fragment<4>>
  return
}

// -----

func.func @cast_wider(%t: !tile.tile<64x64xbf16, #tile.fragment<4>>) {
  // expected-error @below {{expected a tile of f32 and one of floats}}
  %0 = tile.cast %t : !tile.tile<64x64xbf16, #tile.fragment<4>> -> !tile.tile<64x64xf32, #tile.fragment<4>>
  return
}

// -----

func.func @cast_layouts(%t: !tile.tile<64x64xf32, #tile.fragment<4>>) {
  // expected-error @below {{with the same extents and layout}}
  %0 = tile.cast %t : !tile.tile<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xbf16, #tile.fragment<2>>
  return
}

// -----

func.func @cast_no_layout(%t: !tile.tile<64x64xf32>) {
  // expected-error @below {{expected a tile with a fragment as its layout}}
  %0 = tile.cast %t : !tile.tile<64x64xf32> -> !tile.tile<64x64xbf16>
  return
}

// -----

func.func @any_type(%t: !tile.tile<64x1xf32, #tile.fragment<4>>) {
  // expected-error @below {{expected a tile of i1, got '!tile.tile<64x1xf32, #tile.fragment<4>>'}}
  %0 = tile.any block %t : !tile.tile<64x1xf32, #tile.fragment<4>>
  return
}

// -----

func.func @any_layout(%t: !tile.tile<64x1xi1>) {
  // expected-error @below {{expected a tile with a fragment as its layout, got '!tile.tile<64x1xi1>'}}
  %0 = tile.any block %t : !tile.tile<64x1xi1>
  return
}

// -----

func.func @any_scope(%t: !tile.tile<64x1xi1, #tile.fragment<4>>) {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'scope' [warp, block]}}
  %0 = tile.any grid %t : !tile.tile<64x1xi1, #tile.fragment<4>>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

tile.kernel @roles_unit(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 8, stages = 2>} {
  // expected-error @below {{expected budgets that are multiples of 8 from 24 to 256, got 25}}
  tile.roles producer 25 {
  } consumer 240 {
  }
  tile.return
}

// -----

tile.kernel @roles_least(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 8, stages = 2>} {
  // expected-error @below {{expected budgets that are multiples of 8 from 24 to 256, got 16}}
  tile.roles producer 16 {
  } consumer 240 {
  }
  tile.return
}

// -----

tile.kernel @roles_most(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 8, stages = 2>} {
  // expected-error @below {{expected budgets that are multiples of 8 from 24 to 256, got 264}}
  tile.roles producer 24 {
  } consumer 264 {
  }
  tile.return
}

// -----

// 65536 registers over 384 threads are 168 each: 64512.
tile.kernel @roles_sum(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 2>} {
  // expected-error @below {{expected budgets of at most 64512 registers together, which a launch of 384 threads allocates, got 65536}}
  tile.roles producer 32 {
  } consumer 240 {
  }
  tile.return
}

// -----

// 640 threads get 96 each: 61440. Four consumers of 112 leave 32 for the producer.
tile.kernel @roles_four(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 256, block_n = 64, warps = 16, stages = 2>} {
  // expected-error @below {{expected budgets of at most 61440 registers together, which a launch of 640 threads allocates, got 62464}}
  tile.roles producer 40 {
  } consumer 112 {
  }
  tile.return
}

// -----

// 256 threads get 256 each, 384 168: consumers cannot give any back.
tile.kernel @roles_give_back(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  // expected-error @below {{expected a producer that gives back some of the 256 registers that a launch of 256 threads gives each of them, and consumers that take more, got 24 and 240}}
  tile.roles producer 24 {
  } consumer 240 {
  }
  tile.return
}

// -----

tile.kernel @roles_take(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 2>} {
  // expected-error @below {{got 176 and 168}}
  tile.roles producer 176 {
  } consumer 168 {
  }
  tile.return
}

// -----

tile.kernel @roles_one(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  tile.roles producer 24 {
  } consumer 256 {
  }
  tile.return
}

// -----

tile.kernel @roles_fit(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 256, block_n = 64, warps = 16, stages = 2>} {
  tile.roles producer 32 {
  } consumer 112 {
  }
  tile.return
}

// -----

tile.kernel @roles_unscheduled(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>]} {
  // expected-error @below {{expected a kernel whose schedule has consumer warps in multiples of 4}}
  tile.roles producer 24 {
  } consumer 240 {
  }
  tile.return
}

// -----

tile.kernel @roles_warps(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 6, stages = 2>} {
  // expected-error @below {{expected a kernel whose schedule has consumer warps in multiples of 4}}
  tile.roles producer 24 {
  } consumer 240 {
  }
  tile.return
}

// -----

tile.kernel @roles_twice(%x: !tile.view<?xf32>) attributes {grid = [#tile.extent<arg = 0, dim = 0, div = 64>],
    schedule = #tile.schedule<block_m = 128, block_n = 64, warps = 8, stages = 2>} {
  tile.roles producer 24 {
  } consumer 240 {
  }
  // expected-error @below {{expected one tile.roles in a kernel}}
  tile.roles producer 24 {
  } consumer 240 {
  }
  tile.return
}

// -----

func.func @roles_outside() {
  // expected-error @below {{expects parent op 'tile.kernel'}}
  tile.roles producer 24 {
  } consumer 240 {
  }
  return
}

// -----

tile.kernel @never_released(%x: !tile.view<1x1x?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  // expected-note @below {{the ring}}
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{acquires slots of a ring that no consumer releases}}
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @never_filled(%x: !tile.view<1x1x?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  // expected-note @below {{the ring}}
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{expected what consumers wait for to be committed}}
  tile.roles producer 24 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  } consumer 256 {
    tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @consumer_acquires(%x: !tile.view<1x1x?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  // expected-note @below {{the ring}}
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{expected the producer to acquire and consumers to release}}
  tile.roles producer 24 {
  } consumer 256 {
    tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
  }
  tile.return
}

// -----

tile.kernel @waited_twice(%x: !tile.view<1x1x?x64xbf16>) attributes {grid = [#tile.extent<arg = 0, dim = 2, div = 64>],
    schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : index
  %q = tile.alloc : !tile.ring<1x64x64xbf16, 128>
  %k = tile.alloc : !tile.ring<2x64x64xbf16, 128>
  // expected-error @below {{expected its result to be waited for once}}
  %s = tile.dot_start %q[%c0], %k[%c0] transpose_b : !tile.ring<1x64x64xbf16, 128>, !tile.ring<2x64x64xbf16, 128> -> !tile.pending<64x64xf32, #tile.fragment<4>>
  %a = tile.dot_wait %s : !tile.pending<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xf32, #tile.fragment<4>>
  %b = tile.dot_wait %s : !tile.pending<64x64xf32, #tile.fragment<4>> -> !tile.tile<64x64xf32, #tile.fragment<4>>
  tile.return
}
