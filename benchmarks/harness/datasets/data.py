"""Points and queries as arrays, and functions that the modules of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]


class Data(NamedTuple):
    """Arrays ``points`` (n, d) and ``queries`` (m, d) or None; C-contiguous."""

    points: Array
    queries: Array | None


def split(rows: Array, n: int) -> Data:
    """Return the first n rows as points and the others as queries."""
    return Data(rows[:n], rows[n:] if len(rows) > n else None)


def blocks(rows: Array, size: int = 1 << 18) -> Iterator[Array]:
    """Yield consecutive blocks of rows as views, so that temporary arrays stay small."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
