# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark's programs parse, and its counts of pairs are right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from programs_gpu import (  # noqa: E402
    BLOCK,
    DOCUMENT,
    KINDS,
    SUITES,
    WINDOW,
    Case,
    bigbird_table,
    program,
    suite,
)

OPT = Path(os.environ.get("ATTNFUSE_BUILD_DIR", ROOT / "build")) / "bin" / "attnfuse-opt"


@pytest.mark.skipif(not OPT.is_file(), reason="attnfuse-opt is not built")
def test_programs_parse(tmp_path):
    texts = []
    for kind in KINDS:
        for options in ({}, {"dynamic": False}, {"lse": True}):
            texts.append(program(kind, "bf16", 1, 32, 8, 512, 128, **options))
    texts.append(program("bigbird", "f16", 1, 16, 16, 512, 64, table=bigbird_table(512)))
    path = tmp_path / "programs.mlir"
    path.write_text("\n// -----\n".join(texts))
    command = [str(OPT), "--split-input-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_cases_have_names_of_their_own():
    for name in SUITES:
        names = [case.name for case in suite(name)]
        assert len(set(names)) == len(names) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_pairs(kind):
    n = 2048
    case = Case(kind, "bf16", 1, 1, 1, n, 64)
    table = bigbird_table(n)
    keep = {
        "window": lambda i, j: i - WINDOW < j <= i,
        "documents": lambda i, j: j <= i and i // DOCUMENT == j // DOCUMENT,
        "bigbird": lambda i, j: table[i // BLOCK][j // BLOCK],
        "full": lambda i, j: True,
        "bias": lambda i, j: True,
    }.get(kind)
    if keep is None:
        assert case.pairs == n * n / 2
    else:
        # A row of every sixteen stands for its neighbours.
        pairs = 16 * sum(keep(i, j) for i in range(8, n, 16) for j in range(n))
        assert case.pairs == pytest.approx(pairs, rel=0.01)
