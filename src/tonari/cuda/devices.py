"""Move rows to a device, and select the device that kernels are launched on."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.cuda import tuning
from tonari.cuda.copying.prefetch import bring


def on(device: Any) -> Any:
    """Return a context in which `device` is the current device, the one that Triton launches on.

    The context does nothing for the CPU, where only Triton's interpreter runs.
    """
    place = torch.device(device)
    return torch.cuda.device(place) if place.type == "cuda" else contextlib.nullcontext()


def to_device(rows: Any, device: Any, *, at_once: int = 1) -> Any:
    """Return rows as a tensor on a device; arrays in host memory are copied, and tensors only if they are elsewhere.

    `at_once` is the number of devices that rows in host memory are copied to at the same time.
    """
    place = torch.device(device)
    if isinstance(rows, np.ndarray):
        large = rows.nbytes >= tuning.LARGE_BYTES and place.type == "cuda"
        return bring(rows, device, at_once=at_once) if large else over(rows).to(device)
    if rows.device.type == place.type == "cuda" and place.index is not None and rows.device != place:
        return _across(rows, place)
    return rows.to(device)


def sent_to(array: np.ndarray[Any, Any], device: Any) -> Any:
    """Copy a small array to a device through page-locked memory, and return the tensor; the host does not wait.

    To copy from pageable memory, the host would wait for all earlier work on the device's stream.
    """
    place = torch.device(device)
    if place.type == "cpu":
        return torch.from_numpy(array.copy())
    staged = torch.empty(array.shape, dtype=getattr(torch, inputs.name_of_dtype(array)), pin_memory=True)
    np.copyto(staged.numpy(), array)
    return staged.to(place, non_blocking=True)


def _across(rows: Any, device: Any) -> Any:
    """Copy a tensor to another CUDA device, without delaying later work on the tensor's own device.

    The rows must not be changed before the copy is complete; see :func:`await_copies`.
    """
    stream = _stream_between(rows.device, device)
    stream.wait_stream(torch.cuda.current_stream(rows.device))
    with torch.cuda.stream(stream):
        there = rows.to(device, non_blocking=True)
    rows.record_stream(stream)
    return there


def await_copies(rows: Any, devices: Sequence[str]) -> None:
    """Make later work on the device of a tensor wait until copies of the tensor to other devices are complete."""
    for name in devices:
        device = torch.device(name)
        if device.type == rows.device.type == "cuda" and device != rows.device:
            torch.cuda.current_stream(rows.device).wait_stream(_stream_between(rows.device, device))


@functools.lru_cache(maxsize=64)
def _stream_between(source: Any, target: Any) -> Any:
    """Return the stream on which device `source` copies rows to device `target`."""
    return torch.cuda.Stream(source)


def over(rows: np.ndarray[Any, Any]) -> Any:
    """Return a read-only CPU tensor over the memory of a C-contiguous array; valid as long as the array exists."""
    if rows.dtype == inputs.BFLOAT16:
        return over(rows.view(np.int16)).view(torch.bfloat16)
    if rows.flags.writeable:
        return torch.from_numpy(rows)
    # torch warns about read-only arrays, but an array made from the address does not look read-only
    memory = (ctypes.c_uint8 * rows.nbytes).from_address(rows.ctypes.data)
    return torch.from_numpy(np.ctypeslib.as_array(memory).view(rows.dtype).reshape(rows.shape))
