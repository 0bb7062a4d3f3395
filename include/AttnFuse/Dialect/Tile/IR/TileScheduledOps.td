//===- TileScheduledOps.td - operations of scheduled programs -*- tablegen -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_TILE_IR_TILESCHEDULEDOPS
#define ATTNFUSE_DIALECT_TILE_IR_TILESCHEDULEDOPS

include "AttnFuse/Dialect/Tile/IR/TileOps.td"

/// Operations of the scheduled state keep their order among one another.
class Tile_RingOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([MemoryEffects<[MemRead, MemWrite]>], traits)>;

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def Tile_AllocOp : Tile_Op<"alloc", [MemoryEffects<[MemAlloc]>, HasParent<"KernelOp">]> {
  let summary = "a ring in shared memory";
  let description = [{
    Lives as long as the kernel. The protocol of use number n: `acquire` (its
    slot is free), copies or `put`, `commit`; then `wait` (it is full),
    products, `release`.

    Example:
    ```mlir
    %k = tile.alloc : !tile.ring<2x64x128xbf16, 128>
    ```
    Where roles share out the warps, a use is free once `readers` warpgroups
    have released it (0: every consumer).

    Errors: rings of a kernel that together exceed the chip's shared memory.
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$readers);
  let results = (outs Tile_Ring:$ring);
  let assemblyFormat = "(`readers` $readers^)? attr-dict `:` qualified(type($ring))";
}

def Tile_AsyncLoadOp : Tile_RingOp<"async_load"> {
  let summary = "start copying a tile of a view into a slot";
  let description = [{
    As `tile.load`: rows run along dimension `along[0]` and columns along
    `along[1]`, elements outside the view become 0 and are not read. Complete
    once a `tile.wait` for this use has returned.

    Example:
    ```mlir
    tile.async_load %v[%b, %h, %j, %c0] along [2, 3] to %k[%n] : !tile.view<1x8x?x128xbf16>, !tile.ring<2x64x128xbf16, 128>
    ```
    Errors: as `tile.load`, element types that differ.
  }];
  let arguments = (ins Tile_View:$view, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$along, Tile_Ring:$ring, Index:$use);
  let assemblyFormat = [{
    $view `[` $indices `]` `along` $along `to` $ring `[` $use `]` attr-dict
    `:` qualified(type($view)) `,` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

class Tile_ProtocolOp<string mnemonic, string what> : Tile_RingOp<mnemonic> {
  let summary = what;
  let arguments = (ins Tile_Ring:$ring, Index:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Tile_AcquireOp : Tile_ProtocolOp<"acquire", "wait until a slot may be overwritten"> {
  let description = [{
    Returns once every reader has released the use `stages` before this one.
    With copies made by all warps (cp.async) this is a barrier, left out where
    one has been passed since the last product.

    Example:
    ```mlir
    tile.acquire %k[%n] : !tile.ring<2x64x128xbf16, 128>
    ```
  }];
}

def Tile_CommitOp : Tile_RingOp<"commit"> {
  let summary = "close the copies of a use";
  let description = [{
    What was copied into these slots since the last commit is one group; the
    group is full at once. With cp.async a `commit` without any copy is an
    empty group, which keeps the count.

    Example:
    ```mlir
    tile.commit %k[%n] : !tile.ring<2x64x128xbf16, 128>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, Index:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Tile_WaitOp : Tile_RingOp<"wait"> {
  let summary = "wait until a use is full";
  let description = [{
    Afterwards every warp that has returned sees what was copied. With
    cp.async, `outstanding` is the number of groups committed later that may
    still be under way.

    Example:
    ```mlir
    tile.wait %k[%n] outstanding 1 : !tile.ring<2x64x128xbf16, 128>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, Index:$use, DefaultValuedAttr<I64Attr, "0">:$outstanding);
  let assemblyFormat = [{
    $ring `[` $use `]` (`outstanding` $outstanding^)? attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_ReleaseOp : Tile_ProtocolOp<"release", "this reader is done with a use"> {
  let description = [{
    Example:
    ```mlir
    tile.release %k[%n] : !tile.ring<2x64x128xbf16, 128>
    ```
  }];
}

def Tile_RotateSlotOp : Tile_RingOp<"rotate_slot", [AttrSizedOperandSegments]> {
  let summary = "rotate pairs of columns in place, in shared memory";
  let description = [{
    As `tile.rotate` with the angles of `tile.angles` for rows `start + r`, or
    with tables `cos` and `sin` of R/2 columns whose row `start + r` is used.
    Computed in f32, rounded to the ring's type. A barrier of the warps that
    take part comes before and after.

    Example:
    ```mlir
    tile.rotate_slot %q[%c0], %i0 {frequencies = array<f64: 1.0, 0.01>} : !tile.ring<1x128x64xbf16, 128>
    ```
    Errors: more rotated columns than there are, tables without a partner.
  }];
  let arguments = (ins Tile_Ring:$ring, Index:$use, Index:$start,
                       Optional<Tile_View>:$cos, Optional<Tile_View>:$sin,
                       I64Attr:$pairs,
                       DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$magnitude,
                       UnitAttr:$interleaved);
  let assemblyFormat = [{
    $ring `[` $use `]` `,` $start (`tables` $cos^ `,` $sin `:` qualified(type($cos)) `,` qualified(type($sin)))?
    (`interleaved` $interleaved^)? attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_PutOp : Tile_RingOp<"put"> {
  let summary = "write a tile of registers to a slot";
  let description = [{
    Rounded to the ring's type. Each warp writes its own rows.

    Example:
    ```mlir
    tile.put %o, %r[%c0] : !tile.tile<128x64xf32, #tile.fragment<4>>, !tile.ring<1x128x64xbf16, 128>
    ```
    Errors: other extents.
  }];
  let arguments = (ins Tile_Tile:$tile, Tile_Ring:$ring, Index:$use);
  let assemblyFormat = [{
    $tile `,` $ring `[` $use `]` attr-dict `:` qualified(type($tile)) `,` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_CopyOutOp : Tile_RingOp<"copy_out"> {
  let summary = "copy a slot to a view";
  let description = [{
    As `tile.store`: elements outside the view are dropped. The slot may be
    overwritten once the next barrier or `tile.wait` has been passed, by `put`,
    or, with `drained`, at once.

    Example:
    ```mlir
    tile.copy_out %r[%c0], %o[%b, %h, %i, %c0] along [2, 3] : !tile.ring<1x128x64xbf16, 128>, !tile.view<1x8x?x64xbf16>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, Index:$use, Tile_View:$view,
                       Variadic<Index>:$indices, DenseI64ArrayAttr:$along,
                       UnitAttr:$drained);
  let assemblyFormat = [{
    $ring `[` $use `]` `,` $view `[` $indices `]` `along` $along
    (`drained` $drained^)? attr-dict
    `:` qualified(type($ring)) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Tile_DotStartOp : Tile_RingOp<"dot_start", [AttrSizedOperandSegments]> {
  let summary = "start a product with a factor in shared memory";
  let description = [{
    As `tile.dot`: the left factor is a tile in registers or a ring's slot, the
    right one a ring's slot; without `acc` the sum starts from 0. Products of
    f32 are formed from three tf32 products, which keeps f32's accuracy.

    Example:
    ```mlir
    %s = tile.dot_start %q[%c0], %k[%n] transpose_b : !tile.ring<1x128x64xbf16, 128>, !tile.ring<2x64x64xbf16, 128> -> !tile.pending<128x64xf32, #tile.fragment<4>>
    ```
    Errors: extents or element types that do not go together.
  }];
  let arguments = (ins AnyTypeOf<[Tile_Tile, Tile_Ring]>:$lhs, Optional<Index>:$lhs_use,
                       Tile_Ring:$rhs, Index:$rhs_use, Optional<Tile_Tile>:$acc,
                       UnitAttr:$transpose_b);
  let results = (outs Tile_Pending:$result);
  let assemblyFormat = [{
    $lhs (`[` $lhs_use^ `]`)? `,` $rhs `[` $rhs_use `]` (`acc` $acc^ `:` qualified(type($acc)))?
    (`transpose_b` $transpose_b^)? attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_DotWaitOp : Tile_RingOp<"dot_wait"> {
  let summary = "wait for products";
  let description = [{
    Gives back the accumulators. `outstanding` products started later may
    still be under way.

    Example:
    ```mlir
    %r = tile.dot_wait %s outstanding 1 : !tile.pending<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xf32, #tile.fragment<4>>
    ```
    Errors: a result of another type than what was started.
  }];
  let arguments = (ins Tile_Pending:$pending, DefaultValuedAttr<I64Attr, "0">:$outstanding);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $pending (`outstanding` $outstanding^)? attr-dict
    `:` qualified(type($pending)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_DotGuardedOp : Tile_RingOp<"dot_guarded", [AllTypesMatch<["acc", "result"]>]> {
  let summary = "a product in which a weight of 0 contributes nothing";
  let description = [{
    `acc + A B` without the terms whose element of A is exactly 0, whatever B
    holds there. Slow: used to compute again what came out not finite.

    Example:
    ```mlir
    %r = tile.dot_guarded %p, %v[%n], %o : !tile.tile<128x64xf32, #tile.fragment<4>>, !tile.ring<2x64x64xbf16, 128>, !tile.tile<128x64xf32, #tile.fragment<4>>
    ```
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Ring:$rhs, Index:$rhs_use, Tile_Tile:$acc);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `[` $rhs_use `]` `,` $acc attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Tile_CastOp : Tile_PureOp<"cast"> {
  let summary = "round a tile to a narrower float";
  let description = [{
    To nearest even. The layout of accumulators is that of a left factor: the
    result can be multiplied as it is.

    Example:
    ```mlir
    %p = tile.cast %w : !tile.tile<128x64xf32, #tile.fragment<4>> -> !tile.tile<128x64xbf16, #tile.fragment<4>>
    ```
    Errors: other extents, element types that are not floats.
  }];
  let arguments = (ins Tile_Tile:$tile);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` qualified(type($tile)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_VoteScope : I32EnumAttr<"VoteScope", "who takes part in a vote", [
    I32EnumAttrCase<"Warp", 0, "warp">,
    I32EnumAttrCase<"Block", 1, "block">]> {
  let cppNamespace = "::attnfuse::tile";
}

def Tile_AnyOp : Tile_RingOp<"any"> {
  let summary = "whether any element of a tile is true";
  let description = [{
    Of the rows of this warp, or of the whole tile (then it is a barrier). The
    result is the same in every lane that takes part.

    Example:
    ```mlir
    %grew = tile.any warp %t : !tile.tile<128x1xi1, #tile.fragment<4>>
    ```
    Errors: elements other than i1.
  }];
  let arguments = (ins Tile_VoteScope:$scope, Tile_Tile:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "$scope $tile attr-dict `:` qualified(type($tile))";
  let hasVerifier = 1;
}

def Tile_CombineOp : Tile_PureOp<"combine", [AllTypesMatch<["tile", "result"]>]> {
  let summary = "combine the lanes' parts of a reduction";
  let description = [{
    Of a column vector made by `tile.reduce ... partial`: afterwards every lane
    of a row holds the value of the whole row.

    Example:
    ```mlir
    %l = tile.combine add %part : !tile.tile<64x1xf32, #tile.fragment<4>>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_Tile:$tile);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$kind $tile attr-dict `:` qualified(type($tile))";
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def Tile_RolesOp : Tile_RingOp<"roles", [HasParent<"KernelOp">, NoTerminator, SingleBlock]> {
  let summary = "share out the warps of a block";
  let description = [{
    The first warpgroup runs `producer` (one thread issues its copies), every
    other one `consumer`, with `registers` per thread each (`setmaxnreg`). A
    launch allocates 65536 registers in equal parts; the producer gives back,
    consumers take, and together they may not exceed what was allocated.

    Example:
    ```mlir
    tile.roles producer 24 {
      tile.acquire %k[%c0] : !tile.ring<2x64x64xbf16, 128>
      tile.commit %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    } consumer 256 {
      tile.wait %k[%c0] : !tile.ring<2x64x64xbf16, 128>
      tile.release %k[%c0] : !tile.ring<2x64x64xbf16, 128>
    }
    ```
    The producer holds `acquire`, `async_load`, `commit`, `next_work` and scalar
    code; consumers everything else that works on tiles and rings.

    Errors: operations of the other role, budgets that are not multiples of 8
    between 24 and 256, a producer that would take or consumers that would give
    back, or budgets that together exceed the registers of the launch.
  }];
  let arguments = (ins I64Attr:$producer_registers, I64Attr:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let assemblyFormat = [{
    `producer` $producer_registers $producer `consumer` $consumer_registers $consumer attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_WarpgroupOp : Tile_PureOp<"warpgroup"> {
  let summary = "which consumer this is";
  let description = [{
    From 0, inside a consumer of `tile.roles`.

    Example:
    ```mlir
    %w = tile.warpgroup
    ```
    Errors: outside a consumer.
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_NextWorkOp : Tile_RingOp<"next_work"> {
  let summary = "the next query tile of a persistent block";
  let description = [{
    Call number n of a role returns the same number in every role of a block:
    the producer takes it from a counter of the launch and hands it on. Numbers
    from the grid's product on mean that nothing is left.

    Example:
    ```mlir
    %t = tile.next_work %n
    ```
    Errors: outside a role.
  }];
  let arguments = (ins Index:$call);
  let results = (outs Index:$result);
  let assemblyFormat = "$call attr-dict";
  let hasVerifier = 1;
}

#endif // ATTNFUSE_DIALECT_TILE_IR_TILESCHEDULEDOPS
