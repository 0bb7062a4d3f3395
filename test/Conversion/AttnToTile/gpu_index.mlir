// RUN: attnfuse-opt %s --attn-to-tile="chip=sm_80" --canonicalize --cse --split-input-file | FileCheck %s
// RUN: attnfuse-opt %s --attn-to-tile="chip=cpu-avx2" --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: attnfuse-opt %s --attnfuse-to-ptx="chip=sm_80" --split-input-file -o /dev/null
// RUN: attnfuse-opt %s --attnfuse-to-ptx="chip=sm_90a" --split-input-file -o /dev/null

// Index values of a region have 64 bits; in a kernel for a GPU `index` has 32.

// Comparisons, differences of positions, distances with an offset, and
// alignment by the extents stay on index.
// CPU-LABEL: tile.kernel @usual_tile(
// CHECK-LABEL: tile.kernel @usual_tile(
// CHECK-SAME: num_outputs = 1 : i64
// CHECK-NOT: i64
// CHECK: tile.return
func.func @usual(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %c2 = arith.constant 2 : index
  %nq = tensor.dim %q, %c2 : tensor<1x4x?x64xbf16>
  %nk = tensor.dim %k, %c2 : tensor<1x4x?x64xbf16>
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %n = attn.score_mod %s : !attn.scores<1x4x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c100 = arith.constant 100 : index
    %c16 = arith.constant 16 : index
    %d = arith.subi %i, %j : index
    %near = arith.cmpi slt, %d, %c100 : index
    %o = arith.addi %i, %nk : index
    %a = arith.subi %o, %nq : index
    %past = arith.cmpi sle, %j, %a : index
    %bi = arith.divsi %i, %c16 : index
    %bj = arith.remui %j, %c16 : index
    %same = arith.cmpi eq, %bi, %bj : index
    %l = arith.ori %near, %past : i1
    %m = arith.andi %l, %same : i1
    %zero = arith.constant 0.0 : f32
    %y = arith.select %m, %x, %zero : f32
    attn.yield %y : f32
  }
  %w = attn.softmax %n : !attn.scores<1x4x?x?>
  %r = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %r : tensor<1x4x?x64xbf16>
}

// -----

// A product that may be beyond 2^31, and what follows from it.
// CHECK-LABEL: tile.kernel @product_tile(
// CHECK-DAG: %[[M:.*]] = arith.constant 100000 : i64
// CHECK-DAG: %[[P:.*]] = arith.constant 7 : i64
// CHECK: tile.map
// CHECK:   %[[I:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK-NEXT: %[[IM:.*]] = arith.muli %[[I]], %[[M]] : i64
// CHECK-NEXT: %[[J:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[IM]], %[[J]] : i64
// CHECK-NEXT: %[[R:.*]] = arith.remsi %[[S]], %[[P]] : i64
// CHECK-NEXT: arith.cmpi eq, %[[R]], %{{.*}} : i64
// A CPU's index is as wide as it has to be.
// CPU-LABEL: tile.kernel @product_tile(
// CPU-SAME: num_outputs = 1 : i64
// CPU-NOT: : i64
// CPU: arith.muli %{{.*}}, %{{.*}} : index
// CPU-NOT: : i64
// CPU: tile.return
func.func @product(%q: tensor<1x4x65536x64xbf16>, %k: tensor<1x4x65536x64xbf16>, %v: tensor<1x4x65536x64xbf16>) -> tensor<1x4x65536x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x65536x64xbf16>, tensor<1x4x65536x64xbf16>
  %mask = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c100000 = arith.constant 100000 : index
    %c7 = arith.constant 7 : index
    %c0 = arith.constant 0 : index
    %a = arith.muli %i, %c100000 : index
    %n = arith.addi %a, %j : index
    %t = arith.remsi %n, %c7 : index
    %y = arith.cmpi eq, %t, %c0 : index
    attn.yield %y : i1
  }
  %n = attn.mask %s, %mask : !attn.scores<1x4x65536x65536>
  %w = attn.softmax %n : !attn.scores<1x4x65536x65536>
  %r = attn.aggregate %w, %v : !attn.weights<1x4x65536x65536>, tensor<1x4x65536x64xbf16>
  return %r : tensor<1x4x65536x64xbf16>
}

