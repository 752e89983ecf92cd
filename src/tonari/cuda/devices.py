"""Where tensors lie: rows brought to a device, and the device on which kernels are launched."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.cuda.prefetch import bring

LARGE_BYTES = 32 << 20  # from here on, copies are worth threads


def on(device: Any) -> Any:
    """A context in which a device is the current one, where Triton launches.

    The CPU, on which only Triton's interpreter works, needs none.
    """
    place = torch.device(device)
    return torch.cuda.device(place) if place.type == "cuda" else contextlib.nullcontext()


def to_device(rows: Any, device: Any) -> Any:
    """Rows as a tensor on a device: NumPy arrays are copied there, tensors are there or are moved."""
    if isinstance(rows, np.ndarray) and rows.nbytes >= LARGE_BYTES and torch.device(device).type == "cuda":
        return bring(rows, device)
    return (over(rows) if isinstance(rows, np.ndarray) else rows).to(device)


def over(rows: np.ndarray[Any, Any]) -> Any:
    """A tensor over the memory of a C-contiguous array, only to be read where the array is, and not to outlive it."""
    if rows.dtype == inputs.BFLOAT16:
        return over(rows.view(np.int16)).view(torch.bfloat16)
    if rows.flags.writeable:
        return torch.from_numpy(rows)
    # torch warns of read-only memory; seen through its address it has no such mark
    memory = (ctypes.c_uint8 * rows.nbytes).from_address(rows.ctypes.data)
    return torch.from_numpy(np.ctypeslib.as_array(memory).view(rows.dtype).reshape(rows.shape))
