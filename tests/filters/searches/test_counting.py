"""Counts and nearest points within a radius, in blocks: the bits of lists of all points, filtered by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.filter_checks import assert_equal, cut
from tonari.core.results.radius_neighbors import nearest_of
from tonari.filters import tuning
from tonari.filters.scope import Scope
from tonari.filters.searches import counting

N, M = 3_000, 150


@pytest.mark.parametrize("memory", [None, "10MB"])
@pytest.mark.parametrize("radius", [1.2, 1e9])
@pytest.mark.parametrize("rule", ["few", "half", "most", "exclude", "same", "other", "all"])
@pytest.mark.parametrize("filtered", [True, False])
def test_large_lists_and_groups(
    rule: str, radius: float, memory: Any, filtered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not filtered:
        monkeypatch.setattr(Scope, "allowed_by", lambda *_: None)
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


@pytest.mark.parametrize("asked", [1, 1000])
def test_groups_of_every_size_and_none(asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query's own group has most points, few or none; points of groups are interleaved, and some belong to no
    query's group.
    """
    monkeypatch.setattr(Scope, "allowed_by", lambda *_: None)
    monkeypatch.setattr(tuning, "COMPLEMENT_QUERIES", asked)
    monkeypatch.setattr(tuning, "SHORT_LISTS", N + 1)  # no list is short, not even a list of one point
    rng = np.random.default_rng(0)
    points, queries = (rng.standard_normal((rows, 4), dtype=np.float32) for rows in (N, M))
    of_points = rng.choice([5, -3, 8, 9], N, p=[0.55, 0.05, 0.37, 0.03])
    of_queries = rng.choice([5, -3, 8, 6, 100], M)
    exclude = rng.integers(0, N, (M, 40))
    allowed = of_queries[:, None] != of_points
    given: dict[str, Any] = {"point_groups": of_points, "query_groups": of_queries, "groups": "other"}
    made: list[int] = []
    plain = counting._among

    def among(scope: Any, asked: Any, limits: Any, rules: Any, rows: Any, ids: Any) -> Any:
        made.append(len(ids))
        return plain(scope, asked, limits, rules, rows, ids)

    monkeypatch.setattr(counting, "_among", among)
    for more in ({}, {"exclude": exclude}):
        if more:
            allowed = allowed.copy()
            np.put_along_axis(allowed, exclude, False, axis=1)
        truth = np.diff(cut(tonari.radius_search(queries, points, 1.2), allowed).indptr)
        for radius_count in (
            lambda **rules: tonari.radius_count(queries, points, 1.2, **rules),
            lambda **rules: tonari.Index(points).radius_count(queries, 1.2, **rules),
        ):
            made.clear()
            assert radius_count(**given, **more).tolist() == truth.tolist()
            complements = {int((of_points != group).sum()) for group in (5, 8)}
            assert (complements <= set(made)) == (asked == 1)


@pytest.mark.parametrize("packed", [False, True])
def test_few_points_of_masks_are_counted_for_every_query(packed: bool) -> None:
    random = np.random.default_rng(3)
    points, queries = random.random((3000, 3), np.float32), random.random((33, 3), np.float32)
    mask, index = random.random((33, 3000)) < 0.5, tonari.Index(points, method="kdtree", threads=1)
    lists = index.radius_search(queries, 0.12)
    rows = np.repeat(np.arange(33), np.diff(lists.indptr))
    expected = np.bincount(rows[mask[rows, lists.indices]], minlength=33)
    where = np.packbits(mask, axis=1, bitorder="little") if packed else mask
    assert expected.any()
    for some in (slice(0, 33), slice(5, 6)):
        assert (index.radius_count(queries[some], 0.12, where=where[some]) == expected[some]).all()
