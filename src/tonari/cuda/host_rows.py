"""Rows that stay in host memory; a device fetches a few of them by row number.

    mapped      the memory of the array is page-locked, and a kernel on the device reads these rows over the bus
    gathered    the CPU copies these rows, after waiting for the device; for memory that cannot be page-locked, such as
                a memory-mapped file

On the CPU, where Triton's interpreter runs, the kernel reads the array.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any

import numpy.typing as npt
import torch

from tonari.cuda import tuning
from tonari.cuda.devices import over
from tonari.cuda.launch import launch

_PORTABLE, _MAPPED, _READ_ONLY = 1, 2, 8  # values of the flags of cudaHostRegister


class HostRows:
    """Rows that stay in host memory while a device fetches a few of them by row number.

    Parameters
    ----------
    rows : C-contiguous array of shape (n, d)
        The array must not change. Its memory is page-locked until this object is deleted, unless the system refuses.
    device : torch device
    """

    def __init__(self, rows: npt.NDArray[Any], device: Any) -> None:
        self._rows, self._device = over(rows), torch.device(device)
        self._bytes = self._rows.view(torch.uint8) if rows.nbytes else None
        self._locked_by: Any = None  # the device, if this module has page-locked the memory for one
        self.is_mapped = bool(rows.nbytes) and (self._device.type == "cpu" or self._lock(rows))
        self._there = self._seen() if self.is_mapped else None

    @classmethod
    def without_data(cls, n: int, d: int, dtype: Any) -> HostRows:
        """Return an object for a rehearsal, whose rows are mapped but have no data."""
        rows = object.__new__(cls)
        rows._device, rows.is_mapped = torch.device("meta"), True
        rows._rows = torch.empty((n, d), dtype=dtype, device="meta")
        rows._bytes = rows._there = rows._rows.view(torch.uint8)
        return rows

    def fetch(self, numbers: Any, out: Any) -> None:
        """Write the rows with the row numbers `numbers` to `out`, on the device; negative ones leave arbitrary values.

        Parameters
        ----------
        numbers : int32 tensor of shape (count,), contiguous
        out : tensor of shape (count, d), contiguous, of the dtype of the rows
        """
        if self._there is None:
            self._gather(numbers, out)
            return
        from tonari.cuda.kernels.fetch_rows import fetch_rows_kernel

        size = int(self._there.shape[1])  # size of a row in bytes
        unit = math.gcd(size, 16 if size % 16 == 0 and self._rows.data_ptr() % 16 == 0 else 4, self._rows.data_ptr())
        dtype = {1: torch.uint8, 2: torch.int16}.get(unit, torch.int32)
        words = size // dtype.itemsize
        columns = min(1 << (words - 1).bit_length(), tuning.FETCHED_WORDS)
        launch(
            fetch_rows_kernel,
            -(-len(numbers) // tuning.FETCHED_ROWS),
            {
                "numbers_ptr": numbers,
                "rows_ptr": self._there.view(dtype),
                "out_ptr": out.view(torch.uint8).view(dtype),
                "count": len(numbers),
                "words": words,
            },
            constants={"ROWS": tuning.FETCHED_ROWS, "COLUMNS": columns},
            warps=4,
        )

    def _gather(self, numbers: Any, out: Any) -> None:
        wanted = numbers.cpu().long()
        present = (wanted >= 0).nonzero()[:, 0]
        rows = self._rows[wanted[present]]
        if len(rows):
            out[present.to(out.device)] = rows.to(out.device)

    def _lock(self, rows: npt.NDArray[Any]) -> bool:
        """Page-lock the memory of the rows; return False if the system refuses."""
        lock = _locked(rows, self._device)
        if lock is not None:
            self._locked_by = lock.device
            weakref.finalize(self, lock.give_back)
        return lock is not None or self._rows.is_pinned()

    def _seen(self) -> Any:
        """Return the bytes of the rows as a tensor that the device can read: uint8 of shape (n, bytes of a row)."""
        assert self._bytes is not None
        if self._device.type == "cpu":
            return self._bytes
        if self._locked_by not in (None, self._device):
            return self._bytes  # kernels need only its address, which is the same on all devices
        return torch.as_tensor(_Memory(self._bytes), device=self._device)


class _Lock:
    """Page-locked memory of rows, and the number of objects that use it."""

    def __init__(self, begin: int, size: int, device: Any) -> None:
        self.begin, self.end, self.device, self.users = begin, begin + size, device, 0

    def give_back(self) -> None:
        """Count one user fewer, and unlock the memory if none is left."""
        with _LOCKING:
            self.users -= 1
            if not self.users:
                _LOCKS.remove(self)
                torch.cuda.cudart().cudaHostUnregister(self.begin)


_LOCKS: list[_Lock] = []
_LOCKING = threading.Lock()


def _locked(rows: npt.NDArray[Any], device: Any) -> _Lock | None:
    """Page-lock the memory of rows, or add a user to its existing lock; return None if the system refuses.

    The system refuses memory that another library has locked.
    """
    begin, size = rows.ctypes.data, rows.nbytes
    with _LOCKING:
        lock = next((lock for lock in _LOCKS if lock.begin <= begin and begin + size <= lock.end), None)
        if lock is None:
            flags = _PORTABLE | _MAPPED | (0 if rows.flags.writeable else _READ_ONLY)
            with torch.cuda.device(device):
                if int(torch.cuda.cudart().cudaHostRegister(begin, size, flags)):
                    return None
            lock = _Lock(begin, size, device)
            _LOCKS.append(lock)
        lock.users += 1
        return lock


class _Memory:
    """Page-locked host memory with the interface for device memory, so that torch makes a tensor over it."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.__cuda_array_interface__ = {
            "shape": tuple(rows.shape),
            "typestr": "|u1",
            "data": (rows.data_ptr(), False),
            "strides": None,
            "version": 2,
        }
