"""NN-Descent on CUDA, step by step, against the plain one; without a card in Triton's interpreter."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB, tensor_of
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.nn_descent.entries import ID, MISSING, NEW, random_entries
from tonari.nn_descent.memory import list_bytes, truth_bytes
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.planner import MOST_NEAR_ON_CUDA
from tonari.nn_descent.reference import ReferenceBackend

if HAS_TORCH:
    import torch

    from tonari.core.neighbors import Neighbors
    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.cuda import reverse
    from tonari.nn_descent.cuda.backend import CudaBackend
    from tonari.nn_descent.cuda.clusters import _bounds, find_clusters
    from tonari.nn_descent.cuda.exact_neighbors import plan_nearest
    from tonari.nn_descent.cuda.form import Form, form_of, terms_of
    from tonari.nn_descent.cuda.near_clusters import near_centres
    from tonari.nn_descent.cuda.reverse import reverse_of
    from tonari.nn_descent.cuda.scan import scan, scan_block

Array = np.ndarray[Any, Any]
pytestmark = [needs_torch, *([pytest.mark.gpu] if HAS_CUDA else [])]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
MANY = 400 if HAS_CUDA else 24  # points: the interpreter takes a second for each few dozen


def plain_nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    assert memory > 0
    found = brute(queries.numpy(), points.numpy(), k, metric)
    return Neighbors(torch.from_numpy(found.distances), torch.from_numpy(found.indices))


@pytest.fixture(autouse=True)
def _plain_stand_in_for_the_exact_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has tests of its own, and takes the interpreter minutes."""
    if not HAS_CUDA:
        monkeypatch.setattr(steps, "nearest", plain_nearest)


def plan_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, metric=metric, devices=(DEVICE,), free_bytes=8 * GB, **choices)


def steps_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> tuple[CudaBackend, ReferenceBackend]:
    plan = plan_for(points, k, metric, **choices)
    return CudaBackend(tensor_of(points).to(DEVICE), plan), ReferenceBackend(points, plan)


def check_rounds(
    points: Array, k: int, metric: str = "euclidean", *, rounds: int = 2, boundary: int | None = None, **choices: Any
) -> None:
    """Rounds from a random start, bit for bit."""
    on_card, plain = steps_for(points, k, metric, **choices)
    entries, expected = on_card.start("random"), plain.start("random")
    for _ in range(rounds):
        made, wanted = on_card.round(entries, boundary), plain.round(expected, boundary)
        entries, expected = made.entries, wanted.entries
        np.testing.assert_array_equal(entries.cpu().numpy(), expected)
        np.testing.assert_array_equal(made.found.indices.cpu().numpy(), wanted.found.indices)
        assert made.found.distances.cpu().numpy().tobytes() == wanted.found.distances.tobytes()
        assert made.changed == wanted.changed
        assert made.phi == pytest.approx(wanted.phi, rel=1e-12)


def values_for(metric: str, n: int, d: int, seed: int = 0) -> Array:
    return checks.accepted(checks.gaussian(n, d, seed), metric)


ROUNDED = sorted(METRICS) if HAS_CUDA else ["correlation", "inner_product", *checks.ELEMENTWISE]


@pytest.mark.parametrize("metric", ROUNDED)
def test_rounds_of_every_metric(metric: str) -> None:
    check_rounds(
        values_for(metric, MANY, 9), 5, metric, list_size=8, n_hubs=4, reverse=3, neighbors_per_hub=6, width=16
    )


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "uint8", "int8"] if HAS_CUDA else ["bfloat16", "float64", "uint8"]
)
def test_rounds_of_every_dtype(dtype: str) -> None:
    rows = checks.gaussian(MANY, 6) * (30 if "int" in dtype else 1)
    check_rounds(
        np.abs(rows).astype(dtype) if dtype == "uint8" else rows.astype(dtype),
        4,
        list_size=8,
        n_hubs=4,
        reverse=3,
        neighbors_per_hub=8,
        width=16,
    )


@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 6), pytest.param(33, 10, marks=pytest.mark.full)])
def test_rounds_of_few_points(n: int, k: int) -> None:
    check_rounds(checks.gaussian(n, 3), k)


