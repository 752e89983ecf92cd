"""The pilot decides whether points are contracted or looked at: its decisions, and equal answers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared, tuning
from tonari.exact.cpu.rows import contraction
from tonari.exact.planning.blocks import LOOKED
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
N, D, K = 700, 256, 10


def few_directions(n: int, noise: float = 0.05) -> Array:
    """Make rows of 12 directions and noise."""
    rng = np.random.default_rng(0)
    inside = rng.standard_normal((n, 12)) @ rng.standard_normal((12, D))
    return (inside + noise * rng.standard_normal((n, D))).astype(np.float32)


def spectrum(n: int) -> Array:
    """Make rows without clusters or near neighbours and with variances 1 / i: half of it is in 32 directions."""
    return (np.random.default_rng(0).standard_normal((n, D)) * np.arange(1, D + 1) ** -0.5).astype(np.float32)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PILOT_FROM_SECONDS", 0.0)
    monkeypatch.setattr(tuning, "CONTRACTED_SHARE", np.inf)


USUAL = "avx2" if "avx2" in _native.supported_isas() else "neon"


def chosen(points: Array, asked: int, isa: str = USUAL) -> str:
    """Return the pilot's decision for this number of queries, by the costs of 100,000 points."""
    d = points.shape[1]
    plan = plan_on_cpu(make_problem(len(points), 1, d, K, dtype="float32", metric="euclidean", threads=1))
    assert plan.may_contract
    plan = dataclasses.replace(plan, n=100_000, isa=isa, precisions=("int8", "float32"))
    made = contraction.arrange_points(points, _native.Form("euclidean", [0.0] * d, 1.0), plan, asked)
    assert made.look is None or made.clusters is not None
    return "look" if made.look is not None else "contracted" if made.columns < d else "all columns"


def test_few_directions_are_contracted_if_enough_queries_pay_for_it() -> None:
    points = few_directions(6_000)
    assert chosen(points, 100_000) != "all columns"
    assert chosen(points, 100) == "all columns"


