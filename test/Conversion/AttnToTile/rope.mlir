// RUN: attnfuse-opt %s --attn-place-rope="force=once" --attn-to-tile="block-m=32 block-n=16" --cse | FileCheck %s --check-prefix=ONCE
// RUN: attnfuse-opt %s --attn-place-rope="force=in_loop" --attn-to-tile="block-m=32 block-n=16" --cse | FileCheck %s --check-prefix=LOOP

// Once: a kernel of its own rotates the keys to f32, the main kernel reads them.
// ONCE-LABEL: func.func @k(
// ONCE:         %[[R:.*]] = tile.launch @k_rotate_k ins({{.*}}) outs({{.*}} : tensor<1x2x?x64xf32>)
// ONCE:         tile.launch @k_tile ins({{.*}}%[[R]] : {{.*}}tensor<1x2x?x64xf32>)
// ONCE-LABEL: tile.kernel @k_tile(
// ONCE:         tile.rotate
// ONCE:         scf.for
// ONCE-NOT:       tile.rotate
// ONCE:         tile.store
// ONCE-LABEL: tile.kernel @k_rotate_k(
// ONCE:         tile.angles
// ONCE-NEXT:    tile.rotate
// ONCE-NEXT:    tile.store

// In the loop: every visit of a key tile rotates it.
// LOOP-LABEL: func.func @k(
// LOOP-COUNT-1: tile.launch
// LOOP-LABEL: tile.kernel @k_tile(
// LOOP:         tile.rotate
// LOOP:         scf.for
// LOOP:           tile.angles
// LOOP-NEXT:      tile.rotate
// LOOP:         tile.store
func.func @k(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x4x?x64xbf16> attributes {attn.kernel} {
  %qr = attn.rope %q : tensor<1x4x?x64xbf16>
  %kr = attn.rope %k : tensor<1x2x?x64xbf16>
  %s = attn.scaled_dot_product %qr, %kr : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>
  %w = attn.softmax %s : !attn.scores<1x4x?x?>
  %o = attn.aggregate %w, %v : !attn.weights<1x4x?x?>, tensor<1x2x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}
