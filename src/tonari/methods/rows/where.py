"""The choice of the place where a call runs: the CPU or CUDA devices.

Modules for CUDA are imported only when a call runs there.
"""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.methods.rows.place import CpuPlace, Place


def place_for(device: Any, **arrays: Any) -> Place:
    """Return the place where a call with this argument `device` and these arrays runs: the CPU, or CUDA devices."""
    devices = inputs.devices_for(device, **arrays)
    if not devices:
        return CpuPlace()
    from tonari.methods.rows.place_cuda import CudaPlace

    there = {inputs.place_of(x, name) for name, x in arrays.items()} if may_take_fewer(device) else set()
    if len(there) != 1:  # use all requested devices: arrays on different devices are not moved
        return CudaPlace(devices)
    # the device of the arrays is always used, so it comes first
    return CudaPlace(tuple(sorted(devices, key=lambda name: name not in there)), may_take_fewer=True)


def may_take_fewer(device: Any) -> bool:
    """Return whether the argument `device` lets a method use fewer devices than it names.

    >>> may_take_fewer("cuda:all"), may_take_fewer(["cuda:0", "cuda:1"])
    (True, False)
    """
    return inputs.parse_device(device) == "cuda:all"
