"""The place that an argument `device` selects; modules for CUDA are imported when a CUDA device is used."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.methods.place import CpuPlace, Place


def place_for(device: Any, **arrays: Any) -> Place:
    """Return the place for an argument `device` and named arrays; see :func:`tonari.inputs.devices_for`."""
    devices = inputs.devices_for(device, **arrays)
    if not devices:
        return CpuPlace()
    from tonari.methods.place_cuda import CudaPlace

    there = {inputs.place_of(x, name) for name, x in arrays.items()} if may_take_fewer(device) else set()
    if len(there) != 1:  # arrays on different devices stay there
        return CudaPlace(devices)
    # The device of the arrays is always taken, so it is the first.
    return CudaPlace(tuple(sorted(devices, key=lambda name: name not in there)), may_take_fewer=True)


def may_take_fewer(device: Any) -> bool:
    """Whether an argument `device` lets a method choose how many devices it takes.

    >>> may_take_fewer("cuda:all"), may_take_fewer(["cuda:0", "cuda:1"])
    (True, False)
    """
    return inputs.parse_device(device) == "cuda:all"
