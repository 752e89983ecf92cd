"""Helpers for tests of radius searches: limits with points exactly on them, and comparisons with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.checks import Array
from tonari.core.method import SearchMethod
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.inputs import held
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute_within

# Shares of all values; the value at the rank of each share is a limit, so that points are exactly on it.
SHARES = (0.0, 0.02, 0.1, 0.5, 1.0)


def all_values(queries: Array, points: Array, metric: str, self_ids: Any = None) -> RadiusNeighbors:
    """Return for each query the list of all points with their distances, in order."""
    dtype = np.float64 if np.float64 in (queries.dtype, points.dtype) else np.float32
    everything = np.full(len(queries), -np.inf if get_metric(metric).descending else np.inf, dtype)
    return brute_within(queries, points, everything, metric, self_ids=self_ids)


def hard_limits(queries: Array, points: Array, metric: str, seed: int = 0) -> Array:
    """Make limits of each kind for successive queries: equal to a value, one step below it, 0, and infinities."""
    rng = np.random.default_rng(seed)
    values, n = all_values(queries, points, metric).distances, len(points)
    outwards = -1 if get_metric(metric).descending else 1
    limits = np.empty(len(queries), values.dtype)
    for i in range(len(queries)):
        own = values[i * n : (i + 1) * n]
        on = own[min(n - 1, int(rng.choice(SHARES) * n))]
        before = np.nextafter(on, np.asarray(-np.inf * outwards, values.dtype))
        limits[i] = (on, before, on, before, 0, np.inf, -np.inf, rng.choice(values))[i % 8]
    return limits


def assert_same_within(found: RadiusNeighbors, truth: RadiusNeighbors) -> None:
    """Check that an answer equals the reference to the last bit."""
    assert isinstance(found, RadiusNeighbors)
    for name, mine, right in zip(RadiusNeighbors._fields, found, truth, strict=True):
        assert mine.dtype == right.dtype, f"{name}: {mine.dtype}, not {right.dtype}"
        assert mine.shape == right.shape, f"{name}: shape {mine.shape}, not {right.shape}"
        assert mine.flags.c_contiguous, f"{name} is not contiguous"
        assert mine.flags.writeable, f"{name} cannot be written to"
        different = np.flatnonzero(mine.view(np.uint8) != right.view(np.uint8))
        assert not len(different), f"{name} differs from byte {different[:1]} on"


def check_within(
    method: SearchMethod,
    queries: Array,
    points: Array,
    limits: Array,
    metric: str,
    *,
    self_join: bool = False,
    truth: RadiusNeighbors | None = None,
    threads: int = 1,
    memory: int | None = None,
    **choices: Any,
) -> None:
    """Check that lists and counts by a method's plan with these overrides equal those of the reference."""
    own = np.arange(len(queries)) if self_join else None
    if truth is None:
        truth = brute_within(queries, points, limits, metric, self_ids=own)
    n, d = points.shape
    given: dict[str, Any] = {"dtype": points.dtype, "query_dtype": queries.dtype, "metric": metric}
    plan = method.plan(make_problem(n, len(queries), d, 1, threads=threads, memory=memory, **given), **choices)
    queries, points = held(queries), held(points)
    prepared = method.prepare(points, plan, False)
    request = Within(queries, limits, range(len(queries)) if self_join else None)
    assert_same_within(method.find_within(request, prepared, plan, False), truth)
    counts = method.count_within(request, prepared, plan, False)
    assert counts.dtype == np.int64
    assert counts.tolist() == np.diff(truth.indptr).tolist()


def later_than(truth: RadiusNeighbors) -> RadiusNeighbors:
    """Return the lists without the point itself and earlier points, computed by hand."""
    rows = [slice(*bounds) for bounds in zip(truth.indptr[:-1], truth.indptr[1:], strict=True)]
    kept = [[at for at in range(row.start, row.stop) if truth.indices[at] > i] for i, row in enumerate(rows)]
    indptr = np.cumsum([0, *map(len, kept)], dtype=np.int64)
    places = np.array([at for row in kept for at in row], dtype=np.int64)
    return RadiusNeighbors(indptr, truth.indices[places], truth.distances[places])
