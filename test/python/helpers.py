# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the stand-in library, and arrays that only claim to be on a GPU."""

from __future__ import annotations

import ctypes
import json
from ctypes import POINTER, c_char_p, c_int64, c_void_p

from attnfuse._arrays import DLTensor

SHAPE = (2, 8, 16, 64)
DENSE = (8192, 1024, 64, 1)


def manifest(scalars=(), **fake) -> str:
    """What the stand-in compiles: q, k, v and these scalars."""
    arguments = [{"name": name, "dtype": "bf16", "shape": [None] * 4} for name in "qkv"]
    arguments += [{"name": f"s{i}", "dtype": dtype} for i, dtype in enumerate(scalars)]
    fake = {"inputs": len(arguments), **fake}
    return json.dumps(
        {
            "version": 1,
            "chip": "sm_90a",
            "entry": "main",
            "arguments": arguments,
            **{f"fake_{name}": value for name, value in fake.items()},
        }
    )


class DLManagedTensor(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", Deleter)]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]


class DLPackArray:
    """An array of a made-up CUDA device. type: (code, bits, lanes)."""

    def __init__(
        self, shape=SHAPE, strides=DENSE, type=(4, 16, 1), data=0x7000, offset=0, device=(2, 0)
    ):
        self.device, self.streams = device, []
        self._shape = (c_int64 * len(shape))(*shape)
        self._strides = (c_int64 * len(shape))(*strides) if strides is not None else None
        self._managed = DLManagedTensor()
        tensor = self._managed.tensor
        tensor.data, tensor.byte_offset, tensor.ndim = data, offset, len(shape)
        tensor.device_type, tensor.device_id = device
        tensor.code, tensor.bits, tensor.lanes = type
        tensor.shape = self._shape
        if self._strides is not None:
            tensor.strides = self._strides

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return _new_capsule(ctypes.addressof(self._managed), b"dltensor", None)


class CudaArray:
    """An array with __cuda_array_interface__."""

    def __init__(self, shape=SHAPE, typestr="<f2", strides=None, data=0x9000, **more):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "strides": strides,
            "data": (data, False),
            "version": 3,
            **more,
        }
