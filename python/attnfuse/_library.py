# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libattnfuse.so: where it is, its structs and functions, its errors."""

from __future__ import annotations

import ctypes
import enum
import os
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path

MAX_RANK = 8


class Status(enum.IntEnum):
    """`attnfuse_status` of include/attnfuse-c/Runtime.h."""

    OK = 0
    INVALID_ARGUMENT = 1
    NO_DRIVER = 2
    NO_DEVICE = 3
    DRIVER_TOO_OLD = 4
    WRONG_CHIP = 5
    COMPILE_ERROR = 6
    OUT_OF_MEMORY = 7
    LAUNCH_FAILED = 8
    DRIVER_ERROR = 9


class AttnFuseError(RuntimeError):
    """What failed and what to do about it.

    Attributes
    ----------
    status : Status or int or None
        The status of the C function, `Status.INVALID_ARGUMENT` for what this package
        refuses itself, None where the library could not be loaded.
    """

    def __init__(self, message: str, status: int | None = Status.INVALID_ARGUMENT):
        super().__init__(message)
        try:
            self.status = None if status is None else Status(status)
        except ValueError:  # of a newer library
            self.status = status


class Tensor(ctypes.Structure):
    """`attnfuse_tensor`."""

    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    ]


class KernelInfo(ctypes.Structure):
    """`attnfuse_kernel_info`."""

    _fields_ = [
        ("name", c_char_p),
        ("threads", c_int32),
        ("registers", c_int32),
        ("spill_bytes", c_int32),
        ("blocks_per_unit", c_int32),
        ("shared_bytes", c_int64),
    ]


# Tensor arrays are c_void_p, not POINTER(Tensor): an address converts faster.
_HANDLE = c_void_p
_TENSORS = c_void_p
_FUNCTIONS = {
    "attnfuse_last_error": (c_char_p, []),
    "attnfuse_version": (c_char_p, []),
    "attnfuse_compile": (
        c_int32,
        [c_char_p, c_size_t, c_char_p, c_char_p, c_char_p, POINTER(_HANDLE)],
    ),
    "attnfuse_artifact_destroy": (None, [_HANDLE]),
    "attnfuse_artifact_code": (c_void_p, [_HANDLE, POINTER(c_size_t)]),
    "attnfuse_artifact_manifest": (c_void_p, [_HANDLE, POINTER(c_size_t)]),
    "attnfuse_artifact_explanation": (c_void_p, [_HANDLE, POINTER(c_size_t)]),
    "attnfuse_chip_for_device": (c_int32, [c_int32, c_char_p]),
    "attnfuse_program_load": (
        c_int32,
        [c_char_p, c_size_t, c_char_p, c_size_t, c_int32, POINTER(_HANDLE)],
    ),
    "attnfuse_program_destroy": (None, [_HANDLE]),
    "attnfuse_program_num_inputs": (c_int32, [_HANDLE]),
    "attnfuse_program_num_outputs": (c_int32, [_HANDLE]),
    "attnfuse_program_output_shape": (
        c_int32,
        [
            _HANDLE,
            _TENSORS,
            c_int32,
            c_int32,
            POINTER(c_int32),
            POINTER(c_int32),
            POINTER(c_int64),
        ],
    ),
    "attnfuse_program_workspace": (c_int32, [_HANDLE, _TENSORS, c_int32, POINTER(c_size_t)]),
    "attnfuse_program_launch": (
        c_int32,
        [_HANDLE, _TENSORS, c_int32, _TENSORS, c_int32, c_void_p, c_size_t, c_void_p],
    ),
    "attnfuse_program_num_kernels": (c_int32, [_HANDLE]),
    "attnfuse_program_kernel": (c_int32, [_HANDLE, c_int32, POINTER(KernelInfo)]),
    "attnfuse_program_log": (c_char_p, [_HANDLE]),
}

_library: ctypes.CDLL | None = None


def candidates() -> list[Path]:
    """The places where the library is looked for, in order."""
    given = os.environ.get("ATTNFUSE_LIBRARY")
    if given:
        return [Path(given)]
    here = Path(__file__).resolve().parent
    root = here.parent.parent
    return [folder / "libattnfuse.so" for folder in (here, root / "lib", root / "build" / "lib")]


def library() -> ctypes.CDLL:
    """The library, loaded at the first call."""
    global _library
    if _library is None:
        _library = _open()
    return _library


def _open() -> ctypes.CDLL:
    tried = []
    for path in candidates():
        if not path.is_file():
            tried.append(f"{path}: no such file")
            continue
        try:
            found = ctypes.CDLL(str(path))
        except OSError as error:
            tried.append(f"{path}: {str(error).replace(f'{path}: ', '')}")
            continue
        for name, (result, arguments) in _FUNCTIONS.items():
            try:
                function = getattr(found, name)
            except AttributeError:
                raise AttnFuseError(
                    f"{path} has no {name}: it is not the libattnfuse.so of this package's version",
                    None,
                ) from None
            function.restype = result
            function.argtypes = arguments
        return found
    places = "\n  ".join(tried)
    raise AttnFuseError(
        f"libattnfuse.so was not found; build it with ninja -C build, or name it in "
        f"ATTNFUSE_LIBRARY. Tried:\n  {places}",
        None,
    )


def last_error() -> str:
    return (library().attnfuse_last_error() or b"").decode(errors="replace")


def check(status: int) -> None:
    """Raises what the library says about this thread's last failure."""
    if status:
        raise AttnFuseError(last_error() or f"AttnFuse failed with status {status}", status)
