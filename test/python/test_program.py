# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call hands to the library, without a GPU."""

from __future__ import annotations

import gc
import struct
import threading

import attnfuse
import pytest
from attnfuse import AttnFuseError, Status
from helpers import DENSE, SHAPE, CudaArray, DLPackArray, manifest


@pytest.fixture
def qkv(torch):
    return [torch.Tensor(SHAPE, torch.bfloat16, torch.device("cuda", 0)) for _ in "qkv"]


def refused(match, call, *args, status=Status.INVALID_ARGUMENT, **kwargs):
    with pytest.raises(AttnFuseError, match=match) as caught:
        call(*args, **kwargs)
    assert caught.value.status is status


# ---------------------------------------------------------------------------
# torch tensors
# ---------------------------------------------------------------------------


def test_tensors_are_packed(record, torch, qkv):
    qkv[1] = torch.Tensor(SHAPE, torch.float16, qkv[0].device, strides=(0, 64, -512, 1))
    result = attnfuse.program(manifest())(*qkv)
    assert (record.inputs, record.outputs) == (3, 1)
    for tensor, given in zip(qkv, record.input):
        assert (given.data, given.shape, given.strides) == (
            tensor.address,
            tensor.shape,
            tensor.strides,
        )
    assert [given.dtype for given in record.input[:3]] == [1, 2, 1]
    out = record.output[0]
    assert (out.data, out.dtype, out.shape, out.strides) == (result.address, 1, SHAPE, DENSE)
    assert (result.shape, result.dtype) == (SHAPE, torch.bfloat16)
    assert (record.stream, record.workspace) == (7, None)


@pytest.mark.parametrize(
    "name, code",
    [
        ("float32", 0),
        ("bfloat16", 1),
        ("float16", 2),
        ("int64", 3),
        ("int32", 4),
        ("int8", 5),
        ("bool", 6),
    ],
)
def test_dtypes(record, torch, qkv, name, code):
    qkv[2] = torch.Tensor(SHAPE, getattr(torch, name), qkv[0].device)
    attnfuse.program(manifest())(*qkv)
    assert record.input[2].dtype == code


def test_several_results(record, torch, qkv):
    program = attnfuse.program(manifest(outputs=2))
    output, lse = program(*qkv)
    assert (lse.shape, lse.dtype) == (SHAPE[:3], torch.float32)
    assert record.output[1].rank == 3
    given = (torch.empty(SHAPE, torch.bfloat16, output.device), lse)
    assert program(*qkv, out=given) is given
    assert record.output[0].data == given[0].address
    refused("the program has 2 outputs, out= has 1", program, *qkv, out=lse)


def test_out(record, torch, qkv):
    program = attnfuse.program(manifest())
    out = torch.Tensor(SHAPE, torch.bfloat16, qkv[0].device, strides=(1, 2, 16, 256))
    assert program(*qkv, out=out) is out
    assert (record.output[0].data, record.output[0].strides) == (out.address, out.strides)


def test_scalars(record, qkv):
    program = attnfuse.program(manifest(scalars=["i64", "i32", "f32", "i1"]))
    program(*qkv, -5, 2**31 - 1, 0.5, True)
    scalars = record.input[3:7]
    assert [given.rank for given in scalars] == [0] * 4
    assert [given.dtype for given in scalars] == [3, 4, 0, 6]
    assert [given.scalar for given in scalars[:2]] == [-5, 2**31 - 1]
    assert struct.pack("<q", scalars[2].scalar)[:4] == struct.pack("<f", 0.5)
    program(*qkv, 9, 1, 1, False)
    assert (record.input[3].scalar, record.input[6].scalar) == (9, 0)
    assert struct.pack("<q", record.input[5].scalar)[:4] == struct.pack("<f", 1.0)
    assert record.plans == 1
    refused(
        r"argument 4 \('s1'\) is 2147483648; expected a number from", program, *qkv, 1, 2**31, 0, 0
    )
    refused("expected a Python int, got a float", program, *qkv, 1.5, 1, 0, 0)
    refused("expected a Python int, got a Tensor", program, *qkv, qkv[0], 1, 0, 0)
    refused("expected a Python float, got a Tensor", program, *qkv, 1, 1, qkv[0], 0)
    refused("expected a Python float, got a str", program, *qkv, 1, 1, "1", 0)


