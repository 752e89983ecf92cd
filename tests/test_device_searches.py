"""The verbs on a GPU: the CPU's answers to the last bit, as and where the input was.

Without a GPU the same paths are taken in Triton's interpreter, the CPU playing the device: torch tensors count as lying
there and NumPy arrays as being copied to it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checks
import numpy as np
import pytest
from checks import assert_same_neighbors
from select_checks import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu

import tonari
from tonari import arrays
from tonari.graph import KNNGraph
from tonari.metrics import METRICS
from tonari.reference import brute
from tonari.results import Neighbors, merge_neighbors

pytestmark = needs_torch
if HAS_TORCH:
    import torch

    from tonari import engines_gpu, planning_gpu
    from tonari.arrays import device_rows

DEVICE = "cuda" if HAS_CUDA else "cpu"
GB = 10**9


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU be the device "cuda" where there is none."""
    if HAS_CUDA:
        return
    places, devices = arrays.place_of, arrays.devices_for

    def place_of(x: Any, name: str) -> str | None:
        return "cpu" if isinstance(x, torch.Tensor) else places(x, name)

    def devices_for(device: Any, **given: Any) -> tuple[str, ...]:
        there = device == "cuda" or "cpu" in {place_of(x, name) for name, x in given.items()}
        return ("cpu",) if there else devices(device, **given)

    for module in (arrays, device_rows):
        monkeypatch.setattr(module, "place_of", place_of)
    monkeypatch.setattr(arrays, "devices_for", devices_for)
    for module in (engines_gpu, planning_gpu):
        monkeypatch.setattr(module, "free_memory", lambda devices: 4 * GB)


def there(x: Any) -> Any:
    """An array as a tensor on the device."""
    return torch.from_numpy(x).to(DEVICE)


def here(found: Neighbors) -> Neighbors:
    """Neighbours of tensors on the device, as NumPy arrays."""
    for part in found:
        assert part.device.type == DEVICE
    return Neighbors(*(part.cpu().numpy() for part in found))


N, M, D, K = 210, 9, 20, 4


def rows(n: int, dtype: str = "float32", seed: int = 0) -> Any:
    scale = 30 if dtype in ("uint8", "int8") else 1
    return np.abs(checks.gaussian(n, D, seed) * scale).astype(dtype)


@pytest.mark.parametrize("metric", METRICS)
def test_host_memory_is_copied_there_and_results_come_back(metric: str) -> None:
    queries, points = rows(M, seed=1), rows(N)
    found = tonari.search(queries, points, K, metric=metric, device="cuda")
    assert type(found.distances) is np.ndarray
    assert_same_neighbors(found, brute(queries, points, K, metric), metric=metric)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int8"])
def test_tensors_stay_there(dtype: str) -> None:
    queries, points = rows(M, dtype, 1), rows(N, dtype)
    found = tonari.search(there(queries), there(points), K)
    assert_same_neighbors(here(found), brute(queries, points, K))


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("include_self", [False, True])
def test_a_graph_of_tensors_has_tensors(metric: str, include_self: bool, tmp_path: Path) -> None:
    points = rows(N)
    graph = tonari.knn_graph(there(points), K, metric=metric, include_self=include_self)
    expected = tonari.knn_graph(points, K, metric=metric, include_self=include_self)
    found = Neighbors(graph.distances, graph.indices)
    for ours, theirs in zip(here(found), (expected.distances, expected.indices), strict=True):
        assert ours.tobytes() == theirs.tobytes()
        assert ours.dtype == theirs.dtype
    assert repr(graph) == repr(expected)
    assert graph.to_numpy().indices.tolist() == expected.indices.tolist()
    graph.save(tmp_path / "ours.npz")
    expected.save(tmp_path / "theirs.npz")
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()
    assert (graph.to_csr() != expected.to_csr()).nnz == 0
    assert graph.recall(there(points), sample=50) == expected.recall(points, sample=50)


def test_a_graph_of_host_memory_is_made_there() -> None:
    points = rows(N)
    graph = tonari.knn_graph(points, K, include_self=True, device="cuda")
    expected = tonari.knn_graph(points, K, include_self=True)
    assert type(graph.indices) is np.ndarray
    assert graph.indices.tobytes() == expected.indices.tobytes()
    assert graph.distances.tobytes() == expected.distances.tobytes()


