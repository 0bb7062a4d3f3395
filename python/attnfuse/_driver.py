# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The little that is needed of the CUDA driver where torch is not in use."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_int, c_size_t, c_uint64, c_void_p

from ._library import AttnFuseError, Status


class Driver:
    """Memory and streams of a device's primary context, the one that programs run in."""

    def __init__(self) -> None:
        name = os.environ.get("ATTNFUSE_LIBCUDA") or "libcuda.so.1"
        try:
            self._cuda = ctypes.CDLL(name)
        except OSError as error:
            raise AttnFuseError(f"no CUDA driver: {error}", Status.NO_DRIVER) from None
        self._cuda.cuStreamSynchronize.argtypes = [c_void_p]
        self._cuda.cuMemFree_v2.argtypes = [c_uint64]
        self._cuda.cuCtxPushCurrent_v2.argtypes = [c_void_p]
        self._contexts: dict[int, c_void_p] = {}
        self._check("cuInit", 0)

    def _check(self, name: str, *arguments: object) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            status = Status.OUT_OF_MEMORY if code == 2 else Status.DRIVER_ERROR
            raise AttnFuseError(f"{name} failed with CUDA error {code}", status)

    def _enter(self, device: int) -> None:
        if device not in self._contexts:
            handle, context = c_int(), c_void_p()
            self._check("cuDeviceGet", ctypes.byref(handle), c_int(device))
            # Never released: the program holds this context as well.
            self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
            self._contexts[device] = context
        self._check("cuCtxPushCurrent_v2", self._contexts[device])

    def _leave(self) -> None:
        self._check("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))

    def allocate(self, device: int, size: int) -> int:
        address = c_uint64()
        self._enter(device)
        try:
            self._check("cuMemAlloc_v2", ctypes.byref(address), c_size_t(size))
        finally:
            self._leave()
        return address.value

    def free(self, device: int, address: int, stream: int) -> None:
        """Frees memory once what is on the stream has run."""
        self._enter(device)
        try:
            self._check("cuStreamSynchronize", stream)
            self._check("cuMemFree_v2", address)
        finally:
            self._leave()

    def synchronize(self, device: int, stream: int) -> None:
        self._enter(device)
        try:
            self._check("cuStreamSynchronize", stream)
        finally:
            self._leave()


_driver: Driver | None = None


def driver() -> Driver:
    global _driver
    if _driver is None:
        _driver = Driver()
    return _driver
