# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""As much of torch as the package touches, without memory behind the tensors."""

from __future__ import annotations

import types
from contextlib import contextmanager


class device:
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


names = ("float32", "bfloat16", "float16", "int64", "int32", "int8", "bool", "uint8", "float64")
globals().update({name: dtype(name) for name in names})
strided = "strided"


class Tensor:
    addresses = 0x10000

    def __init__(self, shape, dtype, where, strides=None, requires_grad=False):
        self.shape, self.dtype, self.device = tuple(shape), dtype, where
        self.layout, self.requires_grad = strided, requires_grad
        self.made_on = cuda.current_stream(where.index).cuda_stream
        Tensor.addresses += 0x10000
        self.address = Tensor.addresses
        if strides is None:
            strides, step = [], 1
            for extent in reversed(self.shape):
                strides.insert(0, step)
                step *= extent
        self.strides = tuple(strides)

    def stride(self):
        return self.strides

    def data_ptr(self):
        return self.address


def empty(shape, dtype, device):
    return Tensor(shape, dtype, device)


grad_enabled = True


def is_grad_enabled():
    return grad_enabled


class Stream:
    def __init__(self, handle):
        self.cuda_stream = handle


def ExternalStream(handle, device):
    return Stream(handle)


@contextmanager
def use_stream(stream):
    before, cuda.current = cuda.current, stream
    yield
    cuda.current = before


cuda = types.SimpleNamespace(
    current=Stream(7),
    capturing=False,
    Stream=Stream,
    ExternalStream=ExternalStream,
    stream=use_stream,
    current_stream=lambda device: cuda.current,
    default_stream=lambda device: Stream(0),
    is_current_stream_capturing=lambda: cuda.capturing,
    is_initialized=lambda: False,
    current_device=lambda: 0,
)
