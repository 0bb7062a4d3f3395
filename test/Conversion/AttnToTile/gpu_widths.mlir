// Widths and types of queries and values that differ.

// Results of another type than the queries' have a slot of their own, also
// where both take two bytes.
// RUN: sed 's/QW/256/g; s/VW/256/g; s/QT/f16/g; s/VT/bf16/g' %s > %t.mixed.mlir
// RUN: attnfuse-opt %t.mixed.mlir --attn-to-tile="chip=sm_86" | FileCheck %s --check-prefix=MIXED
// RUN: attnfuse-opt %t.mixed.mlir --attn-to-tile="chip=sm_90a" | FileCheck %s --check-prefix=MIXED
// MIXED: %[[RESULT:.*]] = tile.alloc{{.*}}x256xbf16, 128>
// MIXED: tile.copy_out %[[RESULT]][{{.*}}x256xbf16, 128>, !tile.view<1x4x?x256xbf16>
// RUN: sed 's/QW/256/g; s/VW/256/g; s/QT/bf16/g; s/VT/bf16/g' %s > %t.same.mlir
// RUN: attnfuse-opt %t.same.mlir --attn-to-tile="chip=sm_86" | FileCheck %s --check-prefix=SAME
// SAME: %[[QUERY:.*]] = tile.alloc : !tile.ring<1x
// SAME: tile.copy_out %[[QUERY]][

// Where memory is small, tiles of 32 rows.
// RUN: sed 's/QW/64/g; s/VW/256/g; s/QT/f32/g; s/VT/f32/g' %s | attnfuse-opt --attn-to-tile="chip=sm_86" | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/QW/128/g; s/VW/256/g; s/QT/f32/g; s/VT/f32/g' %s | attnfuse-opt --attn-to-tile="chip=sm_89" | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/QW/256/g; s/VW/64/g; s/QT/f32/g; s/VT/f32/g' %s | attnfuse-opt --attn-to-tile="chip=sm_120" | FileCheck %s --check-prefix=NARROW
// NARROW: schedule = #tile.schedule<block_m = 32, block_n = {{16|32}}, warps = 2, stages = 1>

func.func @f(%q: tensor<1x4x?xQWxQT>, %k: tensor<1x4x?xQWxQT>, %v: tensor<1x4x?xVWxVT>) -> tensor<1x4x?xVWxVT> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?xQWxQT>, tensor<1x4x?xQWxQT>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?xVWxVT>
  return %o : tensor<1x4x?xVWxVT>
}
