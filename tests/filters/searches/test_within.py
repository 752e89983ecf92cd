"""The nearest of more points within a radius than a search answers at once: which queries are counted and searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.scopes import scope_of
from tonari.filters import tuning
from tonari.filters.rules import Rules
from tonari.filters.searches import within
from tonari.methods.places.points import DecidedPoints
from tonari.metrics.reference import brute

N = 800


@pytest.mark.parametrize(
    ("most", "near", "counted"),
    [(70, 3, True), (70, 40, True), (70, 130, False), (70, 600, False), (257, 400, True), (257, 600, False)],
    ids=["few", "fewer", "more", "many", "more than a long list", "many more than a long list"],
)
def test_few_are_counted_where_most_queries_have_more_than_are_wanted(
    most: int, near: int, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = gaussian(N, 3)
    values = brute(points, points, N, "euclidean").distances
    limits = np.full(N, np.median(values[:, near]), np.float32)
    rows = list[int]()
    count = DecidedPoints.count

    def counting(those: DecidedPoints, some: Any, *given: Any) -> Any:
        rows.append(len(some))
        return count(those, some, *given)

    monkeypatch.setattr(DecidedPoints, "count", counting)
    scope = scope_of(points, method="exact", threads=1)
    found = within.within_allowed(scope, points, limits, Rules(m=N, n=N, own=True), most)
    assert (N in rows) == counted
    assert min(rows) <= tuning.COUNTED_QUERIES
    inside = np.minimum((values <= limits[:, None]).sum(axis=1) - 1, most)
    assert np.diff(found.indptr).tolist() == inside.tolist()
    for i in range(0, N, 97):  # the first value is that of the point with itself
        assert np.array_equal(found.distances[found.indptr[i] : found.indptr[i + 1]], values[i, 1 : inside[i] + 1])
