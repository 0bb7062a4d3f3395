// RUN: attnfuse-opt %s --attn-outline --allow-unregistered-dialect --split-input-file | FileCheck %s

// The plain case: one kernel, arguments in order of use, the host keeps a call.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[V:.*]]: tensor<1x2x?x32xf32>, %[[Q:.*]]: tensor<1x4x?x64xf32>, %[[K:.*]]: tensor<1x2x?x64xf32>)
// CHECK-NEXT:    %[[O:.*]] = call @plain_kernel_0(%[[Q]], %[[K]], %[[V]])
// CHECK-NEXT:    return %[[O]]
// CHECK:       func.func private @plain_kernel_0(
// CHECK-SAME:    %[[Q1:.*]]: tensor<1x4x?x64xf32>, %[[K1:.*]]: tensor<1x2x?x64xf32>, %[[V1:.*]]: tensor<1x2x?x32xf32>) -> tensor<1x4x?x32xf32> attributes {attn.kernel}
// CHECK-NEXT:    %[[R:.*]] = attn.rope %[[Q1]]
// CHECK-NEXT:    %[[S:.*]] = attn.scaled_dot_product %[[R]], %[[K1]]
// CHECK-NEXT:    %[[C:.*]] = attn.causal
// CHECK-NEXT:    %[[M:.*]] = attn.mask %[[S]], %[[C]]
// CHECK-NEXT:    %[[W:.*]] = attn.softmax %[[M]] :
// CHECK-NEXT:    %[[A:.*]] = attn.aggregate %[[W]], %[[V1]]
// CHECK-NEXT:    return %[[A]]
func.func @plain(%v: tensor<1x2x?x32xf32>, %q: tensor<1x4x?x64xf32>, %k: tensor<1x2x?x64xf32>) -> tensor<1x4x?x32xf32> {
  %c = attn.causal
  %r = attn.rope %q : tensor<1x4x?x64xf32>
  %s = attn.scaled_dot_product %r, %k : tensor<1x4x?x64xf32>, tensor<1x2x?x64xf32>
  %m = attn.mask %s, %c : !attn.scores<1x4x?x?>
  %w = attn.softmax %m : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x2x?x32xf32>
  return %o : tensor<1x4x?x32xf32>
}

// -----

// The log-sum-exp is a second result of the first aggregate's kernel; the
// second aggregate computes the scores again, without it.
// CHECK-LABEL: func.func @shared_scores(
// CHECK-NEXT:    %[[A:.*]]:2 = call @shared_scores_kernel_0(%[[Q:.*]], %[[K:.*]], %[[V:.*]])
// CHECK-NEXT:    %[[B:.*]] = call @shared_scores_kernel_1(
// CHECK-NEXT:    return %[[A]]#0, %[[B]], %[[A]]#1
// CHECK:       func.func private @shared_scores_kernel_0({{.*}}) -> (tensor<1x4x?x64xf32>, tensor<1x4x?xf32>)
// CHECK:         %[[W:.*]], %[[L:.*]] = attn.softmax %{{.*}} lse
// CHECK-NEXT:    %[[O:.*]] = attn.aggregate %[[W]]
// CHECK-NEXT:    return %[[O]], %[[L]]
// CHECK:       func.func private @shared_scores_kernel_1({{.*}}) -> tensor<1x4x?x32xf32>
// CHECK:         %[[W1:.*]] = attn.softmax %{{[0-9]+}} : !attn.scores
// CHECK-NEXT:    attn.aggregate %[[W1]]
func.func @shared_scores(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>, %u: tensor<1x4x?x32xf32>)
    -> (tensor<1x4x?x64xf32>, tensor<1x4x?x32xf32>, tensor<1x4x?xf32>) {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w, %l = attn.softmax %s lse : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  %p = attn.aggregate %w, %u : !attn.weights<1x4x?x?>, tensor<1x4x?x32xf32>
  return %o, %p, %l : tensor<1x4x?x64xf32>, tensor<1x4x?x32xf32>, tensor<1x4x?xf32>
}