@pytest.mark.parametrize("d", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8"])
def test_each_point_s_value_with_itself_has_the_reference_s_bits(d: int, dtype: str) -> None:
    from tonari.exact.gpu import own

    points = (checks.gaussian(30, d) * 100).astype(dtype)
    value = np.float64 if dtype == "float64" else np.float32
    empty = Neighbors(there(np.empty((30, 0), value)), there(np.empty((30, 0), np.int32)))
    found = here(own.with_self(empty, there(points), "inner_product"))
    expected = tonari.knn_graph(points, 1, metric="inner_product", include_self=True)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found.indices.tobytes() == expected.indices.tobytes()


def test_self_alone() -> None:
    points = rows(5)
    for given in (points, there(points)):
        graph = tonari.knn_graph(given, 1, metric="inner_product", include_self=True, device="cuda").to_numpy()
        assert graph.indices.ravel().tolist() == list(range(5))
        assert graph.distances.tobytes() == np.square(points.astype(float)).sum(1).astype(np.float32).tobytes()
    points[3, 1] = np.nan
    for given in (points, there(points)):
        with pytest.raises(ValueError, match=r"points: row 3 has a value that is not finite \(nan in column 1\)"):
            tonari.knn_graph(given, 1, include_self=True, device="cuda")


def test_an_index_answers_both_sides() -> None:
    queries, points = rows(M, seed=1), rows(N)
    truth = brute(queries, points, K)
    for given in (points, there(points)):
        index = tonari.Index(given, device="cuda")
        assert repr(index) == f"Index(n={N}, d={D}, metric='euclidean', dtype=float32)"
        for _ in range(2):
            assert_same_neighbors(index.search(queries, K), truth)
            assert_same_neighbors(here(index.search(there(queries), K)), truth)
        assert_same_neighbors(index.search(queries, 7), brute(queries, points, 7))


@pytest.mark.parametrize("wrong", ["queries", "points"])
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "is not finite"), (-np.inf, "is not finite"), (-1, "negative")]
)
def test_bad_values_are_refused_in_the_same_words(wrong: str, value: float, message: str) -> None:
    given = {"queries": rows(M, seed=1), "points": rows(N)}
    given[wrong][7, 3] = value
    metric = "chi2" if value == -1 else "euclidean"
    with pytest.raises(ValueError, match=f"^{wrong}: row 7 has .*{message}") as expected:
        tonari.search(*given.values(), K, metric=metric)
    for place in (there, np.asarray):
        with pytest.raises(ValueError, match="row 7") as refused:
            tonari.search(*map(place, given.values()), K, metric=metric, device="cuda")
        assert str(refused.value) == str(expected.value)
    if wrong == "points":
        with pytest.raises(ValueError, match="^points: row 7") as refused:
            tonari.knn_graph(there(given["points"]), K, metric=metric)
        assert str(refused.value) == str(expected.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k=0: the smallest k is 1"),
        ({"k": N + 1}, ValueError, f"k={N + 1}: the largest k is {N}, as there are {N} points$"),
        ({"metric": "euclidian"}, ValueError, "unknown metric 'euclidian'"),
        ({"method": "hnsw"}, ValueError, "unknown method 'hnsw'"),
        ({"threads": 2}, ValueError, "threads=2: the search runs on .*leave threads out"),
        ({"threads": 0}, ValueError, "threads=0: at least 1"),
        ({"memory": "12"}, ValueError, "memory='12'"),
        ({"memory": "1kB"}, ValueError, "budget of 1000 bytes cannot hold"),
    ],
    ids=str,
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    x = there(rows(N))
    with pytest.raises(error, match=message):
        tonari.search(x[:M], x, **{"k": K} | arguments)


def test_bad_shapes() -> None:
    x = there(rows(N))
    with pytest.raises(ValueError, match=rf"queries of shape \({M}, {D - 1}\) and points of shape \({N}, {D}\)"):
        tonari.search(x[:M, 1:], x, K)
    with pytest.raises(TypeError, match=r"queries: bfloat16 is not searched.*\.to\(torch.float32\)"):
        tonari.search(x.bfloat16(), x, K)
    with pytest.raises(ValueError, match=r"k=210: the largest k is 209, .*a point is not its own"):
        tonari.knn_graph(x, N)


