"""Rows a batch at a time, and fewer at a time where a device's memory runs short of what was planned."""

from __future__ import annotations

from collections.abc import Callable

from tonari.exact.cuda.cuda_graph_cache import GRAPHS


def in_batches(count: int, size: int, work: Callable[[slice], None], *, planned: int) -> None:
    """Do some work on `count` rows, a slice of at most `size` of them after the other.

    Where memory does not suffice for a slice (other programs may have taken what was free), its half is tried, and
    slices stay that short.

    Parameters
    ----------
    count, size : int
    work : callable(slice)
        May be called again for rows at which it ran out of memory.
    planned : int
        Bytes that the plan foresaw, for the message.

    Raises
    ------
    MemoryError
        Not even one row can be worked on.
    """
    import torch

    begin = 0
    while begin < count:
        rows = slice(begin, min(begin + size, count))
        try:
            work(rows)
        except torch.cuda.OutOfMemoryError as error:
            if GRAPHS.forget():
                continue  # as large as before, in the room that captured searches had
            if rows.stop - begin == 1:
                raise MemoryError(
                    f"the device has no memory left even for one query at a time; the plan needs {planned} bytes "
                    f"there: free some, or pass memory= with less than that. {_in_short(error)}"
                ) from error
            size = (rows.stop - begin) // 2
        else:
            begin = rows.stop


def _in_short(error: Exception) -> str:
    """What torch says was asked for and what is there, without its advice."""
    return ". ".join(str(error).split(". ")[:3]).rstrip(".") + "."
