# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loaded program: packs arrays into the C structs and launches.

What a call costs is what this file does between the caller and one C function, so the
work that depends on shapes alone (checks, output shapes, workspace, structs) is kept in a
plan per combination of layouts, and a call only fills in addresses.
"""

from __future__ import annotations

import ctypes
import operator
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from ._arrays import DTYPES, Layout, TorchTypes, describe, torch_types
from ._driver import driver
from ._library import MAX_RANK, AttnFuseError, KernelInfo, Tensor, check, library

# Above this many combinations of layouts a program forgets them all and starts anew.
MAX_PLANS = 512

# Of a scalar argument: its C type and the bounds of an integer.
_SCALARS = {
    "f32": (ctypes.c_float, None),
    "i64": (ctypes.c_int64, (-(2**63), 2**63 - 1)),
    "i32": (ctypes.c_int32, (-(2**31), 2**31 - 1)),
    "i8": (ctypes.c_int8, (-128, 127)),
    "i1": (ctypes.c_uint8, (0, 1)),
}


class Kernel(NamedTuple):
    """A kernel as the driver loaded it."""

    name: str
    threads: int
    registers: int
    spill_bytes: int
    blocks_per_unit: int
    shared_bytes: int


class _Pack:
    """The C structs of one launch. One launch at a time uses a pack."""

    __slots__ = ("elements", "scalars", "inputs", "outputs", "pointers", "values", "_kept")

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Layout]):
        input_array = (Tensor * max(len(inputs), 1))()
        output_array = (Tensor * max(len(outputs), 1))()
        self._kept: list[Any] = [input_array, output_array]
        self.elements = []
        self.scalars = []
        for array, specs in ((input_array, inputs), (output_array, outputs)):
            # An element is a new Python object at each subscript; kept, it is a view.
            for element, spec in zip([array[i] for i in range(len(specs))], specs):
                if isinstance(spec, Layout):
                    shape = (ctypes.c_int64 * max(len(spec.shape), 1))(*spec.shape)
                    strides = (ctypes.c_int64 * max(len(spec.shape), 1))(*spec.strides)
                    element.dtype, element.rank = spec.dtype, len(spec.shape)
                    element.shape, element.strides = shape, strides
                    self._kept += [shape, strides]
                    self.elements.append(element)
                else:
                    dtype, ctype = spec
                    cell = ctype()
                    element.dtype, element.rank = dtype, 0
                    element.data = ctypes.addressof(cell)
                    self.scalars.append(cell)
        self.inputs = ctypes.addressof(input_array)
        self.outputs = ctypes.addressof(output_array)
        self.pointers: list[int] | None = None
        self.values: list[Any] | None = None

    def fill(self, pointers: list[int], values: list[Any]) -> None:
        if pointers != self.pointers:
            for element, pointer in zip(self.elements, pointers):
                element.data = pointer
            self.pointers = pointers
        if values != self.values:
            for cell, value in zip(self.scalars, values):
                cell.value = value
            self.values = values


class _Plan:
    """All that follows from the layouts of a call's arrays."""

    __slots__ = ("inputs", "outputs", "allocations", "workspace", "pool")

    def __init__(self, inputs: list[Any], outputs: list[Layout], workspace: int):
        self.inputs = inputs
        self.outputs = outputs
        self.allocations: list[tuple[tuple, Any]] = []  # shapes and torch dtypes
        self.workspace = workspace
        self.pool: list[_Pack] = []

    def take(self) -> _Pack:
        # pop and append are atomic: two threads never share a pack.
        try:
            return self.pool.pop()
        except IndexError:
            return _Pack(self.inputs, self.outputs)


class _DriverMemory:
    """Device memory from the driver, where there is no torch to ask."""

    def __init__(self, device: int, size: int, stream: int):
        self._device, self._stream = device, stream
        self.pointer = driver().allocate(device, size)

    def __del__(self) -> None:
        pointer = getattr(self, "pointer", 0)
        if pointer:
            try:
                driver().free(self._device, pointer, self._stream)
            except Exception:  # at exit the driver may be gone, and with it the memory
                pass


class _Workspace(NamedTuple):
    pointer: int
    size: int
    owner: Any