def test_a_call_with_known_layouts_only_changes_addresses(record, torch, qkv):
    program = attnfuse.program(manifest())
    for _ in range(3):
        program(*qkv)
        assert record.input[0].data == qkv[0].address
        qkv[0] = torch.Tensor(SHAPE, torch.bfloat16, qkv[0].device)
    assert (record.plans, record.launches) == (1, 3)
    longer = [torch.Tensor((2, 8, 32, 64), torch.bfloat16, qkv[0].device) for _ in "qkv"]
    program(*longer)
    assert (record.plans, record.input[0].shape) == (2, (2, 8, 32, 64))
    program(*qkv)
    assert (record.plans, record.input[0].shape) == (2, SHAPE)


def test_plans_are_bounded(record, torch, monkeypatch):
    from attnfuse import _program

    monkeypatch.setattr(_program, "MAX_PLANS", 4)
    program = attnfuse.program(manifest())
    for length in range(1, 10):
        program(
            *(torch.Tensor((1, 1, length, 64), torch.int8, torch.device("cuda", 0)) for _ in "qkv")
        )
        assert record.input[0].shape[2] == length
        assert len(program._plans) <= 4


def test_refused_tensors(torch, qkv):
    program = attnfuse.program(manifest())

    def changed(*args, **kwargs):
        return (qkv[0], torch.Tensor(*args, **kwargs), qkv[2])

    cuda = torch.device("cuda", 0)
    refused("the program has 3 inputs .*'q'.*, 2 were given", program, *qkv[:2])
    refused(
        r"argument 1 \('k'\) is on cpu",
        program,
        *changed(SHAPE, torch.float32, torch.device("cpu")),
    )
    refused(
        r"argument 1 \('k'\) is on cuda:1, the program was loaded for cuda:0",
        program,
        *changed(SHAPE, torch.float32, torch.device("cuda", 1)),
    )
    refused("is of type torch.float64; float32,", program, *changed(SHAPE, torch.float64, cuda))
    refused(
        "argument 1 has rank 3, the program needs 4", program, *changed(SHAPE[1:], torch.int8, cuda)
    )
    refused("has rank 9; at most 8", program, *changed((1,) * 9, torch.int8, cuda))
    refused("has layout sparse", program, *with_layout(qkv, "sparse"))
    refused(r"argument 1 \('k'\) is a builtins.list", program, qkv[0], [1.0], qkv[2])
    with_gradient = changed(SHAPE, torch.bfloat16, cuda, requires_grad=True)
    refused(r"argument 1 \('k'\) requires a gradient.*no autograd yet", program, *with_gradient)
    torch.grad_enabled = False
    program(*with_gradient)


def with_layout(qkv, layout):
    changed = type(qkv[0])((5, 1, 1, 1), qkv[0].dtype, qkv[0].device)
    changed.layout = layout
    return qkv[0], qkv[1], changed


def test_a_failed_launch(qkv):
    program = attnfuse.program(manifest(status=8))
    refused("the launch failed", program, *qkv, status=Status.LAUNCH_FAILED)
    refused("the launch failed", program.prepare(*qkv), status=Status.LAUNCH_FAILED)


# ---------------------------------------------------------------------------
# Streams and workspaces
# ---------------------------------------------------------------------------


