"""The update "gnnd", kernel by kernel, compared with the plain round; without a GPU in Triton's interpreter."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tonari
import tonari.graph.building.merging
from tests.helpers import checks, plans
from tests.helpers import gnnd_reference as plain
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gnnd import (
    DEVICE,
    assert_same_lists,
    integers,
    lists_on_device,
    mixture,
    on_device,
    proposals_to_few,
)
from tests.helpers.gnnd_reference import PlainForm, PlainLists
from tests.helpers.gpu_checks import GB
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute, returned, values_at
from tonari.nn_descent.entries import MISSING, NEW
from tonari.nn_descent.plan import DescentPlan

if HAS_TORCH:
    import torch

    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.papers.cuda import gnnd

Array = np.ndarray[Any, Any]
pytestmark = [needs_torch]
MANY = 300 if HAS_CUDA else 20  # number of rows: the interpreter takes some ten milliseconds for each


def some_lists(form: PlainForm, size: int, segment: int, seed: int = 1, most: int | None = None) -> PlainLists:
    """Make lists with gaps, in which some entries are OLD."""
    n, rng = len(form.rows), np.random.default_rng(seed)
    entries = np.full((n, size), MISSING, np.int32)
    for row in range(n):
        ids = rng.choice(n, rng.integers(0, min(n, most or size)), replace=False)
        entries[row, : len(ids)] = ids | np.where(rng.random(len(ids)) < 0.5, NEW, 0)
    return plain.lists_of(form, entries, size, segment)


@pytest.mark.parametrize(("d", "products"), [(5, True), (100, False), (70, False)])
@pytest.mark.parametrize(("size", "segment"), [(64, 32), (16, 4), pytest.param(32, 32, marks=pytest.mark.full)])
def test_entries_of_a_start_become_lists(size: int, segment: int, d: int, products: bool) -> None:
    n = MANY
    form, reference = integers(n, d, products=products)
    rng = np.random.default_rng(3)
    entries = rng.integers(0, n, (n, size - 3)).astype(np.int32)  # with repeated entries, and rows that list themselves
    entries[1::2] -= entries[1::2] % 4  # more entries of one segment than it has room for
    entries |= np.where(rng.random(entries.shape) < 0.5, NEW, 0).astype(np.int32)
    entries[rng.random(entries.shape) < 0.3] = MISSING
    entries[0] = MISSING
    found = gnnd.lists_of(form, on_device(entries), size, segment)
    assert_same_lists(found, plain.lists_of(reference, entries, size, segment))


@pytest.mark.parametrize(("size", "segment", "samples"), [(16, 16, 8), (64, 32, 16), (32, 8, 32)])
def test_samples_are_the_first_of_each_kind(size: int, segment: int, samples: int) -> None:
    lists = some_lists(integers(MANY)[1], size, segment)
    found = lists_on_device(lists)
    new, old = gnnd.sample(found, samples)
    wanted_new, wanted_old, wanted = plain.own_samples(lists, samples)
    np.testing.assert_array_equal(new.cpu().numpy(), wanted_new)
    np.testing.assert_array_equal(old.cpu().numpy(), wanted_old)
    assert_same_lists(found, wanted)


@pytest.mark.parametrize("n", [1, 7, 50])
def test_those_that_sample_a_point_follow_its_own_samples(n: int) -> None:
    samples, rng = 8, np.random.default_rng(2)
    own = np.full((n, samples), MISSING, np.int32)
    for row in range(n):
        others = np.delete(np.arange(-(-n // 2)), row) if row < -(-n // 2) else np.arange(-(-n // 2))
        wanted = rng.choice(others, min(len(others), rng.integers(1, 9)), replace=False)
        own[row, : len(wanted)] = wanted
    reverse = gnnd.Spinlocks(n, 32, torch.device(DEVICE)).reverse(on_device(own), 2 * samples)
    listing = reverse.cpu().numpy()
    for point in range(n):
        behind = set(np.flatnonzero((own == point).any(axis=1)).tolist())
        found = listing[point][listing[point] >= 0].tolist()
        assert len(found) == len(set(found)) == min(len(behind), 2 * samples)
        assert set(found) <= behind
    joined = gnnd.join(on_device(own), reverse).cpu().numpy()
    np.testing.assert_array_equal(joined, plain.joined(own, listing))


def some_samples(n: int, tile: int) -> tuple[Array, Array]:
    """Make NEW and OLD samples with gaps; one row has no NEW samples, and one row has no samples."""
    rng = np.random.default_rng(4)
    new, old = (np.full((n, tile), MISSING, np.int32) for _ in range(2))
    for row in range(n):
        for part in (new, old):
            drawn = rng.choice(n, rng.integers(0, min(n, tile) + 1), replace=False)
            part[row, rng.permutation(tile)[: len(drawn)]] = drawn
    new[n // 2] = MISSING
    new[-1] = old[-1] = MISSING
    return new, old


@pytest.mark.parametrize("boundary", [None, MANY // 3])
@pytest.mark.parametrize(("d", "products", "segment"), [(5, True, 32), (128, False, 64), (40, False, 32)])
def test_each_sample_is_proposed_its_nearest_of_each_kind(
    d: int, products: bool, segment: int, boundary: int | None
) -> None:
    n, tile, size = MANY, 16, 64
    form, reference = integers(n, d, products=products)
    new, old = some_samples(n, tile)
    # Lists that reject some proposals; a proposal as far as the last entry is accepted.
    limits = np.full(n, np.inf, np.float32)
    for _, _, target, _, value in plain.proposals(reference, new, old, boundary):
        if target % 3 and value < limits[target]:
            limits[target] = value
    distances = np.repeat(limits[:, None], size, axis=1)
    lists = lists_on_device(PlainLists(np.full((n, size), MISSING, np.int32), distances))
    keys, ids = gnnd.cross(form, lists, on_device(new), on_device(old), range(3, n), segment, boundary)
    keys, ids = keys.cpu().numpy(), ids.cpu().numpy()
    found = {}
    for row, kind, slot in np.argwhere(keys >= 0).tolist():
        key = int(keys[row, kind, slot])
        value = float(np.int32(key & 0xFFFFFFFF).view(np.float32))
        found[row + 3, kind, key >> 32] = int(ids[row, kind, slot]), value
    every = {
        (row, kind, target): (id, value)
        for row, kind, target, id, value in plain.proposals(reference, new, old, boundary)
        if row >= 3
    }
    assert found == {key: pair for key, pair in every.items() if pair[1] <= limits[key[2]]}
    assert 0 < len(found) < len(every)


@pytest.mark.parametrize("values", [4, 1 << 20])  # with ties everywhere, or with hardly any
@pytest.mark.parametrize("segment", [32, 64])
def test_lists_keep_the_nearest_of_what_is_proposed(segment: int, values: int) -> None:
    n, size, batch = 300, 64, 64 if HAS_CUDA else 16
    programs = 3000 if HAS_CUDA else 6
    keys, ids, lists, wanted = proposals_to_few(n, size, segment, values, (programs, 3, batch))
    update = gnnd.Spinlocks(n, size, torch.device(DEVICE), segment)
    update.insert(lists, keys, ids)
    assert_same_lists(lists, wanted)
    assert not update._locks.any()


def plain_nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    assert memory > 0
    found = brute(queries.numpy(), points.numpy(), k, metric)
    return Neighbors(torch.from_numpy(found.distances), torch.from_numpy(found.indices))


@pytest.fixture
def _plain_stand_in_for_the_exact_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has tests of its own, and takes the interpreter minutes."""
    if not HAS_CUDA:
        monkeypatch.setattr(steps, "nearest", plain_nearest)


