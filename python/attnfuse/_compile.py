# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the text of a program to an artifact, and from that to a program on a device."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Union

from ._library import AttnFuseError, check, library
from ._program import Program

Options = Union[str, Mapping[str, Any], None]


@dataclass(frozen=True)
class Artifact:
    """A compiled program: code, and how to launch it (docs/runtime.md).

    Attributes
    ----------
    code : str or bytes
        PTX text, or a cubin.
    manifest_text : str
        The manifest as JSON text.
    explanation : str
        A line per choice that the compiler made.
    """

    code: str | bytes
    manifest_text: str
    explanation: str = ""
    _manifest: dict = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "_manifest", json.loads(self.manifest_text))
        except ValueError as error:
            raise AttnFuseError(f"the manifest is no JSON: {error}") from None

    @property
    def manifest(self) -> dict:
        """The manifest as a dictionary."""
        return self._manifest

    @property
    def chip(self) -> str:
        """What it was compiled for, as "sm_90a"."""
        return self._manifest.get("chip", "")

    def __repr__(self) -> str:
        return f"<attnfuse.Artifact @{self._manifest.get('entry', '?')} for {self.chip}>"

    def save(self, path: str | os.PathLike) -> list[Path]:
        """Writes the code to `path` + ".ptx" (or ".cubin"), the manifest to `path` + ".json".

        Returns
        -------
        list of Path
            The files written; `attnfuse.load(path)` reads them again.
        """
        path = Path(path)
        binary = isinstance(self.code, bytes)
        code = path.with_name(path.name + (".cubin" if binary else ".ptx"))
        code.write_bytes(self.code if isinstance(self.code, bytes) else self.code.encode())
        manifest = path.with_name(path.name + ".json")
        manifest.write_text(self.manifest_text, encoding="utf-8")
        return [code, manifest]

    @classmethod
    def open(cls, path: str | os.PathLike) -> Artifact:
        """Reads what `save` wrote to the same `path`."""
        path = Path(path)
        manifest = path.with_name(path.name + ".json")
        for suffix in (".ptx", ".cubin"):
            code = path.with_name(path.name + suffix)
            if code.is_file() and manifest.is_file():
                content = code.read_bytes()
                return cls(
                    content.decode() if suffix == ".ptx" else content,
                    manifest.read_text(encoding="utf-8"),
                )
        raise AttnFuseError(f"no {path}.ptx (or .cubin) with a {path}.json beside it")


def version() -> str:
    """The library's version and that of its LLVM."""
    return library().attnfuse_version().decode()


def chip_for_device(device: Any = None) -> str:
    """The chip that programs for a device are compiled for, as "sm_90a"."""
    name = ctypes.create_string_buffer(16)
    check(library().attnfuse_chip_for_device(_device_index(device), name))
    return name.value.decode()


def _device_index(device: Any) -> int:
    if device is None:
        torch = sys.modules.get("torch")
        # Asking a torch that uses no GPU would initialise CUDA.
        if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
            return torch.cuda.current_device()
        return 0
    if isinstance(device, int):
        return device
    kind, _, index = str(device).partition(":")  # "cuda:1", torch.device
    if kind != "cuda" or (index and not index.isdigit()):
        raise AttnFuseError(f"device is {device!r}; expected an int, 'cuda' or 'cuda:N'")
    return int(index) if index else _device_index(None)


def _text_of(text_or_path: str | os.PathLike) -> str:
    """A str is a program if it has a line break or a brace, else a path."""
    if isinstance(text_or_path, str) and any(mark in text_or_path for mark in "\n{"):
        return text_or_path
    try:
        return Path(text_or_path).read_text(encoding="utf-8")
    except OSError as error:
        raise AttnFuseError(f"no program: {error}") from None


def _options_of(options: Options) -> str | None:
    if options is None or isinstance(options, str):
        return options or None

    def value(x: Any) -> str:
        return str(x).lower() if isinstance(x, bool) else str(x)

    return " ".join(f"{name.replace('_', '-')}={value(x)}" for name, x in options.items()) or None


def compile(
    text_or_path: str | os.PathLike,
    entry: str | None = None,
    chip: str | None = None,
    options: Options = None,
) -> Artifact:
    """Compiles a function of an MLIR module. Needs a GPU only to tell its chip.

    Parameters
    ----------
    text_or_path : str or path
        The module's text, or the file it is in.
    entry : str, optional
        The function; by default the first public one.
    chip : str, optional
        "sm_80", "sm_90a", ...; by default that of the current device.
    options : str or mapping, optional
        Of the pipeline `attnfuse-to-ptx`: "block-m=64 rope=in-loop" or
        `{"block_m": 64, "rope": "in-loop"}`.

    Raises
    ------
    AttnFuseError
        With the compiler's diagnostics and their locations.
    """
    text = _text_of(text_or_path).encode()
    given = _options_of(options)
    chip = chip or chip_for_device()
    lib = library()
    handle = ctypes.c_void_p()
    check(
        lib.attnfuse_compile(
            text,
            len(text),
            entry.encode() if entry else None,
            chip.encode(),
            given.encode() if given else None,
            ctypes.byref(handle),
        )
    )

    def read(function: Callable) -> bytes:
        size = ctypes.c_size_t()
        address = function(handle, ctypes.byref(size))
        return ctypes.string_at(address, size.value) if address else b""

    try:
        return Artifact(
            read(lib.attnfuse_artifact_code).decode(),
            read(lib.attnfuse_artifact_manifest).decode(),
            read(lib.attnfuse_artifact_explanation).decode(errors="replace"),
        )
    finally:
        lib.attnfuse_artifact_destroy(handle)


def load(artifact: Artifact | str | os.PathLike, device: Any = None) -> Program:
    """Loads an artifact, or the files that `Artifact.save` wrote, for a device.

    Parameters
    ----------
    artifact : Artifact or path
        What to load.
    device : int, str or torch.device, optional
        By default torch's current device, or 0 where torch uses none.
    """
    if not isinstance(artifact, Artifact):
        artifact = Artifact.open(artifact)
    return Program(artifact, _device_index(device))


_programs: dict[tuple, Program] = {}
_lock = threading.Lock()


def program(
    text_or_path: str | os.PathLike,
    device: Any = None,
    entry: str | None = None,
    chip: str | None = None,
    options: Options = None,
) -> Program:
    """Compiles and loads; the same again gives the same object.

    Parameters
    ----------
    text_or_path, entry, options
        As for `compile`.
    device : int, str or torch.device, optional
        As for `load`.
    chip : str, optional
        By default that of the device.
    """
    text = _text_of(text_or_path)
    index = _device_index(device)
    given = _options_of(options)
    key = (text, entry, chip, given, index)
    found = _programs.get(key)
    if found is None:
        with _lock:  # two threads that want one program compile it once
            found = _programs.get(key)
            if found is None:
                made_for = chip or chip_for_device(index)
                # The line break makes even a text without one a text.
                found = load(compile(text + "\n", entry, made_for, given), index)
                _programs[key] = found
    return found


def clear_cache() -> None:
    """Forgets the programs that `program` keeps in memory."""
    with _lock:
        _programs.clear()
