# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package over a stand-in library (fake_attnfuse.c), compiled once per session."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from ctypes import c_int32, c_int64, c_void_p
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(HERE))


class FakeTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("_shape", c_int64 * 8),
        ("_strides", c_int64 * 8),
        ("scalar", c_int64),
    ]

    @property
    def shape(self):
        return tuple(self._shape[: self.rank])

    @property
    def strides(self):
        return tuple(self._strides[: self.rank])


class FakeRecord(ctypes.Structure):
    _fields_ = [
        *((name, c_int32) for name in ("launches", "inputs", "outputs", "device")),
        ("input", FakeTensor * 16),
        ("output", FakeTensor * 16),
        ("workspace", c_void_p),
        ("stream", c_void_p),
        ("workspace_bytes", c_int64),
        *((name, c_int32) for name in ("compiles", "loads", "destroyed", "plans")),
        *((name, c_int32) for name in ("allocated", "freed", "synchronized")),
    ]


def real_library() -> Path | None:
    given = os.environ.get("ATTNFUSE_LIBRARY")
    build = Path(os.environ.get("ATTNFUSE_BUILD_DIR", ROOT / "build"))
    path = Path(given) if given else build / "lib" / "libattnfuse.so"
    return path if path.is_file() else None


REAL_LIBRARY = real_library()


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory) -> Path:
    compiler = shutil.which("cc") or shutil.which("clang-22")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in library")
    path = tmp_path_factory.mktemp("fake") / "libattnfuse.so"
    source = HERE / "fake_attnfuse.c"
    include = ROOT / "include"
    # Not -Wextra: most functions ignore most of their parameters.
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-I{include}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(path)], check=True)
    return path


def reset() -> None:
    import attnfuse
    from attnfuse import _arrays, _driver, _library

    _library._library = None
    _driver._driver = None
    _arrays._torch_types = None
    attnfuse.clear_cache()


@pytest.fixture
def record(fake_library, monkeypatch):
    """The package on the stand-in, and what its last launch was given."""
    monkeypatch.setenv("ATTNFUSE_LIBRARY", str(fake_library))
    monkeypatch.setenv("ATTNFUSE_LIBCUDA", str(fake_library))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    reset()
    found = FakeRecord.in_dll(ctypes.CDLL(str(fake_library)), "fake_record")
    ctypes.memset(ctypes.addressof(found), 0, ctypes.sizeof(found))
    yield found
    reset()


@pytest.fixture
def torch(record, monkeypatch):
    import fake_torch

    monkeypatch.setitem(sys.modules, "torch", fake_torch)
    monkeypatch.setattr(fake_torch, "grad_enabled", True)
    monkeypatch.setattr(fake_torch.cuda, "capturing", False)
    monkeypatch.setattr(fake_torch.cuda, "current", fake_torch.Stream(7))
    return fake_torch
