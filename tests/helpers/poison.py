"""Fills memory that tonari allocates without initializing it with bad values, so that reading it gives a wrong answer.

Fresh pages contain zeros, which look like valid values. Here, if a module of tonari calls ``empty`` of NumPy or torch,
it gets NaN as floating-point numbers, and integers that are neither a valid index nor a valid count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH

BYTE = 0xA5  # the value of each byte of an integer: -1515870811 as int32


def poison_array(array: Any) -> Any:
    """Fill an array of numbers or truth values with bad values; leave other arrays unchanged."""
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.full(array.itemsize, BYTE, np.uint8).view(array.dtype)[0])
    elif array.dtype.kind == "b":
        array.fill(True)
    return array


def poison_tensor(tensor: Any) -> Any:
    """Fill a tensor on any device with bad values."""
    import torch

    if tensor.dtype.is_floating_point:
        return tensor.fill_(torch.nan)
    if tensor.dtype == torch.bool:
        return tensor.fill_(True)
    size = tensor.element_size()
    return tensor.fill_(int.from_bytes(bytes([BYTE]) * size, "little", signed=tensor.dtype.is_signed))


def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the functions that allocate memory, so that modules of tonari get poisoned memory from them."""
    for name in ("empty", "empty_like"):
        monkeypatch.setattr(np, name, _for_tonari(getattr(np, name), poison_array))
    if HAS_TORCH:
        import torch

        for name in ("empty", "empty_like"):
            monkeypatch.setattr(torch, name, _for_tonari(getattr(torch, name), poison_tensor))
        monkeypatch.setattr(torch.Tensor, "new_empty", _for_tonari(torch.Tensor.new_empty, poison_tensor))


def _for_tonari(allocate: Callable[..., Any], fill: Callable[[Any], Any]) -> Callable[..., Any]:
    def allocated(*arguments: Any, **options: Any) -> Any:
        made = allocate(*arguments, **options)
        return fill(made) if sys._getframe(1).f_globals.get("__name__", "").startswith("tonari") else made

    return allocated
