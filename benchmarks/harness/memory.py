"""The most memory that a call takes beyond what is there before it.

On CUDA as torch's allocator counts it: everything of ours, nothing of a library with an allocator of its own. On Linux
as the kernel counts it: the process's largest resident set, which can be set back (proc(5), clear_refs). What malloc
has kept of earlier work would hide as much of the call's, and is given back first.
"""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"


class Peak:
    """Counts from when it is made; `where` is a device of torch."""

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
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        if trim is not None:
            trim(0)
        try:
            (_PROCESS / "clear_refs").write_text(_RESET_PEAK)
            self._before = resident("VmRSS")
        except OSError:
            self._before = None

    def bytes(self) -> int | None:
        """So much at most since then; None where nobody counts."""
        if self._before is None:
            return None
        if self._where != "cpu":
            import torch

            return int(torch.cuda.max_memory_allocated(self._where)) - self._before
        return max(0, resident("VmHWM") - self._before)


def resident(what: str) -> int:
    """Bytes that the kernel has under a name in this process's status."""
    for line in (_PROCESS / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) << 10
    raise OSError(f"no {what} in {_PROCESS}/status")
