//===- DeviceKernels.h - PTX for the tests on a GPU -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two kernels by hand, with the parameters that docs/runtime.md gives them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TEST_UNIT_RUNTIME_DEVICEKERNELS_H
#define ATTNFUSE_TEST_UNIT_RUNTIME_DEVICEKERNELS_H

/// out[i] = factor x[i]. A block takes the tile of 128 elements that the
/// counter gives it: all are done only if the counter started at 0.
inline constexpr const char *kScalePtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(
  .param .u64 x, .param .u64 x_extent, .param .u64 x_stride,
  .param .f32 factor,
  .param .u64 out, .param .u64 out_extent, .param .u64 out_stride,
  .param .u64 counter)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %d<16>;
  .reg .f32 %f<4>;
  .shared .align 4 .b32 tile;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra TAKEN;
  ld.param.u64 %d1, [counter];
  cvta.to.global.u64 %d1, %d1;
  atom.global.add.u32 %r2, [%d1], 1;
  st.shared.u32 [tile], %r2;
TAKEN:
  bar.sync 0;
  ld.shared.u32 %r3, [tile];
  mad.lo.u32 %r4, %r3, 128, %r1;
  cvt.u64.u32 %d2, %r4;
  ld.param.u64 %d3, [x_extent];
  setp.ge.u64 %p2, %d2, %d3;
  @%p2 bra DONE;
  ld.param.u64 %d4, [x];
  cvta.to.global.u64 %d4, %d4;
  ld.param.u64 %d5, [x_stride];
  mul.lo.s64 %d6, %d2, %d5;
  shl.b64 %d6, %d6, 2;
  add.s64 %d7, %d4, %d6;
  ld.global.f32 %f1, [%d7];
  ld.param.f32 %f2, [factor];
  mul.f32 %f3, %f1, %f2;
  ld.param.u64 %d8, [out];
  cvta.to.global.u64 %d8, %d8;
  ld.param.u64 %d9, [out_stride];
  mul.lo.s64 %d10, %d2, %d9;
  shl.b64 %d10, %d10, 2;
  add.s64 %d11, %d8, %d10;
  st.global.f32 [%d11], %f3;
DONE:
  ret;
}
)";

inline constexpr const char *kScaleManifest = R"({
  "version": 1, "chip": "sm_80", "ptx": 70, "entry": "scale",
  "arguments": [{"name": "x", "dtype": "f32", "shape": [null]},
                {"name": "factor", "dtype": "f32"}],
  "results": [{"dtype": "f32", "shape": [{"argument": 0, "dimension": 0}]}],
  "steps": [{"kernel": "scale", "threads": 128,
    "grid": [{"operand": 0, "dimension": 0, "divisor": 128}],
    "operands": [{"argument": 0}, {"argument": 1}, {"result": 0}],
    "extras": [{"counter": true}]}]})";

/// Copies (1, 1, N, 64) of bf16 through a tensor map with a box of 32 rows.
inline constexpr const char *kTensorMapPtx = R"(
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 tile[];
.visible .entry copy(
  .param .u64 x,
  .param .u64 xe0, .param .u64 xs0, .param .u64 xe1, .param .u64 xs1,
  .param .u64 xe2, .param .u64 xs2, .param .u64 xe3, .param .u64 xs3,
  .param .u64 out,
  .param .u64 oe0, .param .u64 os0, .param .u64 oe1, .param .u64 os1,
  .param .u64 oe2, .param .u64 os2, .param .u64 oe3, .param .u64 os3,
  .param .align 64 .b8 map[128])
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %d<16>;
  .reg .b32 %v<8>;
  .shared .align 8 .b64 barrier;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 5;
  mov.u32 %r4, barrier;
  mov.u32 %r5, tile;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra ISSUED;
  mbarrier.init.shared.b64 [%r4], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %d1, [%r4], 4096;
  mov.b64 %d2, map;
  cvta.param.u64 %d3, %d2;
  mov.u32 %r6, 0;
  cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r5], [%d3, {%r6, %r3, %r6, %r6}], [%r4];
ISSUED:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
  @!%p2 bra WAIT;
  shr.u32 %r7, %r1, 2;
  add.u32 %r8, %r7, %r3;
  cvt.u64.u32 %d4, %r8;
  ld.param.u64 %d5, [oe2];
  setp.ge.u64 %p3, %d4, %d5;
  @%p3 bra DONE;
  shl.b32 %r9, %r1, 5;
  add.u32 %r10, %r5, %r9;
  ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%r10];
  ld.shared.v4.b32 {%v4, %v5, %v6, %v7}, [%r10+16];
  ld.param.u64 %d6, [out];
  cvta.to.global.u64 %d6, %d6;
  ld.param.u64 %d7, [os2];
  mul.lo.s64 %d8, %d4, %d7;
  and.b32 %r11, %r1, 3;
  shl.b32 %r12, %r11, 4;
  cvt.u64.u32 %d9, %r12;
  add.s64 %d8, %d8, %d9;
  shl.b64 %d8, %d8, 1;
  add.s64 %d10, %d6, %d8;
  st.global.v4.b32 [%d10], {%v0, %v1, %v2, %v3};
  st.global.v4.b32 [%d10+16], {%v4, %v5, %v6, %v7};
DONE:
  ret;
}
)";

inline constexpr const char *kTensorMapManifest = R"({
  "version": 1, "chip": "sm_90a", "ptx": 80, "entry": "copy",
  "arguments": [{"name": "x", "dtype": "bf16", "shape": [1, 1, null, 64]},
                {"name": "rows", "dtype": "i8", "shape": [null]}],
  "results": [{"dtype": "bf16",
               "shape": [1, 1, {"argument": 1, "dimension": 0}, 64]}],
  "steps": [{"kernel": "copy", "threads": 128, "shared": 4096,
    "grid": [{"operand": 1, "dimension": 2, "divisor": 32}],
    "operands": [{"argument": 0}, {"result": 0}],
    "extras": [{"tensor_map": 0, "box": [64, 32], "swizzle": 0}]}]})";

#endif // ATTNFUSE_TEST_UNIT_RUNTIME_DEVICEKERNELS_H
