"""The place for an argument `device`; what only CUDA needs is imported when a device is used."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.methods.place import CpuPlace, Place


def place_for(device: Any, **given: Any) -> Place:
    """The place for an argument `device` and arrays by their names; see :func:`tonari.inputs.devices_for`."""
    devices = inputs.devices_for(device, **given)
    if not devices:
        return CpuPlace()
    from tonari.methods.place_cuda import CudaPlace

    return CudaPlace(devices)
