# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding the library, compiling, saving, loading, and the cache of programs."""

from __future__ import annotations

import gc

import attnfuse
import pytest
from attnfuse import AttnFuseError, Status, _library
from conftest import REAL_LIBRARY, ROOT, reset
from helpers import manifest


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setenv("ATTNFUSE_LIBRARY", "/nowhere/libattnfuse.so")
    reset()
    with pytest.raises(AttnFuseError, match="/nowhere/libattnfuse.so: no such file") as caught:
        attnfuse.version()
    assert caught.value.status is None


def test_what_is_no_library_is_named(monkeypatch, tmp_path):
    path = tmp_path / "libattnfuse.so"
    path.write_text("text")
    monkeypatch.setenv("ATTNFUSE_LIBRARY", str(path))
    reset()
    with pytest.raises(AttnFuseError, match="Tried:\n  .*libattnfuse.so: .*(too short|header)"):
        attnfuse.version()


def test_the_places_without_the_variable(monkeypatch):
    monkeypatch.delenv("ATTNFUSE_LIBRARY", raising=False)
    places = [str(path.relative_to(ROOT)) for path in _library.candidates()]
    assert places == [
        "python/attnfuse/libattnfuse.so",
        "lib/libattnfuse.so",
        "build/lib/libattnfuse.so",
    ]


def test_compile_passes_everything_on(record):
    artifact = attnfuse.compile(
        manifest(), "f", "sm_80", {"block_m": 64, "rope": "in-loop", "hoist": True}
    )
    assert artifact.explanation == "entry=f chip=sm_80 options=block-m=64 rope=in-loop hoist=true"
    assert artifact.code == "// ptx"
    assert artifact.manifest["entry"] == "main"
    assert attnfuse.version() == "0.0.0 (fake)"


def test_compile_without_options_asks_the_device(record):
    assert attnfuse.compile(manifest()).explanation == "entry=NULL chip=sm_90a options=NULL"


def test_compile_reads_a_file(record, tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(manifest())
    for given in (path, str(path)):
        assert attnfuse.compile(given, chip="sm_80").manifest["version"] == 1
    with pytest.raises(AttnFuseError, match="no program: .*absent.mlir"):
        attnfuse.compile(tmp_path / "absent.mlir")


def test_compile_errors_carry_the_diagnostics(record):
    with pytest.raises(AttnFuseError, match="<program>:1:1: error: nonsense") as caught:
        attnfuse.compile("nonsense\n", chip="sm_80")
    assert caught.value.status is Status.COMPILE_ERROR


def test_an_unknown_device(record):
    with pytest.raises(AttnFuseError, match="there is no device 5") as caught:
        attnfuse.program(manifest(), device=5)
    assert caught.value.status is Status.NO_DEVICE
    for device in ("cpu", "cuda:x"):
        with pytest.raises(AttnFuseError, match="expected an int, 'cuda' or 'cuda:N'"):
            attnfuse.program(manifest(), device=device)


def test_save_and_load(record, tmp_path):
    artifact = attnfuse.compile(manifest())
    files = artifact.save(tmp_path / "causal.v1")
    assert [path.name for path in files] == ["causal.v1.ptx", "causal.v1.json"]
    again = attnfuse.Artifact.open(tmp_path / "causal.v1")
    assert (again.code, again.manifest) == (artifact.code, artifact.manifest)
    assert attnfuse.load(tmp_path / "causal.v1").artifact.chip == "sm_90a"
    with pytest.raises(AttnFuseError, match="no .*other.ptx"):
        attnfuse.load(tmp_path / "other")


def test_a_cubin_is_bytes(record, tmp_path):
    artifact = attnfuse.Artifact(b"\x7fELF", manifest())
    assert artifact.save(tmp_path / "p")[0].name == "p.cubin"
    assert attnfuse.Artifact.open(tmp_path / "p").code == b"\x7fELF"


def test_programs_are_cached(record):
    first = attnfuse.program(manifest())
    assert attnfuse.program(manifest(), device="cuda:0") is first
    assert (record.compiles, record.loads) == (1, 1)
    others = [
        attnfuse.program(manifest(), device=1),
        attnfuse.program(manifest(), options="block-m=64"),
        attnfuse.program(manifest(), chip="sm_80"),
        attnfuse.program(manifest(), entry="g"),
    ]
    assert len({id(program) for program in [first, *others]}) == 5
    assert others[0].artifact.explanation.startswith("entry=NULL chip=sm_80")


def test_programs_are_destroyed(record):
    program = attnfuse.program(manifest())
    assert program.kernels == [("kernel_0", 128, 168, 0, 1, 65536)]
    assert program.log == ""
    assert repr(program) == "<attnfuse.Program @main for sm_90a on cuda:0>"
    attnfuse.clear_cache()
    assert record.destroyed == 0
    del program
    gc.collect()
    assert record.destroyed == 1


@pytest.mark.skipif(REAL_LIBRARY is None, reason="libattnfuse.so is not built")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.mlir")), ids=lambda p: p.stem)
def test_examples_compile(path, chip, monkeypatch):
    monkeypatch.setenv("ATTNFUSE_LIBRARY", str(REAL_LIBRARY))
    reset()
    artifact = attnfuse.compile(path, chip=chip)
    reset()
    found = artifact.manifest
    assert (found["version"], found["chip"], found["entry"]) == (1, chip, path.stem)
    assert ".target " + chip in artifact.code
    assert f".version {found['ptx'] // 10}.{found['ptx'] % 10}" in artifact.code
    names = [argument["name"] for argument in found["arguments"]]
    assert names[:3] == ["q", "k", "v"]
    assert len(found["results"]) == (2 if path.stem == "softmax" else 1)
    for step in found["steps"]:
        assert f".entry {step['kernel']}(" in artifact.code.replace(" (", "(")
