"""Rows with missing values (NaN), for tests of nan_euclidean."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def with_gaps(rows: Array, share: float, seed: int = 1) -> Array:
    """Copy rows, and replace a share of their numbers by NaN."""
    made = np.array(rows)
    made[np.random.default_rng(seed).random(made.shape) < share] = np.nan
    return made


def _outliers() -> Array:
    rows = with_gaps(np.random.default_rng(3).standard_normal((120, 5)), 0.3)
    rows[::17] *= 1e9
    rows[1::17] *= 1e-9
    return rows


def _offset() -> Array:
    """Make two clusters that are so far apart that float32 has few numbers for the rows of each."""
    return 8 * np.random.default_rng(6).standard_normal((100, 2)) + 2.0**27 * (-1) ** np.arange(100)[:, None]


def _ties() -> Array:
    return with_gaps(np.random.default_rng(4).integers(0, 2, (150, 6)).astype(np.float32), 0.4)


def _blocks() -> Array:
    """Make two sets of rows that have no common column, and rows that are all NaN."""
    rows = np.random.default_rng(5).standard_normal((90, 8)).astype(np.float32)
    rows[:40, :4] = rows[40:80, 4:] = np.nan
    rows[80:85] = np.nan
    return rows


DATA: dict[str, Array] = {
    "few": with_gaps(np.random.default_rng(0).standard_normal((150, 20)).astype(np.float32), 0.2),
    "many": with_gaps(np.random.default_rng(0).standard_normal((130, 4)), 0.8),
    "none": np.random.default_rng(2).standard_normal((100, 5)),
    "outliers": _outliers(),
    "offset": with_gaps(_offset(), 0.4),
    "ties": _ties(),
    "blocks": _blocks(),
    "equal": with_gaps(np.ones((60, 3), np.float16), 0.3),
    "a column without numbers": np.where(np.arange(4) == 2, np.nan, np.random.default_rng(7).standard_normal((50, 4))),
}
