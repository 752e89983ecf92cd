"""Find out how much memory of the host is free."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")  # only Linux has this file


def free_host_memory() -> int:
    """Return the bytes of host memory that can be allocated without swapping; the system's file cache counts as free.

    >>> free_host_memory() > 0
    True
    """
    try:
        lines = _MEMINFO.read_text().splitlines()
    except FileNotFoundError:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