@pytest.mark.parametrize("choices", [
    {"n_hubs": 3, "reverse": 2, "neighbors_per_hub": 5, "width": 7},
    {"n_hubs": 1, "reverse": 0, "neighbors_per_hub": 1, "width": 1},
    *([{"list_size": 20, "n_hubs": 20, "neighbors_per_hub": 20}] if HAS_CUDA else []),
    pytest.param({"list_size": 5, "n_hubs": 5, "reverse": 30}, marks=pytest.mark.full),
])  # fmt: skip
def test_rounds_of_other_shapes(choices: dict[str, int]) -> None:
    check_rounds(checks.gaussian(MANY, 4), 5, **choices)


@pytest.mark.parametrize("points", [
    pytest.param(np.zeros((MANY, 3), np.float32), marks=pytest.mark.full),
    np.repeat(checks.gaussian(4, 3), MANY // 4, axis=0),
    np.concatenate([checks.gaussian(12, 2), checks.gaussian(12, 2, 1) * 1e-3 + 1e6]).astype(np.float32),
    pytest.param(np.arange(MANY, dtype=np.float32)[:, None], marks=pytest.mark.full),
], ids=["all equal", "copies", "far apart", "a line"])  # fmt: skip
def test_rounds_of_degenerate_points(points: Array) -> None:
    check_rounds(points, 7, list_size=10, n_hubs=5, width=16)


@pytest.mark.full
def test_a_light_round() -> None:
    on_card, plain = steps_for(checks.gaussian(MANY, 4), 5, list_size=12, n_hubs=7, reverse=6, neighbors_per_hub=9)
    made = on_card.round(on_card.start("random"), light=True)
    wanted = plain.round(plain.start("random"), light=True)
    np.testing.assert_array_equal(made.entries.cpu().numpy(), wanted.entries)
    assert made.changed == wanted.changed


def test_rounds_across_a_boundary() -> None:
    cut = MANY * 5 // 8
    points = checks.gaussian(MANY, 4)
    check_rounds(points, 5, boundary=cut, list_size=10, n_hubs=5, width=16)
    on_card, _ = steps_for(points, 5, list_size=10)
    nobody = torch.full((MANY, on_card.plan.list_size), MISSING, dtype=torch.int32, device=DEVICE)
    made = on_card.round(on_card.beside(on_card.seeds(cut, 6), nobody), cut)
    ids = made.found.indices.cpu().numpy()
    sides = (ids < cut) == (np.arange(MANY) < cut)[:, None]
    assert (ids >= 0).any()
    assert not sides[ids >= 0].any()


def test_blocks_and_order_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(MANY, 5)
    on_card, _ = steps_for(points, 6, list_size=8)
    few, _ = steps_for(points, 6, list_size=8, block=17)
    entries = on_card.start("clusters")
    whole = on_card.round(entries)
    monkeypatch.setattr(reverse, "columns_sorted", lambda n, hubs: 3)
    few._order = torch.from_numpy(np.random.default_rng(0).permutation(MANY)).to(DEVICE)
    parts = few.round(entries)
    assert torch.equal(whole.entries, parts.entries)
    assert torch.equal(whole.found.distances, parts.found.distances)
    assert (whole.changed, whole.phi) == (parts.changed, parts.phi)


@pytest.mark.parametrize("at_once", [1, 2])  # columns in turn, or together
def test_reverse_neighbours_come_by_rank_and_number(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverse, "columns_sorted", lambda n, hubs: min(hubs, at_once))
    entries = np.array([[1 | NEW, 2], [2, MISSING], [1, 0 | NEW], [1 | NEW, 2 | NEW]], np.int32)
    found = reverse_of(torch.from_numpy(entries).to(DEVICE), 2, 3).cpu().numpy()
    expected = [[2 | NEW, -1, -1], [0 | NEW, 2, 3 | NEW], [1, 0, 3 | NEW], [-1, -1, -1]]
    assert found.tolist() == expected
    # Nobody lists the last point, into whose row a full one before it would run over.
    short = reverse_of(torch.from_numpy(entries).to(DEVICE), 2, 2).cpu().numpy()
    assert short.tolist() == [row[:2] for row in expected]
    assert reverse_of(torch.from_numpy(entries).to(DEVICE), 1, 1).cpu().numpy().tolist() == [[-1], [0 | NEW], [1], [-1]]


def check_lists(entries: Array, n: int) -> Array:
    """No row with itself, twice the same or an id that is not there; the ids."""
    present = entries >= 0
    ids = np.where(present, entries & ID, -1)
    assert (entries[present] & NEW != 0).all()
    assert (ids < n).all()
    assert not (ids == np.arange(n)[:, None]).any()
    for row in ids:
        listed = row[row >= 0]
        assert len(set(listed.tolist())) == len(listed)
    return ids


def recall_of(ids: Array, points: Array, k: int, metric: str) -> float:
    truth = brute(points, points, k, metric, self_ids=np.arange(len(points))).indices
    return float((ids[:, :, None] == truth[:, None, :]).any(axis=1).mean())


@pytest.mark.parametrize(
    "metric", ["euclidean", "cosine", "correlation", "inner_product", "l1", "chi2"] if HAS_CUDA else ["inner_product"]
)
def test_the_start_finds_most_neighbours(metric: str) -> None:
    n, groups = (700, 12) if HAS_CUDA else (90, 3)
    rng = np.random.default_rng(1)
    points = rng.normal(size=(groups, 10))[rng.integers(groups, size=n)] + 0.3 * rng.normal(size=(n, 10))
    points = checks.accepted(points, metric).astype(np.float32)
    on_card, _ = steps_for(
        points, 5, metric, n_clusters=groups, n_probe=groups // 3, train_per_cluster=8, kmeans_iters=1
    )
    ids = check_lists(on_card.start("clusters").cpu().numpy(), n)
    assert recall_of(ids, points, 5, metric) > (0.5 if metric == "inner_product" else 0.85)


@pytest.mark.full
@pytest.mark.parametrize(
    ("n", "clusters"), [(2, 1), (65, 1), (65, 65), *([(700, 1), (700, 700), (3000, 2)] if HAS_CUDA else [])]
)
def test_the_start_of_any_number_of_clusters(n: int, clusters: int) -> None:
    points = checks.gaussian(n, 4)
    form = form_of(torch.from_numpy(points).to(DEVICE), "euclidean")
    found = find_clusters(form, plan_for(points, 1, n_clusters=clusters, train_per_cluster=8, kmeans_iters=1))
    assert sorted(found.order.cpu().tolist()) == list(range(n))
    bounds = found.bounds.cpu().tolist()
    assert (bounds[0], bounds[-1]) == (0, n)
    ids = check_lists(scan(form, found, 8, 500).cpu().numpy(), n)
    if clusters == 1 and n <= 700:  # all points meet
        k = min(n - 1, 8)
        assert recall_of(ids[:, :k], points, k, "euclidean") > 0.95


def test_the_start_of_equal_points_is_bounded_and_full() -> None:
    n = 3000 if HAS_CUDA else 120
    on_card, _ = steps_for(np.ones((n, 3), np.float32), 5, n_clusters=n // 60, kmeans_iters=1, train_per_cluster=4)
    ids = check_lists(on_card.start("clusters").cpu().numpy(), n)
    assert (ids >= 0).sum(axis=1).min() >= 5


def test_of_a_large_cluster_those_around_a_tile_are_compared() -> None:
    n, tile = 900, 64
    points = np.arange(n, dtype=np.float32)[:, None]  # one cluster, in the order of its values
    form = form_of(torch.from_numpy(points).to(DEVICE), "euclidean")
    found = find_clusters(form, plan_for(points, 1, n_clusters=1, train_per_cluster=8, kmeans_iters=1))
    assert found.order.tolist() == list(range(n))
    ids = scan_block(form, found.order, found.bounds, found.near[found.order], 0, 16, 256)[1].cpu().numpy()
    assert ids.shape == (n, 16)
    first = np.arange(n) // tile * tile  # the tile's first row: so many around it, or at an end, are met
    begin = np.clip(first - 128, 0, n - 256)
    for row in range(n):
        near = [other for other in (row - 1, row + 1) if begin[row] <= other < begin[row] + 256]
        assert set(near) <= set(ids[row].tolist())
        listed = ids[row][ids[row] >= 0]
        assert ((listed >= begin[row]) & (listed < begin[row] + 256)).all()


@pytest.mark.parametrize("side", [1, 15, 59])
def test_seeds_are_the_nearest_across(side: int) -> None:
    n, boundary = (400, 400 * side // 60) if HAS_CUDA else (60, side)
    points = checks.gaussian(n, 5)
    on_card, _ = steps_for(points, 5, n_clusters=3, n_probe=3, train_per_cluster=8, kmeans_iters=1)  # all points meet
    ids = check_lists(on_card.seeds(boundary, 8).cpu().numpy(), n)
    below = np.arange(n) < boundary
    assert not ((ids < boundary) == below[:, None])[ids >= 0].any()
    for here, there in ((below, ~below), (~below, below)):
        k = min(8, int(there.sum()))
        others, listed = np.flatnonzero(there), ids[here]
        assert (listed[:, :k] >= 0).all()
        truth = others[brute(points[here], points[there], k).indices]
        assert (listed[:, :, None] == truth[:, None, :]).any(axis=1).mean() > 0.95


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize(("n", "centres", "d"), [(3, 5, 3), (70, 300, 20), *([(500, 700, 200)] if HAS_CUDA else [])])
def test_the_nearest_centres(n: int, centres: int, d: int, count: int) -> None:
    points, others = checks.gaussian(n, d), checks.gaussian(centres, d, 1)
    form = form_of(torch.from_numpy(np.concatenate([points, others])).to(DEVICE), "sqeuclidean")
    rows, met = (Form(part, *terms_of(part, products=False)) for part in (form.rows[:n], form.rows[n:]))
    near = near_centres(rows, met, count).cpu().numpy()
    assert near.dtype == np.int16
    plain = np.square(rows.rows.cpu().numpy()[:, None].astype(float) - met.rows.cpu().numpy()[None]).sum(2)
    assert all(len(set(row)) == count for row in near.tolist())
    assert (near >= 0).all()
    assert (near < centres).all()
    # Two of those in a column of tiles stay, and numbers of tiles take the last bits of a score.
    listed = np.take_along_axis(plain, near.astype(int), 1)
    assert (np.diff(listed, axis=1) >= -1e-5 * plain.max()).all()
    np.testing.assert_allclose(listed[:, 0], plain.min(axis=1), rtol=1e-5)
    true = np.sort(plain, axis=1)[:, :count]
    assert (np.abs(listed - true) <= 1e-5 * true).mean() > 0.95
    some = np.random.default_rng(0).permutation(n)[: n // 2]
    asked = near_centres(rows, met, count, torch.from_numpy(some).to(DEVICE)).cpu().numpy()
    np.testing.assert_array_equal(asked, near[some])


@pytest.mark.full
def test_the_two_nearest_may_share_a_column() -> None:
    """Of centres, and of the members of a cluster, that come a whole tile apart."""
    points = 100 * checks.gaussian(200, 3)
    points[[5, 5 + 64, 5 + 128]] = points[0] + np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)
    form = form_of(torch.from_numpy(points).to(DEVICE), "euclidean")
    near = near_centres(form, form, 3).cpu().numpy()
    assert near[0].tolist() == [0, 5, 69]
    assert near[5 + 128].tolist() == [133, 0, 5]  # 5 and 133 are 128 apart
    found = find_clusters(form, plan_for(points, 1, n_clusters=1, train_per_cluster=8, kmeans_iters=1))
    assert found.order.tolist() == list(range(200))
    assert {5, 69} <= set((scan(form, found, 4, 200)[0].cpu().numpy() & ID).tolist())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_form_is_centred_and_scaled(dtype: type) -> None:
    points = np.round(20 * checks.gaussian(50, 7)).astype(dtype)
    form, moved = (form_of(torch.from_numpy(x.astype(dtype)).to(DEVICE), "l1") for x in (points, points + 4096))
    assert torch.equal(form.rows, moved.rows)
    assert float(form.rows.abs().amax()) == 256
    expected = points.astype(float) - points.mean(0, dtype=float)
    rows = form.rows.cpu().numpy().astype(float)
    np.testing.assert_allclose(rows[:, :7], 256 * expected / np.abs(expected).max(), rtol=2e-3, atol=1e-4)
    assert not rows[:, 7:].any()
    np.testing.assert_allclose(form.member_terms.cpu().numpy(), np.square(rows).sum(1), rtol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "correlation"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 33), (70, 31), (130, 100)])
def test_the_form_of_rows(n: int, d: int, dtype: str, metric: str) -> None:
    points = np.round(20 * checks.gaussian(n, d + 1)).clip(0, 100).astype(dtype)
    points[0] = 0
    rows = torch.from_numpy(points).to(DEVICE)[:, 1:]  # rows that are not one after the other
    form = form_of(rows, metric)
    expected = points[:, 1:].astype(float)
    if metric in ("cosine", "correlation"):
        if metric == "correlation":
            expected -= expected.mean(1, keepdims=True)
        norms = np.linalg.norm(expected, axis=1, keepdims=True)
        expected /= np.where(norms > 0, norms, 1)
    else:
        expected -= expected.mean(0) * (metric == "euclidean")
        expected *= 256 / max(np.abs(expected).max(), 1e-30)
    found = form.rows.cpu().numpy()
    assert found.dtype == np.float16
    assert found.shape == (n, -(-d // 32) * 32)
    np.testing.assert_allclose(found[:, :d], expected, rtol=1e-3, atol=2e-7)
    assert not found[:, d:].any()
    squares = np.square(found.astype(float)).sum(1)
    if metric == "inner_product":
        norms = np.sqrt(squares)
        np.testing.assert_allclose(form.query_terms.cpu().numpy(), 2 * norms * norms.max(), rtol=1e-6)
        assert not form.member_terms.any()
    else:
        for terms in (form.query_terms, form.member_terms):
            np.testing.assert_allclose(terms.cpu().numpy(), squares, rtol=1e-6)


@pytest.mark.parametrize(("clusters", "dtype"), [(32_767, np.int16), (32_768, np.int32)])
def test_numbers_of_many_clusters(clusters: int, dtype: type) -> None:
    rows = torch.arange(clusters, dtype=torch.float32, device=DEVICE)[:, None] / 1024 % 8
    form = form_of(torch.cat([rows, rows]), "sqeuclidean")
    centres = Form(form.rows[:clusters], *terms_of(form.rows[:clusters], products=False))
    asked = torch.tensor([5, clusters - 1], device=DEVICE)
    near = near_centres(form, centres, 1, asked).cpu().numpy()
    assert near.dtype == dtype
    np.testing.assert_array_equal(form.rows[near[:, 0]].cpu().numpy(), form.rows[asked].cpu().numpy())
    ends = _bounds(torch.tensor([0, clusters - 1], device=DEVICE).to(getattr(torch, near.dtype.name)), clusters)
    assert ends[[0, 1, clusters - 1, clusters]].tolist() == [0, 1, 1, 2]


def test_centres_by_inner_product_and_as_many_as_there_are() -> None:
    rows = torch.from_numpy(checks.gaussian(40, 6)).to(DEVICE)
    form = form_of(rows, "inner_product")
    centres = Form(form.rows[:7], *terms_of(form.rows[:7], products=True))
    near = near_centres(form, centres, 7).cpu().numpy()
    products = (form.rows.float() @ form.rows[:7].float().T).cpu().numpy()
    np.testing.assert_array_equal(near, np.argsort(-products, axis=1, kind="stable"))


def test_more_centres_than_a_row_can_be_told() -> None:
    with pytest.raises(ValueError, match="n_probe=257: at most 256, since CUDA keeps no more clusters per point"):
        plan_for(checks.gaussian(300, 2), 1, n_clusters=300, n_probe=257)
    assert plan_for(checks.gaussian(300, 2), 1, n_clusters=300, n_probe=256).n_probe == MOST_NEAR_ON_CUDA


def nearest_plan(n: int, m: int, d: int, k: int, metric: str, memory: int) -> Any:
    """The plan of the sample's true neighbours, on a card with 70 GB to spare."""
    given: dict[str, Any] = {"devices": ("cuda:0",), "host_points": False, "host_queries": False, "memory": memory}
    return plan_nearest(plans.problem(n, m, d, k, metric=metric, **given), free_bytes=70 * GB)


def assert_room(plan: DescentPlan) -> None:
    """The exact engine finds the neighbours of the sample, in the memory that the plan counts."""
    n, d, k = plan.n, plan.d, min(plan.k + 1, plan.n)
    truth = nearest_plan(n, plan.sample, d, k, plan.metric, truth_bytes(plan))
    assert truth.total_bytes <= truth_bytes(plan) <= plan.packed_bytes + plan.working_bytes
    assert -(-n // truth.point_slab) * -(-truth.m // truth.query_batch) <= 8
    # And for all of it or a few rows that miss a neighbour, beside the lists.
    left = plan.packed_bytes + plan.working_bytes - list_bytes(plan)
    for rows in (plan.sample, 3):
        assert nearest_plan(n, rows, d, k, plan.metric, left).total_bytes <= left


@pytest.mark.parametrize("start", ["clusters", "random", "graph"])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chi2"])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        *((2, 1, 1), (2, 3, 1), (50, 30_000, 10), (3000, 960, 500), (40_000, 16, 10)),
        *((10**6, 4096, 1), (10**6, 16, 100), (10**7, 96, 32)),
    ],
)
def test_the_exact_engine_finds_room(n: int, d: int, k: int, metric: str, start: str) -> None:
    given: dict[str, Any] = {"dtype": "float32", "metric": metric, "devices": ("cuda:0",), "free_bytes": 70 * GB}
    assert_room(plans.descent(n, d, k, start=start, host_points=False, **given))


@pytest.mark.parametrize("start", ["clusters", "random"])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(2, 1, 1), (2, 3, 1), (50, 30_000, 10), (3000, 960, 100), (40_000, 16, 10), (10**6, 4096, 1), (10**7, 96, 32)],
)
def test_the_exact_engine_finds_room_beside_spinlocks(n: int, d: int, k: int, start: str) -> None:
    given: dict[str, Any] = {"dtype": "float32", "devices": ("cuda:0",), "free_bytes": 200 * GB, "update": "gnnd"}
    assert_room(plans.descent(n, d, k, start=start, host_points=False, **given))
    small = {"list_size": 16, "samples": 8} if k < 16 else {}
    assert_room(plans.descent(n, d, k, start=start, host_points=False, **given, **small))


