"""Checks of the arguments that restrict the points a query may find, and their conversion to Rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.filters.excluded import Excluded
from tonari.filters.rules import Ids, Rules
from tonari.filters.shared import SharedMask

GROUPS = ("same", "other")


class Given(NamedTuple):
    """The unchecked arguments of a public function that restrict the points a query may find.

    :func:`tonari.search` describes them, and :func:`tonari.knn_graph` describes `batch`."""

    where: Any = None
    exclude: Any = None
    query_groups: Any = None
    point_groups: Any = None
    groups: Any = None
    batch: Any = None
    exclude_within: Any = None

    @classmethod
    def of(cls, shared: Mapping[str, Any]) -> Given:
        """Return the filters among the options of a call, which may have others."""
        names = shared.keys() & _NAMES
        return cls(**{name: shared[name] for name in names}) if names else NO_FILTERS

    def __bool__(self) -> bool:
        """Return whether any of the arguments is set.

        >>> bool(Given()), bool(Given(exclude=[]))
        (False, True)
        """
        return self is not NO_FILTERS and any(value is not None for value in self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments that are set.

        >>> Given(exclude_within=3, where=[True]).names
        ('where', 'exclude_within')
        """
        return tuple(name for name in self._fields if getattr(self, name) is not None)

    def rules(self, m: int, n: int, *, own: bool = False, noun: str = "points") -> Rules | None:
        """Check the arguments for m queries and n points, and return them as Rules; None if no argument is set.

        Parameters
        ----------
        m, n : int
            The number of queries and of points.
        own : bool
            Whether the queries are the points, and no point may find itself.
        noun : str
            The name of the points in messages.

        Raises
        ------
        TypeError, ValueError
            A dtype or shape is not supported, a row number is out of range, only one of the two group arguments is
            given, or `exclude_within` is given although the numbers of queries and points differ.

        Examples
        --------
        >>> Given(where=[0, 1, 1]).rules(1, 3)
        Traceback (most recent call last):
        TypeError: where: int64 is not supported, only bool, or uint8 of bits; to name points by numbers, make a \
mask: mask = np.zeros(n, bool); mask[numbers] = True
        """
        return _rules_of(m, n, self, own=own, noun=noun) if self else None


NO_FILTERS = Given()
_NAMES = frozenset(Given._fields)


def _rules_of(m: int, n: int, given: Given, *, own: bool, noun: str) -> Rules:
    where, exclude, query_groups, point_groups, groups, batch, exclude_within = given
    shared, mask = _masks(where, m, n, noun)
    excluded = None if exclude is None else _excluded(exclude, m, n)
    if batch is not None:
        query_groups = point_groups = _numbers(batch, n, "batch")
    elif query_groups is not None and point_groups is not None:
        query_groups = _numbers(query_groups, m, "query_groups")
        point_groups = _numbers(point_groups, n, "point_groups")
    elif query_groups is not None or point_groups is not None:
        have, lacks = ("query_groups", "point_groups")[:: 1 if point_groups is None else -1]
        raise ValueError(f"{have}: came without {lacks}; give the group of each query and of each point")
    elif groups is not None:
        raise ValueError(f"groups={groups!r}: came without query_groups and point_groups; give them, or leave it out")
    if groups not in (None, *GROUPS):
        raise ValueError(f"groups={groups!r}: expected 'same' or 'other'")
    return Rules(
        m=m,
        n=n,
        shared=shared,
        mask=mask,
        excluded=excluded,
        query_groups=query_groups,
        point_groups=point_groups,
        same=groups != "other",
        own=own,
        window=None if exclude_within is None else window_of(exclude_within, m, n),
    )


def window_of(exclude_within: Any, m: int, n: int) -> int:
    """Check the argument `exclude_within` of a call with m queries and n points, and return the window."""
    window = inputs.check_count(exclude_within, "exclude_within", least=0)
    if m != n:
        raise ValueError(
            f"exclude_within={window}: query i counts as point i, so there must be as many queries as points, got {m} "
            f"and {n}; for some of the points, name the near ones in exclude="
        )
    return min(window, n)


def shared_mask(where: Any, n: int) -> SharedMask | None:
    """Check the argument `where` of a function that accepts only a mask of shape (n,), the same for all queries."""
    shared, mask = _masks(where, n, n, "points")
    if mask is not None:
        raise ValueError(f"where: expected shape ({n},), one mask for all rows, got {mask.shape}")
    return shared


def _host(x: Any, name: str) -> npt.NDArray[Any]:
    inputs.refuse_masked(x, name)
    try:
        return np.asarray(inputs.to_host(x))
    except ValueError as error:  # NumPy's message about rows of different lengths lacks the argument's name
        raise ValueError(f"{name}: rows differ in length, expected an array") from error


