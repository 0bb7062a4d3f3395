#!/usr/bin/env python3
# ===- peers.py - AttnFuse beside other attention kernels on a GPU -------------===#
#
# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===--------------------------------------------------------------------------===#
"""Times AttnFuse, torch's SDPA (FlashAttention-2 and cuDNN), compiled flex_attention and
JAX's Mosaic GPU attention in one process.

    python bench/peers.py --suite core --chips sm_80 sm_90a
    python bench/peers.py --suite variants --only 'N4096' --json variants.json --bar 1.3@flex
    python bench/peers.py --suite core --adversarial --check-only

Before a case is timed, AttnFuse's output, poisoned with NaN beforehand, is compared with a
float64 reference. Then all sides run in rounds, the order rotated by one each round, so
that a drift of the clock touches all alike. A figure counts only beside its peers of the
same run. FLOP/s count the two matrix products over the pairs that the mask keeps, a causal
mask as half of all.

Timing is by CUDA events around each launch with the L2 cache overwritten before
(--timing events; --l2 warm leaves it), or by CUDA graphs of many launches, always with a
warm cache (--timing graph; the default of the suites rope and small). JAX's kernels run on
JAX's own stream and are timed as a batch of calls by the clock on the wall; AttnFuse's
ratio to them comes from a batch of its own, timed the same way.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from programs_gpu import (  # noqa: E402
    BASE,
    BLOCK,
    CAP,
    DOCUMENT,
    SUITES,
    WINDOW,
    Case,
    program,
    suite,
)

# flex_attention is compiled anew for each case, some ten seconds each.
FLEX_SUITES = ("variants", "rope")
GRAPH_SUITES = ("rope", "small")
LAUNCHES_PER_GRAPH = 20
# Rows of the output that are compared with the reference where all would be too many.
ALL_PAIRS, CHECKED_ROWS = 2.2e9, 1024
# The greatest relative error of rounding to the type: of a result, and of each weight.
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11}


# ---------------------------------------------------------------------------
# Inputs and the reference
# ---------------------------------------------------------------------------


class Data:
    """A case's inputs, and what the variants need beside them."""

    def __init__(self, case: Case, torch, adversarial: bool):
        self.case, self.torch = case, torch
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[case.dtype]
        gpu = torch.device("cuda", torch.cuda.current_device())
        random = torch.Generator(gpu).manual_seed(case.N * 1000 + case.D)

        def normal(*shape):
            return torch.randn(shape, generator=random, device=gpu, dtype=torch.float32)

        q = normal(case.B, case.Hq, case.N, case.D)
        k = normal(case.B, case.Hkv, case.N, case.D)
        v = normal(case.B, case.Hkv, case.N, case.D)
        if adversarial:
            # Every key's score is that of a direction common to all queries plus a little
            # noise, and rises by 0.5 with each 64 keys: the running maximum rises in every
            # tile, and what was summed before has to be rescaled each time.
            q += 1 - q.mean(-1, keepdim=True)
            rise = torch.arange(case.N, device=gpu, dtype=torch.float32) * (0.5 / 64)
            k = 0.1 * k + (rise / math.sqrt(case.D))[:, None]
        self.q, self.k, self.v = q.to(dtype), k.to(dtype), v.to(dtype)
        kind, n = case.program_kind, case.N
        self.more = []
        if kind == "documents":
            self.ids = (torch.arange(n, device=gpu) // DOCUMENT).to(torch.int32)
            self.more = [self.ids[None]]
        elif kind == "bias":
            self.bias = normal(1, case.Hq, n, n).to(dtype)
            self.more = [self.bias]
        elif kind == "bigbird":
            self.table = torch.tensor(case.table(), device=gpu)
            if case.kind == "bigbird":
                self.more = [self.table[None, None]]
        elif kind == "alibi":
            power = 2 ** math.floor(math.log2(case.Hq))
            slopes = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
            slopes += [2.0 ** (-4 * (i + 1) / power) for i in range(0, 2 * power, 2)]
            self.slopes = torch.tensor(slopes[: case.Hq], device=gpu)
        self.keep, self.score = self.functions()

    def functions(self):
        """The mask and the change of a score, for the reference and for flex_attention,
        which wants plain functions."""
        torch, kind = self.torch, self.case.program_kind

        def causal(b, h, i, j):
            return j <= i

        def window(b, h, i, j):
            return (j <= i) & (i - j < WINDOW)

        def same(s, b, h, i, j):
            return s

        if kind == "window":
            return window, same
        if kind == "documents":
            ids = self.ids
            return lambda b, h, i, j: (j <= i) & (ids[i] == ids[j]), same
        if kind == "bigbird":
            blocks = self.table
            return lambda b, h, i, j: blocks[i // BLOCK, j // BLOCK], same
        if kind == "alibi":
            slopes = self.slopes
            return causal, lambda s, b, h, i, j: s - slopes[h] * (i - j).abs()
        if kind == "softcap":
            return causal, lambda s, b, h, i, j: CAP * torch.tanh(s / CAP)
        if kind == "bias":
            bias = self.bias[0]
            return causal, lambda s, b, h, i, j: s + bias[h, i, j]
        return causal, same

    @property
    def inputs(self) -> list:
        return [self.q, self.k, self.v, *self.more]

    def rotated64(self, x):
        """Rope, half-split pairs."""
        torch, half = self.torch, x.shape[-1] // 2
        theta = BASE ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
        angle = torch.arange(x.shape[-2], device=x.device, dtype=torch.float64)[:, None] * theta
        cos, sin, x = angle.cos(), angle.sin(), x.double()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    @property
    def masked(self) -> bool:
        return self.case.program_kind not in ("full", "bias")

    @property
    def scored(self) -> bool:
        return self.case.program_kind in ("alibi", "softcap", "bias")

    def worst(self, output) -> tuple[float, float]:
        """The output's errors against float64, over what rounding to the type explains.

        First, over blocks of 64 rows of a head: the error's norm over 4 units of the
        result's norm. Second, over elements: the error over a unit of the result and 8 of
        r = sqrt(sum p^2 v^2). Both are right up to 1. Rounding's errors have a standard
        deviation of 0.4 units: of a result; of a sum of rounded weights, as they are
        independent, 0.4 r; where rope's rotated q and k are rounded to the type, that of a
        score is about 0.6 units times the scores' own. Together 0.8, of which the 4 are five
        standard deviations, though those of a norm, and the 8 ten, over 1e8 elements.
        """
        torch, case = self.torch, self.case
        gpu, n, unit = output.device, case.N, UNIT[case.dtype]
        if not bool(torch.isfinite(output).all()):
            return math.inf, math.inf
        starts = range(0, n, 64)
        if case.B * case.Hq * float(n) * n > ALL_PAIRS:
            count, want = len(starts), CHECKED_ROWS // 64
            starts = sorted({round(x * (count - 1) / (want - 1)) * 64 for x in range(want)})
        group = case.Hq // case.Hkv
        norm = element = 0.0
        per_chunk = max(1, int(1e8 // (case.Hq * n * 64)))
        starts = list(starts)
        columns = torch.arange(n, device=gpu)
        head = torch.arange(case.Hq, device=gpu)[:, None, None]
        for b in range(case.B):
            q, k = self.q[b], self.k[b]
            if case.program_kind == "rope":
                q, k = self.rotated64(q), self.rotated64(k)
            k = k.double().repeat_interleave(group, 0)
            v = self.v[b].double().repeat_interleave(group, 0)
            squares = v.square()
            for first in range(0, len(starts), per_chunk):
                chunk = starts[first : first + per_chunk]
                rows = torch.cat([torch.arange(x, min(x + 64, n), device=gpu) for x in chunk])
                s = q[:, rows].double() @ k.mT / math.sqrt(case.D)
                i, j = rows[None, :, None], columns[None, None, :]
                if case.program_kind == "bias":
                    s = s + self.bias[0][:, rows].double()
                elif self.scored:
                    s = self.score(s, None, head, i, j)
                if self.masked:
                    s = s.masked_fill(~self.keep(None, None, i, j), -math.inf)
                p = torch.softmax(s, -1)
                want = p @ v
                spread = (p.square() @ squares).sqrt()
                error = (output[b][:, rows].double() - want).abs()
                element = max(
                    element, float((error / (unit * (want.abs() + 8 * spread) + 1e-7)).max())
                )
                at = 0
                for x in chunk:
                    part = slice(at, at := at + min(64, n - x))
                    size = want[:, part].flatten(1).norm(dim=1)
                    off = error[:, part].flatten(1).norm(dim=1)
                    norm = max(norm, float((off / (4 * unit * size + 1e-7)).max()))
        return norm, element


# ---------------------------------------------------------------------------
# The sides
# ---------------------------------------------------------------------------


@dataclass
class Side:
    """One implementation of one case. `batch` times a number of calls itself, in ms."""

    name: str
    call: Callable[[], object] | None
    batch: Callable[[int], float] | None = None
    estimate: float = 1.0
    times: list[float] = field(default_factory=list)
    about: dict = field(default_factory=dict)


def attnfuse_side(data: Data, chip: str, args) -> Side:
    import attnfuse

    case, torch = data.case, data.torch
    text = program(
        case.program_kind,
        case.dtype,
        case.B,
        case.Hq,
        case.Hkv,
        case.N,
        case.D,
        dynamic=not args.static,
        table=case.table() if case.kind == "bigbird-constant" else None,
    )
    start = time.perf_counter()
    loaded = attnfuse.program(text, chip=chip, options=args.options or None)
    seconds = time.perf_counter() - start
    out = torch.full_like(data.q, math.nan)
    call = loaded.prepare(*data.inputs, out=out)
    call()
    torch.cuda.synchronize()
    norm, element = data.worst(out)
    about = {
        "compile_s": round(seconds, 3),
        "error_norm": norm,
        "error_element": element,
        "kernels": [kernel._asdict() for kernel in loaded.kernels],
        "explanation": loaded.artifact.explanation,
    }
    return Side(f"attnfuse {chip}", call, about=about)


def sdpa_side(data: Data, backend: str, rotate=None) -> Side:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    case = data.case
    which = {"fa2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[backend]
    causal = case.causal
    mask = data.bias if case.program_kind == "bias" else None
    gqa = case.Hq != case.Hkv

    def call():
        q, k = rotate(data.q, data.k) if rotate else (data.q, data.k)
        with sdpa_kernel(which):
            return sdpa(q, k, data.v, attn_mask=mask, is_causal=causal, enable_gqa=gqa)

    return Side(backend + ("+rotation" if rotate else ""), call)


def flex_side(data: Data, rotate=None) -> Side:
    import torch._dynamo
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    case = data.case
    # Each case is a shape of its own: no dynamic shapes, nothing left of the last one.
    torch._dynamo.reset()
    compiled = torch.compile(flex_attention, dynamic=False)
    mask = None
    if data.masked:
        edge = BLOCK if case.program_kind == "bigbird" else 128
        mask = create_block_mask(
            data.keep, None, None, case.N, case.N, device=data.q.device, BLOCK_SIZE=edge
        )
    score = data.score if data.scored else None
    gqa = case.Hq != case.Hkv

    def call():
        q, k = rotate(data.q, data.k) if rotate else (data.q, data.k)
        return compiled(q, k, data.v, score_mod=score, block_mask=mask, enable_gqa=gqa)

    call()
    return Side("flex" + ("+rotation" if rotate else ""), call)


def import_mosaic():
    import importlib
    import types

    name = "jax.experimental.pallas.ops.gpu.attention_mgpu"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("absl"):
            raise
        # It imports JAX's test utilities, which want absl, and uses nothing of them.
        sys.modules["jax._src.test_util"] = types.ModuleType("jax._src.test_util")
        return importlib.import_module(name)


def mosaic_side(data: Data) -> Side:
    """In f16 whatever the case's type: it takes no other. Laid out (B, N, H, D)."""
    import jax
    import jax.dlpack

    mgpu = import_mosaic()
    case, torch = data.case, data.torch

    def convert(x):
        return jax.dlpack.from_dlpack(x.to(torch.float16).transpose(1, 2).contiguous())

    # It does not scale the scores.
    arrays = [convert(data.q.float() / math.sqrt(case.D)), convert(data.k), convert(data.v)]
    torch.cuda.synchronize()

    def batch(call, count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            last = call()
        last.block_until_ready()
        return (time.perf_counter() - start) * 1e3 / count

    best, problem = None, None
    for keys in (256, 128) if case.D <= 64 else (128, 64):
        config = mgpu.TuningConfig(
            block_q=64, block_kv=keys, max_concurrent_steps=2, causal=case.kind == "causal"
        )

        def call(config=config):
            return mgpu.attention(*arrays, config)

        try:
            call().block_until_ready()
        except Exception as error:  # most often: too much shared memory
            problem = error
            continue
        took = min(batch(call, 5) for _ in range(3))
        if best is None or took < best[0]:
            best = took, call, keys
    if best is None:
        raise problem
    took, call, keys = best
    output = torch.from_dlpack(call()).transpose(1, 2)
    norm, element = data.worst(output)
    about = {"block_kv": keys, "error_norm": norm, "error_element": element}
    return Side("mosaic", None, lambda count: batch(call, count), took, about=about)


def compiled_rotation(data: Data):
    """The peers' rope: one compiled kernel rotates q and k, its angles from tables."""
    import torch._dynamo

    torch._dynamo.reset()
    gpu, half = data.q.device, data.case.D // 2
    theta = BASE ** (-torch.arange(half, device=gpu, dtype=torch.float64) / half)
    angle = torch.arange(data.case.N, device=gpu, dtype=torch.float64)[:, None] * theta
    cos, sin = angle.cos().float(), angle.sin().float()

    def turn(x):
        a, b = x[..., :half].float(), x[..., half:].float()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)

    return torch.compile(lambda q, k: (turn(q), turn(k)), dynamic=False)


def make_sides(data: Data, args, note: Callable[[str], None], left: float) -> list[Side]:
    case, torch = data.case, data.torch
    rotate = None
    if case.program_kind == "rope":
        rotate = compiled_rotation(data)
    plain = case.kind in ("full", "causal")
    makers: list[tuple[str, Callable[[], Side]]] = []
    for chip in args.chips:
        makers.append((f"attnfuse {chip}", lambda chip=chip: attnfuse_side(data, chip, args)))
    if not args.check_only:
        use_flex = args.flex == "all" or (args.flex == "auto" and args.suite in FLEX_SUITES)
        # First of the peers: it resets what torch has compiled.
        if use_flex and left > 40:
            makers.append(("flex", lambda: flex_side(data, rotate)))
        if plain:
            makers.append(("fa2", lambda: sdpa_side(data, "fa2")))
        if plain or case.kind in ("bias", "rope"):
            makers.append(("cudnn", lambda: sdpa_side(data, "cudnn", rotate)))
        if plain and not args.no_jax and args.suite != "small" and case.D % 64 == 0:
            makers.append(("mosaic", lambda: mosaic_side(data)))
        if rotate:
            makers.append(("rotation", lambda: Side("rotation", lambda: rotate(data.q, data.k))))
    sides = []
    for name, make in makers:
        try:
            side = make()
            if side.call is not None:
                side.call()
                torch.cuda.synchronize()
            sides.append(side)
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            note(f"{case.name}: {name} left out: {type(error).__name__}: {reason[0][:200]}")
    mine = [side for side in sides if side.name.startswith("attnfuse")]
    if any(side.name == "mosaic" for side in sides):
        # The counterpart of what is timed as a batch.
        for side in mine:
            sides.append(Side(f"{side.name} batch", None, batch_of(side.call, torch)))
    return sides


def batch_of(call, torch) -> Callable[[int], float]:
    def batch(count: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3 / count

    return batch


# ---------------------------------------------------------------------------
# Timing
# ---------------------------------------------------------------------------


class Clock:
    def __init__(self, torch, timing: str, l2: str):
        self.torch, self.timing = torch, timing
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        size = max(2 * getattr(properties, "L2_cache_size", 0), 128 << 20)
        self.flush = torch.empty(size, dtype=torch.int8, device="cuda") if l2 == "flush" else None
        self.graphs: dict[int, object] = {}

    def events(self, call, count: int) -> list[float]:
        torch = self.torch
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(count)]
        # The GPU waits meanwhile, so that the host is always ahead of it.
        torch.cuda._sleep(200_000 * count)
        for start, end in pairs:
            if self.flush is not None:
                self.flush.zero_()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def graph(self, side: Side) -> object:
        torch = self.torch
        found = self.graphs.get(id(side))
        if found is None:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                side.call()
            torch.cuda.current_stream().wait_stream(stream)
            found = torch.cuda.CUDAGraph()
            with torch.cuda.graph(found):
                for _ in range(LAUNCHES_PER_GRAPH):
                    side.call()
            self.graphs[id(side)] = found
        return found

    def run(self, side: Side, budget: float) -> list[float]:
        """Times of about `budget` ms of calls."""
        if side.batch is not None:
            return [side.batch(max(5, min(50, int(budget / side.estimate))))]
        if self.timing == "graph":
            graph = self.graph(side)
            saved, self.flush = self.flush, None
            each = side.estimate * LAUNCHES_PER_GRAPH
            times = self.events(graph.replay, max(2, min(20, int(budget / each))))
            self.flush = saved
            return [x / LAUNCHES_PER_GRAPH for x in times]
        return self.events(side.call, max(3, min(40, int(budget / (side.estimate + 0.1)))))


def quartiles(times: list[float]) -> tuple[float, float, float]:
    ordered = sorted(times)

    def at(part: float) -> float:
        place = part * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return at(0.25), at(0.5), at(0.75)


def measure(sides: list[Side], clock: Clock, args, note: Callable[[str], None]) -> list[Side]:
    """Fills in the sides' times; a side that fails is left out."""
    good = []
    for side in sides:
        try:
            clock.run(side, 1.0)
            side.estimate = max(quartiles(clock.run(side, 5.0))[1], 1e-3)
            good.append(side)
        except Exception as error:
            reason = str(error).strip().splitlines() or [""]
            note(f"{side.name} left out while timing: {type(error).__name__}: {reason[0][:200]}")
    for turn in range(args.rounds):
        for index in range(len(good)):
            side = good[(turn + index) % len(good)]
            side.times += clock.run(side, args.ms_per_round)
    clock.graphs.clear()
    return good


# ---------------------------------------------------------------------------
# The run and its report
# ---------------------------------------------------------------------------


def entry_of(case: Case, sides: list[Side], bar: tuple[float, str | None], chips: list) -> dict:
    found = {}
    for side in sides:
        record = dict(side.about)
        if side.times:
            low, median, high = quartiles(side.times)
            record.update(
                median_ms=median,
                p25_ms=low,
                p75_ms=high,
                runs=len(side.times),
                tflops=case.flops / median / 1e9,
            )
        found[side.name] = record
    peers = [name for name in found if not name.startswith("attnfuse") and name != "rotation"]
    for chip in chips:
        mine = found.get(f"attnfuse {chip}")
        if mine is None:
            continue
        mine["correct"] = mine["error_norm"] <= 1 and mine["error_element"] <= 1
        if "median_ms" not in mine:
            continue
        ratios = {}
        for peer in peers:
            own = found.get(f"attnfuse {chip} batch", mine) if peer == "mosaic" else mine
            if "median_ms" in own and "median_ms" in found[peer]:
                ratios[peer] = found[peer]["median_ms"] / own["median_ms"]
        mine["ratios"] = ratios
        value, against = bar
        if against:
            ratios = {name: x for name, x in ratios.items() if name.startswith(against)}
        if ratios:
            mine["verdict"] = (
                "PASS" if mine["correct"] and min(ratios.values()) >= value else "MISS"
            )
    return {"case": case.name, "flops": case.flops, "sides": found}


def table(entries: list[dict], chips: list[str], bar: str) -> str:
    names = {name.partition("+")[0] for entry in entries for name in entry["sides"]}
    peers = [name for name in ("cudnn", "fa2", "flex", "mosaic") if name in names]
    rows = [["case", "chip", "ms (quartiles)", "TF/s", *peers, "err", "bar " + bar]]
    for entry in entries:
        sides = entry["sides"]
        for chip in chips:
            mine = sides.get(f"attnfuse {chip}")
            if mine is None:
                mine = {}
            spread = tflops = "-"
            if "median_ms" in mine:
                spread = f"{mine['median_ms']:.4g} ({mine['p25_ms']:.4g}-{mine['p75_ms']:.4g})"
                tflops = f"{mine['tflops']:.0f}"
            cells = []
            for peer in peers:
                full = next((name for name in sides if name.partition("+")[0] == peer), None)
                ratio = mine.get("ratios", {}).get(full)
                if ratio is not None:
                    cells.append(f"{ratio:.2f}")
                elif full and "tflops" in sides[full]:
                    cells.append(f"[{sides[full]['tflops']:.0f}]")
                else:
                    cells.append("")
            error, verdict = "-", "FAILED"
            if mine:
                error = f"{max(mine['error_norm'], mine['error_element']):.2f}"
                verdict = mine.get("verdict", "") if mine["correct"] else "WRONG"
            rows.append([entry["case"], chip, spread, tflops, *cells, error, verdict])
        if not chips:
            cells = []
            for peer in peers:
                full = next((name for name in sides if name.partition("+")[0] == peer), None)
                tflops = sides[full].get("tflops") if full else None
                cells.append(f"[{tflops:.0f}]" if tflops else "")
            rows.append([entry["case"], "", "", "", *cells, "", ""])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(row, widths)).rstrip() for row in rows)


def draw(entries: list[dict], path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    shown = [
        name
        for name in dict.fromkeys(name for entry in entries for name in entry["sides"])
        if not name.endswith("batch") and name != "rotation"
    ]
    height = 0.8 / max(len(shown), 1)
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.18 * len(shown) * len(entries)))
    for index, name in enumerate(shown):
        at = [row + index * height for row in range(len(entries))]
        values = [entry["sides"].get(name, {}).get("tflops", 0) for entry in entries]
        axes.barh(at, values, height, label=name)
    axes.set_yticks(
        [row + 0.4 for row in range(len(entries))], [entry["case"] for entry in entries], fontsize=7
    )
    axes.invert_yaxis()
    axes.set_xlabel("TFLOP/s over the kept pairs")
    axes.set_title(title, fontsize=8)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def versions(torch, args) -> dict:
    found = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
    for name in ("triton", "jax"):
        if name in sys.modules:
            found[name] = getattr(sys.modules[name], "__version__", "?")
    if args.chips:
        import attnfuse

        try:
            found["attnfuse"] = attnfuse.version()
        except attnfuse.AttnFuseError:
            found["attnfuse"] = None
    return found


def run(args) -> int:
    try:
        import torch
    except ImportError as error:
        print(f"peers: error: {error}; see bench/requirements-gpu.txt", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("peers: error: torch sees no GPU", file=sys.stderr)
        return 2
    begun = time.monotonic()
    cases = [case for case in suite(args.suite) if re.search(args.only, case.name)]
    timing = args.timing or ("graph" if args.suite in GRAPH_SUITES else "events")
    l2 = "warm" if timing == "graph" else args.l2
    clock = Clock(torch, timing, l2)
    notes: dict[str, None] = {}

    def note(line: str) -> None:
        if line not in notes:
            notes[line] = None
            print(line, flush=True)

    torch.set_grad_enabled(False)
    # The clocks of an idle card are not those of a busy one.
    busy = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        for _ in range(10):
            busy @ busy
        torch.cuda.synchronize()
    del busy

    entries, longest = [], 5.0
    for number, case in enumerate(cases):
        started = time.monotonic()
        left = args.seconds - (started - begun)
        if left < longest * 1.2:
            note(f"{len(cases) - number} cases left out: {args.seconds} s are used up (--seconds)")
            break
        try:
            data = Data(case, torch, args.adversarial)
            sides = make_sides(data, args, note, left)
            if not args.check_only:
                sides = measure(
                    sides, clock, args, lambda line, case=case: note(f"{case.name}: {line}")
                )
        except Exception as error:
            reason = str(error).strip().splitlines() or [""]
            note(f"{case.name}: left out: {type(error).__name__}: {reason[0][:200]}")
            try:
                torch.cuda.synchronize()
            except Exception:
                note("a kernel failed, and the process's GPU context with it: the run ends here")
                break
            continue
        entry = entry_of(case, sides, args.bar, args.chips)
        entries.append(entry)
        if args.verbose:
            print(table([entry], args.chips, args.bar_text), flush=True)
            for name, side in entry["sides"].items():
                for line in side.get("explanation", "").splitlines():
                    print(f"    {name}: {line}")
        if args.json:  # what there is, should the session end
            result = {
                "suite": args.suite,
                "timing": timing,
                "l2": l2,
                "adversarial": args.adversarial,
                "options": args.options,
                "rounds": args.rounds,
                "versions": versions(torch, args),
                "notes": list(notes),
                "cases": entries,
            }
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(result, indent=1) + "\n")
        sides = data = None
        torch.cuda.empty_cache()
        longest = max(longest, time.monotonic() - started)
    about = ", ".join(f"{name} {value}" for name, value in versions(torch, args).items())
    inputs = "rising keys" if args.adversarial else "random normal inputs"
    title = f"suite {args.suite}, {timing}, L2 {l2}, {inputs}, {args.rounds} rounds; {about}"
    if args.svg and entries:
        try:
            args.svg.parent.mkdir(parents=True, exist_ok=True)
            draw(entries, args.svg, title)
        except ImportError as error:
            note(f"no {args.svg}: {error}")
    print(f"\n{title}")
    print("peers: their time over AttnFuse's, above 1 is in AttnFuse's favour; [TFLOP/s] alone")
    print("err: worst error against float64 over what rounding explains, right up to 1")
    print(table(entries, args.chips, args.bar_text))
    mine = [entry["sides"].get(f"attnfuse {chip}") for entry in entries for chip in args.chips]
    bad = sum(1 for side in mine if side is None or not side["correct"])
    verdicts = [side.get("verdict") for side in mine if side]
    print(
        f"{len(entries)} of {len(cases)} cases in {time.monotonic() - begun:.0f} s: "
        f"{verdicts.count('PASS')} PASS, {verdicts.count('MISS')} MISS, {bad} wrong or failed"
    )
    return 1 if bad else 0


def parse_bar(text: str) -> tuple[float, str | None]:
    value, _, peer = text.partition("@")
    try:
        return float(value), peer or None
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected RATIO or RATIO@PEER") from None


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--suite", choices=SUITES, default="core")
    add("--only", default="", metavar="REGEX", help="cases whose name it matches")
    add("--list", action="store_true", help="print the cases and end")
    add("--chips", "--chip", nargs="*", default=["sm_90a"], help="sm_80, sm_90a; none: peers only")
    add("--options", default="", help="passed to attnfuse.compile")
    add("--static", action="store_true", help="programs with every extent known")
    add("--rounds", type=int, default=5)
    add("--ms-per-round", type=float, default=30.0, help="of calls, for each side and round")
    add("--seconds", type=float, default=540.0, help="no case is begun that would end later")
    add("--timing", choices=["events", "graph"])
    add("--l2", choices=["flush", "warm"], default="flush")
    add("--flex", choices=["auto", "all", "none"], default="auto", help="auto: variants and rope")
    add("--no-flex", dest="flex", action="store_const", const="none")
    add("--no-jax", action="store_true")
    add("--adversarial", action="store_true", help="keys whose scores rise in every tile")
    add("--check-only", action="store_true", help="compare AttnFuse's output, time nothing")
    add("--bar", default="1.0", metavar="RATIO[@PEER]", help="to reach, by default to every peer")
    add("--json", type=Path)
    add("--svg", type=Path)
    add("--verbose", action="store_true", help="each case as it ends, with what was chosen")
    args = parser.parse_args()
    args.bar_text = args.bar
    try:
        args.bar = parse_bar(args.bar)
        args.only = re.compile(args.only)
    except (argparse.ArgumentTypeError, re.error) as error:
        parser.error(str(error))
    if args.rounds < 1:
        parser.error("--rounds is at least 1")
    return args


def main() -> int:
    args = parse_args()
    if args.list:
        for case in suite(args.suite):
            if args.only.search(case.name):
                print(f"{case.name}  {case.flops / 1e12:.3g} TFLOP")
        return 0
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
