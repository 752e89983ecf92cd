"""All points at the distance of the k-th neighbour, compared with a table of all distances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import refused, run
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tests.helpers.filter_checks import Mask, assert_equal
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

N, M = 120, 17
DATA = {
    "grid": np.stack(np.meshgrid(np.arange(12), np.arange(10)), axis=-1).reshape(-1, 2).astype(np.float32),
    "equal": np.ones((N, 3), np.float32),
    "duplicates": checks.duplicates(N, 2),
    "gaussian": checks.gaussian(N, 5),
    "offset": checks.offset_float64(N, 3),
}


def by_hand(queries: Any, points: Any, k: int, allowed: Mask, metric: str = "euclidean") -> tonari.RadiusNeighbors:
    """Return the allowed points of each query up to the value of the k-th."""
    distances, indices = brute(queries, points, len(points), metric)
    lists = []
    for i, (values, ids) in enumerate(zip(distances, indices, strict=True)):
        kept = allowed[i, ids]
        values, ids = values[kept], ids[kept]
        last = len(ids) if len(ids) < k else int(np.flatnonzero(values == values[k - 1])[-1]) + 1
        lists.append((ids[:last], values[:last]))
    indptr = np.cumsum([0, *(len(ids) for ids, _ in lists)])
    return tonari.RadiusNeighbors(indptr, *(np.concatenate(parts) for parts in zip(*lists, strict=True)))


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("k", [1, 3, 7, N - 1])
@pytest.mark.parametrize("data", DATA)
def test_no_point_at_the_kth_distance_is_left_out(data: str, k: int, method: str) -> None:
    points = DATA[data]
    queries = points[:: N // M]
    found = tonari.search(queries, points, k, ties="all", method=method)
    assert_equal(found, by_hand(queries, points, k, np.ones((len(queries), N), bool)))
    graph = tonari.knn_graph(points, k, ties="all", method=method)
    assert_equal(graph, by_hand(points, points, k, ~np.eye(N, dtype=bool)))
    first = tonari.search(queries, points, k, method=method)
    assert [found.indices[begin : begin + k].tolist() for begin in found.indptr[:-1]] == first.indices.tolist()


@pytest.mark.parametrize("metric", ["inner_product", "cosine", "l1", "sqeuclidean"])
def test_metrics(metric: str) -> None:
    points = DATA["grid"]
    found = tonari.search(points[:9], points, 4, metric=metric, ties="all")
    assert_equal(found, by_hand(points[:9], points, 4, np.ones((9, N), bool), metric))
    every = tonari.search(points[:9], points, N, metric=metric, ties="all")
    assert np.diff(every.indptr).tolist() == [N] * 9


@pytest.mark.parametrize("rule", ["where", "exclude", "batch", "exclude_within", "few"])
def test_filters(rule: str) -> None:
    points, allowed = DATA["grid"], ~np.eye(N, dtype=bool)
    given: dict[str, Any] = {}
    if rule in ("where", "few"):
        given["where"] = np.arange(N) % (3 if rule == "where" else 50) == 0
        allowed &= given["where"]
    if rule == "batch":
        given["batch"] = np.arange(N) // 7
        allowed &= given["batch"][:, None] == given["batch"]
    if rule == "exclude_within":
        given["exclude_within"] = 5
        allowed &= np.abs(np.subtract.outer(np.arange(N), np.arange(N))) > 5
    if rule == "exclude":
        lists = [[i, (i + 1) % N] for i in range(N)]
        for i, own in enumerate(lists):
            allowed[i, own] = False
        found = tonari.search(points, points, 4, exclude=lists, ties="all")
    else:
        found = tonari.knn_graph(points, 4, ties="all", **given)
    assert_equal(found, by_hand(points, points, 4, allowed))


def test_changed_rows_and_no_queries() -> None:
    points = DATA["grid"]
    found = tonari.search(points[:9], points, 4, weights=[1.0, 4.0], ties="all")
    truth = by_hand(points[:9] * [1.0, 2.0], points * [1.0, 2.0], 4, np.ones((9, N), bool))
    assert_equal(found, truth)
    none = tonari.search(points[:0], points, 4, ties="all")
    assert (none.indptr.tolist(), len(none.indices)) == ([0], 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: tonari.search(x, x, 2, ties="last"), "ties='last': expected 'first' .* or 'all'"),
        (lambda x: tonari.search(x, x, 2, ties="all", plan=tonari.plan(N, N, 2, 2)), "plan: was made .* or ties"),
        (lambda x: tonari.knn_graph(x, 2, ties="all", recall=0.9), "recall: ties='all' is for exact graphs alone"),
        (lambda x: tonari.knn_graph(x, 2, ties="all", method="nn-descent"), "ties='all' is for exact graphs alone"),
        (lambda x: tonari.knn_graph(x, 2, ties="all", include_self=True), "include_self: not with ties='all'"),
        (lambda x: tonari.knn_graph(x, N, ties="all"), f"k={N}"),
    ],
)
def test_what_has_no_ties_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(DATA["grid"])


@needs_torch
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])
def test_ties_of_tensors(device: str) -> None:
    points = torch.from_numpy(DATA["grid"]).to(device)
    found = tonari.knn_graph(points, 4, ties="all")
    assert found.indices.device == points.device
    truth = by_hand(DATA["grid"], DATA["grid"], 4, ~np.eye(N, dtype=bool))
    assert_equal(tonari.RadiusNeighbors(*(part.cpu().numpy() for part in found)), truth)


@needs_torch
def test_gradients_reach_all_points_at_the_kth_distance() -> None:
    points = torch.tensor([[0.0], [1.0], [-1.0], [5.0]], requires_grad=True)
    found = tonari.search(points[:1], points, 2, ties="all", differentiable=True)
    found.distances.sum().backward()
    assert points.grad is not None
    assert points.grad.ravel().tolist() == [0.0, 1.0, -1.0, 0.0]


def test_on_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA["grid"])
    files = str(tmp_path / "x.npy"), str(tmp_path / "x.npy")
    run("search", *files, "-k", "4", "--ties", "all", "-o", str(tmp_path / "found.npz"))
    with np.load(tmp_path / "found.npz") as found:
        truth = tonari.search(DATA["grid"], DATA["grid"], 4, ties="all")
        for name in truth._fields:
            np.testing.assert_array_equal(found[name], getattr(truth, name))
    for out in ("found.ibin", "found.csv", "found/"):
        message = refused("search", *files, "-k", "4", "--ties", "all", "-o", str(tmp_path / out), code=2)
        assert "cannot be combined with --ties" in message
    assert "--ties" in refused(
        "search", *files, "--radius", "2", "--ties", "all", "-o", str(tmp_path / "f.npz"), code=2
    )