// -----

// CHECK-LABEL: func.func @lse_alone(
// CHECK-NEXT:    %[[L:.*]] = call @lse_alone_kernel_0(
// CHECK-NEXT:    return %[[L]]
// CHECK:       func.func private @lse_alone_kernel_0({{.*}}) -> tensor<1x4x?xf32>
// CHECK:         %{{.*}}, %[[R:.*]] = attn.softmax
// CHECK-NEXT:    return %[[R]]
func.func @lse_alone(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>) -> tensor<1x4x?xf32> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w, %l = attn.softmax %s lse : !attn.scores<1x4x?x?>
  return %l : tensor<1x4x?xf32>
}

// -----

// The values depend on the log-sum-exp, so one kernel cannot yield both.
// CHECK-LABEL: func.func @lse_first(
// CHECK-NEXT:    %[[L:.*]] = call @lse_first_kernel_1(%{{.*}}, %{{.*}}) : {{.*}} -> tensor<1x4x8xf32>
// CHECK-NEXT:    %[[V:.*]] = "host.values"(%[[L]])
// CHECK-NEXT:    %[[O:.*]] = call @lse_first_kernel_0(%{{.*}}, %{{.*}}, %[[V]]) : {{.*}} -> tensor<1x4x8x64xf32>
// CHECK-NEXT:    return %[[O]]
func.func @lse_first(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x8x64xf32>) -> tensor<1x4x8x64xf32> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %w, %l = attn.softmax %s lse : !attn.scores<1x4x8x8>
  %v = "host.values"(%l) : (tensor<1x4x8xf32>) -> tensor<1x4x8x64xf32>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x8x8>, tensor<1x4x8x64xf32>
  return %o : tensor<1x4x8x64xf32>
}

// -----

// The host reads the log-sum-exp ahead of the aggregate, whose operands are
// there early enough: the call moves up.
// CHECK-LABEL: func.func @lse_early(
// CHECK-NEXT:    %[[R:.*]]:2 = call @lse_early_kernel_0(
// CHECK-NEXT:    "host.use"(%[[R]]#1)
// CHECK-NEXT:    return %[[R]]#0
func.func @lse_early(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x8x64xf32>) -> tensor<1x4x8x64xf32> {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>
  %w, %l = attn.softmax %s lse : !attn.scores<1x4x8x8>
  "host.use"(%l) : (tensor<1x4x8xf32>) -> ()
  %o = attn.aggregate %w, %k : !attn.weights<1x4x8x8>, tensor<1x4x8x64xf32>
  return %o : tensor<1x4x8x64xf32>
}

// -----

// A rotated key that is returned (a cache, say) has a kernel of its own, and
// the attention rotates for itself. Rotated values are read from memory.
// CHECK-LABEL: func.func @rope_outside(
// CHECK-SAME:    %[[Q:.*]]: tensor<1x4x?x64xf32>, %[[K:.*]]: tensor<1x4x?x64xf32>, %[[P:.*]]: index)
// CHECK-NEXT:    %[[R:.*]] = call @rope_outside_kernel_0(%[[K]], %[[P]])
// CHECK-NEXT:    %[[O:.*]] = call @rope_outside_kernel_1(%[[Q]], %[[K]], %[[P]], %[[R]])
// CHECK-NEXT:    return %[[O]], %[[R]]
// CHECK:       func.func private @rope_outside_kernel_0(%[[X:.*]]: tensor<1x4x?x64xf32>, %[[N:.*]]: index)
// CHECK-NEXT:    %[[Y:.*]] = attn.rope %[[X]] at %[[N]]
// CHECK-NEXT:    return %[[Y]]
// CHECK:       func.func private @rope_outside_kernel_1(%[[Q1:.*]]: tensor<1x4x?x64xf32>, %[[K1:.*]]: tensor<1x4x?x64xf32>, %[[P1:.*]]: index, %[[V1:.*]]: tensor<1x4x?x64xf32>)
// CHECK-NEXT:    %[[KR:.*]] = attn.rope %[[K1]] at %[[P1]]
// CHECK-NEXT:    attn.scaled_dot_product %[[Q1]], %[[KR]]
// CHECK:         attn.aggregate %{{.*}}, %[[V1]]
func.func @rope_outside(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %p: index) -> (tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>) {
  %r = attn.rope %k at %p : index : tensor<1x4x?x64xf32>
  %s = attn.scaled_dot_product %q, %r : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %r : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o, %r : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
}

