#!/usr/bin/env python3
# ===- cpu_peers.py - AttnFuse beside onnxruntime on the CPU ------------------===#
#
# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===--------------------------------------------------------------------------===#
"""Times AttnFuse and onnxruntime's attention operators in one run, float32, batch 1,
12 heads of width 64, full and causal, with the same number of threads.

    pip install -r bench/requirements.txt
    python bench/cpu_peers.py --threads 2 --json peers.json
    python bench/cpu_peers.py --ort-only          # onnxruntime's side alone

onnxruntime has several operators that compute the same thing, and which one is the
fastest depends on the mask, the length and the threads. Each is checked against numpy
and probed first; the fastest one is the peer of that row. The probe's figures of all
of them are in the JSON.

Rounds interleave the two sides and rotate both their order and that of the rows, so
that a slow drift of the machine touches all alike. A side's time is the median over
the runs of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper
from rich.console import Console
from rich.table import Table

HEADS, WIDTH = 12, 64
HIDDEN = HEADS * WIDTH
TOLERANCE = 1e-5  # float32 against float64; outputs are averages of N(0, 1) values
CHECKED_ROWS = 32
PROBE_TURNS, PROBE_RUNS = 3, 2
ROOT = Path(__file__).resolve().parent.parent
MASKS = ("full", "causal")


class BenchError(Exception):
    """A problem that the user can act on; printed without a traceback."""


# ---------------------------------------------------------------------------
# AttnFuse. All that is known about its command line is in these two functions.
# ---------------------------------------------------------------------------


def attnfuse_command(args, mask: str, length: int, report: Path) -> list[str]:
    return [
        str(args.attnfuse),
        str(args.programs / f"{mask}_f32.mlir"),
        "--device=cpu",
        "--bench",
        f"--json={report}",
        f"--threads={args.threads}",
        "--set",
        f"N={length}",
        *args.attnfuse_arg,
    ]


def attnfuse_times(args, mask: str, length: int) -> list[float]:
    """The kernel's times in ms: of each run if the report lists them, else the median."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = attnfuse_command(args, mask, length, report)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip()[-1500:]
            raise BenchError(f"{' '.join(command)}: exit {done.returncode}\n{last}")
        try:
            times = json.loads(report.read_text())["results"][0]["kernel_ms"]
            return [float(t) for t in times.get("runs") or [times["median"]]]
        except (OSError, ValueError, LookupError, AttributeError) as error:
            raise BenchError(f"{' '.join(command)}: no kernel_ms in its report: {error}") from error


# ---------------------------------------------------------------------------
# onnxruntime
# ---------------------------------------------------------------------------

# Two layouts: heads interleaved within a token ("BSH", what a projection's matrix
# product leaves), or one contiguous matrix per head ("BHSD", what AttnFuse's programs
# take and what the kernels of both work on). Operators that accept BHSD are spared a
# transpose; MultiHeadAttention takes it for keys and values only.
BSH, BHSD = "BSH", "BHSD"


@dataclass(frozen=True)
class Form:
    """One way to ask onnxruntime for attention."""

    op: str
    layouts: tuple[str, str, str, str]  # of q, k, v and the output
    masks: tuple[str, ...]
    domain: str
    attributes: Callable[[bool], dict]
    # Operators with a key-value cache also want the length so far.
    cached: bool = False

    @property
    def name(self) -> str:
        return f"{self.op}[{','.join(self.layouts)}]"


def mha_attributes(causal: bool) -> dict:
    return {"num_heads": HEADS, "unidirectional": int(causal)}


FORMS = (
    Form("MultiHeadAttention", (BSH, BSH, BSH, BSH), MASKS, "com.microsoft", mha_attributes),
    Form("MultiHeadAttention", (BSH, BHSD, BHSD, BSH), MASKS, "com.microsoft", mha_attributes),
    Form(
        "Attention",
        (BSH, BSH, BSH, BSH),
        MASKS,
        "",
        lambda causal: {
            "is_causal": int(causal),
            "q_num_heads": HEADS,
            "kv_num_heads": HEADS,
        },
    ),
    Form(
        "Attention",
        (BHSD, BHSD, BHSD, BHSD),
        MASKS,
        "",
        lambda causal: {"is_causal": int(causal)},
    ),
    # Always causal, and the one causal operator here that skips work above the
    # diagonal.
    Form(
        "GroupQueryAttention",
        (BSH, BSH, BSH, BSH),
        ("causal",),
        "com.microsoft",
        lambda _: {"num_heads": HEADS, "kv_num_heads": HEADS},
        cached=True,
    ),
)


def shape_of(layout: str, length: int) -> list[int]:
    return [1, length, HIDDEN] if layout == BSH else [1, HEADS, length, WIDTH]