def test_streams(record, torch, qkv):
    program = attnfuse.program(manifest())
    with torch.cuda.stream(torch.Stream(11)):
        program(*qkv)
    assert record.stream == 11

    class Core:
        def __cuda_stream__(self):
            return (0, 13)

    class Cupy:
        ptr = 14

    for stream, handle in ((12, 12), (torch.Stream(15), 15), (Core(), 13), (Cupy(), 14), (0, None)):
        result = program(*qkv, stream=stream)
        assert record.stream == handle
        # The allocator must order the output's memory by the stream that writes it.
        assert result.made_on == (handle or 0)
    refused("stream is a str; expected None, a CUstream", program, *qkv, stream="side")


def test_a_workspace_per_stream_grows(record, torch, qkv):
    program = attnfuse.program(manifest(workspace=1000))
    program(*qkv)
    first = record.workspace
    assert record.workspace_bytes == 2000
    program(*qkv)
    assert record.workspace == first
    program(*qkv, stream=9)
    assert record.workspace != first
    program(*qkv)
    assert record.workspace == first
    program(*(torch.Tensor((4, 8, 16, 64), torch.int8, qkv[0].device) for _ in "qkv"))
    assert record.workspace != first and record.workspace_bytes == 4000
    grown = record.workspace
    program(*qkv)
    assert record.workspace == grown


def test_a_captured_launch_has_its_own_workspace(record, torch, qkv):
    program = attnfuse.program(manifest(workspace=1000))
    program(*qkv)
    eager = record.workspace
    torch.cuda.capturing = True
    program(*qkv)
    assert record.workspace != eager
    torch.cuda.capturing = False
    program(*qkv)
    assert record.workspace == eager


def test_threads_do_not_share_packs(torch, qkv):
    program = attnfuse.program(manifest(workspace=16))
    inside, wrong = [], []
    launch = program._launch

    def watched(handle, inputs, *rest):
        for which in (inputs, rest[3]):  # the structs and the workspace
            if which in inside:
                wrong.append(which)
            inside.append(which)
        status = launch(handle, inputs, *rest)
        inside.remove(inputs)
        inside.remove(rest[3])
        return status

    program._launch = watched

    def work():
        for _ in range(300):
            program(*qkv)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_prepare(record, torch, qkv):
    program = attnfuse.program(manifest(workspace=1000))
    prepared = program.prepare(*qkv)
    assert record.launches == 0
    result = prepared()
    assert result is prepared.result
    assert record.output[0].data == result.address
    workspace = record.workspace
    program(*qkv)  # takes neither the pack nor the workspace of the prepared one
    assert record.workspace != workspace and record.output[0].data != result.address
    with torch.cuda.stream(torch.Stream(21)):
        prepared()
    assert (record.stream, record.workspace) == (21, workspace)
    out = torch.empty(SHAPE, torch.bfloat16, qkv[0].device)
    assert program.prepare(*qkv, out=out, stream=5)() is out
    assert (record.stream, record.output[0].data) == (5, out.address)
    assert record.plans == 2  # with and without out=


# ---------------------------------------------------------------------------
# DLPack and __cuda_array_interface__
# ---------------------------------------------------------------------------


def test_dlpack(record):
    arrays = [
        DLPackArray(data=0x7000, offset=0x40),
        DLPackArray(strides=None, type=(2, 16, 1)),
        DLPackArray(strides=(1, 2, 16, -256), type=(2, 32, 1)),
    ]
    out = DLPackArray(data=0x8000)
    assert attnfuse.program(manifest())(*arrays, out=out) is out
    assert record.input[0].data == 0x7040
    assert [given.dtype for given in record.input[:3]] == [1, 2, 0]
    assert [given.strides for given in record.input[:3]] == [DENSE, DENSE, (1, 2, 16, -256)]
    assert (record.output[0].data, record.output[0].shape) == (0x8000, SHAPE)
    # Nothing was named: the legacy default stream, which DLPack calls 1.
    assert (record.stream, arrays[0].streams) == (None, [1])
    attnfuse.program(manifest())(*arrays, out=out, stream=33)
    assert (record.stream, arrays[0].streams[-1]) == (33, 33)