// -----

// Captures: a tensor and a scalar that a region reads are arguments, a scalar
// constant is copied, a constant table stays with the host.
// CHECK-LABEL: func.func @captures(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<1x4x?x64xf32>, %[[T:[a-z0-9]+]]: tensor<?xf32>, %[[G:[a-z0-9]+]]: f32)
// CHECK-NEXT:    %[[B:.*]] = arith.constant dense<true> : tensor<1x1x1x1xi1>
// CHECK-NEXT:    %[[O:.*]] = call @captures_kernel_0(%[[Q]], %[[T]], %[[G]], %[[B]])
// CHECK-NEXT:    return %[[O]]
// CHECK:       func.func private @captures_kernel_0(%[[Q1:.*]]: tensor<1x4x?x64xf32>, %[[T1:.*]]: tensor<?xf32>, %[[G1:.*]]: f32, %[[B1:.*]]: tensor<1x1x1x1xi1>)
// CHECK-DAG:     %[[C:.*]] = arith.constant 7 : index
// CHECK-DAG:     %[[S:.*]] = attn.scaled_dot_product %[[Q1]], %[[Q1]]
// CHECK:         attn.score_mod %[[S]]
// CHECK:           %[[I:.*]] = arith.addi %{{.*}}, %[[C]] : index
// CHECK:           %[[E:.*]] = tensor.extract %[[T1]][%[[I]]]
// CHECK:           arith.mulf %[[E]], %[[G1]]
// CHECK:         attn.block_sparse %[[B1]]
func.func @captures(%q: tensor<1x4x?x64xf32>, %t: tensor<?xf32>, %g: f32) -> tensor<1x4x?x64xf32> {
  %c7 = arith.constant 7 : index
  %table = arith.constant dense<true> : tensor<1x1x1x1xi1>
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %x = attn.score_mod %s : !attn.scores<1x4x?x?> {
  ^bb0(%y: f32, %b: index, %h: index, %i: index, %j: index):
    %at = arith.addi %j, %c7 : index
    %e = tensor.extract %t[%at] : tensor<?xf32>
    %f = arith.mulf %e, %g : f32
    %z = arith.addf %y, %f : f32
    attn.yield %z : f32
  }
  %m = attn.block_sparse %table blocks [64, 64] : tensor<1x1x1x1xi1>
  %n = attn.mask %x, %m : !attn.scores<1x4x?x?>
  %w = attn.relu_attention %n : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %q : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}

// -----

// Two layers with a host operation between them; kernels made before and
// functions without attention are left alone.
// CHECK-LABEL: func.func @layers(
// CHECK-NEXT:    %[[A:.*]] = call @layers_kernel_0(%[[Q:.*]]) :
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[A]], %[[Q]]
// CHECK-NEXT:    %[[C:.*]] = call @layers_kernel_1(%[[B]])
// CHECK-NEXT:    return %[[C]]
// CHECK-LABEL: func.func private @made_before(
// CHECK:         attn.aggregate
// CHECK-NOT:   made_before_kernel
// CHECK:       func.func @other
func.func @layers(%q: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> {
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %q : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  %h = arith.addf %o, %q : tensor<1x4x?x64xf32>
  %s1 = attn.scaled_dot_product %h, %h : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w1 = attn.softmax %s1 : !attn.scores<1x4x?x?>
  %o1 = attn.aggregate %w1, %h : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o1 : tensor<1x4x?x64xf32>
}
func.func private @made_before(%q: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %q : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %q : !attn.weights<1x4x?x?>, tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
}
func.func @other(%x: f32) -> f32 {
  return %x : f32
}
