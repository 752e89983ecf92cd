"""Process rows in batches. If the device runs out of memory, free what earlier searches kept, or halve the batch."""

from __future__ import annotations

from collections.abc import Callable

# Functions to call when memory is short. Each frees memory that was kept for later searches, and returns whether it
# freed any.
IDLE: list[Callable[[], bool]] = []


def in_batches(count: int, size: int, work: Callable[[slice], None], *, planned: int) -> None:
    """Divide `count` rows into successive slices of at most `size` rows, and call `work` on each slice.

    If a slice needs more memory than is free (another program may have taken some), the slice is halved, and later
    slices have the smaller length.

    Parameters
    ----------
    count, size : int
    work : callable(slice)
        Processes a slice. After a call has run out of memory, it is called again for the same rows.
    planned : int
        The number of bytes that the plan reserves, for the message.

    Raises
    ------
    MemoryError
        There is not enough memory for even one row.
    """
    import torch

    begin = 0
    while begin < count:
        rows = slice(begin, min(begin + size, count))
        try:
            work(rows)
        except torch.cuda.OutOfMemoryError as error:
            if any(give_up() for give_up in IDLE):
                continue  # repeat the slice unchanged, in the freed memory
            if rows.stop - begin == 1:
                raise MemoryError(
                    f"the device has no memory left even for one query at a time; the plan needs {planned} bytes "
                    f"there: free some memory, or pass memory= with less than that. {_in_short(error)}"
                ) from error
            size = (rows.stop - begin) // 2
        else:
            begin = rows.stop


def _in_short(error: Exception) -> str:
    """Return what torch's message says about requested and free memory, without its advice."""
    return ". ".join(str(error).split(". ")[:3]).rstrip(".") + "."
