// RUN: attnfuse-opt %s | attnfuse-opt | FileCheck %s
// RUN: attnfuse-opt %s --mlir-print-op-generic | attnfuse-opt | FileCheck %s

// CHECK-LABEL: func.func @leaves(
func.func @leaves(%s: tensor<1x1x4x4xi1>, %ids: tensor<2x?xi32>, %n: tensor<2xi32>, %p: index) {
  // CHECK: attn.full
  %0 = attn.full
  // CHECK-NEXT: attn.causal{{$}}
  %1 = attn.causal
  // CHECK-NEXT: attn.causal{{$}}
  %2 = attn.causal bottom_right
  // CHECK-NEXT: attn.causal top_left shift -1
  %3 = attn.causal top_left shift -1
  // CHECK-NEXT: attn.causal offset(%{{.*}} : index)
  %4 = attn.causal offset(%p : index)
  // CHECK-NEXT: attn.sliding_window left 7 right 1
  %5 = attn.sliding_window left 7 right 1
  // CHECK-NEXT: attn.sliding_window left 7 top_left
  %6 = attn.sliding_window left 7 top_left
  // CHECK-NEXT: attn.sliding_window right 7 offset(%{{.*}} : tensor<2xi32>)
  %7 = attn.sliding_window right 7 offset(%n : tensor<2xi32>)
  // CHECK-NEXT: attn.block_sparse %{{.*}} blocks [64, 32] : tensor<1x1x4x4xi1>
  %8 = attn.block_sparse %s blocks [64, 32] : tensor<1x1x4x4xi1>
  // CHECK-NEXT: attn.document %{{.*}} : tensor<2x?xi32>
  %9 = attn.document %ids : tensor<2x?xi32>
  // CHECK-NEXT: attn.document %{{.*}}, %{{.*}} : tensor<2x?xi32>, tensor<2x?xi32>
  %10 = attn.document %ids, %ids : tensor<2x?xi32>, tensor<2x?xi32>
  // CHECK-NEXT: attn.prefix 16
  %11 = attn.prefix 16
  // CHECK-NEXT: attn.prefix lengths(%{{.*}} : tensor<2xi32>)
  %12 = attn.prefix lengths(%n : tensor<2xi32>)
  // CHECK-NEXT: attn.mask_mod {
  %13 = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpi sle, %j, %i : index
    // CHECK: attn.yield %{{.*}} : i1
    attn.yield %c : i1
  }
  // CHECK: attn.and %{{.*}}, %{{.*}}, %{{.*}}
  %14 = attn.and %1, %5, %9
  // CHECK-NEXT: attn.or %{{.*}}, %{{.*}}
  %15 = attn.or %14, %11
  // CHECK-NEXT: attn.not %{{.*}}
  %16 = attn.not %15
  return
}
