"""Sparse rows that are hard to search, and comparisons with the same rows in dense form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

METRICS = ("cosine", "inner_product", "sqeuclidean", "euclidean")
ALL_METRICS = (*METRICS, "jaccard")
Array = npt.NDArray[Any]


def uniform(n: int, d: int, seed: int = 0, density: float = 0.15) -> Array:
    """Make rows with positive numbers at random places."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < density, rng.random((n, d)), 0.0)


def words(n: int, d: int, seed: int = 0) -> Array:
    """Make rows in which the first columns are frequent and the last ones rare, like words."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < np.minimum(1, 3 / np.arange(1, d + 1)), rng.random((n, d)), 0.0)


def signed(n: int, d: int, seed: int = 0) -> Array:
    """Make rows with numbers of both signs, whose products cancel."""
    return words(n, d, seed) * np.where(np.random.default_rng(seed + 1).random((n, d)) < 0.5, -1.0, 1.0)


def shared(n: int, d: int, seed: int = 0) -> Array:
    """Make rows that share one column, with nearly the same number in it."""
    rows = uniform(n, d, seed) * 1e-4
    rows[:, d // 2] = 1 + 1e-7 * np.arange(n)
    return rows


def copies(n: int, d: int, seed: int = 0) -> Array:
    """Make rows of which only a few are different, some of them empty."""
    rows = uniform(5, d, seed)
    rows[2] = 0
    return rows[np.random.default_rng(seed).integers(0, 5, n)]


def one_dense(n: int, d: int, seed: int = 0) -> Array:
    """Make one row without zeros."""
    rows = uniform(n, d, seed, 0.03)
    rows[n // 2] = np.random.default_rng(seed).random(d) + 0.1
    return rows


def near_copies(n: int, d: int, seed: int = 0) -> Array:
    """Make multiples of one row, and rows that differ from it in a single last digit."""
    row = uniform(1, d, seed, 0.5)[0]
    rows = np.tile(row, (n, 1)) * (1 + np.arange(n) % 3)[:, None]
    rows[np.arange(n), np.arange(n) % d] *= 1 + 2.0**-23 * (np.arange(n) % 2)
    return rows


def wide_range(n: int, d: int, seed: int = 0) -> Array:
    """Make rows of tiny to huge length, some of whose entries are far smaller than the others."""
    rng = np.random.default_rng(seed)
    return signed(n, d, seed) * 10.0 ** rng.integers(-8, 8, (n, 1)) * 10.0 ** rng.integers(-4, 1, (n, d))


def nothing(n: int, d: int, seed: int = 0) -> Array:
    """Make rows without nonzero numbers."""
    return np.zeros((n, d))


MAKERS: dict[str, Callable[..., Array]] = {
    made.__name__: made
    for made in (uniform, words, signed, shared, copies, one_dense, near_copies, wide_range, nothing)
}


def same_bits(ours: Any, others: Any) -> None:
    """Check that the arrays of two answers have the same dtypes, shapes and bits."""
    for a, b in zip(ours, others, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def radius_of(metric: str) -> dict[str, float]:
    return {"min_similarity": 0.5} if metric == "inner_product" else {"radius": 0.5}


def as_dense(rows: Any, metric: str) -> Any:
    """Return rows in dense form; rows of sets become bool."""
    return rows != 0 if metric == "jaccard" else rows


def few(n: int, d: int, seed: int = 0) -> Any:
    """Rows of few small numbers, many of which are at equal distances."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.3, rng.integers(1, 3, (n, d)), 0).astype(np.float32)
