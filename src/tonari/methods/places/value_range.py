"""Checks that refuse values that have overflowed or underflowed, since different distances would then tie.

Neighbours are ordered by returned values, so that lists can be merged. A value that overflows is infinite, and a value
that underflows is 0 or has lost digits. Such values may be equal although the exact values differ, so answers with such
values are refused. A count contains no values, but it depends on them if its limit is at an end of the range, so counts
are checked too. The smallest and the largest value of an answer show whether it may contain such values; for ordinary
data no other check is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.methods import tuning
from tonari.metrics import Metric

_PLAIN_LOW, _PLAIN_HIGH = 1e-37, 3e38  # between these magnitudes, float32 and float64 have full precision
_LARGE_ELEMENT = 1e-5  # the powers in metrics do not underflow for elements of at least this magnitude
# if a value is smaller than the elements of its rows by more than this factor, only small elements contribute to it
DIGITS = 2.0**48


def check_range(
    values: Any,
    indices: Any,
    indptr: Any,
    queries: Any,
    points: Any,
    record: Metric,
    *,
    names: Sequence[int] | None = None,
) -> None:
    """Raise ValueError if values of an answer have overflowed or underflowed.

    Parameters
    ----------
    values, indices : arrays of shape (m, k) or (any,), or tensors
        Lists of k neighbours, or concatenated lists of a radius search; missing entries have the index -1.
    indptr : array of shape (m + 1,), optional
        The bounds of the lists in concatenated arrays; None for lists of k neighbours.
    queries, points : checked rows
    record : Metric
    names : sequence of int, optional
        The numbers of the queries in messages; by default their row numbers.

    Raises
    ------
    ValueError
        A value is beyond the range; the message names the query and the value.
    """
    one = len(values) == 1 and values.ndim == 2 if indptr is None else len(indptr) == 2
    # a sorted list has its smallest and largest value at its ends
    if one and type(values) is np.ndarray and values.size:
        first, last = values.item(0), values.item(-1)
        if _PLAIN_LOW < first < _PLAIN_HIGH and _PLAIN_LOW < last < _PLAIN_HIGH:
            return
        if -_PLAIN_HIGH < first < _PLAIN_HIGH and -_PLAIN_HIGH < last < _PLAIN_HIGH:
            is_large = (
                isinstance(queries, np.ndarray) and queries.dtype.kind == "f" and abs(queries.item(0)) > _LARGE_ELEMENT
            )
            if (is_large and not record.products) or not may_underflow(record, queries, points):
                return
    if record.bits or record.own or not math.prod(values.shape):
        return
    low, high, nearest_to_zero = _extremes(values, record.descending)
    if nearest_to_zero > _PLAIN_LOW and high < _PLAIN_HIGH and low > -_PLAIN_HIGH:
        return
    host = isinstance(values, np.ndarray)
    tiny = float(np.finfo(values.dtype if host else inputs.name_of_dtype(values)).tiny)
    overflows = not (math.isfinite(low) and math.isfinite(high))
    underflows = nearest_to_zero < tiny and may_underflow(record, queries, points)
    if overflows or (underflows and _are_small(queries, record, tiny)):
        _look_closer(_on_host(values), _on_host(indices), indptr, queries, points, record, tiny, names)


def _extremes(values: Any, descending: bool) -> tuple[float, float, float]:
    """Return the smallest and the largest value, and a lower bound of the smallest magnitude."""
    if math.prod(values.shape) <= tuning.FEW_RESULTS:
        # for a few values, copying them to the host takes less time than two kernels on the device
        values = _on_host(values)
        # NumPy's argmin and argmax take a third of the time of its min and max
        low, high = values.item(values.argmin()), values.item(values.argmax())
    elif not isinstance(values, np.ndarray):
        import torch

        low, high = torch.stack(values.aminmax()).tolist()  # stacked, so that the host waits for the device only once
    elif values.ndim == 2:
        first, last = (-1, 0) if descending else (0, -1)
        low, high = float(np.minimum.reduce(values[:, first])), float(np.maximum.reduce(values[:, last]))
    else:
        low, high = float(np.minimum.reduce(values)), float(np.maximum.reduce(values))
    return low, high, low if low > 0 else -high if high < 0 else 0.0


def may_underflow(record: Metric, queries: Any, points: Any) -> bool:
    """Return whether values of a metric between these rows can underflow although differences of elements do not."""
    if record.angular or record.degree == 0 or not (record.products or record.power > 1):
        return False
    return not any(inputs.name_of_dtype(rows) in ("uint8", "int8") for rows in (queries, points))


def _are_small(queries: Any, record: Metric, tiny: float) -> bool:
    """Return whether the elements of some query are so small that values may underflow.

    The first element is examined before the others, since it usually rules this out.
    """
    if record.products:
        return True
    bound = (tiny * DIGITS) ** (1 / _power(record))
    if not isinstance(queries, np.ndarray):
        return bool((queries.abs().amax(dim=1) < bound).any())
    first = inputs.as_floats(queries[:, :1])
    small = np.flatnonzero((first < bound) & (first > -bound))
    return any(
        bool((np.abs(inputs.as_floats(queries[some])).max(axis=1) < bound).any())
        for some in (small[begin : begin + 4096] for begin in range(0, len(small), 4096))
    )


def _look_closer(
    values: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    indptr: Any,
    queries: Any,
    points: Any,
    record: Metric,
    tiny: float,
    names: Sequence[int] | None,
) -> None:
    names = range(len(queries)) if names is None else names
    if indptr is None:
        rows = np.repeat(np.arange(len(values)), values.shape[1])
    else:
        counts = np.diff(_on_host(indptr))
        rows = np.repeat(np.arange(len(counts)), counts)
    values, indices = values.ravel(), indices.ravel()
    there = indices >= 0
    if len(over := np.flatnonzero(there & np.isinf(values))):
        raise refusal(names[rows[over[0]]], values[over[0]], record)
    under = np.flatnonzero(there & (np.abs(values) < tiny)) if may_underflow(record, queries, points) else there[:0]
    if not len(under):
        return
    sizes = _largest(queries)
    if not record.products:
        under = under[_size(sizes[rows[under]], record) < tiny * DIGITS]
    for begin in range(0, len(under), 4096):
        some = under[begin : begin + 4096]
        q, x = _floats(queries, rows[some]), _floats(points, indices[some])
        if record.products:
            size = np.abs(q).max(axis=1) * np.abs(x).max(axis=1)
            lost = (np.sign(q) * np.sign(x)).any(axis=1)
        else:
            size = _size(np.maximum(np.abs(q), np.abs(x)).max(axis=1), record)
            lost = (q != x).any(axis=1)
        if len(bad := np.flatnonzero(lost & (size < tiny * DIGITS))):
            at = some[bad[0]]
            raise refusal(names[rows[at]], values[at], record)


def is_plain(limits: npt.NDArray[Any]) -> bool:
    """Return whether all limits are so far from the ends of the range that overflow and underflow change no count."""
    ends, magnitudes = np.finfo(limits.dtype), np.abs(limits)
    return bool(((magnitudes < ends.max) & (magnitudes >= ends.tiny)).all())


def check_counts(
    counts: Any,
    limits: npt.NDArray[Any],
    queries: Any,
    points: Any,
    record: Metric,
    count: Callable[[npt.NDArray[np.int64], npt.NDArray[Any]], Any],
    find: Callable[[npt.NDArray[np.int64]], Any],
    *,
    filtered: bool = False,
) -> None:
    """Raise ValueError if counts, for limits at an end of the range, depend on values beyond it.

    Parameters
    ----------
    counts : int64 array of shape (m,), or tensor
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`.
    queries, points : checked rows
    record : Metric
    count : callable(rows, limits) -> counts
        Counts the points for the queries `rows` within other limits.
    find : callable(rows) -> RadiusNeighbors
        Finds the points that were counted for the queries `rows`.
    filtered : bool
        Whether rules restrict the points that are counted, by `count` and `find` too.

    Raises
    ------
    ValueError
        As :func:`check_range`.
    """
    if are_inside(limits, points, record):
        return
    ends = np.finfo(limits.dtype)
    check_far(limits, queries, points, record, count, filtered=filtered)
    rows = _rows_with(np.abs(_distinct(limits)) < ends.tiny, limits)
    if len(rows) and may_underflow(record, queries, points):
        rows = rows[_are_tiny(queries, points, record, float(ends.tiny))[rows]]
        for some in _in_blocks(rows, _on_host(counts)):
            found = find(some)
            here = inputs.rows_at(queries, some)
            check_range(found.distances, found.indices, found.indptr, here, points, record, names=some.tolist())


def check_far(
    limits: npt.NDArray[Any],
    queries: Any,
    points: Any,
    record: Metric,
    count: Callable[[npt.NDArray[np.int64], npt.NDArray[Any]], Any],
    *,
    filtered: bool = False,
    listed: bool = False,
    names: Sequence[int] | None = None,
) -> None:
    """Raise ValueError if counts or lists may lack points whose values have overflowed.

    In this case, more points are within an infinite limit than within the largest finite one.

    Parameters
    ----------
    limits, queries, points, record, count, filtered
        As for :func:`check_counts`.
    listed : bool
        Whether the answer has lists. Lists within an infinite limit need no check here, as they include the values that
        have overflowed.
    names : sequence of int, optional
        As for :func:`check_range`.
    """
    if are_inside(limits, points, record):
        return
    some = _distinct(limits)
    rows = _rows_with((np.abs(some) >= np.finfo(some.dtype).max) & ~(listed & np.isinf(some)), limits)
    if not len(rows) or not _may_overflow(record, queries, points, float(np.finfo(some.dtype).max)):
        return
    limits, outermost = limits[rows], -np.inf if record.descending else np.inf
    largest = np.copysign(np.finfo(limits.dtype).max, outermost)
    every: Any = _on_host(count(rows, np.full_like(limits, outermost))) if filtered else len(points)
    lost, value = every - _on_host(count(rows, np.full_like(limits, largest))), np.abs(limits)
    if record.descending:
        lost, value = np.where(limits > 0, _on_host(count(rows, np.full_like(limits, np.inf))), lost), limits
    if len(bad := np.flatnonzero(lost)):
        infinity = limits.dtype.type(np.copysign(np.inf, value[bad[0]]))
        row = int(rows[bad[0]])
        raise refusal(row if names is None else names[row], infinity, record)


def are_inside(limits: npt.NDArray[Any], points: Any, record: Metric) -> bool:
    """Return whether no check is needed: for some metrics, or if all queries share one limit inside the range."""
    if record.bits or record.own or record.missing or not (len(limits) and len(points)):
        return True
    return not limits.strides[0] and _PLAIN_LOW < abs(limits.item(0)) < _PLAIN_HIGH


def _distinct(limits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the limits of all queries, or an array of a single limit if all queries share it."""
    return limits if limits.strides[0] else limits[:1]


def _rows_with(chosen: npt.NDArray[np.bool_], limits: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the row numbers of the queries that a mask of the limits of :func:`_distinct` selects."""
    if len(chosen) == len(limits):
        return np.flatnonzero(chosen)
    return np.arange(len(limits) * int(chosen[0]))


def _may_overflow(record: Metric, queries: Any, points: Any, largest: float) -> bool:
    """Return whether elements are so large that the metric's value for a query and a point may overflow."""
    if record.angular:
        return False
    q, x = (float(_largest(rows).max()) for rows in (queries, points))
    size = q * x if record.products else float(_size(np.array(q + x), record))
    return not size * queries.shape[1] < largest


def _are_tiny(queries: Any, points: Any, record: Metric, tiny: float) -> npt.NDArray[np.bool_]:
    """Return a mask of the queries whose elements are so small that the value for some point may underflow."""
    sizes = _largest(queries)
    if not record.products:
        return _size(sizes, record) < tiny * DIGITS
    others = _largest(points)
    least = float(others[others > 0].min(initial=np.inf))
    with np.errstate(invalid="ignore"):  # 0 * inf is NaN: `least` is inf if all points are zero
        return (sizes > 0) & (sizes * least < tiny * DIGITS)


def _in_blocks(rows: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Cut row numbers into blocks with a limited number of neighbours; a row with more of them is a block."""
    block = np.cumsum(counts[rows]) // tuning.LOOKED_AT_ONCE
    yield from np.split(rows, np.flatnonzero(np.diff(block)) + 1) if len(rows) else ()


def _size(largest: npt.NDArray[np.float64], record: Metric) -> npt.NDArray[np.float64]:
    """Return the approximate value of the metric between rows whose largest elements have this magnitude."""
    with np.errstate(over="ignore", under="ignore"):
        size: npt.NDArray[np.float64] = largest ** _power(record)
    return size


def _power(record: Metric) -> float:
    return record.degree if record.elementwise else record.power


def _largest(rows: Any) -> npt.NDArray[np.float64]:
    """Return the largest magnitude of an element in each row, as float64."""
    if not isinstance(rows, np.ndarray):
        largest: npt.NDArray[np.float64] = rows.abs().amax(dim=1).double().cpu().numpy()
        return largest
    step = max(1, (1 << 20) // rows.shape[1])
    parts = (inputs.as_floats(rows[begin : begin + step]) for begin in range(0, len(rows), step))
    return np.concatenate([np.maximum(part.max(axis=1), -part.min(axis=1)).astype(np.float64) for part in parts])


def _floats(rows: Any, ids: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return a copy of the rows at the row numbers `ids`, in host memory and as float64."""
    some = rows[ids] if isinstance(rows, np.ndarray) else rows[inputs.like("torch", ids).to(rows.device).long()].cpu()
    return inputs.as_floats(inputs.held(some)).astype(np.float64)


def _on_host(part: Any) -> npt.NDArray[Any]:
    return part if isinstance(part, np.ndarray) else np.asarray(inputs.to_host(part))


def refusal(row: Any, value: Any, record: Metric) -> ValueError:
    large, limits = bool(np.isinf(value)), np.finfo(value.dtype)
    ends = f"overflows, which ends at {limits.max:.2g}" if large else f"underflows, which begins at {limits.tiny:.2g}"
    fixes = [] if value.dtype == np.float64 else ["pass float64 rows"]
    fixes += [f"scale the rows {'down' if large else 'up'}"]
    if record.squares and not record.root:
        fixes.append("use metric='euclidean'")
    return ValueError(
        f"queries: row {row} has a {record.name} value of {value} to a point: the value {ends} for {value.dtype}, and "
        f"neighbours would be ordered by row number; {', or '.join(fixes)}"
    )
