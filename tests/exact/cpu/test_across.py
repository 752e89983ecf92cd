"""Points on two sides of a boundary that find each other: the same bits as two searches."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tonari.core import _native
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cpu import across
from tonari.exact.cpu.across import plan_across, search_across
from tonari.exact.plan import ExactPlan
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


HOSTILE = {
    "gaussian": checks.gaussian,
    "tight, far apart": checks.tight_far_clusters,
    "duplicates": checks.duplicates,
    "offset": checks.offset_1e4,
}


@pytest.mark.parametrize(
    ("name", "metric", "n", "boundary", "k"),
    [
        ("gaussian", "euclidean", 700, 350, 5),
        ("gaussian", "inner_product", 701, 1, 1),
        ("gaussian", "cosine", 300, 299, 1),
        ("gaussian", "correlation", 577, 288, 7),
        ("tight, far apart", "euclidean", 600, 289, 10),
        ("tight, far apart", "sqeuclidean", 600, 287, 10),
        ("duplicates", "euclidean", 900, 500, 20),
        ("duplicates", "cosine", 900, 97, 96),
        ("offset", "euclidean", 650, 300, 9),
        ("offset", "inner_product", 650, 649, 1),
    ],
)
def test_two_sides_find_what_two_searches_find(name: str, metric: str, n: int, boundary: int, k: int) -> None:
    points = HOSTILE[name](n, D, 1)
    k = min(k, boundary, n - boundary)
    found = search_across(points, boundary, planned(points, k, metric), progress=False)
    assert_same_neighbors(found, expected(points, boundary, k, metric), metric=metric)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_any_instruction_set_and_type(isa: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    points = (checks.gaussian(500, D, 2, np.float64) * 30 + 128).clip(0, 255).astype(dtype)
    found = search_across(points, 201, planned(points, 6), progress=False)
    assert_same_neighbors(found, expected(points, 201, 6, "euclidean"))


def test_rows_beyond_the_screen_meet_the_other_side_alone() -> None:
    points = checks.gaussian(400, D, 3, np.float64)
    points[::37] *= 1e40
    found = search_across(points, 150, planned(points, 4), progress=False)
    assert_same_neighbors(found, expected(points, 150, 4, "euclidean"))


@pytest.mark.parametrize("capacity", [1, 64, 2048])
def test_rows_with_too_many_survivors_are_searched_again(capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.vstack([checks.tight_far_clusters(800, D, 0), checks.gaussian(200, D, 0)])
    points = np.ascontiguousarray(points[np.random.default_rng(0).permutation(1000)])
    again: list[int] = []

    def searched(rows: Array, *given: Any, real: Any = across._search_again) -> Any:
        again.append(len(rows))
        return real(rows, *given)

    monkeypatch.setattr(across, "_search_again", searched)
    plan = dataclasses.replace(planned(points, 5), capacity=capacity, precisions=("int8", "float32"), adaptive=False)
    found = search_across(points, 430, plan, progress=False)
    assert_same_neighbors(found, expected(points, 430, 5, "euclidean"))
    assert bool(again) == (capacity < 2048)


@pytest.mark.parametrize("capacity", [1, 2048])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_a_side_with_fewer_than_k_points(metric: str, capacity: int) -> None:
    points, boundary, k = checks.tight_far_clusters(300, D, 3), 290, 60
    plan = dataclasses.replace(planned(points, k, metric), capacity=capacity, adaptive=False)
    found = search_across(points, boundary, plan, known=np.full(300, np.nan), progress=False)
    below = brute(points[:boundary], points[boundary:], 10, metric)
    first = Neighbors(*(np.ascontiguousarray(part[:boundary, :10]) for part in found))
    assert_same_neighbors(first._replace(indices=first.indices - boundary), below, metric=metric)
    assert (found.indices[:boundary, 10:] == -1).all()
    assert (found.distances[:boundary, 10:] == (-np.inf if metric == "inner_product" else np.inf)).all()
    above = brute(points[boundary:], points[:boundary], k, metric)
    assert_same_neighbors(Neighbors(*(part[boundary:] for part in found)), above, metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("rank", [0, 2, 4])
def test_what_is_known_is_not_found_again(metric: str, rank: int) -> None:
    points, boundary, k = checks.duplicates(800, D, 5), 377, 5
    truth = expected(points, boundary, k, metric)
    # so the first neighbours are equally near, and so are their ties
    known = truth.distances[:, rank].astype(np.float64)
    known[::3] = np.inf
    found = search_across(points, boundary, planned(points, k, metric), known=known, progress=False)
    sign = -1 if metric == "inner_product" else 1
    for row in range(len(points)):
        near = sign * truth.distances[row].astype(np.float64) <= sign * known[row]
        near |= not np.isfinite(known[row])
        assert found.indices[row][: near.sum()].tolist() == truth.indices[row][near].tolist()
        rest = found.indices[row][near.sum() :]
        assert ((rest == truth.indices[row][near.sum() :]) | (rest == -1)).all()
        assert np.isinf(found.distances[row][found.indices[row] < 0]).all()
    assert (found.indices == -1).any() == (rank < k - 1)


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(Unsupported, match="not shared"):
        plan_across(make_problem(500, 500, D, 5, dtype="float32", metric="l1", self_join=True))
    with pytest.raises(BudgetExceeded):
        plan_across(
            make_problem(50_000, 50_000, D, 5, dtype="float32", metric="euclidean", self_join=True, memory=20_000_000)
        )