graphs = pytest.mark.usefixtures("cpu_for_cuda", "_plain_stand_in_for_the_exact_engine")


def plan_for(points: Array, k: int, **given: Any) -> DescentPlan:
    n, d = points.shape
    small = {"update": "gnnd", "list_size": 16, "samples": 8}
    usual: dict[str, Any] = {"dtype": points.dtype, "devices": (DEVICE,), "free_bytes": 8 * GB}
    return plans.descent(n, d, k, **usual | small | given)


def graph_of(points: Array, k: int, **given: Any) -> tonari.KNNGraph:
    """Check that every row of a graph is valid, whatever its recall."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        metric = given.get("metric", "euclidean")
        graph = tonari.knn_graph(on_device(points), k, metric=metric, plan=plan_for(points, k, **given))
    found = Neighbors(graph.distances.cpu().numpy(), graph.indices.cpu().numpy())
    n = len(points)
    dtype = np.float64 if points.dtype == np.float64 else np.float32
    checks.assert_valid_neighbors(found, m=n, n=n, k=k, metric=metric, dtype=dtype, self_ids=np.arange(n))
    values = returned(values_at(points, points, found.indices.astype(np.int64), metric), found.distances.dtype)
    np.testing.assert_array_equal(found.distances, values)
    return tonari.KNNGraph(found.indices, found.distances, metric, graph.method, report=graph.report, seed=graph.seed)


def recall_of(graph: tonari.KNNGraph, points: Array) -> float:
    truth = brute(points, points, graph.k, graph.metric, self_ids=np.arange(len(points))).indices
    return float((graph.indices[:, :, None] == truth[:, None, :]).any(axis=1).mean())


@graphs
@pytest.mark.parametrize(
    ("metric", "dtype", "start"),
    [
        ("euclidean", "float32", "random"),
        pytest.param("cosine", "float64", "random", marks=pytest.mark.full),
        pytest.param("inner_product", "float16", "clusters", marks=pytest.mark.full),
        pytest.param("correlation", "float32", "random", marks=pytest.mark.full),
        pytest.param("sqeuclidean", "uint8", "clusters", marks=pytest.mark.full),
    ],
)
def test_a_graph_of_clustered_points(metric: str, dtype: str, start: str) -> None:
    points = mixture(MANY)
    points = (np.abs(8 * points) if dtype == "uint8" else points).astype(dtype)
    graph = graph_of(points, 3, metric=metric, start=start, rounds=12 if HAS_CUDA else 3)
    report = graph.report
    assert report is not None
    assert (graph.method, report.update, report.start) == ("nn-descent", "gnnd", start)
    assert recall_of(graph, points) > 0.95
    phis = [made.phi for made in report.rounds]
    assert phis == sorted(phis, reverse=metric != "inner_product")


@graphs
@pytest.mark.parametrize(
    ("points", "k", "given"),
    [
        (checks.gaussian(2, 3), 1, {"list_size": 8}),
        (checks.gaussian(7, 3), 6, {"list_size": 64, "samples": 32}),  # fewer points than samples
        (checks.gaussian(9, 3), 8, {"list_size": 8}),  # k = list_size
        (np.ones((9, 3), np.float32), 5, {}),
        pytest.param(np.repeat(checks.gaussian(4, 3), 4, axis=0), 4, {}, marks=pytest.mark.full),
        pytest.param(mixture(18), 1, {}, marks=pytest.mark.full),
        pytest.param(checks.gaussian(16, 2) * 1e-3 + 1e6, 3, {}, marks=pytest.mark.full),
        pytest.param(checks.gaussian(32, 6)[::2, ::2], 3, {}, marks=pytest.mark.full),
    ],
    ids=["two", "few", "whole lists", "equal", "copies", "k=1", "far apart", "strided"],
)
def test_graphs_of_hostile_points(points: Array, k: int, given: Any) -> None:
    graph = graph_of(points, k, rounds=2, **given)
    n = len(points)
    if k == n - 1:  # rows that have not been compared with all others are searched
        np.testing.assert_array_equal(graph.indices, brute(points, points, k, self_ids=np.arange(n)).indices)


@graphs
def test_another_graph_is_a_start() -> None:
    points = mixture(MANY)
    n, k = len(points), 3
    exact = brute(points, points, k, self_ids=np.arange(n))
    begun = tonari.KNNGraph(*(on_device(part) for part in (exact.indices, exact.distances)), "euclidean", "exact")
    given = {"method": "nn-descent", "update": "gnnd", "recall": 0.9}
    graph = tonari.knn_graph(on_device(points), k, start=begun, **given)
    assert graph.report is not None
    assert (graph.report.start, graph.report.update, graph.report.rounds[0].changed) == ("graph", "gnnd", 0)
    np.testing.assert_array_equal(graph.indices.cpu().numpy(), exact.indices)


@graphs
@pytest.mark.usefixtures("_never_by_brute_force")
def test_halves_are_merged() -> None:
    points, k = mixture(MANY), 3
    cut = len(points) // 2
    sides = points[:cut], points[cut:]
    halves = [brute(side, side, k, self_ids=np.arange(len(side))) for side in sides]
    graphs = [
        tonari.KNNGraph(on_device(half.indices), on_device(half.distances), "euclidean", "exact") for half in halves
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = tonari.merge(*graphs, *map(on_device, sides), update="gnnd", recall=0.9)
    assert made.report is not None
    assert (made.report.update, made.report.start) == ("gnnd", "graph")
    graph = tonari.KNNGraph(made.indices.cpu().numpy(), made.distances.cpu().numpy(), "euclidean", made.method)
    assert recall_of(graph, points) > 0.9


@pytest.fixture
def _never_by_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.graph.tuning.MERGE_SHARE", 0.0)


@on_gpu
@pytest.mark.parametrize("update", ["pull", "gnnd"])
def test_updates_reach_the_recall_from_a_random_start(update: str) -> None:
    points = on_device(np.random.default_rng(0).random((20_000, 10), np.float32))
    truth = tonari.knn_graph(points, 10, method="exact").indices
    graph = tonari.knn_graph(points, 10, method="nn-descent", update=update, start="random", recall=0.98)
    assert graph.report is not None
    assert (graph.report.update, graph.report.reached) == (update, True)
    assert (graph.indices[:, :, None] == truth[:, None, :]).any(1).float().mean() > 0.98


@on_gpu
@pytest.mark.parametrize(("d", "dtype", "start"), [(128, "float32", "random"), (40, "float64", "clusters")])
def test_no_more_memory_is_held_than_planned(d: int, dtype: str, start: str) -> None:
    n, k = 100_000, 10
    points = on_device(np.random.default_rng(0).random((n, d)).astype(dtype))
    given: dict[str, Any] = {"devices": (DEVICE,), "free_bytes": 8 * GB, "host_points": False, "rounds": 3}
    plan = plans.descent(n, d, k, dtype=dtype, update="gnnd", start=start, **given)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # recall on uniform points
        graph = tonari.knn_graph(points, k, plan=plan)
    assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
    assert graph.n == n
