// RUN: attnfuse-opt %s --allow-unregistered-dialect --pass-pipeline="builtin.module(func.func(attn-canonicalize))" --split-input-file | FileCheck %s

// The default scale is written out, and is the same as the number by hand.
// CHECK-LABEL: func.func @default_scale(
// CHECK:         attn.scaled_dot_product %{{.*}}, %{{.*}} scale 1.250000e-01
func.func @default_scale(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>) -> !attn.scores<1x4x?x?> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  return %s : !attn.scores<1x4x?x?>
}
// CHECK-LABEL: func.func @scale_by_hand(
// CHECK:         attn.scaled_dot_product %{{.*}}, %{{.*}} scale 1.250000e-01
func.func @scale_by_hand(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>) -> !attn.scores<1x4x?x?> {
  %s = attn.scaled_dot_product %q, %k scale 0.125 : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  return %s : !attn.scores<1x4x?x?>
}

// -----

// Factors of the query, of the key, behind a rotation and on the scores.
// CHECK-LABEL: func.func @scales(
// CHECK-NEXT:    %[[QR:.*]] = attn.rope %arg0 :
// CHECK-NEXT:    %[[KR:.*]] = attn.rope %arg1 :
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product %[[QR]], %[[KR]] scale -7.500000e-01
// CHECK-NEXT:    return %[[S]]
func.func @scales(%q: tensor<1x4x8x64xf16>, %k: tensor<1x4x?x64xf16>, %n: index) -> !attn.scores<1x4x8x?> {
  %two = arith.constant dense<2.0> : tensor<1x4x8x64xf16>
  %q2 = arith.mulf %two, %q : tensor<1x4x8x64xf16>
  %qr = attn.rope %q2 : tensor<1x4x8x64xf16>
  %three = arith.constant 3.0 : f16
  %threes = tensor.splat %three[%n] : tensor<1x4x?x64xf16>
  %kr = attn.rope %k : tensor<1x4x?x64xf16>
  %k3 = arith.mulf %kr, %threes : tensor<1x4x?x64xf16>
  %s = attn.scaled_dot_product %qr, %k3 : tensor<1x4x8x64xf16>, tensor<1x4x?x64xf16>
  %t = attn.score_mod %s : !attn.scores<1x4x8x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 4.0 : f32
    %y = arith.divf %x, %c : f32
    attn.yield %y : f32
  }
  %u = attn.score_mod %t : !attn.scores<1x4x8x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 4.0 : f32
    %y = arith.mulf %c, %x : f32
    %z = arith.negf %y : f32
    attn.yield %z : f32
  }
  return %u : !attn.scores<1x4x8x?>
}

// -----

// A scaled tensor with another reader keeps its scale where it is rotated.
// CHECK-LABEL: func.func @scale_read_elsewhere(
// CHECK:         %[[M:.*]] = arith.mulf %arg0,
// CHECK-NEXT:    %[[R:.*]] = attn.rope %[[M]]
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product %[[R]], %arg0 scale 1.250000e-01
// CHECK-NEXT:    return %[[S]], %[[R]]
func.func @scale_read_elsewhere(%q: tensor<1x4x8x64xf32>) -> (!attn.scores<1x4x8x8>, tensor<1x4x8x64xf32>) {
  %two = arith.constant dense<2.0> : tensor<1x4x8x64xf32>
  %q2 = arith.mulf %q, %two : tensor<1x4x8x64xf32>
  %qr = attn.rope %q2 : tensor<1x4x8x64xf32>
  %s = attn.scaled_dot_product %qr, %q : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  return %s, %qr : !attn.scores<1x4x8x8>, tensor<1x4x8x64xf32>
}

// -----

// Factors that are not finite, or not the same everywhere, are no scale.
// CHECK-LABEL: func.func @not_scales(
// CHECK-DAG:     %[[A:.*]] = arith.mulf %arg0,
// CHECK-DAG:     %[[B:.*]] = arith.mulf %arg1,
// CHECK:         attn.scaled_dot_product %[[A]], %[[B]] scale 0.707
func.func @not_scales(%q: tensor<1x1x1x2xf32>, %k: tensor<1x1x1x2xf32>) -> !attn.scores<1x1x1x1> {
  %inf = arith.constant dense<0x7F800000> : tensor<1x1x1x2xf32>
  %two = arith.constant dense<[[[[1.0, 2.0]]]]> : tensor<1x1x1x2xf32>
  %q2 = arith.mulf %q, %inf : tensor<1x1x1x2xf32>
  %k2 = arith.mulf %k, %two : tensor<1x1x1x2xf32>
  %s = attn.scaled_dot_product %q2, %k2 : tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>
  return %s : !attn.scores<1x1x1x1>
}

// -----