def apart(n: int, d: int) -> Array:
    """Make rows of 100 clusters that are far apart, each spread evenly in all directions."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((100, 12)) @ rng.standard_normal((12, d)) * 3
    return (centres[rng.integers(0, 100, n)] + rng.standard_normal((n, d))).astype(np.float32)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_clusters_with_more_points_than_can_be_evaluated_are_looked_at_first(isa: str) -> None:
    if isa not in _native.supported_isas():
        pytest.skip(f"by the costs of {isa}, whose kernels it asks for")
    points = apart(6_000, 3 * D)
    plan = plan_on_cpu(make_problem(6_000, 1, 3 * D, K, dtype="float32", metric="euclidean", threads=1))
    plan = dataclasses.replace(plan, n=100_000, isa=isa, precisions=("int8", "float32"))
    form = _native.Form("euclidean", [0.0] * (3 * D), 1.0)
    made = contraction.arrange_points(points, form, plan, 100_000)
    assert (made.columns, made.look is not None) == (3 * D, True)


def alone(points: Array) -> float:
    """Return the share of candidates in LOOKED columns that do not include the nearest point."""
    d = points.shape[1]
    plan = plan_on_cpu(make_problem(len(points), 1, d, K, dtype="float32", metric="euclidean", threads=1))
    form = _native.Form("euclidean", [0.0] * d, 1.0)
    return contraction._pilot(points, *contraction._contracted_and_whole(points, form, LOOKED, plan), plan).alone[
        LOOKED
    ]


def test_candidates_of_clusters_that_are_apart_lie_side_by_side() -> None:
    assert alone(apart(6_000, D)) < 0.1
    assert 0.5 < alone(few_directions(6_000)) <= 1


@pytest.mark.parametrize("maker", [lambda n: checks.gaussian(n, D), spectrum], ids=["isotropic", "no clusters"])
def test_rows_that_a_contraction_does_not_tell_apart_are_not_contracted(maker: Any) -> None:
    assert chosen(maker(6_000), 100_000) == "all columns"


def test_a_pilot_counts_the_candidates_that_a_search_has() -> None:
    points = few_directions(6_000, noise=0.5)
    plan = plan_on_cpu(make_problem(6_000, 1, D, K, dtype="float32", metric="euclidean", threads=1))
    form = _native.Form("euclidean", [0.0] * D, 1.0)
    made = contraction._contracted(points, form, LOOKED)
    few = np.empty((6_000, LOOKED))
    made.screened_rows(points, 1, few)
    queries = np.arange(0, 6_000, 100)
    kth = brute(points[queries], points, K, "sqeuclidean", self_ids=queries).distances[:, -1:]
    squares = np.einsum("ij,ij->i", few, few)
    lowest = squares[queries, None] + squares - 2 * few[queries] @ few.T
    true = np.count_nonzero(lowest <= kth, axis=1).mean() - 1
    assert (
        true / 2
        <= contraction._pilot(points, made, contraction._in_whole(points, form, plan), plan).few[LOOKED]
        <= 4 * true
    )


def test_a_point_is_not_its_own_neighbour_in_the_pilot() -> None:
    # If it were, only the point itself would be within the distance of the nearest neighbour.
    points = checks.gaussian(2_000, D)
    plan = plan_on_cpu(make_problem(2_000, 1, D, 1, dtype="float32", metric="euclidean", threads=1))
    form = _native.Form("euclidean", [0.0] * D, 1.0)
    seen = contraction._pilot(points, *contraction._contracted_and_whole(points, form, LOOKED, plan), plan)
    assert seen.few[LOOKED] > 200


def test_contracting_the_points_has_its_cost() -> None:
    plan = plan_on_cpu(make_problem(6_000, 1, D, K, dtype="float32", metric="euclidean", threads=1))
    seen = contraction.Seen(9.0, {LOOKED: 9.0}, 0.0, {LOOKED: 0.0}, {LOOKED: 0.0})
    seconds = [contraction._contracted_seconds(plan, asked, seen, LOOKED) for asked in (0, 6_000)]
    assert 0 < 2 * seconds[0] < seconds[1]


def test_more_columns_are_taken_if_they_leave_fewer_candidates(monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    # 64 columns distinguish 60 directions; they do not distinguish 90, and then more columns leave a tenth of the
    # candidates.
    rng, n, d = np.random.default_rng(0), 1_500, 400
    monkeypatch.setattr(contraction, "_look_seconds", lambda *_: np.inf)
    plan = dataclasses.replace(tonari.plan(n, n, d, K, method="exact", threads=2, self_join=True), active_rows=n)
    for inside, columns in ((60, 64), (90, 96)):
        points = (rng.standard_normal((n, inside)) @ rng.standard_normal((inside, d))).astype(np.float32)
        prepared = PreparedPoints(points, plan)
        assert prepared.form_dim == columns
        assert prepared.clusters is not None
        found, _ = search_prepared(points, prepared, plan, self_ids=np.arange(n))
        assert_same_neighbors(found, brute(points, points, K, self_ids=np.arange(n)))
        alone = PreparedPoints(points, dataclasses.replace(plan, active_rows=0))
        assert (alone.form_dim, alone.clusters) == (columns, None)


def test_one_query_among_contracted_points_starts_no_threads() -> None:
    plan = plan_on_cpu(make_problem(60_000, 1, 960, K, dtype="float32", metric="euclidean", threads=2), prepared=True)
    assert (plan.point_splits, plan.may_contract) == (2, True)
    assert plan.contracted_to(960).point_splits == 2
    assert plan.contracted_to(960, 64).point_splits == 1
    assert plan.contracted_to(96, 32).point_splits == 1
    wide = dataclasses.replace(plan, n=1_000_000)
    assert wide.contracted_to(96).point_splits == 2
    assert dataclasses.replace(plan, may_contract=False).contracted_to(96, 32).point_splits == 2  # as requested


def test_a_narrowed_form_has_the_first_directions() -> None:
    points = few_directions(300)
    form = _native.Form("euclidean", [0.0] * D, 1.0)
    wide, narrow = np.empty((300, 20)), np.empty((300, 8))
    made = form.contracted(points, 1, 20)
    made.screened_rows(points, 1, wide)
    made.narrowed(8).screened_rows(points, 1, narrow)
    np.testing.assert_array_equal(narrow[:, :7], wide[:, :7])
    np.testing.assert_allclose(narrow[:, 7], np.linalg.norm(wide[:, 7:], axis=1), rtol=1e-6)
    for refused, columns in ((made, 1), (made, 21), (form, 2)):
        with pytest.raises(ValueError, match="columns"):
            refused.narrowed(columns)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("maker", [few_directions, lambda n: checks.tight_far_clusters(n, D)], ids=["few", "clusters"])
@pytest.mark.usefixtures("always")
def test_answers_do_not_depend_on_the_choice(metric: str, maker: Any) -> None:
    points = maker(N)
    queries = points[::50] + np.float32(0.01)
    expected = brute(queries, points, K, metric)
    index = tonari.Index(points, metric=metric, method="exact", threads=2)
    assert index._state.only.first.prepared.form_dim == LOOKED
    options: dict[str, Any] = {"metric": metric, "method": "exact", "threads": 2}
    assert_same_neighbors(index.search(queries, K), expected, metric=metric)
    assert_same_neighbors(index.search(queries[:1], N), brute(queries[:1], points, N, metric), metric=metric)
    assert_same_neighbors(tonari.search(queries, points, K, **options), expected, metric=metric)
    graph = tonari.knn_graph(points, 70, **options)
    expected = brute(points, points, 70, metric, self_ids=np.arange(N))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected, metric=metric)


@pytest.mark.usefixtures("always")
def test_queries_unlike_the_points_fall_back_on_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    # To these queries all points are equally far in the kept directions, so the contraction excludes nothing.
    points = np.vstack([few_directions(4_000, noise=0.5), few_directions(4_000, noise=0.5)])
    queries = checks.gaussian(40, D) * 30
    expected = brute(queries, points, K)
    index = tonari.Index(points, method="exact", threads=2)
    prepared = index._state.only.first.prepared
    assert prepared.form_dim == LOOKED
    few = Neighbors(*(part[:1] for part in expected))
    assert_same_neighbors(index.search(queries[:1], K), few)
    assert prepared._whole is None  # exact values of few queries take less time than packing all columns
    monkeypatch.setattr(tuning, "FEW_LEFT", 0)
    assert_same_neighbors(index.search(queries, K), expected)
    assert prepared._whole is not None
    assert prepared._whole.form_dim == D
    assert_same_neighbors(index.search(queries[:1], K), few)
    graph = tonari.knn_graph(np.vstack([points[:4_000], queries]), K, method="exact", threads=2)
    truth = brute(queries, np.vstack([points[:4_000], queries]), K, self_ids=np.arange(4_000, 4_040))
    assert_same_neighbors(Neighbors(graph.distances[4_000:].copy(), graph.indices[4_000:].copy()), truth)


@pytest.mark.usefixtures("always")
def test_points_beyond_range_and_of_zeros_are_piloted() -> None:
    for points in (np.zeros((N, D), np.float32), checks.huge(N, D), checks.zero_rows(N, D), few_directions(3)):
        plan = tonari.plan(len(points), 9, D, 3, method="exact", threads=1)
        found = tonari.search(points[:9], points, 3, plan=dataclasses.replace(plan, m=len(points[:9])))
        assert_same_neighbors(found, brute(points[:9], points, 3))
        assert PreparedPoints(points, plan).form_dim in (D, LOOKED)


@pytest.mark.parametrize(
    "given",
    [{"dtype": "uint8"}, {"memory": "1 GB"}, {"metric": "l1"}, {"d": D - 1}, {"form_dim": D}, {"query_block": 32}],
)
def test_what_a_caller_decides_is_not_piloted(given: dict[str, Any]) -> None:
    shape = {"n": 10_000, "m": 10_000, "d": D, "k": K} | given
    assert not tonari.plan(**shape, method="exact").may_contract  # type: ignore[arg-type]
