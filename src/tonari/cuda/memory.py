"""How much memory CUDA devices can give."""

from __future__ import annotations

from tonari.core.units import MIB

RESERVE = 512 * MIB  # of free memory, left alone: kernels' code, and what the allocator cannot join


def free_memory(devices: tuple[str, ...]) -> int:
    """Bytes that can be had on each of some CUDA devices: those free there, and those that torch keeps unused."""
    import torch

    cuda = torch.cuda
    return min(
        int(cuda.mem_get_info(name)[0] + cuda.memory_reserved(name) - cuda.memory_allocated(name)) for name in devices
    )


def available(devices: tuple[str, ...], free_bytes: int | None = None) -> int:
    """Bytes that a plan may use on each of the devices.

    Parameters
    ----------
    devices : tuple of str
    free_bytes : int, optional
        Bytes that can be had on each. Default: what :func:`free_memory` reads there.
    """
    return max(0, (free_memory(devices) if free_bytes is None else free_bytes) - RESERVE)