def test_slabs_leave_room_for_more_queries() -> None:
    wide, narrow = (nearest_plan(10**6, 4000, 960, 11, "euclidean", room) for room in (20 * GB, 2 * GB))
    assert (wide.route, wide.point_slab, wide.query_batch) == ("resident", 10**6, 4096)
    assert (narrow.route, narrow.query_batch) == ("streamed", 4096)
    assert narrow.point_slab <= 500_096


@pytest.mark.skipif(not HAS_CUDA, reason="only a card counts its memory")
@pytest.mark.parametrize(
    ("n", "d", "k", "metric"),
    [(100_000, 64, 10, "euclidean"), (50_000, 300, 32, "inner_product"), (60_000, 20, 16, "chi2"), (500, 7, 5, "l1")],
)
def test_no_more_memory_is_held_than_planned(n: int, d: int, k: int, metric: str) -> None:
    points = torch.rand((n, d), generator=torch.Generator(DEVICE).manual_seed(0), device=DEVICE)
    plan = plans.descent(
        n, d, k, dtype="float32", metric=metric, devices=(DEVICE,), free_bytes=8 * GB, host_points=False, rounds=3
    )
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the recall of uniform points
        graph = tonari.knn_graph(points, k, metric=metric, method="nn-descent", plan=plan)
    assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
    assert graph.n == n


