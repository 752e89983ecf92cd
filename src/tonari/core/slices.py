"""Rows cut into runs."""

from __future__ import annotations


def cut(count: int, size: int) -> list[slice]:
    """Slices of `size`, the last one shorter.

    >>> cut(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]
