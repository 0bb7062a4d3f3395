# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile attention programs and run them on CUDA tensors.

    import attnfuse, torch

    attend = attnfuse.program("examples/causal.mlir")
    q, k, v = (torch.randn(1, 8, 4096, 64, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
    o = attend(q, k, v)

A thin layer over libattnfuse.so (include/attnfuse-c). It needs nothing but the standard
library; with torch it takes torch's tensors, stream and allocator. See docs/python.md.
"""

from __future__ import annotations

from ._compile import Artifact, chip_for_device, clear_cache, compile, load, program, version
from ._library import AttnFuseError, Status
from ._program import Kernel, Prepared, Program

__all__ = [
    "Artifact",
    "AttnFuseError",
    "Kernel",
    "Prepared",
    "Program",
    "Status",
    "chip_for_device",
    "clear_cache",
    "compile",
    "load",
    "program",
    "version",
]