def test_exact_neighbours_of_some_rows() -> None:
    points = np.repeat(checks.gaussian(40, 3), 2, axis=0)
    on_card, plain = steps_for(points, 6)
    rows = np.array([0, 5, 79])
    found, wanted = on_card.of_rows(on_card.exact(rows, 6), np.arange(3)), plain.exact(rows, 6)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.distances, wanted.distances)


def test_lists_side_by_side() -> None:
    on_card, plain = steps_for(checks.gaussian(30, 2), 3, list_size=8)
    ids = random_entries(30, 5, 1) & np.int32(ID)
    first, wanted = on_card.entries_of(ids, new=False), plain.entries_of(ids, new=False)
    np.testing.assert_array_equal(first.cpu().numpy(), wanted)
    for columns in (2, 5):
        both = on_card.beside(first, on_card.entries_of(ids[:, :columns], new=True))
        np.testing.assert_array_equal(
            both.cpu().numpy(), plain.beside(wanted, plain.entries_of(ids[:, :columns], new=True))
        )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    points = checks.gaussian(50, 3)
    points[31, 1] = value
    with pytest.raises(ValueError, match="row 31 has a value that is not finite"):
        steps_for(points, 3)


def test_negative_values_are_refused_for_chi2() -> None:
    with pytest.raises(ValueError, match="row 0 has a negative value"):
        steps_for(-np.ones((5, 2), np.float32), 3, "chi2")
