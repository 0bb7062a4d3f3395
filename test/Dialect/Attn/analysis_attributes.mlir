// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func private @round_trip()
// CHECK-SAME: a = #attn.placement<in_loop, in_loop_us = 12.5, once_us = 1.0e-06, crossover = never>
// CHECK-SAME: b = #attn.placement<once, in_loop_us = 1230000, once_us = 0, crossover = 512>
// CHECK-SAME: c = #attn.tile_map<partial, symbols = [p, offset1], [{touched = -2 * i0 + 3 to min(p, Nk), full = none, tests = [document, mask_mod]}]>
// CHECK-SAME: d = #attn.block_lists<blocks = [1, 2], rows = [1, 1, 1], starts = [0, 0], keys = []>
func.func private @round_trip() attributes {
  a = #attn.placement<in_loop, in_loop_us = 12.5, once_us = 0.000001, crossover = never>,
  b = #attn.placement<once, in_loop_us = 1234567, once_us = 0, crossover = 512>,
  c = #attn.tile_map<partial, symbols = [p, offset1], [{touched = i0 * -2 + 3 to min(p, Nk), full = none, tests = [mask_mod, document]}]>,
  d = #attn.block_lists<blocks = [1, 2], rows = [1, 1, 1], starts = [0, 0], keys = []>
}

// -----

// expected-error @below {{unknown place 'nowhere'; supported: prologue, in_loop, once}}
func.func private @place() attributes {a = #attn.placement<nowhere>}

// -----

// expected-error @below {{expected finite times of at least 0, got -1}}
func.func private @time() attributes {a = #attn.placement<once, in_loop_us = -1, once_us = 2, crossover = 3>}

// -----

// expected-error @below {{expected a crossover of at least 0, got -3}}
func.func private @crossover() attributes {a = #attn.placement<once, in_loop_us = 1, once_us = 2, crossover = -3>}

// -----

// expected-error @below {{unknown class 'some'; supported: empty, full, partial, unknown}}
func.func private @class() attributes {a = #attn.tile_map<some>}

// -----

// expected-error @below {{unknown test 'x'; supported: document, block_sparse, mask_mod, prefix}}
func.func private @test() attributes {a = #attn.tile_map<partial, [{touched = 0 to Nk, full = none, tests = [x]}]>}

// -----

// expected-error @below {{expected bounds that are sums of multiples, got d0 floordiv 2}}
func.func private @bound() attributes {a = #attn.tile_map<partial, [{touched = i0 floordiv 2 to Nk, full = none}]>}

// -----

// expected-error @below {{expected two block sizes above 0, got [0, 2]}}
func.func private @blocks() attributes {a = #attn.block_lists<blocks = [0, 2], rows = [1, 1, 1], starts = [0, 0], keys = []>}

// -----

// expected-error @below {{expected 'starts' to ascend from 0 to the number of 'keys', 1, with one entry per row and one more, got 2 entries}}
func.func private @starts() attributes {a = #attn.block_lists<blocks = [1, 2], rows = [1, 1, 1], starts = [0, 0], keys = [4]>}

// -----

// expected-error @below {{expected numbers of batches, heads and rows of blocks, got [1, 1]}}
func.func private @rows() attributes {a = #attn.block_lists<blocks = [1, 2], rows = [1, 1], starts = [0, 1], keys = [4]>}

// -----

// expected-error @below {{expected symbols to be distinct words other than i0, i1, Nq and Nk, got 'Nk'}}
func.func private @symbol() attributes {a = #attn.tile_map<partial, symbols = [Nk], [{touched = 0 to Nk, full = none}]>}

// -----

// expected-error @below {{expected symbols to be distinct words other than i0, i1, Nq and Nk, got 'p'}}
func.func private @twice() attributes {a = #attn.tile_map<partial, symbols = [p, p]>}

// -----

// expected-error @below {{expected the 'keys' of row 1 to ascend from at least 0, got [7, 7]}}
func.func private @keys() attributes {a = #attn.block_lists<blocks = [1, 2], rows = [1, 1, 2], starts = [0, 1, 3], keys = [9, 7, 7]>}

// -----

// expected-error @below {{expected the 'keys' of row 0 to ascend from at least 0, got [-1, 3]}}
func.func private @negative_key() attributes {a = #attn.block_lists<blocks = [1, 2], rows = [1, 1, 1], starts = [0, 2], keys = [-1, 3]>}
