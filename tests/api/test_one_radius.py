"""Rows prepared for one radius give the same counts, lists and pairs as the public functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.api.one_radius import OneRadius

CASES: dict[str, dict[str, Any]] = {
    "euclidean": {"radius": 0.9},
    "l1 by a tree": {"radius": 1.5, "metric": "l1", "method": "kdtree"},
    "cosine": {"radius": 0.2, "metric": "cosine"},
    "weighted": {"radius": 0.9, "metric": "l1", "weights": [2.0, 0.5]},
    "power": {"radius": 0.9, "metric": "minkowski:3"},
    "haversine": {"radius": 0.3, "metric": "haversine"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_the_verbs(case: str, dtype: Any, threads: int) -> None:
    given = CASES[case]
    points = checks.duplicates(150, 2).astype(dtype)
    if case == "haversine":
        points = np.clip(points, -1.5, 1.5)
    rows = OneRadius(points, **given, threads=threads)
    np.testing.assert_array_equal(rows.counts(), tonari.radius_count(points, points, **given))
    ids = np.array([7, 149, 0, 3])
    lists = tonari.radius_search(points[ids], points, **given)
    found = rows.lists(ids)
    np.testing.assert_array_equal(found.indptr, lists.indptr)
    np.testing.assert_array_equal(found.indices, lists.indices)
    pairs = tonari.pairs(points, **given)
    parts = [rows.pairs(part) for part in (slice(0, 20), slice(20, 21), slice(21, 150))]
    for name in ("left", "right"):
        np.testing.assert_array_equal(np.concatenate([getattr(each, name) for each in parts]), getattr(pairs, name))


def test_what_makes_no_sense_is_refused() -> None:
    points = checks.gaussian(5, 2)
    with pytest.raises(ValueError, match="radius"):
        OneRadius(points, -1.0)
    with pytest.raises(ValueError, match="similarities, which have no radius"):
        OneRadius(points, 1.0, metric="inner_product")