// -----

// The same with extents that are known to be small: 1023 * 1024 + 1023.
// CHECK-LABEL: tile.kernel @small_tile(
// CHECK-SAME: num_outputs = 1 : i64
// CHECK-NOT: i64
// CHECK: arith.muli %{{.*}}, %{{.*}} : index
// CHECK-NOT: i64
// CHECK: tile.return
// CPU-LABEL: tile.kernel @small_tile(
func.func @small(%q: tensor<1x4x1024x64xbf16>, %k: tensor<1x4x1024x64xbf16>, %v: tensor<1x4x1024x64xbf16>) -> tensor<1x4x1024x64xbf16> attributes {attn.kernel} {
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x1024x64xbf16>, tensor<1x4x1024x64xbf16>
  %mask = attn.mask_mod {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c1024 = arith.constant 1024 : index
    %c7 = arith.constant 7 : index
    %a = arith.muli %i, %c1024 : index
    %n = arith.addi %a, %j : index
    %t = arith.remsi %n, %c7 : index
    %y = arith.cmpi ne, %t, %c7 : index
    attn.yield %y : i1
  }
  %n = attn.mask %s, %mask : !attn.scores<1x4x1024x1024>
  %w = attn.softmax %n : !attn.scores<1x4x1024x1024>
  %r = attn.aggregate %w, %v : !attn.weights<1x4x1024x1024>, tensor<1x4x1024x64xbf16>
  return %r : tensor<1x4x1024x64xbf16>
}

// -----

// Constants, casts and captured arithmetic are as wide; an index into a tensor
// is brought into the tensor's extents before it is narrow.
// CHECK-LABEL: tile.kernel @casts_tile(
// CHECK-DAG: %[[BIG:.*]] = arith.constant 5000000000 : i64
// CHECK: tile.map
// CHECK: %[[T:.*]] = arith.addi %{{.*}}, %[[BIG]] : i64
// CHECK: %[[LOW:.*]] = arith.maxsi %[[T]], %c0_i64 : i64
// CHECK: %[[MOST:.*]] = arith.minsi %[[LOW]], %c2147483647_i64 : i64
// CHECK: %[[AT:.*]] = arith.index_cast %[[MOST]] : i64 to index
// CHECK: tile.read %{{.*}}[%[[AT]]] : !tile.view<?xf32>
// CHECK: arith.trunci %[[T]] : i64 to i32
// The same without a change of type: index is as wide as i64 in a program.
// CHECK: arith.xori %[[T]], %{{.*}} : i64
// CPU-LABEL: tile.kernel @casts_tile(
func.func @casts(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>, %t: tensor<?xf32>, %u: index) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %big = arith.constant 5000000000 : index
  %s = attn.scaled_dot_product %q, %k : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>
  %n = attn.score_mod %s : !attn.scores<1x4x?x?> {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %at = arith.addi %i, %big : index
    %e = tensor.extract %t[%at] : tensor<?xf32>
    %n32 = arith.index_cast %at : index to i32
    %n64 = arith.index_cast %at : index to i64
    %p = arith.muli %n32, %n32 : i32
    %f = arith.sitofp %p : i32 to f32
    %back = arith.extsi %p : i32 to i64
    %z = arith.xori %n64, %back : i64
    %g = arith.sitofp %z : i64 to f32
    %w = arith.muli %u, %u : index
    %l = arith.cmpi slt, %j, %w : index
    %m = arith.addf %e, %f : f32
    %o = arith.addf %m, %g : f32
    %y = arith.select %l, %o, %x : f32
    attn.yield %y : f32
  }
  %w = attn.softmax %n : !attn.scores<1x4x?x?>
  %r = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x4x?x64xbf16>
  return %r : tensor<1x4x?x64xbf16>
}