def test_a_plan_is_for_one_place() -> None:
    points = rows(N)
    here_plan = tonari.plan(N, N, D, K)
    there_plan = planning_gpu.plan_on_gpu(
        N,
        N,
        D,
        K,
        dtype="float32",
        metric="euclidean",
        devices=arrays.devices_for("cuda"),
        host_points=True,
        host_queries=True,
        group=8,
    )
    truth = brute(points, points, K)
    assert_same_neighbors(tonari.search(points, points, K, plan=there_plan, device="cuda"), truth)
    with pytest.raises(ValueError, match="the plan was made for .*: pass device='.*' with it"):
        tonari.search(points, points, K, plan=there_plan)
    with pytest.raises(ValueError, match="the plan was made for cpu, but this search runs on cuda|made for dtype"):
        tonari.search(points.astype(np.float64), points.astype(np.float64), K, plan=here_plan, device="cuda")
    with pytest.raises(ValueError, match="made for metric='euclidean', but this search has metric='l1'"):
        tonari.search(points, points, K, metric="l1", plan=there_plan, device="cuda")


def _strided(x: Any) -> Any:
    wide = np.zeros((2 * len(x), 3 * x.shape[1]), x.dtype)
    wide[::2, ::3] = x
    return there(wide)[::2, ::3]


# Tensors that hold the same numbers in another way.
LAYOUTS: list[Callable[[Any], Any]] = [
    _strided,
    lambda x: there(np.ascontiguousarray(x.T)).t(),
    lambda x: there(np.pad(x, ((0, 0), (1, 2))))[:, 1:-2],
    lambda x: there(x).requires_grad_(),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: Callable[[Any], Any]) -> None:
    queries, points = rows(M, seed=1), rows(N)
    found = tonari.search(layout(queries), layout(points), K)
    assert_same_neighbors(here(found), brute(queries, points, K))
    assert not found.distances.requires_grad


def test_read_only_host_memory(tmp_path: Path) -> None:
    queries, points = rows(M, seed=1), rows(N)
    np.save(tmp_path / "x.npy", points)
    queries.flags.writeable = False
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_same_neighbors(tonari.search(queries, mapped, K, device="cuda"), brute(queries, points, K))


def test_dtypes_may_differ() -> None:
    queries, points = rows(M, "float64", 1), rows(N, "uint8")
    found = here(tonari.search(there(queries), there(points), K))
    assert found.distances.dtype == np.float64
    assert_same_neighbors(found, brute(queries, points, K))


def test_progress_reaches_the_total() -> None:
    seen: list[tuple[int, int]] = []
    tonari.search(rows(M), rows(N), K, device="cuda", progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (M * N, M * N)


# ---------------------------------------------------------------- lists of parts


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lists_are_merged_there(metric: str, dtype: str) -> None:
    points = checks.duplicates(90, 4).astype(dtype)
    queries, cuts = points[::7], [0, 13, 50, 90]
    parts = [brute(queries, points[a:b], 12, metric) for a, b in zip(cuts, cuts[1:], strict=False)]
    parts[0].indices[2, 9:], parts[0].distances[2, 9:] = -1, 0.0  # missing, whatever the distance
    expected = merge_neighbors(parts, cuts[:3], k=15, metric=metric)
    on_device = [Neighbors(*map(there, part)) for part in parts]
    assert_same_neighbors(here(merge_neighbors(on_device, cuts[:3], k=15, metric=metric)), expected, metric=metric)
    single = here(merge_neighbors(on_device[1:2], [2**31], k=5, metric=metric))
    assert single.indices.dtype == np.int64
    assert single.indices.tolist() == (parts[1].indices[:, :5] + np.int64(2**31)).tolist()


def test_lists_that_lie_apart_are_not_merged() -> None:
    part = brute(rows(M), rows(N), K)
    with pytest.raises(ValueError, match="part 1 is in host memory, part 0 in .*: they must lie together"):
        merge_neighbors([Neighbors(*map(there, part)), part], [0, N])
    with pytest.raises(ValueError, match="they must lie together"):
        KNNGraph(there(part.indices), part.distances, "euclidean", "exact")
