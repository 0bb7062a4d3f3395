// Schedules that cannot be are refused, with what was asked for and what there
// is.

// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_75" 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: unknown chip 'sm_75'; known: cpu, cpu-avx2, cpu-avx512, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_120
// A fault of an option is reported once, whatever the number of functions.
// RUN: not attnfuse-opt %s --attnfuse-to-ptx="chip=sm_75" 2>&1 | FileCheck %s --check-prefix=ONCE --implicit-check-not=error:
// ONCE: error: unknown chip 'sm_75'
// RUN: not attnfuse-opt %s --attnfuse-to-ptx="chip=sm_80 stages=9" 2>&1 | FileCheck %s --check-prefix=STAGESONCE --implicit-check-not=error:
// STAGESONCE: error: option 'stages': expected 1 to 8

// Numbers that no kernel has.
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 stages=9" 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: error: option 'stages': expected 1 to 8, or 0 for the chip's, got 9
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 stages=-1" 2>&1 | FileCheck %s --check-prefix=NOSTAGES
// NOSTAGES: error: option 'stages': expected 1 to 8, or 0 for the chip's, got -1
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a warps=33" 2>&1 | FileCheck %s --check-prefix=MANYWARPS
// MANYWARPS: error: option 'warps': expected 1 to 32, or 0 for the chip's, got 33
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 block-m=-64" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: option 'block-m': expected 1 to 4096, or 0 for the chip's, got -64
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 block-n=9223372036854775807" 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: option 'block-n': expected 1 to 4096, or 0 for the chip's, got 9223372036854775807
// RUN: not attnfuse-opt %s --attn-to-tile="chip=cpu block-n=-1" 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: option 'block-n': expected a number above 0, or 0 for the chip's, got -1
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a rescale=16" 2>&1 | FileCheck %s --check-prefix=RESCALE
// RESCALE: error: option 'rescale': expected 0 to 15, or -1 for the chip's, got 16
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a path=fast" 2>&1 | FileCheck %s --check-prefix=PATH
// PATH: error: option 'path': expected 'hopper', 'portable' or nothing, got 'fast'
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a scheduler=x" 2>&1 | FileCheck %s --check-prefix=SCHEDULER
// SCHEDULER: error: option 'scheduler': expected 'grid', 'counter' or nothing, got 'x'

// Options of other kernels than those that are made.
// RUN: not attnfuse-opt %s --attn-to-tile="chip=cpu warps=4" 2>&1 | FileCheck %s --check-prefix=CPUWARPS
// CPUWARPS: error: option 'warps': expected none for cpu, got 4; it is one of kernels for GPUs
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 rescale=3" 2>&1 | FileCheck %s --check-prefix=NORESCALE
// NORESCALE: error: option 'rescale': expected none for sm_80, got 3; it is one of kernels for sm_90a
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 path=hopper" 2>&1 | FileCheck %s --check-prefix=NOHOPPER
// NOHOPPER: error: option 'path': expected 'portable' or nothing for sm_80, got 'hopper', which is for sm_90a
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a scheduler=grid path=portable" 2>&1 | FileCheck %s --check-prefix=NOSCHEDULER
// NOSCHEDULER: error: option 'scheduler': expected none for sm_90a with path = portable, got 'grid'; it is one of kernels for sm_90a
// RUN: sed 's/bf16/f32/g' %s > %t.f32.mlir
// RUN: not attnfuse-opt %t.f32.mlir --attn-to-tile="chip=sm_90a path=hopper" 2>&1 | FileCheck %s --check-prefix=UNSERVED
// UNSERVED: error: option 'path': expected 'portable' or nothing, got 'hopper', which does not serve this program: wgmma has no f32 products
// Where the portable kernel is the only one, the options are its own.
// RUN: attnfuse-opt %t.f32.mlir --attn-to-tile="chip=sm_90a block-m=32 warps=2" | FileCheck %s --check-prefix=ONLY
// ONLY: schedule = #tile.schedule<block_m = 32, block_n = {{[0-9]+}}, warps = 2

// What does not go together.
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 warps=3" 2>&1 | FileCheck %s --check-prefix=WARPS
// WARPS: gpu_errors.mlir:[[#]]:1: error: option 'warps': expected warps that share block-m = 128 query rows in multiples of 16, got 3; or give block-m in multiples of 48
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 block-m=32" 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: option 'block-m': expected a multiple of 64 up to 4096 (16 query rows for each of 4 warps), got 32
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_80 block-n=24" 2>&1 | FileCheck %s --check-prefix=COLUMNS
// COLUMNS: error: option 'block-n': expected a multiple of 16 up to 4096 (whole steps of products of 16 bits), got 24

// The kernel for sm_90a has 4 warps for each 64 rows, 1 to 4 times.
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a block-m=96" 2>&1 | FileCheck %s --check-prefix=ROWS96
// ROWS96: error: option 'block-m': expected a multiple of 64 up to 256 (64 query rows for each warpgroup of sm_90a), got 96
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a block-m=320" 2>&1 | FileCheck %s --check-prefix=ROWS320
// ROWS320: error: option 'block-m': expected a multiple of 64 up to 256 (64 query rows for each warpgroup of sm_90a), got 320
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a block-n=24" 2>&1 | FileCheck %s --check-prefix=WGMMA
// WGMMA: error: option 'block-n': expected a multiple of 16 up to 256 (what wgmma takes on sm_90a), got 24
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a warps=4" 2>&1 | FileCheck %s --check-prefix=HOPPERWARPS
// HOPPERWARPS: error: option 'warps': expected 16 for block-m = 256 on sm_90a (4 for each 64 query rows), got 4
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_90a block-m=256 block-n=256 stages=8" 2>&1 | FileCheck %s --check-prefix=HOPPERSHARED
// HOPPERSHARED: error: needs 558080 bytes of shared memory with block-m = 256, block-n = 256 and stages = 8; sm_90a has 232448 for a block; use smaller blocks or fewer stages
// A single consumer leaves nothing to take: setmaxnreg asks for what it has.
// RUN: attnfuse-opt %s --attn-to-tile="chip=sm_90a block-m=64 warps=4" | FileCheck %s --check-prefix=ONE
// ONE: schedule = #tile.schedule<block_m = 64, block_n = 64, warps = 4, stages = 2, registers = 256, producer_registers = 24,
// ONE: tile.roles producer 24
// ONE: consumer 256