def to_layout(heads: np.ndarray, layout: str) -> np.ndarray:
    """Lays out [H, N, D] at a multiple of 64 bytes, as onnxruntime's allocator does."""
    length = heads.shape[1]
    view = heads[None] if layout == BHSD else heads.swapaxes(0, 1).reshape(1, length, HIDDEN)
    raw = np.empty(view.nbytes + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    aligned = raw[skip : skip + view.nbytes].view(np.float32).reshape(view.shape)
    aligned[...] = view
    return aligned


def from_layout(array: np.ndarray, layout: str) -> np.ndarray:
    return array[0] if layout == BHSD else array[0].reshape(-1, HEADS, WIDTH).swapaxes(0, 1)


def build_model(form: Form, mask: str, length: int) -> bytes:
    def info(name: str, shape: list[int]):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs, outputs, constants = ["q", "k", "v"], ["o"], []
    results = [info("o", shape_of(form.layouts[3], length))]
    if form.cached:
        # No past; the lengths are constants, so that no run copies them.
        inputs += ["", "", "last", "total"]
        constants = [
            helper.make_tensor("last", TensorProto.INT32, [1], [length - 1]),
            helper.make_tensor("total", TensorProto.INT32, [1], [length]),
        ]
        outputs += ["present_k", "present_v"]
        results += [info(name, shape_of(BHSD, length)) for name in outputs[1:]]
    node = helper.make_node(
        form.op, inputs, outputs, domain=form.domain, **form.attributes(mask == "causal")
    )
    params = [
        info(name, shape_of(layout, length))
        for name, layout in zip("qkv", form.layouts, strict=False)
    ]
    graph = helper.make_graph([node], "attention", params, results, constants)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString()


def settle() -> None:
    """Waits until this process's idle threads sleep. A session's workers spin after its
    last run (40 ms were seen), and numpy's may too: on a core that the next side needs,
    that made a run of two threads three times slower."""
    for _ in range(50):
        before = time.process_time()
        time.sleep(0.02)
        if time.process_time() - before < 0.001:
            return


class OrtRunner:
    """A session with inputs and outputs bound to buffers made beforehand: a run copies
    and allocates nothing outside the operator (its scratch is in onnxruntime's arena)."""

    def __init__(self, form: Form, mask: str, inputs: list[np.ndarray], threads: int):
        length = inputs[0].shape[1]
        self.form = form
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = build_model(form, mask, length)
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.kept = []
        for name, heads, layout in zip("qkv", inputs, form.layouts, strict=False):
            array = to_layout(heads, layout)
            value = ort.OrtValue.ortvalue_from_numpy(array)
            self.binding.bind_ortvalue_input(name, value)
            self.kept += [array, value]
        self.results = {}
        for out in self.session.get_outputs():
            value = ort.OrtValue.ortvalue_from_shape_and_type(out.shape, np.float32, "cpu")
            self.binding.bind_ortvalue_output(out.name, value)
            self.results[out.name] = value

    def run(self, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append((time.perf_counter() - start) * 1e3)
        settle()
        return times

    def output(self) -> np.ndarray:
        return from_layout(self.results["o"].numpy(), self.form.layouts[3])


def worst_error(output: np.ndarray, mask: str, inputs: list[np.ndarray]) -> float:
    """The largest error over all heads of some rows, the first and last among them."""
    q, k, v = (array.astype(np.float64) for array in inputs)
    length = q.shape[1]
    rows = np.unique(np.linspace(0, length - 1, CHECKED_ROWS).astype(int))
    scores = q[:, rows] @ k.swapaxes(1, 2) / np.sqrt(WIDTH)
    if mask == "causal":
        scores = np.where(np.arange(length) <= rows[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    return float(np.abs(output[:, rows] - want).max())


# ---------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------


@dataclass
class Row:
    mask: str
    length: int
    peer: OrtRunner
    probes: dict
    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def flops(self) -> float:
        """Of the two matrix products, over the pairs that the mask keeps."""
        pairs = self.length * (self.length + 1) // 2 if self.mask == "causal" else self.length**2
        return 4.0 * HEADS * WIDTH * pairs

    def summary(self, side: str) -> dict | None:
        runs = self.times.get(side)
        if not runs:
            return None
        p25, median, p75 = np.percentile(runs, [25, 50, 75])
        return {
            "median_ms": median,
            "p25_ms": p25,
            "p75_ms": p75,
            "best_ms": min(runs),
            "gflops": self.flops / median / 1e6,
            "runs_ms": runs,
        }


def make_row(mask: str, length: int, threads: int) -> Row:
    rng = np.random.default_rng(length)
    inputs = [rng.standard_normal((HEADS, length, WIDTH), dtype=np.float32) for _ in range(3)]
    runners, probes = {}, {}
    for form in (form for form in FORMS if mask in form.masks):
        runner = OrtRunner(form, mask, inputs, threads)
        runner.run(1)
        error = worst_error(runner.output(), mask, inputs)
        settle()
        # Not `error > TOLERANCE`: a NaN must fail too.
        if not error <= TOLERANCE:
            probes[form.name] = {"refused": f"differs from numpy by {error:.3g}"}
            continue
        runners[form.name] = runner
        probes[form.name] = {"best_ms": float("inf"), "max_error": error}
    if not runners:
        raise BenchError(f"{mask} N={length}: no onnxruntime operator agrees with numpy: {probes}")
    # In turns and by their best run: another program's burst of work must not decide
    # which operator is the peer.
    for _ in range(PROBE_TURNS):
        for name, runner in runners.items():
            probes[name]["best_ms"] = min(probes[name]["best_ms"], *runner.run(PROBE_RUNS))
    best = min(runners, key=lambda name: probes[name]["best_ms"])
    return Row(mask, length, runners[best], probes)


def measure(rows: list[Row], args, console: Console) -> None:
    sides = {"ort": lambda row: row.peer.run(args.reps)}
    if not args.ort_only:
        sides["attnfuse"] = lambda row: attnfuse_times(args, row.mask, row.length)
    names = list(sides)
    for turn in range(args.rounds):
        console.print(f"round {turn + 1} of {args.rounds}", style="dim")
        first = turn % len(rows)
        for row in rows[first:] + rows[:first]:
            for index in range(len(names)):
                name = names[(turn + index) % len(names)]
                if name == "ort":
                    row.peer.run(1)  # back into the caches after the other rows
                row.times.setdefault(name, []).extend(sides[name](row))


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def report(rows: list[Row], args, load: float) -> dict:
    entries = []
    for row in rows:
        mine, theirs = row.summary("attnfuse"), row.summary("ort")
        entries.append(
            {
                "mask": row.mask,
                "n": row.length,
                "ort_form": row.peer.form.name,
                "ort": theirs,
                "attnfuse": mine,
                "ratio_ort_over_attnfuse": theirs["median_ms"] / mine["median_ms"]
                if mine
                else None,
                "ort_probes": row.probes,
            }
        )
    return {
        "shape": {"batch": 1, "heads": HEADS, "width": WIDTH, "type": "f32"},
        "threads": args.threads,
        "rounds": args.rounds,
        "reps": args.reps,
        "cpu": cpu_name(),
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "versions": {"onnxruntime": ort.__version__, "onnx": onnx.__version__},
        "rows": entries,
    }


def show(result: dict, console: Console) -> None:
    table = Table(
        title=f"B1 H{HEADS} D{WIDTH} f32, {result['threads']} thread(s), {result['cpu']}",
        caption="median ms (quartiles) GFLOP/s; ratio: onnxruntime / AttnFuse, above 1 is in "
        "AttnFuse's favour",
    )
    for name in ("mask", "N"):
        table.add_column(name)
    for name in ("onnxruntime", "AttnFuse", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("onnxruntime's operator")

    def cell(side: dict | None) -> str:
        if side is None:
            return "not run"
        spread = f"({side['p25_ms']:.2f}-{side['p75_ms']:.2f})"
        return f"{side['median_ms']:.2f} {spread} {side['gflops']:.0f}"

    for row in result["rows"]:
        ratio = row["ratio_ort_over_attnfuse"]
        table.add_row(
            row["mask"],
            str(row["n"]),
            cell(row["ort"]),
            cell(row["attnfuse"]),
            "-" if ratio is None else f"{ratio:.2f}",
            row["ort_form"].replace("[", r"\["),
        )
    console.print(table)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--threads", type=positive, default=os.cpu_count(), help="of both sides")
    parser.add_argument("--lengths", type=positive, nargs="+", default=[512, 2048, 4096])
    parser.add_argument("--masks", choices=MASKS, nargs="+", default=list(MASKS))
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--reps", type=positive, default=5, help="onnxruntime's runs per round")
    parser.add_argument("--json", type=Path, help="write the result there")
    parser.add_argument("--ort-only", action="store_true", help="leave AttnFuse out")
    parser.add_argument("--attnfuse", type=Path, default=ROOT / "build" / "bin" / "attnfuse-run")
    parser.add_argument("--programs", type=Path, default=ROOT / "bench" / "programs")
    parser.add_argument(
        "--attnfuse-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="passed on to attnfuse-run, as in --attnfuse-arg=--reps=5",
    )
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        if not args.ort_only:
            wanted = [args.attnfuse, *(args.programs / f"{mask}_f32.mlir" for mask in args.masks)]
            for path in wanted:
                if not path.is_file():
                    raise BenchError(f"{path}: no such file (--ort-only leaves AttnFuse out)")
        load = os.getloadavg()[0]
        if load > 0.5:
            console.print(
                f"warning: load {load:.2f}, other programs may disturb this", style="yellow"
            )
        rows = [
            make_row(mask, length, args.threads) for mask in args.masks for length in args.lengths
        ]
        measure(rows, args, console)
        result = report(rows, args, load)
        if args.json:
            args.json.write_text(json.dumps(result, indent=1) + "\n")
    except (BenchError, OSError) as error:
        print(f"cpu_peers: error: {error}", file=sys.stderr)
        return 1
    show(result, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
