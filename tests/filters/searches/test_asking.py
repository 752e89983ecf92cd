"""If the rules allow all points, a call finds the same points with and without rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.filters.rules import Rules
from tonari.filters.searches import asking, within
from tonari.filters.shared import SharedMask
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.methods.places.points import Points
from tonari.metrics.reference import brute

N, M = 150, 11
POINTS, QUERIES = checks.gaussian(N, 4), checks.gaussian(M, 4, 1)
EVERYONE = {"none": None, "all": Rules(m=M, n=N, shared=SharedMask(np.ones(N, bool)))}


def those(method: str = "auto") -> Points:
    return Points(POINTS, Call.of({"points": POINTS}, Options(method=method)))


@pytest.mark.parametrize("rules", list(EVERYONE))
@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
@pytest.mark.parametrize("k", [1, 7, N])
def test_the_nearest(rules: str, method: str, k: int) -> None:
    found = asking.nearest(those(method), QUERIES, k, EVERYONE[rules], False)
    assert_same_neighbors(found, brute(QUERIES, POINTS, k))


@pytest.mark.parametrize("rules", list(EVERYONE))
@pytest.mark.parametrize("most", [None, 3, 70, N + 5])
@pytest.mark.parametrize("radius", [0.0, 1.5, np.inf])
def test_what_is_within_a_radius_and_its_number(rules: str, most: int | None, radius: float) -> None:
    everything, limits = brute(QUERIES, POINTS, N), np.full(M, radius, np.float32)
    found = asking.within(those(), QUERIES, limits, EVERYONE[rules], most, False)
    counts = (everything.distances <= radius).sum(axis=1)
    wanted = counts if most is None else np.minimum(counts, most)
    assert np.diff(found.indptr).tolist() == wanted.tolist()
    for row, count in enumerate(wanted):
        here = slice(found.indptr[row], found.indptr[row + 1])
        assert found.indices[here].tolist() == everything.indices[row, :count].tolist()
        assert found.distances[here].tolist() == everything.distances[row, :count].tolist()
    assert asking.count(those(), QUERIES, limits, EVERYONE[rules], False).tolist() == counts.tolist()


@pytest.mark.parametrize("most", [None, 5, 70])
def test_points_do_not_find_themselves(most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    limits, seen = np.full(N, np.inf, np.float32), list[Any]()
    allowed = within.within_allowed
    monkeypatch.setattr(asking, "within_allowed", lambda *given: seen.append(given[3]) or allowed(*given))
    found = asking.within(those(), POINTS, limits, None, most, False, self_join=True)
    assert np.diff(found.indptr).tolist() == [min(N - 1, most or N)] * N
    assert not (found.indices == np.repeat(np.arange(N), np.diff(found.indptr))).any()
    assert [rules.own for rules in seen] == ([True] if most == 70 else [])