// The same that fits one chip does not fit another.
// RUN: attnfuse-opt %s --attn-to-tile="chip=sm_80 block-m=256 block-n=128 warps=8 stages=3" | FileCheck %s --check-prefix=FITS
// FITS: schedule = #tile.schedule<block_m = 256, block_n = 128, warps = 8, stages = 3>
// RUN: not attnfuse-opt %s --attn-to-tile="chip=sm_86 block-m=256 block-n=128 warps=8 stages=3" 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: needs 131072 bytes of shared memory with block-m = 256, block-n = 128 and stages = 3; sm_86 has 101376 for a block

// Steps of f32 are 8 columns.
// RUN: attnfuse-opt %t.f32.mlir --attn-to-tile="chip=sm_80 block-n=24" | FileCheck %s --check-prefix=F32
// F32: schedule = #tile.schedule<block_m = {{.*}}, block_n = 24, warps = 4
// RUN: not attnfuse-opt %t.f32.mlir --attn-to-tile="chip=sm_80 block-n=12" 2>&1 | FileCheck %s --check-prefix=F32STEP
// F32STEP: option 'block-n': expected a multiple of 8 up to 4096 (whole steps of products of f32), got 12

// Nothing fits: every schedule of the table is named with its reason.
// RUN: sed 's/x64xbf16/x1024xbf16/g' %s > %t.wide.mlir
// RUN: not attnfuse-opt %t.wide.mlir --attn-to-tile="chip=sm_80" 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: has no schedule that fits sm_80 at width 1024; tried:
// WIDE: note: 128x64, 2 stages: needs {{[0-9]+}} bytes of shared memory, 166912 available
// WIDE: note: 64x16, 1 stages: needs {{[0-9]+}} bytes of shared memory, 166912 available
// WIDE: note: 32x16, 1 stages: needs {{[0-9]+}} registers, 255 available

// The function's own schedule goes before the chip's.
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 32, block_n = 32, warps = 2, stages = 1>}/' %s > %t.forced.mlir
// RUN: attnfuse-opt %t.forced.mlir --attn-to-tile="chip=sm_80" | FileCheck %s --check-prefix=FORCED
// FORCED: schedule = #tile.schedule<block_m = 32, block_n = 32, warps = 2, stages = 1>
// FORCED: !tile.ring<1x32x64xbf16, 128>
// FORCED: #tile.fragment<2>

// A schedule of the function's own is held to the same.
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_80" 2>&1 | FileCheck %s --check-prefix=OWNSTAGES
// OWNSTAGES: error: 'stages' of #tile.schedule: expected 1 to 8, got 0
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 64, block_n = 32, stages = 2>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_80" 2>&1 | FileCheck %s --check-prefix=OWNWARPS
// OWNWARPS: error: 'warps' of #tile.schedule: expected 1 to 32, got 0
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 40, block_n = 32, warps = 2, stages = 2>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_80" 2>&1 | FileCheck %s --check-prefix=OWNROWS
// OWNROWS: error: 'block_m' of #tile.schedule: expected a multiple of 32 up to 4096 (16 query rows for each of 2 warps), got 40
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2, persistent = true>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_90a" 2>&1 | FileCheck %s --check-prefix=OWNPERSISTENT
// OWNPERSISTENT: error: 'registers' of #tile.schedule: expected the consumers' budget beside producer_registers, rescale or persistent, which kernels for sm_90a have
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2, registers = 240, producer_registers = 24>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_90" 2>&1 | FileCheck %s --check-prefix=OWNCHIP
// OWNCHIP: error: 'registers' of #tile.schedule: expected none, got 240: that makes a kernel for sm_90a, and the chip is sm_90
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2, registers = 240, producer_registers = 24>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_90a" 2>&1 | FileCheck %s --check-prefix=OWNBUDGET
// OWNBUDGET: error: 'registers' of #tile.schedule: expected at least 256, what a launch of 256 threads gives each of them, at most as much for the producer, and no more than 65536 together, got 240 and 24 for the producer
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 128, block_n = 32, warps = 8, stages = 2, ping_pong = true>}/' %s | not attnfuse-opt --attn-to-tile="chip=sm_90a" 2>&1 | FileCheck %s --check-prefix=OWNPINGPONG
// OWNPINGPONG: error: 'ping_pong' of #tile.schedule: expected false: it is not built
// RUN: sed 's/{attn.kernel}/{attn.kernel, tile.schedule = #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2>}/' %s | not attnfuse-opt --attn-to-tile="chip=cpu" 2>&1 | FileCheck %s --check-prefix=OWNCPU
// OWNCPU: error: has a schedule with warps, which is one for a GPU, got #tile.schedule<block_m = 64, block_n = 32, warps = 4, stages = 2> for chip cpu; leave out what follows block_m and block_n, or compile for a GPU

func.func @f(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

func.func @g(%x: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> {
  return %x : tensor<1x4x?x64xbf16>
}
