"""Free memory of CUDA devices."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from tonari.core.process.caches import emptied_by
from tonari.cuda import tuning

_known: dict[str, tuple[float, int]] = {}  # by device: the time of the last query, and the bytes available to torch
emptied_by(_known.clear)


def free_memory(devices: tuple[str, ...]) -> int:
    """Return the bytes available on each of these CUDA devices: free memory plus torch's unused cached memory.

    The driver is asked at most once per second, so memory that other programs allocate is noticed a second later.
    """
    return min(_free_on(name) for name in devices)


def _free_on(device: str) -> int:
    import torch

    asked, ours = _known.get(device, (-math.inf, 0))
    if time.monotonic() - asked > tuning.KNOWN_SECONDS:
        free, _ = torch.cuda.mem_get_info(device)  # also initializes CUDA, which torch's statistics require
        ours = int(free + _held(device, "reserved_bytes"))
        _known[device] = time.monotonic(), ours
    return ours - _held(device, "allocated_bytes")


def driver_memory(device: Any) -> int:
    """Ask the driver for the free bytes on a torch device, without memory that torch caches; this takes 0.7 ms.

    On the CPU, where Triton's interpreter runs, no limit is assumed.
    """
    import torch

    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else sys.maxsize


def _held(device: str, name: str) -> int:
    import torch

    # torch.cuda.memory_reserved() and memory_allocated() sort all statistics at each call, which takes 0.2 ms.
    return int(torch.cuda.memory_stats_as_nested_dict(device)[name]["all"]["current"])


def available(devices: tuple[str, ...], free_bytes: int | None = None) -> int:
    """Return the bytes that a plan may use on each device: the free bytes minus a reserve.

    Parameters
    ----------
    free_bytes : int, optional
        Free bytes on each device. Default: the result of :func:`free_memory`.
    """
    return max(0, (free_memory(devices) if free_bytes is None else free_bytes) - tuning.RESERVE)
