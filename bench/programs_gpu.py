#!/usr/bin/env python3
# ===- programs_gpu.py - the programs and cases of bench/peers.py -------------===#
#
# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===--------------------------------------------------------------------------===#
"""Attention programs as text, by kind and sizes, and the cases of bench/peers.py.

python bench/programs_gpu.py causal --dtype bf16 --heads 32 --kv-heads 8 --width 128
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = (
    "full",
    "causal",
    "alibi",
    "window",
    "documents",
    "softcap",
    "bias",
    "bigbird",
    "rope",
)
SUITES = ("core", "llama3", "widths", "variants", "rope", "small")
# What the suites' programs have: keys of a window, tokens of a document, the bound of a soft
# cap, the edge of a block of a table, the base of a rotation.
WINDOW, DOCUMENT, CAP, BLOCK, BASE = 1024, 700, 30.0, 64, 10000.0


def entry(kind: str, dtype: str, Hq: int, Hkv: int, D: int) -> str:
    heads = str(Hq) if Hq == Hkv else f"{Hq}_{Hkv}"
    return f"{kind}_{dtype}_h{heads}_d{D}"


def program(
    kind: str,
    dtype: str,
    B: int,
    Hq: int,
    Hkv: int,
    N: int,
    D: int,
    *,
    dynamic: bool = True,
    window: int = WINDOW,
    cap: float = CAP,
    block: int = BLOCK,
    base: float = BASE,
    table: Sequence[Sequence[bool]] | None = None,
    lse: bool = False,
) -> str:
    """The text of a program.

    Parameters
    ----------
    kind : str
        One of KINDS. All but full, bias and bigbird are causal.
    dtype : str
        "bf16", "f16" or "f32".
    B, Hq, Hkv, N, D : int
        q is (B, Hq, N, D), k and v are (B, Hkv, N, D).
    dynamic : bool
        Leave the batch and the length open, so that one program serves all. A constant
        table fixes the length.
    window, cap, block, base
        Keys of the window, bound of the scores, edge of a block of the table, base of the
        rotation.
    table : rows of bools, optional
        bigbird's blocks as a constant; otherwise they are an argument
        (1, 1, ceil(N / block), ceil(N / block)), i1.
    lse : bool
        Return the log-sum-exp (B, Hq, N), f32, as well.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind {kind}: {', '.join(KINDS)}")
    open_length = dynamic and table is None
    b, n = ("?", "?") if dynamic else (str(B), str(N))
    if not open_length:
        n = str(N)
    blocks = "?" if open_length else str(-(-N // block))
    q = f"tensor<{b}x{Hq}x{n}x{D}x{dtype}>"
    k = f"tensor<{b}x{Hkv}x{n}x{D}x{dtype}>"
    scores = f"!attn.scores<{b}x{Hq}x{n}x{n}>"
    more = {
        "documents": f"%ids: tensor<1x{n}xi32>",
        "bias": f"%bias: tensor<1x{Hq}x{n}x{n}x{dtype}>",
        "bigbird": f"%table: tensor<1x1x{blocks}x{blocks}xi1>" if table is None else None,
    }.get(kind)
    arguments = [f"%q: {q}", f"%k: {k}", f"%v: {k}", *([more] if more else [])]
    results = f"({q}, tensor<{b}x{Hq}x{n}xf32>)" if lse else q

    lines = []
    queries, keys = "%q", "%k"
    if kind == "rope":
        lines += [
            f"%qr = attn.rope %q {{base = {base!r}}} : {q}",
            f"%kr = attn.rope %k {{base = {base!r}}} : {k}",
        ]
        queries, keys = "%qr", "%kr"
    lines.append(f"%s = attn.scaled_dot_product {queries}, {keys} : {q}, {k}")
    at = "%s"
    if kind == "alibi":
        lines.append(f"%t = attn.alibi %s : {scores}")
        at = "%t"
    elif kind == "softcap":
        lines.append(f"%t = attn.softcap %s cap {cap!r} : {scores}")
        at = "%t"
    elif kind == "bias":
        lines.append(
            f"%t = attn.additive_bias %s, %bias : {scores}, tensor<1x{Hq}x{n}x{n}x{dtype}>"
        )
        at = "%t"

    mask = "%c"
    if kind in ("causal", "alibi", "softcap", "rope"):
        lines.append("%c = attn.causal")
    elif kind == "window":
        lines.append(f"%c = attn.sliding_window left {window} right 1")
    elif kind == "documents":
        lines += [
            "%past = attn.causal",
            f"%same = attn.document %ids : tensor<1x{n}xi32>",
            "%c = attn.and %past, %same",
        ]
    elif kind == "bigbird":
        shape = f"tensor<1x1x{blocks}x{blocks}xi1>"
        if table is not None:
            rows = ", ".join(
                "[" + ", ".join("true" if x else "false" for x in row) + "]" for row in table
            )
            lines.append(f"%table = arith.constant dense<[[[{rows}]]]> : {shape}")
        lines.append(f"%c = attn.block_sparse %table blocks [{block}, {block}] : {shape}")
    else:
        mask = ""
    if mask:
        lines.append(f"%m = attn.mask {at}, {mask} : {scores}")
        at = "%m"
    w, flag = ("%w, %lse", " lse") if lse else ("%w", "")
    lines += [
        f"{w} = attn.softmax {at}{flag} : {scores}",
        f"%o = attn.aggregate %w, %v : {scores.replace('scores', 'weights')}, {k}",
        f"return %o, %lse : {results.strip('()')}" if lse else f"return %o : {q}",
    ]
    name = entry(kind, dtype, Hq, Hkv, D)
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func @{name}({', '.join(arguments)}) -> {results} {{\n{body}}}\n"


def bigbird_table(N: int, block: int = BLOCK, random_blocks: int = 5, seed: int = 0) -> list:
    """BigBird's blocks (Zaheer et al. 2020): a window of three, a global first row and
    column, and some random ones per row."""
    import random

    rng = random.Random(seed)
    count = -(-N // block)
    table = [[abs(i - j) <= 1 or i == 0 or j == 0 for j in range(count)] for i in range(count)]
    for row in table:
        for _ in range(random_blocks):
            row[rng.randrange(count)] = True
    return table


@dataclass(frozen=True)
class Case:
    kind: str  # of programs_gpu.KINDS, or "bigbird-constant"
    dtype: str
    B: int
    Hq: int
    Hkv: int
    N: int
    D: int

    @property
    def name(self) -> str:
        heads = f"H{self.Hq}" if self.Hq == self.Hkv else f"Hq{self.Hq} Hkv{self.Hkv}"
        return f"{self.dtype} B{self.B} {heads} D{self.D} N{self.N} {self.kind}"

    @property
    def program_kind(self) -> str:
        return self.kind.partition("-")[0]

    @property
    def causal(self) -> bool:
        return self.program_kind in ("causal", "alibi", "window", "documents", "softcap", "rope")

    def table(self) -> list | None:
        return bigbird_table(self.N) if self.program_kind == "bigbird" else None

    @property
    def pairs(self) -> float:
        """Kept pairs of one head."""
        n = self.N
        if self.program_kind == "window":
            w = min(WINDOW, n)
            return w * (w + 1) / 2 + (n - w) * w
        if self.program_kind == "documents":
            whole, rest = divmod(n, DOCUMENT)
            return whole * DOCUMENT * (DOCUMENT + 1) / 2 + rest * (rest + 1) / 2
        if self.program_kind == "bigbird":
            table = self.table()
            return n * n * sum(map(sum, table)) / len(table) ** 2
        return n * n / (2 if self.causal else 1)

    @property
    def flops(self) -> float:
        return 4.0 * self.B * self.Hq * self.D * self.pairs


def suite(name: str) -> list[Case]:
    sizes = [(16, 1024), (8, 2048), (4, 4096), (1, 16384)]
    if name == "core":
        return [
            Case(kind, dtype, b, h, h, n, d)
            for d, h in ((128, 16), (64, 32))
            for dtype in ("bf16", "f16")
            for b, n in sizes
            for kind in ("full", "causal")
        ]
    if name == "llama3":
        return [Case("causal", "bf16", 1, 32, 8, n, 128) for n in (2048, 4096, 8192, 16384)]
    if name == "widths":
        return [
            Case(kind, "bf16", 2, 16, 16, 4096, d)
            for d in (96, 192, 256)
            for kind in ("full", "causal")
        ]
    if name == "variants":
        kinds = ("full", "causal", "window", "alibi", "softcap", "documents", "bigbird")
        cases = [Case(kind, "bf16", 1, 32, 32, n, 128) for n in (4096, 16384) for kind in kinds]
        # At 16384 the bias alone would be 17 GB.
        return cases + [
            Case("bias", "bf16", 1, 32, 32, 4096, 128),
            Case("bigbird-constant", "bf16", 1, 32, 32, 4096, 128),
        ]
    if name == "rope":
        lengths = (512, 1024, 2048, 4096, 16384)
        return [Case("rope", "f16", 4, 12, 12, n, 64) for n in lengths] + [
            Case("rope", "bf16", 1, 32, 8, n, 128) for n in lengths
        ]
    if name == "small":
        return [
            Case(kind, *rest)
            for rest in (
                ("f16", 1, 12, 12, 128, 64),
                ("f16", 1, 12, 12, 512, 64),
                ("f16", 4, 12, 12, 512, 64),
                ("bf16", 1, 32, 8, 128, 128),
                ("bf16", 1, 32, 8, 512, 128),
            )
            for kind in ("full", "causal")
        ]
    raise ValueError(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f16", "f32"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--static", action="store_true", help="no extent is left open")
    parser.add_argument("--constant-table", action="store_true", help="bigbird's, in the program")
    parser.add_argument("--lse", action="store_true", help="return the log-sum-exp as well")
    args = parser.parse_args()
    sizes = (args.batch, args.heads, args.kv_heads or args.heads, args.length, args.width)
    table = bigbird_table(args.length) if args.constant_table else None
    text = program(
        args.kind, args.dtype, *sizes, dynamic=not args.static, table=table, lse=args.lse
    )
    print(text, end="")


if __name__ == "__main__":
    main()
