"""Free memory of CUDA devices."""

from __future__ import annotations

from tonari.core.units import MIB

RESERVE = 512 * MIB  # free memory that plans leave unused, for kernel code and allocator fragmentation


def free_memory(devices: tuple[str, ...]) -> int:
    """Return the bytes available on each of these CUDA devices: free memory plus torch's unused cached memory."""
    import torch

    cuda = torch.cuda
    return min(
        int(cuda.mem_get_info(name)[0] + cuda.memory_reserved(name) - cuda.memory_allocated(name)) for name in devices
    )


def available(devices: tuple[str, ...], free_bytes: int | None = None) -> int:
    """Return the bytes that a plan may use on each of the devices.

    Parameters
    ----------
    devices : tuple of str
    free_bytes : int, optional
        Free bytes on each device. Default: the result of :func:`free_memory`.
    """
    return max(0, (free_memory(devices) if free_bytes is None else free_bytes) - RESERVE)
