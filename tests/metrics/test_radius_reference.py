"""The reference of radius searches, compared with the reference of searches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tonari.metrics.reference import brute, brute_within


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "l1"])
@pytest.mark.parametrize("is_self", [True, False])
def test_what_is_within_comes_first_in_the_list_of_all(metric: str, is_self: bool) -> None:
    points = np.concatenate([checks.gaussian(40, 5), checks.gaussian(40, 5)])
    own = np.arange(80) if is_self else None
    every = brute(points, points, 79 if is_self else 80, metric, self_ids=own)
    limits = every.distances[np.arange(80), np.arange(80) % 79].copy()
    limits[0] = np.inf if metric == "inner_product" else -np.inf
    found = brute_within(points, points, limits, metric, self_ids=own)
    assert found.indptr[0] == found.indptr[1] == 0
    for i in range(80):
        row = slice(found.indptr[i], found.indptr[i + 1])
        count = found.indptr[i + 1] - found.indptr[i]
        inside = every.distances[i] >= limits[i] if metric == "inner_product" else every.distances[i] <= limits[i]
        assert count == inside.sum()
        assert found.indices[row].tolist() == every.indices[i, :count].tolist()
        assert found.distances[row].tobytes() == every.distances[i, :count].tobytes()