@pytest.mark.parametrize(
    "type, code",
    [((0, 64, 1), 3), ((0, 32, 1), 4), ((0, 8, 1), 5), ((6, 8, 1), 6)],
)
def test_dlpack_dtypes(record, type, code):
    arrays = [DLPackArray(), DLPackArray(), DLPackArray(type=type)]
    attnfuse.program(manifest())(*arrays, out=DLPackArray())
    assert record.input[2].dtype == code


def test_dlpack_beside_torch(record, torch, qkv):
    array = DLPackArray()
    result = attnfuse.program(manifest())(array, *qkv[1:])
    assert isinstance(result, torch.Tensor)
    assert (record.stream, array.streams) == (7, [7])


def test_refused_dlpack(record):
    program = attnfuse.program(manifest())
    good = [DLPackArray(), DLPackArray()]
    refused("out= is required", program, *good, DLPackArray())
    cases = [
        (DLPackArray(device=(1, 0)), r"argument 2 \('v'\) is on the CPU"),
        (DLPackArray(device=(3, 0)), "is on pinned host memory"),
        (DLPackArray(device=(77, 0)), "is on DLPack device type 77"),
        (DLPackArray(device=(2, 1)), "is on cuda:1, the program was loaded for cuda:0"),
        (DLPackArray(type=(2, 64, 1)), "is of type float64; float32,"),
        (DLPackArray(type=(1, 8, 1)), "is of type uint8"),
        (DLPackArray(type=(2, 16, 2)), "is of type float16x2"),
        (DLPackArray(shape=(2, 3), strides=(3, 1)), "argument 2 has rank 2"),
    ]
    for array, message in cases:
        refused(message, program, *good, array, out=DLPackArray())
        if "argument 2 has" not in message:
            refused(
                message.replace(r"argument 2 \('v'\)", "output 0"),
                program,
                *good,
                good[0],
                out=array,
            )


def test_cuda_array_interface(record):
    arrays = [
        CudaArray(),
        CudaArray(typestr="<V2"),
        CudaArray(typestr="<f4", strides=(4, 8, 64, -1024)),
    ]
    out = CudaArray(data=0xA000)
    assert attnfuse.program(manifest())(*arrays, out=out) is out
    assert [given.dtype for given in record.input[:3]] == [2, 1, 0]
    assert [given.strides for given in record.input[:3]] == [DENSE, DENSE, (1, 2, 16, -256)]
    assert record.output[0].data == 0xA000
    assert record.synchronized == 0
    for stream, waits in ((1, 0), (5, 1), (None, 1)):
        attnfuse.program(manifest())(CudaArray(stream=stream), *arrays[1:], out=out)
        assert record.synchronized == waits


def test_refused_cuda_array_interface(record):
    program = attnfuse.program(manifest())
    good = [CudaArray(), CudaArray()]
    for array, message in [
        (CudaArray(typestr="<f8"), "is of type '<f8'"),
        (CudaArray(typestr=">f4"), "is of type '>f4'"),
        (CudaArray(typestr="<f4", strides=(4, 8, 64, 3)), "no multiple of 4"),
        (CudaArray(mask=good[0]), "masked array"),
    ]:
        refused(message, program, *good, array, out=good[0])


def test_a_workspace_without_torch(record):
    program = attnfuse.program(manifest(workspace=1000))
    arrays = [DLPackArray() for _ in "qkv"]
    program(*arrays, out=arrays[0])
    assert (record.allocated, record.workspace_bytes) == (1, 2000)
    program(*arrays, out=arrays[0])
    assert record.allocated == 1
    larger = [DLPackArray(shape=(4, 8, 16, 64)) for _ in "qkv"]
    program(*larger, out=larger[0])
    # What earlier launches may still read is freed only after its stream has run.
    assert (record.allocated, record.freed, record.synchronized) == (2, 1, 1)
    attnfuse.clear_cache()
    del program
    gc.collect()
    assert record.freed == 2
