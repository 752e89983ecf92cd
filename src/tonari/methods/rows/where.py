"""Select the place of a call, the CPU or CUDA devices.

Modules for CUDA are imported when they are first needed.
"""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.methods.rows.place import CpuPlace, Place


def place_for(device: Any, **arrays: Any) -> Place:
    """Return the place (the CPU, or CUDA devices) where a call with this argument `device` and these arrays runs."""
    devices = inputs.devices_for(device, **arrays)
    if not devices:
        return CpuPlace()
    from tonari.methods.rows.place_cuda import CudaPlace

    there = {inputs.place_of(x, name) for name, x in arrays.items()} if may_take_fewer(device) else set()
    if len(there) != 1:  # arrays on different devices stay there
        return CudaPlace(devices)
    # The device of the arrays is always used, so it is the first.
    return CudaPlace(tuple(sorted(devices, key=lambda name: name not in there)), may_take_fewer=True)


def may_take_fewer(device: Any) -> bool:
    """Whether an argument `device` lets a method choose the number of devices.

    >>> may_take_fewer("cuda:all"), may_take_fewer(["cuda:0", "cuda:1"])
    (True, False)
    """
    return inputs.parse_device(device) == "cuda:all"
