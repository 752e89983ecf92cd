"""Each product of a graph is used for both of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared, tuning
from tonari.exact.cpu import across, join
from tonari.exact.cpu.across import plan_across, search_across
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute

D = 40  # from 32 columns on, products are shared


def planned(points: Array, k: int, metric: str = "euclidean", **given: Any) -> ExactPlan:
    sizes = len(points), len(points), points.shape[1], k
    facts: dict[str, Any] = {"dtype": str(points.dtype), "metric": metric, "self_join": True, "threads": 2}
    return plan_across(make_problem(*sizes, **facts | given))


def expected(points: Array, boundary: int, k: int, metric: str) -> Neighbors:
    below = brute(points[:boundary], points[boundary:], k, metric)
    above = brute(points[boundary:], points[:boundary], k, metric)
    return Neighbors(
        np.concatenate([below.distances, above.distances]), np.concatenate([below.indices + boundary, above.indices])
    )


@pytest.fixture(autouse=True)
def _shared_on_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    """On AMX, products of so few dimensions are faster if they are computed twice."""
    monkeypatch.setattr(across, "can_join", lambda metric, d, isa: metric not in ("l1", "linf"))


def test_what_is_known_keeps_others_away(monkeypatch: pytest.MonkeyPatch) -> None:
    points, boundary, k = checks.gaussian(3000, D, 6), 1500, 8
    refined = {}
    for known in (None, expected(points, boundary, k, "euclidean").distances[:, 0].astype(np.float64)):
        counts: list[int] = []
        real = join.Join.across
        monkeypatch.setattr(
            join.Join, "across", lambda self, *given, real=real, to=counts: to.append(real(self, *given)) or to[-1]
        )
        search_across(points, boundary, planned(points, k), known=known, progress=False)
        monkeypatch.setattr(join.Join, "across", real)
        refined[known is None] = counts[0]
    assert refined[False] < refined[True] / 3


def test_a_graph_whose_rows_run_out_of_shared_room_is_not_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    n, d, k = 1500, 300, 10  # in so many dimensions int8 leaves many survivors
    points = checks.gaussian(n, d, 7)
    problem = make_problem(n, n, d, k, dtype="float32", metric="euclidean", self_join=True, threads=2)
    plan = plan_on_cpu(problem, active_rows=1728, precisions=("int8", "float32"), adaptive=False)
    truth = brute(points, points, k, self_ids=np.arange(n))
    for growth in (0, 500):
        monkeypatch.setattr(tuning, "JOIN_GROWTH", growth)
        found, report = search_prepared(points, PreparedPoints(points, plan), plan, self_ids=np.arange(n))
        assert_same_neighbors(found, truth)
        assert report.rows_by_precision == {"int8": n}