// Away from the product, multiplications merge with one another; one by 1 is
// dropped.
// CHECK-LABEL: func.func @later_scales(
// CHECK:         %[[C:.*]] = attn.softcap %{{.*}} cap
// CHECK-NEXT:    %[[M:.*]] = attn.score_mod %[[C]]
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32,
// CHECK-NEXT:      %[[K:.*]] = arith.constant 6.000000e+00 : f32
// CHECK-NEXT:      %[[Y:.*]] = arith.mulf %[[X]], %[[K]] : f32
// CHECK-NEXT:      attn.yield %[[Y]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[M]]
func.func @later_scales(%q: tensor<1x4x?x64xf32>) -> !attn.scores<1x4x?x?> {
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %t = attn.softcap %s cap 50.0 : !attn.scores<1x4x?x?>
  %u = attn.score_mod %t : !attn.scores<1x4x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 2.0 : f32
    %y = arith.mulf %c, %x : f32
    attn.yield %y : f32
  }
  %id = attn.score_mod %u : !attn.scores<1x4x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    attn.yield %x : f32
  }
  %v = attn.score_mod %id : !attn.scores<1x4x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 3.0 : f32
    %y = arith.mulf %x, %c : f32
    attn.yield %y : f32
  }
  return %v : !attn.scores<1x4x?x?>
}

// -----

// Alibi, then biases by operand, in each of two ways to write it.
// CHECK-LABEL: func.func @additions_a(
// CHECK:         %[[A:.*]] = attn.alibi
// CHECK-NEXT:    %[[B:.*]] = attn.alibi %[[A]] slopes(%arg1
// CHECK-NEXT:    %[[C:.*]] = attn.additive_bias %[[B]], %arg2
// CHECK-NEXT:    %[[D:.*]] = attn.additive_bias %[[C]], %arg3
// CHECK-NEXT:    return %[[D]]
func.func @additions_a(%q: tensor<1x4x8x64xf32>, %m: tensor<4xf32>, %x: tensor<1x1x8x8xf32>, %y: tensor<1x1x8x8xf32>) -> !attn.scores<1x4x8x8> {
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %a = attn.additive_bias %s, %y : !attn.scores<1x4x8x8>, tensor<1x1x8x8xf32>
  %b = attn.additive_bias %a, %x : !attn.scores<1x4x8x8>, tensor<1x1x8x8xf32>
  %c = attn.alibi %b slopes(%m : tensor<4xf32>) : !attn.scores<1x4x8x8>
  %d = attn.alibi %c : !attn.scores<1x4x8x8>
  return %d : !attn.scores<1x4x8x8>
}
// CHECK-LABEL: func.func @additions_b(
// CHECK:         %[[A:.*]] = attn.alibi
// CHECK-NEXT:    %[[B:.*]] = attn.alibi %[[A]] slopes(%arg1
// CHECK-NEXT:    %[[C:.*]] = attn.additive_bias %[[B]], %arg2
// CHECK-NEXT:    %[[D:.*]] = attn.additive_bias %[[C]], %arg3
// CHECK-NEXT:    return %[[D]]
func.func @additions_b(%q: tensor<1x4x8x64xf32>, %m: tensor<4xf32>, %x: tensor<1x1x8x8xf32>, %y: tensor<1x1x8x8xf32>) -> !attn.scores<1x4x8x8> {
  %s = attn.scaled_dot_product %q, %q scale 0.125 : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %a = attn.alibi %s slopes(%m : tensor<4xf32>) : !attn.scores<1x4x8x8>
  %b = attn.additive_bias %a, %x : !attn.scores<1x4x8x8>, tensor<1x1x8x8xf32>
  %c = attn.alibi %b : !attn.scores<1x4x8x8>
  %d = attn.additive_bias %c, %y : !attn.scores<1x4x8x8>, tensor<1x1x8x8xf32>
  return %d : !attn.scores<1x4x8x8>
}

// -----

// A cap is not an addition: what stands before it stays there.
// CHECK-LABEL: func.func @cap_between(
// CHECK:         attn.additive_bias
// CHECK-NEXT:    attn.softcap
// CHECK-NEXT:    attn.alibi
func.func @cap_between(%q: tensor<1x4x8x64xf32>, %x: tensor<1x1x8x8xf32>) -> !attn.scores<1x4x8x8> {
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %a = attn.additive_bias %s, %x : !attn.scores<1x4x8x8>, tensor<1x1x8x8xf32>
  %b = attn.softcap %a cap 30.0 : !attn.scores<1x4x8x8>
  %c = attn.alibi %b : !attn.scores<1x4x8x8>
  return %c : !attn.scores<1x4x8x8>
}

// -----

