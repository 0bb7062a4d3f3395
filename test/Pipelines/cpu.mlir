// RUN: attnfuse-opt %s --attnfuse-to-tile | FileCheck %s --check-prefix=TILE
// RUN: attnfuse-opt %s --attnfuse-to-cpu | FileCheck %s --check-prefix=CPU

// TILE-LABEL: func.func @attention(
// TILE:         call @attention_kernel_0
// TILE-LABEL: func.func private @attention_kernel_0(
// TILE:         tile.launch @attention_kernel_0_tile
// TILE-LABEL: tile.kernel @attention_kernel_0_tile(

// The kernels' module is in the LLVM dialect, the host function is not touched.
// CPU-LABEL: func.func @attention(
// CPU:         call @attention_kernel_0
// CPU:         tile.launch @kernels::@attention_kernel_0_tile
// CPU-LABEL: module @kernels {
// CPU-NOT:     {{^ *(scf|arith|math|memref|vector|func)\.}}
// CPU:         llvm.func @attention_kernel_0_tile(
// CPU:           llvm.intr.fma
// CPU:         llvm.func @_mlir_ciface_attention_kernel_0_tile(
func.func @attention(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %c = attn.causal
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}
