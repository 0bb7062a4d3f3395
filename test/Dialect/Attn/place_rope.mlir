// RUN: attnfuse-opt %s --attn-place-rope="chip=sm_90a" | FileCheck %s
// RUN: attnfuse-opt %s --pass-pipeline="builtin.module(func.func(attn-place-rope{chip=sm_90a}))" | attnfuse-opt | FileCheck %s
// RUN: attnfuse-opt %s --attn-place-rope="chip=sm_90a force=in_loop" | FileCheck %s --check-prefix=FORCED
// RUN: attnfuse-opt %s --attn-place-rope="chip=sm_90a length=512" | FileCheck %s --check-prefix=SHORT
// RUN: attnfuse-opt %s --attn-place-rope="chip=cpu-avx2" | FileCheck %s --check-prefix=CPU
// RUN: not attnfuse-opt %s --attn-place-rope="chip=sm_75" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attnfuse-opt %s --attn-place-rope="force=prologue" 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not attnfuse-opt %s --attn-place-rope="length=0" 2>&1 | FileCheck %s --check-prefix=LENGTH

// CHIP: error: unknown chip 'sm_75'; known: cpu, {{.*}}sm_120
// PLACE: error: unknown place 'prologue' for key rotations; supported: in_loop, once, or none to choose by cost
// LENGTH: error: expected an assumed length of at least 1, got 0

// CHECK-LABEL: func.func @llama(
// CHECK: attn.rope %{{.*}} {attn.placement = #attn.placement<prologue>}
// CHECK: attn.rope %{{.*}} {attn.placement = #attn.placement<once, in_loop_us = [[IN:[0-9.]+]], once_us = [[ONCE:[0-9.]+]], crossover = {{[0-9]+}}>}
// FORCED-LABEL: func.func @llama(
// FORCED: #attn.placement<prologue>
// FORCED: #attn.placement<in_loop, in_loop_us = {{[0-9.]+}}, once_us = {{[0-9.]+}}, crossover = {{[0-9]+}}>
// SHORT-LABEL: func.func @llama(
// SHORT: #attn.placement<prologue>
// SHORT: #attn.placement<in_loop,
// CPU-LABEL: func.func @llama(
// CPU: #attn.placement<prologue>
// CPU: #attn.placement<once, {{.*}}, crossover = 0>
func.func @llama(%q: tensor<1x32x?x128xbf16>, %k: tensor<1x8x?x128xbf16>) -> !attn.scores<1x32x?x?> {
  %qr = attn.rope %q : tensor<1x32x?x128xbf16>
  %kr = attn.rope %k : tensor<1x8x?x128xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x32x?x128xbf16>, tensor<1x8x?x128xbf16>
  %c = attn.causal
  %m = attn.mask %s, %c : !attn.scores<1x32x?x?>
  return %m : !attn.scores<1x32x?x?>
}

// A few queries read each key once per head; nothing is gained ahead of that.
// CHECK-LABEL: func.func @decode(
// CHECK: #attn.placement<in_loop,
func.func @decode(%q: tensor<1x8x1x128xbf16>, %k: tensor<1x8x4096x128xbf16>) -> !attn.scores<1x8x1x4096> {
  %kr = attn.rope %k : tensor<1x8x4096x128xbf16>
  %s = attn.scaled_dot_product %q, %kr : tensor<1x8x1x128xbf16>, tensor<1x8x4096x128xbf16>
  return %s : !attn.scores<1x8x1x4096>
}

// A window leaves few tiles, so rotations are seldom repeated.
// CHECK-LABEL: func.func @narrow_window(
// CHECK: #attn.placement<in_loop,
func.func @narrow_window(%q: tensor<1x4x2048x128xbf16>, %k: tensor<1x4x2048x128xbf16>) -> !attn.scores<1x4x2048x2048> {
  %kr = attn.rope %k : tensor<1x4x2048x128xbf16>
  %s = attn.scaled_dot_product %q, %kr : tensor<1x4x2048x128xbf16>, tensor<1x4x2048x128xbf16>
  %w = attn.sliding_window left 64 right 1
  %m = attn.mask %s, %w : !attn.scores<1x4x2048x2048>
  return %m : !attn.scores<1x4x2048x2048>
}

// Read by someone else, so in memory whatever the cost; forcing changes nothing.
// CHECK-LABEL: func.func @used_elsewhere(
// CHECK: attn.placement = #attn.placement<once>}
// FORCED-LABEL: func.func @used_elsewhere(
// FORCED: attn.placement = #attn.placement<once>}
func.func @used_elsewhere(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x8x64xf32>) -> (!attn.scores<1x4x8x8>, tensor<1x4x8x64xf32>) {
  %kr = attn.rope %k : tensor<1x4x8x64xf32>
  %s = attn.scaled_dot_product %q, %kr : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  return %s, %kr : !attn.scores<1x4x8x8>, tensor<1x4x8x64xf32>
}

// Rotations one behind the other share the place of their reader.
// CHECK-LABEL: func.func @chain(
// CHECK: attn.placement = #attn.placement<prologue>
// CHECK: attn.placement = #attn.placement<prologue>
func.func @chain(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x8x64xf32>) -> !attn.scores<1x4x8x8> {
  %a = attn.rope %q {rotary_dim = 32} : tensor<1x4x8x64xf32>
  %b = attn.rope %a : tensor<1x4x8x64xf32>
  %s = attn.scaled_dot_product %b, %k : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  return %s : !attn.scores<1x4x8x8>
}
