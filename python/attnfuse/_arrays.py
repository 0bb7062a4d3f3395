# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of a GPU array: address, extents, strides, dtype, device.

Three sorts are understood: torch tensors (without importing torch), objects with
`__dlpack__`, and objects with `__cuda_array_interface__`.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, NamedTuple

from ._driver import driver
from ._library import AttnFuseError

# attnfuse_dtype, by the names of the manifest.
DTYPES = {"f32": 0, "bf16": 1, "f16": 2, "i64": 3, "i32": 4, "i8": 5, "i1": 6}
ITEM_SIZES = (4, 2, 2, 8, 4, 1, 1)
_TORCH_NAMES = {
    "f32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i8": "int8",
    "i1": "bool",
}
_SUPPORTED = "float32, bfloat16, float16, int64, int32, int8 and bool are supported"


def _dense_strides(shape: tuple) -> tuple:
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


class Layout(NamedTuple):
    """All of an array but its address."""

    shape: tuple
    strides: tuple  # in elements
    dtype: int
    device: int

    @classmethod
    def dense(cls, shape: tuple, dtype: int, device: int) -> Layout:
        return cls(shape, _dense_strides(shape), dtype, device)


class TorchTypes:
    """torch's names for what this package needs of it."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.dtypes = {getattr(torch, _TORCH_NAMES[name]): code for name, code in DTYPES.items()}
        self.by_code = {code: dtype for dtype, code in self.dtypes.items()}
        # What Triton and inductor use: a tenth of torch.cuda.current_stream's cost.
        raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        self.current_stream = raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)

    def layout(self, tensor: Any, what: str) -> Layout:
        if tensor.device.type != "cuda":
            raise AttnFuseError(
                f"{what} is on {tensor.device}; AttnFuse's GPU programs take CUDA tensors: "
                f"move it with .cuda()"
            )
        dtype = self.dtypes.get(tensor.dtype)
        if dtype is None:
            raise AttnFuseError(f"{what} is of type {tensor.dtype}; {_SUPPORTED}")
        if tensor.layout != self.torch.strided:
            raise AttnFuseError(f"{what} has layout {tensor.layout}; only strided is supported")
        return Layout(tuple(tensor.shape), tuple(tensor.stride()), dtype, tensor.device.index)


_torch_types: TorchTypes | None = None


def torch_types() -> TorchTypes | None:
    """None while nobody has imported torch: then no argument can be one of its tensors."""
    global _torch_types
    if _torch_types is None:
        torch = sys.modules.get("torch")
        # Half-imported in another thread, or a namespace without a tensor type.
        if torch is not None and hasattr(torch, "Tensor") and hasattr(torch, "cuda"):
            _torch_types = TorchTypes(torch)
    return _torch_types


# ---------------------------------------------------------------------------
# DLPack (https://dmlc.github.io/dlpack/latest/c_api.html)
# ---------------------------------------------------------------------------

_DL_CUDA, _DL_CUDA_MANAGED = 2, 13
_DL_DEVICES = {1: "the CPU", 3: "pinned host memory", 10: "ROCm", 14: "oneAPI"}
# (code, bits) of DLDataType
_DL_DTYPES = {
    (2, 32): DTYPES["f32"],
    (4, 16): DTYPES["bf16"],
    (2, 16): DTYPES["f16"],
    (0, 64): DTYPES["i64"],
    (0, 32): DTYPES["i32"],
    (0, 8): DTYPES["i8"],
    (6, 8): DTYPES["i1"],
}
_DL_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]


def _from_dlpack(array: Any, what: str, stream: int) -> tuple[int, Layout, Any]:
    """The capsule is returned too: it owns the memory, and is never consumed (renamed), so
    that its own destructor gives the memory back."""
    device_type, device = (int(part) for part in array.__dlpack_device__())
    if device_type not in (_DL_CUDA, _DL_CUDA_MANAGED):
        place = _DL_DEVICES.get(device_type, f"DLPack device type {device_type}")
        raise AttnFuseError(f"{what} is on {place}; AttnFuse's GPU programs take CUDA arrays")
    # In DLPack 0 stands for no stream in particular; 1 is the legacy default stream.
    capsule = array.__dlpack__(stream=stream or 1)
    address = _capsule_pointer(capsule, b"dltensor")
    # The first field of DLManagedTensor is the DLTensor.
    tensor = DLTensor.from_address(address)
    dtype = _DL_DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        code = _DL_CODES.get(tensor.code, f"DLPack type code {tensor.code}, bits ")
        lanes = f"x{tensor.lanes}" if tensor.lanes != 1 else ""
        raise AttnFuseError(f"{what} is of type {code}{tensor.bits}{lanes}; {_SUPPORTED}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _dense_strides(shape)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return pointer, Layout(shape, strides, dtype, device), capsule


# ---------------------------------------------------------------------------
# __cuda_array_interface__, versions 0 to 3
# ---------------------------------------------------------------------------

# By kind and size. ml_dtypes' bfloat16 is a void of two bytes to numpy.
_CAI_DTYPES = {
    "f4": DTYPES["f32"],
    "V2": DTYPES["bf16"],
    "f2": DTYPES["f16"],
    "i8": DTYPES["i64"],
    "i4": DTYPES["i32"],
    "i1": DTYPES["i8"],
    "b1": DTYPES["i1"],
}


def _from_cuda_array_interface(
    array: Any, what: str, stream: int, device: int
) -> tuple[int, Layout, Any]:
    interface = array.__cuda_array_interface__
    typestr = interface["typestr"]
    dtype = None if typestr[0] == ">" else _CAI_DTYPES.get(typestr[1:])
    if dtype is None:
        raise AttnFuseError(f"{what} is of type '{typestr}'; {_SUPPORTED}")
    if interface.get("mask") is not None:
        raise AttnFuseError(f"{what} is a masked array, which is not supported")
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = _dense_strides(shape)
    else:
        size = ITEM_SIZES[dtype]
        if any(step % size for step in strides):
            raise AttnFuseError(f"{what} has strides of {strides} bytes, no multiple of {size}")
        strides = tuple(step // size for step in strides)
    producer = interface.get("stream")
    # 1 is the legacy default stream, which is 0 to the driver.
    if producer is not None and (0 if producer == 1 else producer) != stream:
        driver().synchronize(device, 0 if producer == 1 else producer)
    return interface["data"][0], Layout(shape, strides, dtype, device), array


def describe(array: Any, what: str, stream: int, device: int) -> tuple[int, Layout, Any]:
    """Address, layout and owner of an array that is none of torch's.

    Parameters
    ----------
    array
        The array.
    what : str
        How messages name it, as "argument 0 ('q')".
    stream : int
        The stream that will read or write it; the array's producer is told, or waited for.
    device : int
        The device that is assumed where the array does not say
        (`__cuda_array_interface__`).
    """
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _from_dlpack(array, what, stream)
    if hasattr(array, "__cuda_array_interface__"):
        return _from_cuda_array_interface(array, what, stream, device)
    raise AttnFuseError(
        f"{what} is a {type(array).__module__}.{type(array).__qualname__}; expected a torch "
        f"tensor, or an object with __dlpack__ or __cuda_array_interface__, in CUDA memory"
    )
