"""Lists that are searched again keep to the reference, whatever remains of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors
from tonari.graph import tuning
from tonari.graph.building.repair import nearest_within, search_again, search_plainly
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.methods.places.points import Points
from tonari.metrics.reference import brute

N, K = 120, 4
BAR = Progress(False, total=N, seconds=None, label="neighbours", unit="row")
DATA = {"gaussian": checks.gaussian(N, 5), "duplicates": checks.duplicates(N, 2), "equal": np.ones((N, 3), np.float32)}


def those(points: np.ndarray, metric: str = "euclidean") -> Points:
    return Points(points, Call.of({"points": points}, Options(metric)))


@pytest.mark.parametrize("left", [0, 1, K - 1])
@pytest.mark.parametrize("crowded", [0, N])
@pytest.mark.parametrize("data", DATA)
def test_lists_with_some_of_their_entries(data: str, crowded: int, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CROWDED", crowded)
    points = DATA[data]
    truth = brute(points, points, K, "euclidean", self_ids=np.arange(N))
    short = np.arange(0, N, 3)
    found = Neighbors(*(np.array(part) for part in truth))
    found.distances[short, left:], found.indices[short, left:] = np.inf, -1
    search_again(those(points), found, short, BAR)
    assert_same_neighbors(found, truth)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_lists_without_entries(metric: str) -> None:
    points = DATA["gaussian"]
    truth = brute(points, points, K, metric, self_ids=np.arange(N))
    found = Neighbors(np.zeros_like(truth.distances), np.full_like(truth.indices, -1))
    search_plainly(those(points, metric), found, np.arange(N), BAR)
    assert_same_neighbors(found, truth, metric=metric)


@pytest.mark.parametrize("own", [False, True])
def test_nearest_points_within_limits(own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WITHIN_ENTRIES", 3 * N)
    points = DATA["duplicates"]
    rows = np.arange(7, 40)
    truth = brute(points[rows], points, K, "euclidean", self_ids=rows if own else None)
    limits = truth.distances[:, 1].copy()
    found = nearest_within(those(points), points[rows], limits, K, own=rows if own else None)
    inside = truth.distances <= limits[:, None]
    assert np.array_equal(found.indices, np.where(inside, truth.indices, -1))
    assert np.array_equal(found.distances, np.where(inside, truth.distances, np.inf))
