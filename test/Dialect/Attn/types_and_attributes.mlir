// RUN: attnfuse-opt %s | attnfuse-opt | FileCheck %s
// RUN: attnfuse-opt %s --mlir-print-op-generic | attnfuse-opt | FileCheck %s

// CHECK-LABEL: func.func private @static_extents(
// CHECK-SAME: !attn.scores<2x8x100x200>, !attn.weights<2x8x100x200>, !attn.mask)
func.func private @static_extents(!attn.scores<2x8x100x200>, !attn.weights<2x8x100x200>, !attn.mask)

// CHECK-LABEL: func.func private @dynamic_extents(
// CHECK-SAME: !attn.scores<?x8x?x?>, !attn.weights<?x8x1x?>)
func.func private @dynamic_extents(!attn.scores<?x8x?x?>, !attn.weights<?x8x1x?>)

// Extents of 0 are legal, `0x` begins no hexadecimal number, and the largest
// extent is a number like others.
// CHECK-LABEL: func.func private @limits(
// CHECK-SAME: !attn.scores<0x0x0x0>, !attn.weights<0x8x0x0>, !attn.scores<9223372036854775807x8x1x4>)
func.func private @limits(!attn.scores<0x0x0x0>, !attn.weights<0x8x0x0>,
                          !attn.scores<9223372036854775807x8x1x4>)

// Only the fields that the kind has are printed.
// CHECK-LABEL: func.func private @scaling()
// CHECK-SAME: linear = #attn.rope_scaling<linear, factor = 2.000000e+00>
// CHECK-SAME: none = #attn.rope_scaling<linear, factor = 1.000000e+00>
// CHECK-SAME: ntk = #attn.rope_scaling<ntk, factor = 4.000000e+00, original = 4096>
func.func private @scaling() attributes {
  linear = #attn.rope_scaling<linear, factor = 2>,
  none = #attn.rope_scaling<linear>,
  ntk = #attn.rope_scaling<ntk, original = 4096, factor = 4.0>
}

// Defaults: the frequencies between which a kind interpolates, and YaRN's
// attention factor, 0.1 ln 4 + 1.
// CHECK-LABEL: func.func private @scaling_defaults()
// CHECK-SAME: llama = #attn.rope_scaling<llama3, factor = 8.000000e+00, original = 8192, low = 1.000000e+00, high = 4.000000e+00>
// CHECK-SAME: yarn = #attn.rope_scaling<yarn, factor = 4.000000e+00, original = 4096, low = 1.000000e+00, high = 3.200000e+01, attention = 1.1386{{[0-9]+}}>
// CHECK-SAME: yarn_set = #attn.rope_scaling<yarn, factor = 4.000000e+00, original = 4096, low = 2.000000e+00, high = 1.600000e+01, attention = 5.000000e-01>
func.func private @scaling_defaults() attributes {
  llama = #attn.rope_scaling<llama3, factor = 8.0, original = 8192>,
  yarn = #attn.rope_scaling<yarn, factor = 4.0, original = 4096>,
  yarn_set = #attn.rope_scaling<yarn, factor = 4.0, original = 4096, low = 2.0, high = 16.0, attention = 0.5>
}

// What attnfuse-run reads off arguments (docs/inputs.md) is carried along.
// CHECK-LABEL: func.func private @arguments(
// CHECK-SAME: tensor<1x8x?x64xf32> {attn.dims = ["", "", "M", ""]}
// CHECK-SAME: tensor<1x?xi32> {attn.init = "documents 50"}
func.func private @arguments(tensor<1x8x?x64xf32> {attn.dims = ["", "", "M", ""]},
                             tensor<1x?xi32> {attn.init = "documents 50"})

// Empty programs are programs: no batch entries, no rows, no keys.
// CHECK-LABEL: func.func @empty(
func.func @empty(%q: tensor<0x8x0x64xf32>, %k: tensor<0x8x0x64xf32>) -> tensor<0x8x0x64xf32> {
  // CHECK: attn.scaled_dot_product %{{.*}}, %{{.*}} : tensor<0x8x0x64xf32>, tensor<0x8x0x64xf32>
  %s = attn.scaled_dot_product %q, %k : tensor<0x8x0x64xf32>, tensor<0x8x0x64xf32>
  // CHECK: attn.softmax %{{.*}} : !attn.scores<0x8x0x0>
  %w = attn.softmax %s : !attn.scores<0x8x0x0>
  // CHECK: attn.aggregate %{{.*}}, %{{.*}} : !attn.weights<0x8x0x0>, tensor<0x8x0x64xf32>
  %o = attn.aggregate %w, %k : !attn.weights<0x8x0x0>, tensor<0x8x0x64xf32>
  return %o : tensor<0x8x0x64xf32>
}