// Rotations: the width as rotary width, a base beside tables and a constant
// offset are other ways to write what is there.
// CHECK-LABEL: func.func @ropes(
// CHECK-NEXT:    %[[A:.*]] = attn.rope %arg0 {position = 12 : i64} :
// CHECK-NEXT:    %[[B:.*]] = attn.rope %arg0 tables(%arg1, %arg1 : tensor<64x32xf32>, tensor<64x32xf32>) :
// CHECK-NEXT:    %[[C:.*]] = attn.rope %arg0 {rotary_dim = 32 : i64}
// CHECK-NEXT:    return %[[A]], %[[A]], %[[B]], %[[C]]
func.func @ropes(%q: tensor<1x4x8x64xf32>, %t: tensor<64x32xf32>) -> (tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>) {
  %c4 = arith.constant 4 : i32
  %c = attn.rope %q {rotary_dim = 32} : tensor<1x4x8x64xf32>
  %b = attn.rope %q tables(%t, %t : tensor<64x32xf32>, tensor<64x32xf32>) {base = 5.0e+05, rotary_dim = 64} : tensor<1x4x8x64xf32>
  %a0 = attn.rope %q at %c4 : i32 {position = 8} : tensor<1x4x8x64xf32>
  %a1 = attn.rope %q {rotary_dim = 64, position = 12} : tensor<1x4x8x64xf32>
  return %a0, %a1, %b, %c : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
}

// -----

// Order of writing, repeated and unused operations, and where the constants of
// a region stand.
// CHECK-LABEL: func.func @layout_a(
// CHECK-NEXT:    %[[QR:.*]] = attn.rope %arg0 :
// CHECK-NEXT:    %[[KR:.*]] = attn.rope %arg1 :
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product %[[QR]], %[[KR]]
// CHECK-NEXT:    %[[X:.*]] = attn.score_mod %[[S]]
// CHECK-NEXT:    ^bb0(%[[V:[^:]*]]: f32, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK-NEXT:      %[[C:.*]] = arith.constant 5 : index
// CHECK-NEXT:      %[[K:.*]] = arith.addi %[[J]], %[[C]] : index
// CHECK-NEXT:      %[[E:.*]] = tensor.extract %arg2[%[[K]]]
// CHECK-NEXT:      %[[Z:.*]] = arith.addf %[[V]], %[[E]] : f32
// CHECK-NEXT:      attn.yield %[[Z]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[X]], %[[X]]
func.func @layout_a(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x8x64xf32>, %t: tensor<?xf32>) -> (!attn.scores<1x4x8x8>, !attn.scores<1x4x8x8>) {
  %c5 = arith.constant 5 : index
  %kr = attn.rope %k : tensor<1x4x8x64xf32>
  %qr = attn.rope %q : tensor<1x4x8x64xf32>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %unused = attn.softcap %s cap 30.0 : !attn.scores<1x4x8x8>
  %x = attn.score_mod %s : !attn.scores<1x4x8x8> {
  ^bb0(%v: f32, %b: index, %h: index, %i: index, %j: index):
    %at = arith.addi %c5, %j : index
    %e = tensor.extract %t[%at] : tensor<?xf32>
    %z = arith.addf %e, %v : f32
    attn.yield %z : f32
  }
  %y = attn.score_mod %s : !attn.scores<1x4x8x8> {
  ^bb0(%v: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 5 : index
    %at = arith.addi %j, %c : index
    %e = tensor.extract %t[%at] : tensor<?xf32>
    %dead = arith.addf %e, %e : f32
    %z = arith.addf %v, %e : f32
    attn.yield %z : f32
  }
  return %x, %y : !attn.scores<1x4x8x8>, !attn.scores<1x4x8x8>
}

// -----

// What has an effect keeps its order; what has none comes where it is read.
// CHECK-LABEL: func.func @effects(
// CHECK-NEXT:    "host.first"() : () -> ()
// CHECK-NEXT:    "host.second"() : () -> ()
// CHECK-NEXT:    %[[A:.*]] = attn.rope %arg0
// CHECK-NEXT:    %[[B:.*]] = "host.third"(%[[A]])
// CHECK-NEXT:    %[[C:.*]] = attn.rope %[[B]]
// CHECK-NEXT:    return %[[C]]
func.func @effects(%q: tensor<1x4x8x64xf32>) -> tensor<1x4x8x64xf32> {
  %a = attn.rope %q : tensor<1x4x8x64xf32>
  "host.first"() : () -> ()
  "host.second"() : () -> ()
  %b = "host.third"(%a) : (tensor<1x4x8x64xf32>) -> tensor<1x4x8x64xf32>
  %c = attn.rope %b : tensor<1x4x8x64xf32>
  return %c : tensor<1x4x8x64xf32>
}

// -----

// CHECK: func.func private @declared(tensor<1x4x8x64xf32>)
func.func private @declared(tensor<1x4x8x64xf32>)
