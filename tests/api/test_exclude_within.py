"""`exclude_within=`: in each function that has it, the bits of plain NumPy among the remaining points."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import run
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tests.helpers.filter_checks import Mask, assert_equal, cut, nearest_allowed
from tests.helpers.npz import arrays_of
from tests.helpers.radius_checks import all_values
from tonari.filters import tuning

if HAS_TORCH:
    import torch

N, K = 130, 6
WALK = np.cumsum(np.random.default_rng(3).standard_normal((N, 3)), axis=0).astype(np.float32)
SERIES = {
    "walk": WALK,
    "equal": np.ones((N, 2), np.float32),
    "duplicates": checks.duplicates(N, 2),
    "offset": checks.offset_float64(N, 4),
}
WINDOWS = (0, 1, 7, N // 2, N - 1, 10**9)


def outside(window: int, n: int = N) -> Mask:
    apart: Mask = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > window
    return apart


@pytest.mark.parametrize("few", [tuning.FEW_POINTS, 0])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("series", SERIES)
def test_the_nearest_outside_the_window(series: str, window: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FEW_POINTS", few)
    points = SERIES[series]
    for metric in ("euclidean", "inner_product"):
        for k in (1, K, N - 1):
            truth = nearest_allowed(points, points, k, outside(window), metric)
            assert_equal(tonari.search(points, points, k, metric=metric, exclude_within=window), truth)
            graph = tonari.knn_graph(points, k, metric=metric, exclude_within=window)
            assert_equal(tonari.Neighbors(graph.distances, graph.indices), truth)
            assert graph.method == "exact"


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("series", SERIES)
def test_all_within_a_radius_and_outside_the_window(series: str, window: int, method: str) -> None:
    points, given = SERIES[series], {"exclude_within": window, "method": method}
    radius = float(np.median(all_values(points, points, "euclidean").distances))
    everything = tonari.radius_search(points, points, radius)
    truth = cut(everything, outside(window))
    assert_equal(tonari.radius_search(points, points, radius, **given), truth)
    assert_equal(tonari.radius_graph(points, radius, **given), truth)
    assert tonari.radius_count(points, points, radius, **given).tolist() == np.diff(truth.indptr).tolist()
    few = tonari.radius_search(points, points, radius, max_neighbors=3, **given)
    assert np.diff(few.indptr).tolist() == np.minimum(3, np.diff(truth.indptr)).tolist()
    rows = np.repeat(np.arange(N), np.diff(truth.indptr))
    later = rows < truth.indices
    left, right, distances = tonari.pairs(points, radius, **given)
    assert left.tolist() == rows[later].tolist()
    assert right.tolist() == truth.indices[later].tolist()
    assert distances.tolist() == truth.distances[later].tolist()


@pytest.mark.parametrize("window", [0, 3])
def test_windows_together_with_other_rules(window: int, tmp_path: Path) -> None:
    where, batch = np.arange(N) % 3 > 0, np.arange(N) // 40
    same = batch[:, None] == batch
    graph = tonari.knn_graph(WALK, K, exclude_within=window, where=where, batch=batch, include_self=True)
    truth = nearest_allowed(WALK, WALK, K - 1, outside(window) & where & same)
    np.testing.assert_array_equal(graph.indices[:, 1:], truth.indices)
    np.testing.assert_array_equal(graph.indices[:, 0], np.arange(N))
    exclude = [[(i + 20) % N, (i + 21) % N] for i in range(N)]
    allowed = outside(window) & where
    for i, own in enumerate(exclude):
        allowed[i, own] = False
    assert_equal(
        tonari.search(WALK, WALK, K, exclude=exclude, where=where, exclude_within=window),
        nearest_allowed(WALK, WALK, K, allowed),
    )
    left, right, _ = tonari.pairs(WALK, 3.0, where=where, exclude_within=window)
    every = tonari.pairs(WALK, 3.0, where=where)
    apart = every.right - every.left > window
    assert (left.tolist(), right.tolist()) == (every.left[apart].tolist(), every.right[apart].tolist())
    out = tonari.pairs(WALK, 3.0, where=where, exclude_within=window, out=tmp_path / "pairs.npy")
    assert np.load(out)["right"].tolist() == right.tolist()


def test_blocks_of_pairs_are_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tonari.pairs(WALK, 3.0, exclude_within=2)
    for name, rows in (("PAIRS_FIRST_ROWS", 3), ("PAIRS_LEAST_ROWS", 2), ("PAIRS_HELD", 40)):
        monkeypatch.setattr(tonari.api.pairing.tuning, name, rows)
    assert_equal(tonari.pairs(WALK, 3.0, exclude_within=2), whole)


def test_changed_rows_keep_their_numbers() -> None:
    weights = np.array([1.0, 2.0, 0.5])
    truth = nearest_allowed(*(WALK.astype(np.float64) * np.sqrt(weights),) * 2, K, outside(4))
    found = tonari.knn_graph(WALK, K, weights=weights, exclude_within=4)
    np.testing.assert_array_equal(found.indices, truth.indices)


@pytest.mark.parametrize("verb", ["search", "radius_count"])
def test_memory_does_not_depend_on_the_window(verb: str) -> None:
    n = 3000
    points = np.cumsum(np.random.default_rng(0).standard_normal((n, 3)), axis=0).astype(np.float32)

    def run_it(window: int) -> None:
        if verb == "search":
            tonari.search(points, points, 2, exclude_within=window, threads=1, memory="40MB")
        else:
            tonari.radius_count(points, points, 5.0, exclude_within=window, threads=1, memory="40MB")

    run_it(1)
    tracemalloc.start()
    try:
        run_it(1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 45e6  # lists of all pairs within the window have 5 million numbers of 8 bytes, and are sorted


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tonari.search(WALK[:9], WALK, 2, exclude_within=1), "as many queries as points, got 9 and 130"),
        (lambda: tonari.radius_count(WALK[:9], WALK, 2.0, exclude_within=1), "as many queries as points"),
        (lambda: tonari.knn_graph(WALK, 2, exclude_within=-1), "exclude_within=-1"),
        (lambda: tonari.pairs(WALK, 2.0, exclude_within=-1), "exclude_within=-1"),
        (
            lambda: tonari.knn_graph(WALK, 2, exclude_within=1, method="nn-descent"),
            "exclude_within are for exact graphs",
        ),
        (lambda: tonari.knn_graph(WALK, 2, exclude_within=1, recall=0.9), "exclude_within are for exact graphs"),
        (
            lambda: tonari.search(WALK, WALK, 2, exclude_within=1, plan=tonari.plan(N, N, 3, 2)),
            "leave it out with where, exclude, exclude_within",
        ),
    ],
)
def test_what_a_window_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@needs_torch
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])
def test_windows_of_tensors(device: str) -> None:
    points = torch.from_numpy(WALK).to(device)
    graph = tonari.knn_graph(points, K, exclude_within=5).to_numpy()
    assert_equal(tonari.Neighbors(graph.distances, graph.indices), nearest_allowed(WALK, WALK, K, outside(5)))
    truth = cut(tonari.radius_search(WALK, WALK, 3.0), outside(5))
    for found in (
        tonari.radius_search(points, points, 3.0, exclude_within=5),
        tonari.radius_graph(points, 3.0, exclude_within=5),
    ):
        assert_equal(tonari.RadiusNeighbors(*(part.cpu().numpy() for part in found)), truth)
    left, right, _ = tonari.pairs(points, 3.0, exclude_within=5)
    assert (right - left).min() > 5
    assert len(left) == len(truth.indices) // 2


def test_on_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", WALK)
    graph, found, near, pairs = (tmp_path / name for name in ("g.npz", "f.npz", "r.npz", "p.npy"))
    x = tmp_path / "x.npy"
    run("graph", str(x), "-k", str(K), "--exclude-within", "5", "-o", str(graph))
    truth = nearest_allowed(WALK, WALK, K, outside(5))
    np.testing.assert_array_equal(tonari.KNNGraph.load(graph).indices, truth.indices)
    run("search", str(x), str(x), "-k", str(K), "--exclude-within", "5", "-o", str(found))
    np.testing.assert_array_equal(arrays_of(found)["indices"], truth.indices)
    run("search", str(x), str(x), "--radius", "3", "--exclude-within", "5", "-o", str(near))
    np.testing.assert_array_equal(
        arrays_of(near)["indices"], cut(tonari.radius_search(WALK, WALK, 3.0), outside(5)).indices
    )
    run("pairs", str(x), "--radius", "3", "--exclude-within", "5", "-o", str(pairs))
    assert (np.load(pairs)["right"] - np.load(pairs)["left"]).min() == 6
