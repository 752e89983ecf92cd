"""Split ranges of rows into slices."""

from __future__ import annotations


def cut(count: int, size: int) -> list[slice]:
    """Split range(count) into slices of `size`; the last one may be shorter.

    >>> cut(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]
