// RUN: attnfuse-opt %s --allow-unregistered-dialect | attnfuse-opt --allow-unregistered-dialect | FileCheck %s
// RUN: attnfuse-opt %s --allow-unregistered-dialect --mlir-print-op-generic | attnfuse-opt --allow-unregistered-dialect | FileCheck %s

// CHECK-LABEL: func.func @rotations(
func.func @rotations(%q: tensor<2x8x?x64xf32>, %p: index, %b: tensor<2xi32>, %c: tensor<4096x16xf32>) {
  // CHECK: attn.rope %{{.*}} : tensor<2x8x?x64xf32>
  %0 = attn.rope %q : tensor<2x8x?x64xf32>
  // CHECK: attn.rope %{{.*}} at %{{.*}} : index interleaved {base = 5.000000e+05 : f64, rotary_dim = 32 : i64} : tensor<2x8x?x64xf32>
  %1 = attn.rope %q at %p : index interleaved {base = 5.0e+05, rotary_dim = 32 : i64} : tensor<2x8x?x64xf32>
  // CHECK: attn.rope %{{.*}} at %{{.*}} : tensor<2xi32> tables(%{{.*}}, %{{.*}} : tensor<4096x16xf32>, tensor<4096x16xf32>) {rotary_dim = 32 : i64} : tensor<2x8x?x64xf32>
  %2 = attn.rope %q at %b : tensor<2xi32> tables(%c, %c : tensor<4096x16xf32>, tensor<4096x16xf32>) {rotary_dim = 32 : i64} : tensor<2x8x?x64xf32>
  // CHECK: attn.rope %{{.*}} {position = 7 : i64, scaling = #attn.rope_scaling<linear, factor = 2.000000e+00>} : tensor<2x8x?x64xf32>
  %3 = attn.rope %q {position = 7 : i64, scaling = #attn.rope_scaling<linear, factor = 2.0>} : tensor<2x8x?x64xf32>
  return
}

// CHECK-LABEL: func.func @scores(
func.func @scores(%q: tensor<2x8x?x64xf32>, %k: tensor<2x2x?x64xf32>, %v: tensor<2x2x?x32xf16>,
                  %z: tensor<8xf32>, %bias: tensor<1x8x?x?xbf16>) {
  // CHECK: %[[S:.*]] = attn.scaled_dot_product %{{.*}}, %{{.*}} : tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>
  %s = attn.scaled_dot_product %q, %k : tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>
  // CHECK: attn.scaled_dot_product %{{.*}}, %{{.*}} scale 1.250000e-01 : tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>
  %t = attn.scaled_dot_product %q, %k scale 0.125 : tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>
  // CHECK: attn.alibi %[[S]] : !attn.scores<2x8x?x?>
  %a = attn.alibi %s : !attn.scores<2x8x?x?>
  // CHECK: attn.alibi %{{.*}} slopes(%{{.*}} : tensor<8xf32>) : !attn.scores<2x8x?x?>
  %b = attn.alibi %a slopes(%z : tensor<8xf32>) : !attn.scores<2x8x?x?>
  // CHECK: attn.additive_bias %{{.*}}, %{{.*}} : !attn.scores<2x8x?x?>, tensor<1x8x?x?xbf16>
  %c = attn.additive_bias %b, %bias : !attn.scores<2x8x?x?>, tensor<1x8x?x?xbf16>
  // CHECK: attn.softcap %{{.*}} cap 5.000000e+01 : !attn.scores<2x8x?x?>
  %d = attn.softcap %c cap 50.0 : !attn.scores<2x8x?x?>
  // CHECK: attn.score_mod %{{.*}} : !attn.scores<2x8x?x?> {
  %e = attn.score_mod %d : !attn.scores<2x8x?x?> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
  ^bb0(%x: f32, %bb: index, %h: index, %i: index, %j: index):
    %y = arith.addf %x, %x : f32
    // CHECK: attn.yield %{{.*}} : f32
    attn.yield %y : f32
  }
  // CHECK: attn.softmax %{{.*}} : !attn.scores<2x8x?x?>
  %w = attn.softmax %e : !attn.scores<2x8x?x?>
  // CHECK: attn.softmax %{{.*}} sinks(%{{.*}} : tensor<8xf32>) lse : !attn.scores<2x8x?x?>
  %w2, %lse = attn.softmax %e sinks(%z : tensor<8xf32>) lse : !attn.scores<2x8x?x?>
  // CHECK: attn.relu_attention %{{.*}} : !attn.scores<2x8x?x?>
  %w3 = attn.relu_attention %e : !attn.scores<2x8x?x?>
  // CHECK: attn.relu_attention %{{.*}} mean : !attn.scores<2x8x?x?>
  %w4 = attn.relu_attention %e mean : !attn.scores<2x8x?x?>
  // CHECK: attn.aggregate %{{.*}}, %{{.*}} : !attn.weights<2x8x?x?>, tensor<2x2x?x32xf16>
  %o = attn.aggregate %w, %v : !attn.weights<2x8x?x?>, tensor<2x2x?x32xf16>
  return
}

// Extents are inferred from whichever side has them.
// CHECK-LABEL: func.func @inference(
func.func @inference(%q: tensor<?x4x10x64xf32>, %k: tensor<3x4x20x64xf32>, %v: tensor<3x4x20x16xbf16>) {
  // CHECK: attn.softmax %{{.*}} : !attn.scores<3x4x10x20>
  %s = attn.scaled_dot_product %q, %k : tensor<?x4x10x64xf32>, tensor<3x4x20x64xf32>
  %w = attn.softmax %s : !attn.scores<3x4x10x20>
  %o = attn.aggregate %w, %v : !attn.weights<3x4x10x20>, tensor<3x4x20x16xbf16>
  // CHECK: "use"(%{{.*}}) : (tensor<3x4x10x16xbf16>)
  "use"(%o) : (tensor<3x4x10x16xbf16>) -> ()
  return
}
