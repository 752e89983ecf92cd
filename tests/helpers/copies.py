"""Rows of which many are copies of others, and a plain search for the first copies of each row."""

from __future__ import annotations

import numpy as np

from tests.helpers.checks import Array
from tests.helpers.gpu_checks import rows_of

N, D, K = 90, 6, 3


def copied(n: int = N, d: int = D, dtype: str = "float32", metric: str = "euclidean") -> Array:
    """Make rows of which two thirds are copies of three rows."""
    rows = rows_of(n, d, dtype, metric)
    chosen = np.random.default_rng(0).integers(0, 12, n)
    for low, high, row in ((4, 12, 0), (3, 4, 1), (2, 3, 2)):
        rows[(low <= chosen) & (chosen < high)] = rows[row]
    return rows


def counted(rows: Array, most: int) -> list[int]:
    """Return for every row the numbers of its first `most` copies, found by comparing rows one by one."""
    seen: dict[bytes, int] = {}
    kept = []
    for i, row in enumerate(rows):
        seen[row.tobytes()] = seen.get(row.tobytes(), 0) + 1
        if seen[row.tobytes()] <= most:
            kept.append(i)
    return kept
