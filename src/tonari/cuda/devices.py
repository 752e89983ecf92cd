"""Moving rows to a device, and selecting the device on which kernels are launched."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.cuda import tuning
from tonari.cuda.prefetch import bring


def on(device: Any) -> Any:
    """Return a context in which `device` is the current device, on which Triton launches.

    It does nothing for the CPU, where only Triton's interpreter runs.
    """
    place = torch.device(device)
    return torch.cuda.device(place) if place.type == "cuda" else contextlib.nullcontext()


def to_device(rows: Any, device: Any) -> Any:
    """Return rows as a tensor on a device; NumPy arrays are copied, and tensors are moved if necessary."""
    if isinstance(rows, np.ndarray) and rows.nbytes >= tuning.LARGE_BYTES and torch.device(device).type == "cuda":
        return bring(rows, device)
    return (over(rows) if isinstance(rows, np.ndarray) else rows).to(device)


def over(rows: np.ndarray[Any, Any]) -> Any:
    """Return a CPU tensor over the memory of a C-contiguous array; only to be read, and only while the array lives."""
    if rows.dtype == inputs.BFLOAT16:
        return over(rows.view(np.int16)).view(torch.bfloat16)
    if rows.flags.writeable:
        return torch.from_numpy(rows)
    # torch warns about read-only arrays; an array made from the address does not look read-only
    memory = (ctypes.c_uint8 * rows.nbytes).from_address(rows.ctypes.data)
    return torch.from_numpy(np.ctypeslib.as_array(memory).view(rows.dtype).reshape(rows.shape))
