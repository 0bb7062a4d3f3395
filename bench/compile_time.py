#!/usr/bin/env python3
# ===- compile_time.py - from .mlir text to PTX, timed --------------------------===#
#
# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===--------------------------------------------------------------------------===#
"""Times the compiler itself: the text of each example to PTX and a manifest, in process,
through the C API (`attnfuse_compile`), with the disk cache off. Needs no GPU.

    python bench/compile_time.py                        # all examples, all chips
    python bench/compile_time.py --chips sm_80,sm_90a --rounds 20 causal rope
    python bench/compile_time.py --json new.json --compare old.json

A round compiles every program once for every chip, so that a slow drift of the machine
touches all alike. Per program and chip it prints the least and the median time on the
clock, the least processor time of all threads, and the size of the PTX. On a machine
that others use as well the least processor time is the figure to compare.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHIPS = "sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_120"


def compile_once(library: ctypes.CDLL, text: bytes, chip: str) -> tuple[float, float, int]:
    """Seconds on the clock, seconds of the processor, bytes of PTX."""
    artifact, size = ctypes.c_void_p(), ctypes.c_size_t()
    wall, processor = time.perf_counter(), time.process_time()
    status = library.attnfuse_compile(
        text, len(text), None, chip.encode(), None, ctypes.byref(artifact)
    )
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if status:
        sys.exit(f"{chip}: {library.attnfuse_last_error().decode()}")
    library.attnfuse_artifact_code(artifact, ctypes.byref(size))
    library.attnfuse_artifact_destroy(artifact)
    return wall, processor, size.value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", help="names of examples (all)")
    parser.add_argument("--chips", default=CHIPS, help="separated by commas (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    parser.add_argument("--compare", type=Path, help="figures of another run, to print beside")
    options = parser.parse_args()

    os.environ["ATTNFUSE_CACHE_DIR"] = ""
    sys.path.insert(0, str(ROOT / "python"))
    from attnfuse._library import library as load

    library = load()
    names = options.programs or sorted(path.stem for path in (ROOT / "examples").glob("*.mlir"))
    texts = {name: (ROOT / "examples" / f"{name}.mlir").read_bytes() for name in names}
    before = json.loads(options.compare.read_text()) if options.compare else {}

    # The first compilation of a process sets up what the others find.
    chips = options.chips.split(",")
    first = compile_once(library, texts[names[0]], chips[0])[0]
    runs: dict[str, list[tuple[float, float, int]]] = {}
    for _ in range(options.rounds):
        for name in names:
            for chip in chips:
                runs.setdefault(f"{name} {chip}", []).append(
                    compile_once(library, texts[name], chip)
                )

    figures = {}
    print(f"the first of all, {names[0]} for {chips[0]}: {first * 1e3:.0f} ms")
    print(f"{'program':28}{'chip':8}{'least':>8}{'median':>8}{'CPU':>8}{'PTX kB':>8}", end="")
    print(f"{'CPU before':>12}" if before else "")
    for key, samples in runs.items():
        name, chip = key.split()
        wall = [sample[0] * 1e3 for sample in samples]
        figures[key] = {
            "least_ms": round(min(wall), 1),
            "median_ms": round(statistics.median(wall), 1),
            "cpu_ms": round(min(sample[1] for sample in samples) * 1e3, 1),
            "ptx_bytes": samples[0][2],
        }
        now = figures[key]
        print(
            f"{name:28}{chip:8}{now['least_ms']:8.1f}{now['median_ms']:8.1f}"
            f"{now['cpu_ms']:8.1f}{now['ptx_bytes'] / 1e3:8.0f}",
            end="",
        )
        print(f"{before[key]['cpu_ms']:12.1f}" if key in before else "")
    worst = max(figures, key=lambda key: figures[key]["least_ms"])
    total = sum(now["cpu_ms"] for now in figures.values())
    print(f"slowest: {worst}, {figures[worst]['least_ms']:.1f} ms; CPU of all: {total:.0f} ms")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
