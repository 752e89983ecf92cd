"""The place that an argument `device` selects; modules for CUDA are imported when a CUDA device is used."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.methods.place import CpuPlace, Place


def place_for(device: Any, **given: Any) -> Place:
    """Return the place for an argument `device` and named arrays; see :func:`tonari.inputs.devices_for`."""
    devices = inputs.devices_for(device, **given)
    if not devices:
        return CpuPlace()
    from tonari.methods.place_cuda import CudaPlace

    return CudaPlace(devices)
