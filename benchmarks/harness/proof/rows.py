"""Conditions that every row of neighbours must meet; for arrays of NumPy and tensors of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

# Maximum number of values in a block of rows that is checked in one step.
CHECKED_VALUES = 1 << 25


class WrongAnswer(AssertionError):
    """An answer that failed its proof; it is not timed."""


def check_rows(
    distances: Any, indices: Any, m: int, n: int, k: int, *, graph: bool = False, descending: bool = False
) -> None:
    """Raise WrongAnswer unless each of the m rows lists k distinct, existing points, best first, ties by index.

    Parameters
    ----------
    graph : whether the rows are the points, and no point may list itself
    descending : whether larger values are better
    """
    if tuple(distances.shape) != (m, k) or tuple(indices.shape) != (m, k):
        raise WrongAnswer(f"shapes {tuple(distances.shape)} and {tuple(indices.shape)}, expected {(m, k)}")
    step = max(1, CHECKED_VALUES // k)
    for start in range(0, m, step):
        values, ids = distances[start : start + step], indices[start : start + step]
        ordered = _sorted(ids)
        before, after = (values[:, 1:], values[:, :-1]) if descending else (values[:, :-1], values[:, 1:])
        faults = {
            "names a point that does not exist": (ids < 0) | (ids >= n),
            "has a distance that is no number": ~(abs(values) < float("inf")),
            "is out of order": ~((before < after) | ((before == after) & (ids[:, :-1] < ids[:, 1:]))),
            "holds a point twice": ordered[:, 1:] == ordered[:, :-1],
        }
        if graph:
            faults["holds itself"] = ids == _column(start, len(ids), ids)
        for message, entries in faults.items():
            if entries.any():
                raise WrongAnswer(f"row {start + first(entries.any(1))} {message}")


def first(faulty: Any) -> int:
    """Return the position of the first True in a mask."""
    return int(faulty.nonzero()[0][0])


def own_places(indices: Any, rows: Any = None) -> Any:
    """Return a mask with one True in each list of a self-join: at the point itself or, if absent, at the last entry.

    `rows` has the row number of the point to which each list belongs. Default: list i belongs to point i.
    """
    numbers = _column(0, len(indices), indices) if rows is None else rows[:, None]
    own = indices == numbers
    # if a list contains its point twice, only the first of the two entries is marked
    own &= own.cumsum(1) == 1
    own[~own.any(1), -1] = True
    return own


def without_self(indices: Any, rows: Any = None) -> Any:
    """Drop the point itself or, if absent, the last entry from each list of a self-join, (m, k + 1); return (m, k)."""
    return indices[~own_places(indices, rows)].reshape(len(indices), -1)


def _sorted(ids: Any) -> Any:
    return np.sort(ids, axis=1) if isinstance(ids, np.ndarray) else ids.sort(dim=1).values


def _column(start: int, count: int, like: Any) -> Any:
    """Return start, ..., start + count - 1 as a column, in the library and on the device of `like`."""
    if isinstance(like, np.ndarray):
        return np.arange(start, start + count)[:, None]
    import torch

    return torch.arange(start, start + count, device=like.device)[:, None]