def _masks(where: Any, m: int, n: int, noun: str) -> tuple[SharedMask | None, npt.NDArray[Any] | None]:
    """Check `where`; return a pair: a mask for all queries, or None, and a mask for each query, or None."""
    if where is None:
        return None, None
    there = inputs.place_of(where, "where") is not None
    array = inputs.as_tensor(where) if there else _host(where, "where")
    dtype = inputs.name_of_dtype(array)
    packed = dtype == "uint8" and array.ndim == 2
    if dtype != "bool" and not packed:
        raise TypeError(
            f"where: {dtype} is not supported, only bool, or uint8 of bits; to name points by numbers, make a "
            "mask: mask = np.zeros(n, bool); mask[numbers] = True"
        )
    expected = [(m, -(-n // 8))] if packed else [(n,), (m, n)]
    shape = tuple(array.shape)
    if shape not in expected:
        wanted = " or ".join(map(str, expected))
        raise ValueError(f"where: expected shape {wanted} for {m} queries and {n} {noun}, got {shape}")
    return (SharedMask(array), None) if len(shape) == 1 else (None, _host(array, "where"))


def _numbers(x: Any, count: int, name: str) -> Ids:
    """Check an argument with one whole number for each row, and return it as int64 of shape (count,)."""
    array, fix = _host(x, name), "" if name.startswith("exclude") else "; number the groups"
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: {array.dtype} is not supported, only whole numbers{fix}")
    if array.shape != (count,):
        raise ValueError(f"{name}: expected shape ({count},), got {array.shape}")
    if array.dtype == np.uint64 and len(array) and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: {array.max()} is too large, expected less than 2**63")
    return np.require(array, np.int64, ["C", "A"])


def _excluded(exclude: Any, m: int, n: int) -> Excluded:
    """Check the lists in `exclude`, and return them without sorting."""
    indptr, ids = _lists(exclude, m)
    if len(ids) and ids.view(np.uint64).max() >= n:  # a negative id is a huge uint64
        bad = np.flatnonzero((ids < 0) | (ids >= n))
        row = int(np.searchsorted(indptr, bad[0], "right")) - 1
        raise ValueError(
            f"exclude: the list of query {row} has {ids[bad[0]]}, expected numbers of points, 0 to {n - 1}"
        )
    return Excluded(indptr, ids, n)


def _lists(exclude: Any, m: int) -> tuple[Ids, Ids]:
    """Return `exclude` as indptr and row numbers of points, as in a CSR matrix; the arrays may share its memory."""
    if isinstance(exclude, tuple):
        if len(exclude) != 2:
            raise ValueError(f"exclude: a tuple is a pair (indptr, indices), but this one has {len(exclude)} items")
        ids = _host(exclude[1], "exclude[1]")
        indptr, ids = _numbers(exclude[0], m + 1, "exclude[0]"), _numbers(ids, ids.size, "exclude[1]")
        if indptr[0] != 0 or indptr[-1] != len(ids) or (np.diff(indptr) < 0).any():
            raise ValueError(f"exclude[0]: expected numbers that ascend from 0 to {len(ids)}, the length of exclude[1]")
        return indptr, ids
    if isinstance(exclude, set | frozenset):
        raise TypeError("exclude: is a set, expected a list of numbers for each query; use [list(ids)] * len(queries)")
    if isinstance(exclude, Sequence) and any(isinstance(row, set | frozenset) for row in exclude):
        raise TypeError("exclude: has sets, expected a list of numbers for each query; use [list(row) for row in sets]")
    rows = exclude if isinstance(exclude, Sequence) else _host(exclude, "exclude")
    flat = np.ndim(rows) == 1 if hasattr(rows, "ndim") else len(rows) > 0 and all(np.ndim(row) == 0 for row in rows)
    if flat and not isinstance(rows, str | bytes):
        column = "ids[:, None]" if hasattr(rows, "ndim") else "numpy.asarray(ids)[:, None]"
        raise TypeError(
            f"exclude: expected a list of numbers for each query, got one list; for one number each, use {column}"
        )
    if getattr(rows, "ndim", 2) != 2 or isinstance(rows, str | bytes):
        raise TypeError("exclude: expected a list of numbers for each query, or a pair (indptr, indices)")
    if len(rows) != m:
        raise ValueError(f"exclude: expected {m} lists, one for each query, got {len(rows)}")
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "iu" and rows.dtype != np.uint64:
        return np.arange(m + 1) * rows.shape[1], _numbers(rows.ravel(), rows.size, "exclude")
    lists = [_host(row, f"exclude[{i}]") for i, row in enumerate(rows)]
    lists = [row if row.size else np.empty(0, np.int64) for row in lists]
    parts = [_numbers(row, row.size, f"exclude[{i}]") for i, row in enumerate(lists)]
    lengths = np.array([len(part) for part in parts], np.int64)
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([np.empty(0, np.int64), *parts])
