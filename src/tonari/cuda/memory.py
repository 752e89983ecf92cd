"""Free memory of CUDA devices."""

from __future__ import annotations

from tonari.core.units import MIB

RESERVE = 512 * MIB  # free memory that plans leave unused, for kernel code and allocator fragmentation
# Free memory that any device is assumed to have. A search that needs no more is planned without querying free memory,
# and its plan is kept, because querying and planning both take longer than a small search.
SPARE = 1024 * MIB


def free_memory(devices: tuple[str, ...]) -> int:
    """Return the bytes available on each of these CUDA devices: free memory plus torch's unused cached memory."""
    return min(_free_on(name) for name in devices)


def _free_on(device: str) -> int:
    import torch

    free, _ = torch.cuda.mem_get_info(device)  # starts CUDA, without which there are no statistics
    # torch.cuda.memory_reserved() and memory_allocated() sort all statistics, each time: 0.2 ms, longer than a search.
    held = torch.cuda.memory_stats_as_nested_dict(device)
    reserved, allocated = (held[name]["all"]["current"] for name in ("reserved_bytes", "allocated_bytes"))
    return int(free + reserved - allocated)


def available(devices: tuple[str, ...], free_bytes: int | None = None) -> int:
    """Return the bytes that a plan may use on each of the devices.

    Parameters
    ----------
    devices : tuple of str
    free_bytes : int, optional
        Free bytes on each device. Default: the result of :func:`free_memory`.
    """
    return max(0, (free_memory(devices) if free_bytes is None else free_bytes) - RESERVE)
