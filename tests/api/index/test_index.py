"""The description of an Index."""

from __future__ import annotations

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute

X = checks.gaussian(20, 4)


def test_index_says_what_it_holds() -> None:
    index = tonari.Index(X, metric="cosine")
    assert (index.n, index.d, index.metric) == (20, 4, "cosine")
    assert repr(index) == "Index(n=20, d=4, metric='cosine', dtype=float32, method='exact')"
    found = index.search(X[:3], 2, threads=1)
    assert isinstance(found, Neighbors)
    assert_same_neighbors(found, brute(X[:3], X, 2, "cosine"), metric="cosine")
