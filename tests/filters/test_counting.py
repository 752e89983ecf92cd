"""Counts and the nearest within a radius, in blocks: the bits of lists of everything, cut by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.filter_checks import assert_equal, cut
from tonari.core.radius_neighbors import nearest_of

N, M = 3_000, 150


@pytest.mark.parametrize("memory", [None, "10MB"])
@pytest.mark.parametrize("radius", [1.2, 1e9])
@pytest.mark.parametrize("rule", ["few", "half", "most", "exclude", "same", "other", "all"])
def test_large_lists_and_groups(rule: str, radius: float, memory: Any) -> None:
    rng = np.random.default_rng(0)
    points, queries = (rng.standard_normal((rows, 4), dtype=np.float32) for rows in (N, M))
    given, allowed = dict[str, Any](), np.ones((M, N), bool)
    if rule in ("few", "half", "most", "all"):
        share = {"few": 0.01, "half": 0.5, "most": 0.99, "all": 0.7}[rule]
        given["where"] = allowed = rng.random((M, N)) < share
    if rule in ("exclude", "all"):
        given["exclude"] = rng.integers(0, N, (M, 400))
        allowed = allowed.copy()
        np.put_along_axis(allowed, given["exclude"], False, axis=1)
    if rule in ("same", "other", "all"):
        of_points, of_queries = rng.integers(0, 2, N), rng.integers(0, 2, M)
        given |= {"point_groups": of_points, "query_groups": of_queries}
        given["groups"] = "same" if rule == "same" else "other"
        allowed = allowed & ((of_queries[:, None] == of_points) == (rule == "same"))
    truth = cut(tonari.radius_search(queries, points, radius), allowed)
    options: dict[str, Any] = {"memory": memory, "threads": 2}
    counts = tonari.radius_count(queries, points, radius, **given, **options)
    assert counts.dtype == np.int64
    assert counts.tolist() == np.diff(truth.indptr).tolist()
    assert_equal(tonari.radius_search(queries, points, radius, **given, **options), truth)
    found = tonari.radius_search(queries, points, radius, max_neighbors=65, **given, **options)
    assert_equal(found, nearest_of(truth, 65))
    index = tonari.Index(points, **options)
    assert index.radius_count(queries, radius, **given).tolist() == counts.tolist()
    assert_equal(index.radius_search(queries, radius, max_neighbors=65, **given), nearest_of(truth, 65))
