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
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend

if HAS_TORCH:
    import torch

    from tonari.core.neighbors import Neighbors
    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.cuda.backend import CudaBackend
    from tonari.nn_descent.cuda.clusters import find_clusters
    from tonari.nn_descent.cuda.form import form_of
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
