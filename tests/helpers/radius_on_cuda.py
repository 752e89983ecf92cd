"""Radius searches on CUDA for tests, by a method and a plan, compared with the reference bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.checks import Array
from tests.helpers.radius_checks import assert_same_within
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.inputs import held
from tonari.metrics import get_metric
from tonari.metrics.reference import brute_within, pairwise, returned


def limits_at(queries: Array, points: Array, metric: str, share: float) -> Array:
    """Return for each query a value that is returned for a point, so that about this share of the points is within
    it.
    """
    double = "float64" in (queries.dtype.name, points.dtype.name)
    values = returned(pairwise(queries, points, metric), np.float64 if double else np.float32)
    share = 1 - share if get_metric(metric).descending else share
    return np.quantile(values, share, axis=1, method="nearest").astype(values.dtype)


def on_host(found: Any) -> RadiusNeighbors:
    """Return lists as arrays in host memory."""
    return RadiusNeighbors(*(part if isinstance(part, np.ndarray) else part.cpu().numpy() for part in found))


def check_within(
    method: Any,
    plan: Any,
    queries: Array,
    points: Array,
    limits: Array,
    *,
    self_join: bool = False,
    counted: bool = False,
    as_searched: tuple[Any, Any] | None = None,
) -> RadiusNeighbors:
    """List or count the points within the limits, compare with the reference, and return the reference's answer.

    Queries and points are arrays in host memory; `as_searched` has the queries and points to search, if these are, for
    example, tensors.
    """
    truth = brute_within(queries, points, limits, plan.metric, self_ids=np.arange(len(queries)) if self_join else None)
    asked, rows = as_searched or (held(queries), held(points))
    prepared = method.prepare(rows, plan, False)
    verb = method.count_within if counted else method.find_within
    found = verb(Within(asked, limits, range(len(queries)) if self_join else None), prepared, plan, False)
    if counted:
        counts = found if isinstance(found, np.ndarray) else found.cpu().numpy()
        assert counts.dtype == np.int64
        assert counts.tolist() == np.diff(truth.indptr).tolist()
    else:
        assert_same_within(on_host(found), truth)
    return truth
