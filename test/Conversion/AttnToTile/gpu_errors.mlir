// Schedules that cannot be are refused, with what was asked for and what there
// is.

// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_75" 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: unknown chip 'sm_75'; known: cpu, cpu-avx2, cpu-avx512, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_120

// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 warps=3" 2>&1 | FileCheck %s --check-prefix=WARPS
// WARPS: gpu_errors.mlir:[[#]]:1: error: expected block-m in multiples of 16 for each of 3 warps and block-n in multiples of 16, got 128 and 64
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 block-m=32" 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: expected block-m in multiples of 16 for each of 4 warps and block-n in multiples of 16, got 32 and 64
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 block-n=24" 2>&1 | FileCheck %s --check-prefix=COLUMNS
// COLUMNS: error: expected block-m in multiples of 16 for each of 4 warps and block-n in multiples of 16, got 128 and 24

// The same that fits one chip does not fit another.
// RUN: attnfuse-opt %s --attn-to-tile="chip=sm_80 block-m=256 block-n=128 warps=8 stages=3" | FileCheck %s --check-prefix=FITS
// FITS: schedule = #tile.schedule<block_m = 256, block_n = 128, warps = 8, stages = 3>
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_86 block-m=256 block-n=128 warps=8 stages=3" 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: needs 131072 bytes of shared memory with block-m = 256, block-n = 128 and stages = 3; sm_86 has 101376 for a block

// Steps of f32 are 8 columns.
// RUN: sed 's/bf16/f32/g' %s > %t.f32.mlir
// RUN: attnfuse-opt %t.f32.mlir --attn-to-tile="chip=sm_80 block-n=24" | FileCheck %s --check-prefix=F32
// F32: schedule = #tile.schedule<block_m = {{.*}}, block_n = 24, warps = 4
// RUN: not attnfuse-opt %t.f32.mlir --attn-to-tile="chip=sm_80 block-n=12" 2>&1 | FileCheck %s --check-prefix=F32STEP
// F32STEP: and block-n in multiples of 8, got {{.*}} and 12

// Nothing fits: every schedule of the table is named with its reason.
// RUN: sed 's/x64xbf16/x1024xbf16/g' %s > %t.wide.mlir
// RUN: not attnfuse-opt %t.wide.mlir --attn-to-tile="chip=sm_80" 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: has no schedule that fits sm_80 at width 1024; tried:
// WIDE: note: 128x64, 2 stages: needs {{[0-9]+}} bytes of shared memory, 166912 available
// WIDE: note: 64x16, 1 stages: needs {{[0-9]+}} bytes of shared memory, 166912 available
// WIDE: note: 32x16, 1 stages: needs {{[0-9]+}} registers, 255 available

// The chip of the function's own schedule has no say; its warps make it
// scheduled.
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 32, block_n = 32, warps = 2, stages = 1>}/' %s > %t.forced.mlir
// RUN: attnfuse-opt %t.forced.mlir --attn-to-tile="chip=sm_80" | FileCheck %s --check-prefix=FORCED
// FORCED: schedule = #tile.schedule<block_m = 32, block_n = 32, warps = 2, stages = 1>
// FORCED: !tile.ring<1x32x64xbf16, 128>
// FORCED: #tile.fragment<2>

func.func @f(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}
