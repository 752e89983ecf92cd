"""The nearest of what is within a radius, of more than a search answers at once: what is counted, and what searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.scopes import scope_of
from tonari.filters import tuning, within
from tonari.filters.rules import Rules
from tonari.methods.points import DecidedPoints
from tonari.metrics.reference import brute

N, MOST = 800, 70


@pytest.mark.parametrize(
    ("near", "counted"), [(3, True), (40, True), (130, False), (600, False)], ids=["few", "fewer", "more", "many"]
)
def test_few_are_counted_where_most_queries_have_more_than_are_wanted(
    near: int, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = gaussian(N, 3)
    values = brute(points, points, N, "euclidean").distances
    limits = np.full(N, np.median(values[:, near]), np.float32)
    rows = list[int]()
    count = DecidedPoints.count

    def counting(those: DecidedPoints, some: Any, limits: Any, progress: Any) -> Any:
        rows.append(len(some))
        return count(those, some, limits, progress)

    monkeypatch.setattr(DecidedPoints, "count", counting)
    scope = scope_of(points, method="exact", threads=1)
    found = within.within_allowed(scope, points, limits, Rules(m=N, n=N, own=True), MOST)
    assert (N in rows) == counted
    assert min(rows) <= tuning.COUNTED_QUERIES
    inside = np.minimum((values <= limits[:, None]).sum(axis=1) - 1, MOST)
    assert np.diff(found.indptr).tolist() == inside.tolist()
    for i in range(0, N, 97):  # the first of the values is that of the point with itself
        assert np.array_equal(found.distances[found.indptr[i] : found.indptr[i + 1]], values[i, 1 : inside[i] + 1])
