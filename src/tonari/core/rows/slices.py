"""Split ranges of rows into slices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def cut(count: int, size: int) -> list[slice]:
    """Split range(count) into slices of `size`; the last one may be shorter.

    >>> cut(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def in_room(bytes_of: npt.NDArray[np.int64], room: int) -> Iterator[slice]:
    """Cut rows into consecutive blocks whose bytes add up to at most `room`; a larger row is a block of its own.

    >>> list(in_room(np.array([2, 3, 9, 1]), 5))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    ahead, at = np.concatenate([[0], np.cumsum(bytes_of)]), 0
    while at < len(bytes_of):
        stop = max(at + 1, int(np.searchsorted(ahead, ahead[at] + room, "right")) - 1)
        yield slice(at, stop)
        at = stop