class _Bound(NamedTuple):
    plan: _Plan
    pointers: list
    values: list
    result: Any
    stream: int
    on_torch: bool
    kept: list


def _stream_handle(stream: Any) -> int:
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr"):  # torch, cupy
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return (protocol() if callable(protocol) else protocol)[1]
    raise AttnFuseError(
        f"stream is a {type(stream).__qualname__}; expected None, a CUstream as an int, or a "
        f"stream of torch, cupy or cuda.core"
    )


class Program:
    """A program on one device; made by `attnfuse.load` or `attnfuse.program`.

    Calls may come from several threads and go to several streams.

    Attributes
    ----------
    artifact : Artifact
        What was loaded.
    device : int
        The CUDA device.
    """

    def __init__(self, artifact: Any, device: int):
        lib = library()
        self.artifact = artifact
        self.device = device
        code = artifact.code.encode() if isinstance(artifact.code, str) else artifact.code
        manifest = artifact.manifest_text.encode()
        handle = ctypes.c_void_p()
        check(
            lib.attnfuse_program_load(
                code, len(code), manifest, len(manifest), device, ctypes.byref(handle)
            )
        )
        self._handle = handle.value
        finalizer = weakref.finalize(self, lib.attnfuse_program_destroy, handle.value)
        finalizer.atexit = False  # the driver may be gone by then
        self._launch = lib.attnfuse_program_launch
        self._num_inputs = lib.attnfuse_program_num_inputs(self._handle)
        self._num_outputs = lib.attnfuse_program_num_outputs(self._handle)
        self._names = []
        # Of each input that is a scalar: its code, C type and bounds; None for a tensor.
        self._scalars: list[tuple | None] = []
        for index, argument in enumerate(artifact.manifest["arguments"]):
            name, dtype = argument.get("name"), argument["dtype"]
            self._names.append(f"argument {index} ('{name}')" if name else f"argument {index}")
            if "shape" in argument:
                self._scalars.append(None)
            elif dtype in _SCALARS:
                self._scalars.append((DTYPES[dtype], *_SCALARS[dtype]))
            else:
                raise AttnFuseError(f"{self._names[-1]}: a scalar of type {dtype} is unsupported")
        self._plans: dict[tuple, _Plan] = {}
        self._workspaces: dict[int, list[_Workspace]] = {}
        self._types: TorchTypes | None = None
        self._torch_device: Any = None

    def __repr__(self) -> str:
        entry = self.artifact.manifest.get("entry", "?")
        return f"<attnfuse.Program @{entry} for {self.artifact.chip} on cuda:{self.device}>"

    @property
    def kernels(self) -> list[Kernel]:
        """The program's kernels: registers, spills, shared memory."""
        lib, info = library(), KernelInfo()
        found = []
        for index in range(lib.attnfuse_program_num_kernels(self._handle)):
            check(lib.attnfuse_program_kernel(self._handle, index, ctypes.byref(info)))
            name = (info.name or b"").decode()
            found.append(Kernel(name, *(getattr(info, field) for field in Kernel._fields[1:])))
        return found

    @property
    def log(self) -> str:
        """What the driver's compiler said while loading."""
        return (library().attnfuse_program_log(self._handle) or b"").decode(errors="replace")

    def __call__(self, *inputs: Any, out: Any = None, stream: Any = None) -> Any:
        """Launches the program; returns before it has run.

        Parameters
        ----------
        *inputs
            The function's arguments in order. Tensors `(batch, heads, length, width)` and
            others as the program declares them: torch CUDA tensors, or objects with
            `__dlpack__` or `__cuda_array_interface__`, of any strides. Scalars: Python
            ints and floats.
        out
            Where the results go: a tensor, or a tuple of them if the program has several.
            Required if no input is a torch tensor; otherwise allocated if it is None.
        stream
            A stream of torch, cupy or cuda.core, or a CUstream as an int. None: torch's
            current stream if an input is a torch tensor, else the default stream. With a
            stream other than torch's current one, ordering it after the inputs' producers
            is the caller's part, as is `Tensor.record_stream`.

        Returns
        -------
        tensor or tuple of tensors
            `out`, or new torch tensors: the outputs `(batch, heads, length, width)`, and
            what else the function returns (log-sum-exp: `(batch, heads, length)`, f32).

        Raises
        ------
        AttnFuseError
            Says which argument is wrong and what was expected, or what the driver said.
        """
        bound = self._bind(inputs, out, stream)
        plan, handle = bound.plan, bound.stream
        pack = plan.take()
        pack.fill(bound.pointers, bound.values)
        size = plan.workspace
        if size:
            workspace, shelf = self._take_workspace(size, handle, stream, bound.on_torch)
            pointer = workspace.pointer
        else:
            pointer = None
        status = self._launch(
            self._handle,
            pack.inputs,
            self._num_inputs,
            pack.outputs,
            self._num_outputs,
            pointer,
            size,
            handle,
        )
        plan.pool.append(pack)
        if size and shelf is not None:
            shelf.append(workspace)
        if status:
            check(status)
        return bound.result

    def prepare(self, *inputs: Any, out: Any = None, stream: Any = None) -> Prepared:
        """Does all of a call but the launch.

        Parameters
        ----------
        *inputs, out, stream
            As for a call. With `stream` None and torch inputs, each launch goes to the
            stream that is current then, so it can be captured in a CUDA graph.

        Returns
        -------
        Prepared
            A callable without arguments. It owns a workspace of its own and keeps the
            arrays alive; use it on one stream at a time.
        """
        bound = self._bind(inputs, out, stream)
        pack = bound.plan.take()  # and never give it back
        pack.fill(bound.pointers, bound.values)
        size = bound.plan.workspace
        workspace = self._new_workspace(size, bound.stream, stream, bound.on_torch)
        current = None
        if stream is None and bound.on_torch:
            assert self._types is not None
            current = self._types.current_stream
        return Prepared(self, pack, workspace, bound, current, [inputs, out])

    # -----------------------------------------------------------------------
    # From arrays to addresses and a plan
    # -----------------------------------------------------------------------

    def _find_torch(self) -> TorchTypes | None:
        self._types = types = torch_types()
        if types is not None:
            self._torch_device = types.torch.device("cuda", self.device)
        return types

    def _stream_of(self, arrays: Sequence[Any], types: TorchTypes | None) -> int:
        """The stream where the caller named none."""
        if types is not None and any(isinstance(x, types.torch.Tensor) for x in arrays):
            return types.current_stream(self.device)
        return 0

    def _bind(self, inputs: tuple, out: Any, stream: Any) -> _Bound:
        types = self._types or self._find_torch()
        tensor_type = () if types is None else types.torch.Tensor
        if len(inputs) != self._num_inputs:
            names = ", ".join(self._names)
            raise AttnFuseError(
                f"the program has {self._num_inputs} inputs ({names}), {len(inputs)} were given"
            )
        handle = None if stream is None else _stream_handle(stream)
        on_torch = False
        key: list[Any] = []  # hashable, a function of the layouts
        pointers: list[int] = []
        values: list[Any] = []
        kept: list[Any] = []
        for index, x in enumerate(inputs):
            scalar = self._scalars[index]
            if scalar is not None:
                values.append(self._scalar(x, index, scalar, tensor_type))
            elif isinstance(x, tensor_type):
                if x.requires_grad:
                    self._check_gradient(x, self._names[index])
                on_torch = True
                pointers.append(x.data_ptr())
                key += (x.shape, x.stride(), x.dtype, x.device)
            else:
                if handle is None:
                    handle = self._stream_of(inputs, types)
                pointer, layout, owner = describe(x, self._names[index], handle, self.device)
                pointers.append(pointer)
                key.append(layout)
                kept.append(owner)
        outputs: Sequence[Any] = ()
        if out is not None:
            outputs = self._as_outputs(out)
            key.append("out")
            for index, x in enumerate(outputs):
                if isinstance(x, tensor_type):
                    if x.requires_grad:
                        self._check_gradient(x, f"output {index}")
                    on_torch = True
                    pointers.append(x.data_ptr())
                    key += (x.shape, x.stride(), x.dtype, x.device)
                else:
                    if handle is None:
                        handle = self._stream_of((*inputs, *outputs), types)
                    pointer, layout, owner = describe(x, f"output {index}", handle, self.device)
                    pointers.append(pointer)
                    key.append(layout)
                    kept.append(owner)
        elif not on_torch:
            raise AttnFuseError(
                "out= is required: outputs are allocated only if an input is a torch tensor"
            )
        plan = self._plans.get(tuple(key))
        if plan is None:
            plan = self._make_plan(inputs, outputs, key, types)
        if handle is None:
            # No torch tensor and no stream: what was described above set it.
            handle = types.current_stream(self.device)  # type: ignore[union-attr]
        if out is not None:
            result = out
        else:
            if stream is None:
                made = self._allocate(plan)
            else:
                with self._as_current(handle, stream):
                    made = self._allocate(plan)
            pointers += [x.data_ptr() for x in made]
            result = made[0] if len(made) == 1 else tuple(made)
        return _Bound(plan, pointers, values, result, handle, on_torch, kept)

    def _allocate(self, plan: _Plan) -> list:
        empty, device = self._types.torch.empty, self._torch_device  # type: ignore[union-attr]
        return [empty(shape, dtype=dtype, device=device) for shape, dtype in plan.allocations]

    def _scalar(self, x: Any, index: int, scalar: tuple, tensor_type: Any) -> Any:
        bounds = scalar[2]
        if bounds is None:
            if isinstance(x, (float, int)):
                return float(x)
            if hasattr(x, "__float__") and not isinstance(x, tensor_type):
                return float(x)
        else:
            if type(x) is not int:
                if isinstance(x, tensor_type):
                    raise self._not_scalar(x, index, "int")
                try:
                    x = operator.index(x)
                except TypeError:
                    raise self._not_scalar(x, index, "int") from None
            if bounds[0] <= x <= bounds[1]:
                return x
            raise AttnFuseError(
                f"{self._names[index]} is {x}; expected a number from {bounds[0]} to {bounds[1]}"
            )
        raise self._not_scalar(x, index, "float")

    def _not_scalar(self, x: Any, index: int, wanted: str) -> AttnFuseError:
        return AttnFuseError(
            f"{self._names[index]} is a scalar in host memory: expected a Python {wanted}, got a "
            f"{type(x).__qualname__}"
        )

    def _check_gradient(self, x: Any, what: str) -> None:
        if self._types.torch.is_grad_enabled():  # type: ignore[union-attr]
            raise AttnFuseError(
                f"{what} requires a gradient, and AttnFuse has no autograd yet: call it under "
                f"torch.no_grad(), or pass .detach()"
            )

    def _as_outputs(self, out: Any) -> Sequence[Any]:
        outputs = out if isinstance(out, (tuple, list)) else (out,)
        if len(outputs) != self._num_outputs:
            raise AttnFuseError(
                f"the program has {self._num_outputs} outputs, out= has {len(outputs)}"
            )
        return outputs

    def _make_plan(
        self, inputs: Sequence[Any], outputs: Sequence[Any], key: list, types: Any
    ) -> _Plan:
        # The layouts that are no torch tensor's were described into the key.
        described = (part for part in key if isinstance(part, Layout))

        def layout(x: Any, what: str) -> Layout:
            if types is not None and isinstance(x, types.torch.Tensor):
                found = types.layout(x, what)
            else:
                found = next(described)
            if found.device != self.device:
                raise AttnFuseError(
                    f"{what} is on cuda:{found.device}, the program was loaded for "
                    f"cuda:{self.device}"
                )
            if len(found.shape) > MAX_RANK:
                raise AttnFuseError(f"{what} has rank {len(found.shape)}; at most {MAX_RANK}")
            return found

        specs: list[Any] = []
        for x, name, scalar in zip(inputs, self._names, self._scalars):
            specs.append(layout(x, name) if scalar is None else scalar[:2])
        given = [layout(x, f"output {index}") for index, x in enumerate(outputs)]

        # The library checks types, ranks and extents here, once per plan.
        lib, pack = library(), _Pack(specs, ())
        size = ctypes.c_size_t()
        check(
            lib.attnfuse_program_workspace(
                self._handle, pack.inputs, self._num_inputs, ctypes.byref(size)
            )
        )
        plan = _Plan(specs, given, size.value)
        if not outputs:
            for index in range(self._num_outputs):
                made = self._output_layout(pack, index)
                plan.outputs.append(made)
                plan.allocations.append((made.shape, types.by_code[made.dtype]))
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[tuple(key)] = plan
        return plan

    def _output_layout(self, pack: _Pack, index: int) -> Layout:
        dtype, rank = ctypes.c_int32(), ctypes.c_int32()
        extents = (ctypes.c_int64 * MAX_RANK)()
        check(
            library().attnfuse_program_output_shape(
                self._handle,
                pack.inputs,
                self._num_inputs,
                index,
                ctypes.byref(dtype),
                ctypes.byref(rank),
                extents,
            )
        )
        return Layout.dense(tuple(extents[: rank.value]), dtype.value, self.device)

    # -----------------------------------------------------------------------
    # Workspaces
    # -----------------------------------------------------------------------

    def _as_current(self, handle: int, stream: Any) -> Any:
        """Makes a stream torch's current one, so that memory is ordered by it."""
        cuda = self._types.torch.cuda  # type: ignore[union-attr]
        if stream is None:
            return nullcontext()
        if not isinstance(stream, cuda.Stream):
            if handle == 0:
                stream = cuda.default_stream(self._torch_device)
            else:
                stream = cuda.ExternalStream(handle, device=self._torch_device)
        return cuda.stream(stream)

    def _new_workspace(
        self, size: int, handle: int, stream: Any, on_torch: bool
    ) -> _Workspace | None:
        if not size:
            return None
        types = self._types
        if on_torch and types is not None:
            with self._as_current(handle, stream):
                # torch aligns to 512 bytes; 256 are needed.
                owner = types.torch.empty(
                    (size,), dtype=types.torch.uint8, device=self._torch_device
                )
            return _Workspace(owner.data_ptr(), size, owner)
        memory = _DriverMemory(self.device, size, handle)
        return _Workspace(memory.pointer, size, memory)

    def _take_workspace(
        self, size: int, handle: int, stream: Any, on_torch: bool
    ) -> tuple[_Workspace, list | None]:
        """A workspace, and the list it goes back to after the launch.

        A launch holds its workspace while it enqueues its kernels, so that two threads on
        one stream never interleave theirs over the same memory. A captured launch must not
        use one that eager launches share (the graph may be replayed beside them): it gets
        memory of the graph's pool, which stays the graph's when the tensor is dropped.
        """
        if on_torch and self._types.torch.cuda.is_current_stream_capturing():  # type: ignore
            fresh = self._new_workspace(size, handle, stream, on_torch)
            assert fresh is not None
            return fresh, None
        shelf = self._workspaces.get(handle)
        if shelf is None:
            shelf = self._workspaces.setdefault(handle, [])
        try:
            found = shelf.pop()
        except IndexError:
            found = None
        if found is None or found.size < size:
            found = self._new_workspace(size, handle, stream, on_torch)
            assert found is not None
        return found, shelf


class Prepared:
    """A launch with nothing left to do but that; made by `Program.prepare`.

    Attributes
    ----------
    result
        What a call returns: the same outputs each time.
    """

    __slots__ = ("result", "_call", "_arguments", "_stream", "_current", "_device", "_kept")

    def __init__(
        self,
        program: Program,
        pack: _Pack,
        workspace: _Workspace | None,
        bound: _Bound,
        current: Callable[[int], int] | None,
        arrays: Any,
    ):
        self.result = bound.result
        self._call = program._launch
        self._arguments = (
            program._handle,
            pack.inputs,
            program._num_inputs,
            pack.outputs,
            program._num_outputs,
            workspace.pointer if workspace else None,
            workspace.size if workspace else 0,
        )
        self._stream = bound.stream
        self._current = current
        self._device = program.device
        self._kept = (program, pack, workspace, bound, arrays)

    def __call__(self) -> Any:
        current = self._current
        stream = self._stream if current is None else current(self._device)
        status = self._call(*self._arguments, stream)
        if status:
            check(status)
        return self.result
