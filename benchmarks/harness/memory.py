"""The peak memory of a call, in addition to the memory that was in use before it.

On CUDA, torch's allocator counts: it counts all memory of tonari, but not of libraries with their own allocators. On
Linux, the kernel counts the process's largest resident set, which can be reset (proc(5), clear_refs). Free memory that
malloc keeps from earlier work would be used by the call without being counted, so it is returned to the kernel first.
"""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"


class Peak:
    """Measures peak memory on the torch device `where`, from the construction of this object on."""

    def __init__(self, where: str) -> None:
        gc.collect()
        self._where = where
        self._before: int | None
        if where != "cpu":
            import torch

            torch.cuda.synchronize(where)
            torch.cuda.reset_peak_memory_stats(where)
            self._before = int(torch.cuda.memory_allocated(where))
            return
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # a function of glibc, which other C libraries lack
        if trim is not None:
            trim(0)
        try:
            (_PROCESS / "clear_refs").write_text(_RESET_PEAK)
            self._before = resident("VmRSS")
        except OSError:
            self._before = None

    def bytes(self) -> int | None:
        """Return the peak memory in bytes since the construction, minus the memory in use then; None if unknown."""
        if self._before is None:
            return None
        if self._where != "cpu":
            import torch

            return int(torch.cuda.max_memory_allocated(self._where)) - self._before
        return max(0, resident("VmHWM") - self._before)


def resident(what: str) -> int:
    """Return a field of this process's status (/proc/self/status) in bytes, such as VmRSS."""
    for line in (_PROCESS / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) << 10
    raise OSError(f"no {what} in {_PROCESS}/status")
