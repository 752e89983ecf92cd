"""Helpers for tests of streams: small data, its division into chunks, and an Index that records requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array
from tonari.core.results.neighbors import Neighbors

N, M, D, K = 400, 60, 6, 5


def soon(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Wait some seconds for a condition, and return whether it became true."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def points(dtype: str = "float32") -> Array:
    """Make N rows without negative numbers."""
    scale = 30 if dtype in ("uint8", "int8") else 1
    return np.abs(scale * checks.gaussian(N, D, seed=1)).astype(dtype)


def queries(m: int = M, dtype: str = "float32") -> Array:
    """Make queries; half of them are points, so there are distances of 0 and ties."""
    scale = 30 if dtype in ("uint8", "int8") else 1
    rows = np.abs(scale * checks.gaussian(m, D, seed=2)).astype(dtype)
    rows[: 2 * N : 2] = points(dtype)[: len(rows[: 2 * N : 2])]
    return rows


def index_of(rows: Array | None = None, **options: Any) -> tonari.Index:
    return tonari.Index(points() if rows is None else rows, **{"method": "exact", "threads": 1} | options)


def joined(found: Iterable[Neighbors]) -> Neighbors:
    distances, indices = zip(*found, strict=True)
    return Neighbors(np.vstack(distances), np.vstack(indices))


def cut(rows: Array, *sizes: int) -> Iterator[Array]:
    """Divide rows into chunks of these sizes, and a last chunk with the remaining rows."""
    for size in sizes:
        yield rows[:size]
        rows = rows[size:]
    yield rows


UNEVEN = (1, 0, 0, 17, 3, 30, 0)


class Watched(tonari.Index):
    """An Index that records the number of rows of each request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.searched: list[int] = []

    def search(self, queries: Any, k: int, **options: Any) -> Neighbors:
        found = super().search(queries, k, **options)
        self.searched.append(len(queries))
        return found
