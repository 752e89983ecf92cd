"""Public functions on a GPU: the same bits as on the CPU, returned as the kind of the input and on its device.

Without a GPU, Triton's interpreter takes the same paths: torch tensors count as tensors on the device, and NumPy arrays
as arrays that are copied to it.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.checks import DTYPES, assert_same_neighbors
from tests.helpers.device_rows import D, K, N, here, rows, there
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tonari import inputs
from tonari.api import tuning
from tonari.core.results.neighbors import Neighbors
from tonari.graph.building.sides import Sides
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.select.merge import merge_neighbors
from tonari.spanning.reference import spanning_tree

pytestmark = [needs_torch, pytest.mark.usefixtures("cpu_for_cuda")]
M = 3
GB = 10**9
if HAS_TORCH:
    import torch

    from tonari.cuda import memory as device_memory


@pytest.mark.parametrize("metric", METRICS)
def test_host_memory_is_copied_there_and_results_come_back(metric: str) -> None:
    queries, points = rows(M, seed=1), rows(N)
    found = tonari.search(queries, points, K, metric=metric, device="cuda")
    assert type(found.distances) is np.ndarray
    assert_same_neighbors(found, brute(queries, points, K, metric), metric=metric)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_stay_there(dtype: str) -> None:
    queries, points = rows(M, dtype, 1), rows(N, dtype)
    found = tonari.search(there(queries), there(points), K)
    assert_same_neighbors(here(found), brute(queries, points, K))


@pytest.mark.parametrize(("metric", "include_self"), [("euclidean", False), ("inner_product", True)])
def test_a_graph_of_tensors_has_tensors(metric: str, include_self: bool, tmp_path: Path) -> None:
    points = rows(N if HAS_CUDA else 13)
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
    assert graph.recall(there(points), sample=9) == expected.recall(points, sample=9)


def test_a_graph_of_host_memory_is_made_there() -> None:
    points = rows(9)
    graph = tonari.knn_graph(points, K, include_self=True, device="cuda")
    expected = tonari.knn_graph(points, K, include_self=True)
    assert type(graph.indices) is np.ndarray
    assert graph.indices.tobytes() == expected.indices.tobytes()
    assert graph.distances.tobytes() == expected.distances.tobytes()


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
        assert repr(index) == f"Index(n={N}, d={D}, metric='euclidean', dtype=float32, method='exact')"
        assert_same_neighbors(index.search(queries, K), truth)
        assert_same_neighbors(here(index.search(there(queries), 7)), brute(queries, points, 7))


def pickled(index: tonari.Index) -> tonari.Index:
    copied: tonari.Index = pickle.loads(pickle.dumps(index))
    return copied


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("how", ["exact", "kdtree"])
def test_an_index_can_be_copied_and_pickled(how: str, made: Any) -> None:
    queries, points = rows(M if HAS_CUDA else 1, seed=1), rows(2 * N)
    truth = brute(queries, points[::2], K)
    wide = there(points)
    for given in (points[::2], wide[::2]):
        index = tonari.Index(given, device="cuda", method=how)
        other = made(index)
        assert repr(other) == repr(index)
        assert (other._state.only.first.plan, other.devices) == (index._state.only.first.plan, index.devices)
        assert_same_neighbors(other.search(queries, K), truth)
        assert_same_neighbors(here(other.search(there(queries), K)), truth)
    assert index.points.untyped_storage().nbytes() == wide.nbytes  # a view of all rows
    if made is not copy.copy:
        assert other.points.untyped_storage().nbytes() == points[::2].nbytes
        wide.zero_()
        assert_same_neighbors(other.search(queries, K), truth)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chi2"])
@pytest.mark.parametrize("include_self", [False, True])
def test_a_graph_of_other_points_is_not_merged(metric: str, include_self: bool) -> None:
    points = [rows(N, seed=seed) for seed in (1, 2, 3)]
    made = [tonari.knn_graph(x, K, metric=metric, include_self=include_self) for x in points[:2]]
    graphs = [dataclasses.replace(x, indices=there(x.indices), distances=there(x.distances)) for x in made]
    a, b, other = map(there, points)
    sides = Sides(graphs[0].lists, a, b, Call.of({"points_a": a, "points_b": b}, Options()))
    for side, graph in enumerate(graphs):
        sides.check(graph.lists, side)
    with pytest.raises(ValueError, match=f"graph_a: row .* with {metric} .* of points_a have .*: pass the points from"):
        tonari.merge(*graphs[::-1], a, b)
    with pytest.raises(ValueError, match=r"the graph: row .* of points have .*: pass the points from"):
        graphs[0].add(other, b[:2])
    other[5, 2] = float("nan")
    with pytest.raises(ValueError, match=r"points_b: row 5 has a value that is not finite"):
        tonari.merge(*graphs, a, other)
    graphs[1].indices[4, 2] = N
    with pytest.raises(ValueError, match=f"graph_b: row 4 has an index outside -1 to {N - 1}"):
        tonari.merge(*graphs, a, b)


def test_points_are_added_to_a_graph_of_self_alone() -> None:
    points = rows(9)
    for given in (points, there(points)):
        graph = tonari.knn_graph(given[:8], 1, metric="inner_product", include_self=True, device="cuda")
        made = graph.add(given[:8], given[8:], device="cuda")
        assert type(made.indices) is type(given)
        wanted = tonari.knn_graph(points, 1, metric="inner_product", include_self=True)
        assert made.to_numpy().distances.tobytes() == wanted.distances.tobytes()
        assert made.to_numpy().indices.tobytes() == wanted.indices.tobytes()


@pytest.mark.parametrize("wrong", ["queries", "points"])
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "is not finite"), (-np.inf, "is not finite"), (-1, "negative")]
)
def test_bad_values_are_refused_in_the_same_words(wrong: str, value: float, message: str) -> None:
    given = {"queries": rows(M, seed=1), "points": rows(N)}
    given[wrong][2, 3] = value
    metric = "chi2" if value == -1 else "euclidean"
    with pytest.raises(ValueError, match=f"^{wrong}: row 2 has .*{message}") as expected:
        tonari.search(*given.values(), K, metric=metric)
    for place in (there, np.asarray) if wrong == "queries" else (there,):
        with pytest.raises(ValueError, match="row 2") as refused:
            tonari.search(*map(place, given.values()), K, metric=metric, device="cuda")
        assert str(refused.value) == str(expected.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k=0: the smallest k is 1"),
        ({"k": N + 1}, ValueError, f"k={N + 1}: the largest k is {N}, as there are {N} points$"),
        ({"metric": "euclidian"}, ValueError, "unknown metric 'euclidian'"),
        ({"method": "hnsw"}, ValueError, "unknown method 'hnsw'"),
        ({"threads": 2}, ValueError, "threads=2: the search runs on .*leave threads out"),
        ({"threads": 0}, ValueError, "threads=0: expected at least 1"),
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
    with pytest.raises(TypeError, match=r"queries: float8_e5m2 is not supported.*\.to\(torch.float32\)"):
        tonari.search(x.to(torch.float8_e5m2), x, K)
    with pytest.raises(ValueError, match=r"k=45: the largest k is 44, .*a point is not its own"):
        tonari.knn_graph(x, N)


def test_a_plan_is_for_one_place() -> None:
    points = rows(N)
    queries = points[:M]
    there_plan = plans.exact_cuda(
        N,
        M,
        D,
        K,
        dtype="float32",
        metric="euclidean",
        devices=inputs.devices_for("cuda"),
        host_points=True,
        host_queries=True,
        group=8,
    )
    found = tonari.search(queries, points, K, plan=there_plan, device="cuda")
    assert_same_neighbors(found, brute(queries, points, K))
    with pytest.raises(ValueError, match=r"the plan was made for .*: pass device='.*' with it"):
        tonari.search(queries, points, K, plan=there_plan)
    with pytest.raises(ValueError, match="made for metric='euclidean', but this search has metric='l1'"):
        tonari.search(queries, points, K, metric="l1", plan=there_plan, device="cuda")
    if HAS_CUDA:
        with pytest.raises(ValueError, match="the plan was made for cpu, but this search runs on cuda"):
            tonari.search(queries, points, K, plan=tonari.plan(N, M, D, K), device="cuda")


def _strided(x: Any) -> Any:
    wide = np.zeros((2 * len(x), 3 * x.shape[1]), x.dtype)
    wide[::2, ::3] = x
    return there(wide)[::2, ::3]


# Tensors with the same numbers in other layouts.
LAYOUTS: list[Callable[[Any], Any]] = [
    _strided,
    lambda x: there(np.ascontiguousarray(x.T)).t(),
    lambda x: there(np.pad(x, ((0, 0), (1, 2))))[:, 1:-2],
    lambda x: there(x).requires_grad_(),
]


@pytest.mark.filterwarnings("ignore:.*requires gradients:UserWarning")
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


def test_lists_that_lie_apart_are_not_merged() -> None:
    part = brute(rows(M), rows(N), K)
    with pytest.raises(
        ValueError, match=r"part 1 is in host memory, part 0 in .*, expected all parts on the same device"
    ):
        merge_neighbors([Neighbors(*map(there, part)), part], [0, N])
    with pytest.raises(ValueError, match="expected both on the same device"):
        KNNGraph(there(part.indices), part.distances, "euclidean", "exact")


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_the_cpu_s_bits(metric: str, dtype: str) -> None:
    scale = 30 if dtype in ("uint8", "int8") else 1
    points = np.abs(checks.gaussian(6000, 33) * scale).clip(0, 120).astype(dtype)
    queries = np.abs(checks.gaussian(500, 33, 1) * scale).clip(0, 120).astype(dtype)
    expected = tonari.search(queries, points, 12, metric=metric)
    assert_same_neighbors(
        here(tonari.search(there(queries), there(points), 12, metric=metric)), expected, metric=metric
    )
    assert_same_neighbors(tonari.search(queries, points, 12, metric=metric, device="cuda"), expected, metric=metric)
    ours = tonari.knn_graph(there(points), 12, metric=metric).to_numpy()
    theirs = tonari.knn_graph(points, 12, metric=metric)
    assert_same_neighbors(
        Neighbors(ours.distances, ours.indices), Neighbors(theirs.distances, theirs.indices), metric=metric
    )


@on_gpu
@pytest.mark.parametrize("maker", [*checks.HOSTILE.values(), checks.widest], ids=lambda maker: maker.__name__)
@pytest.mark.parametrize("metric", METRICS)
def test_the_cpu_s_bits_on_hostile_bfloat16(metric: str, maker: Callable[..., Any]) -> None:
    rows = maker(3000, 24, 0).astype("bfloat16")
    points = np.abs(rows) if METRICS[metric].nonnegative else rows
    try:
        expected = tonari.search(points[:300], points, 15, metric=metric)
    except ValueError:  # values beyond the range of float32
        with pytest.raises(ValueError, match="flows"):
            tonari.search(there(points[:300]), there(points), 15, metric=metric)
        return
    for found in (
        here(tonari.search(there(points[:300]), there(points), 15, metric=metric)),
        here(tonari.search(there(points[:300]), there(points).float(), 15, metric=metric)),
        tonari.search(points[:300], points, 15, metric=metric, device="cuda"),
    ):
        assert_same_neighbors(found, expected, metric=metric)


@on_gpu
@pytest.mark.parametrize("name", checks.HOSTILE)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_the_cpu_s_bits_on_hostile_data(metric: str, name: str) -> None:
    points = checks.in_range(checks.HOSTILE[name](3000, 24, 0), metric)
    expected = tonari.search(points[:300], points, 15, metric=metric)
    found = here(tonari.search(there(points[:300]), there(points), 15, metric=metric))
    assert_same_neighbors(found, expected, metric=metric)


@on_gpu
@pytest.mark.parametrize("method", ["exact", "nn-descent"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
@pytest.mark.parametrize("metric", METRICS)
def test_graphs_are_merged_with_their_points_alone(metric: str, dtype: str, method: str) -> None:
    scale = 30 if dtype == "uint8" else 1
    a, b, other = (np.abs(checks.gaussian(3000, 24, seed) * scale).clip(0, 120).astype(dtype) for seed in (0, 1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # recall on points without structure
        graphs = [tonari.knn_graph(there(x), 8, metric=metric, method=method) for x in (a, b)]
        made = tonari.merge(*graphs, there(a), there(b), recall=0.5)
        assert made.n == 6000
        assert made.indices.device.type == "cuda"
        on_host = [graph.to_numpy() for graph in graphs]
        assert tonari.merge(*on_host, a, b, recall=0.5, device="cuda").n == 6000
    with pytest.raises(ValueError, match=r"graph_a: row .* pass the points from which the graph was built"):
        tonari.merge(*graphs[::-1], there(a), there(b))
    with pytest.raises(ValueError, match=r"the graph: row .* pass the points from which the graph was built"):
        graphs[0].add(there(other), there(b[:5]))


@on_gpu
@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("memory", [None, "100MB"])
def test_a_pickled_index_has_the_bits_of_the_first(memory: str | None, method: str) -> None:
    queries, points = checks.gaussian(500, 8, 1), checks.gaussian(100_000, 8)
    expected = tonari.search(queries, points, 10)
    for given in (points, there(points), there(np.repeat(points, 2, axis=1))[:, ::2]):
        index = tonari.Index(given, device="cuda", method=method, memory=memory)
        for other in (copy.copy(index), copy.deepcopy(index), pickled(index)):
            assert repr(other) == repr(index)
            assert other.points.shape == index.points.shape
            assert_same_neighbors(other.search(queries, 10), expected)
            assert_same_neighbors(here(other.search(there(queries), 10)), expected)


@on_gpu
def test_the_caller_s_stream_is_the_order() -> None:
    """A search waits for rows that are written late on another stream, and its answer is ready on that stream."""
    queries, points = checks.gaussian(400, 24, 1), checks.gaussian(20_000, 24)
    expected = brute(queries, points, 10)
    late, pinned = torch.zeros(points.shape, device="cuda"), torch.from_numpy(points).pin_memory()
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)  # cycles: about 50 ms
        late.copy_(pinned, non_blocking=True)
        found = tonari.search(there(queries), late, 10)
        copies = Neighbors(*(part.clone() for part in found))
        late.zero_()
    stream.synchronize()
    assert_same_neighbors(here(copies), expected)


@on_gpu
def test_the_current_device_stays_current() -> None:
    device = f"cuda:{torch.cuda.device_count() - 1}"
    points = checks.gaussian(2000, 8)
    before = torch.cuda.current_device()
    found = tonari.search(torch.from_numpy(points[:50]).to(device), torch.from_numpy(points).to(device), 5)
    assert str(found.indices.device) == device
    assert torch.cuda.current_device() == before
    assert_same_neighbors(here(found), brute(points[:50], points, 5))
    assert_same_neighbors(tonari.search(points[:50], points, 5, device=device), brute(points[:50], points, 5))


@on_gpu
def test_a_device_that_is_not_there() -> None:
    x, count = checks.gaussian(20, 3), torch.cuda.device_count()
    with pytest.raises(ValueError, match=f"this machine has no cuda:{count}, only cuda:0"):
        tonari.search(x, x, 2, device=f"cuda:{count}")
    with pytest.raises(ValueError, match=r'queries in host memory and points on cuda:0, .*pass device="cuda:0"'):
        tonari.search(x, there(x), 2)
    with pytest.raises(ValueError, match='queries: is on cuda:0, but device="cpu"'):
        tonari.search(there(x), there(x), 2, device="cpu")
    with pytest.raises(ValueError, match="queries: is on cuda:0, expected host memory"):
        tonari.Index(x).search(there(x), 2)
    assert_same_neighbors(tonari.search(x, there(x), 2, device="cuda"), brute(x, x, 2))  # of the kind of the queries


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "l1"])
@pytest.mark.parametrize("name", ["gaussian", "tight_far_clusters", "all_equal"])
@pytest.mark.parametrize("memory", [None, "120MB"])
def test_memory_is_kept(memory: str | None, name: str, metric: str) -> None:
    points = there(checks.HOSTILE[name](100_000, 32, 0))
    queries = points[:5000].clone()
    plan = plans.exact_cuda(
        100_000,
        5000,
        32,
        10,
        dtype="float32",
        metric=metric,
        devices=("cuda:0",),
        memory=memory,
        host_points=False,
        host_queries=False,
    )
    tonari.search(queries, points, 10, metric=metric, plan=plan)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = tonari.search(queries, points, 10, metric=metric, plan=plan)
    assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
    assert torch.cuda.memory_allocated() - before <= sum(part.nbytes for part in found) + 4096


@on_gpu
def test_free_memory_counts_what_torch_keeps() -> None:
    devices = ("cuda:0",)
    torch.cuda.empty_cache()
    before = device_memory.free_memory(devices)
    held = torch.empty(GB, dtype=torch.uint8, device="cuda")
    during = device_memory.free_memory(devices)
    del held
    assert before - during >= GB
    assert abs(device_memory.free_memory(devices) - before) < GB // 10


@on_gpu
def test_cupy_arrays() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    queries, points = checks.gaussian(300, 24, 1), checks.gaussian(9000, 24)
    with cupy.cuda.Stream(non_blocking=True):  # not torch's current stream
        found = tonari.search(cupy.asarray(queries), cupy.asarray(points), 10)
        assert type(found.distances) is type(found.indices) is cupy.ndarray
        copied = Neighbors(*(part.get() for part in found))
    assert_same_neighbors(copied, brute(queries, points, 10))
    graph = tonari.knn_graph(cupy.asarray(points[:500]), 5)
    assert type(graph.indices) is cupy.ndarray
    assert graph.to_numpy().indices.tolist() == tonari.knn_graph(points[:500], 5).indices.tolist()
    parts = [tonari.search(cupy.asarray(queries), cupy.asarray(part), 10) for part in (points[:4000], points[4000:])]
    merged = merge_neighbors(parts, [0, 4000])
    assert type(merged.indices) is cupy.ndarray
    assert_same_neighbors(Neighbors(*(part.get() for part in merged)), brute(queries, points, 10))


@on_gpu
def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    queries, points = checks.gaussian(300, 24, 1), checks.gaussian(9000, 24)
    found = tonari.search(jax.numpy.asarray(queries), jax.numpy.asarray(points), 10)
    assert all(isinstance(part, jax.Array) for part in found)
    assert_same_neighbors(Neighbors(*(np.array(part) for part in found)), brute(queries, points, 10))
    halves = queries.astype("bfloat16")
    found = tonari.search(jax.numpy.asarray(halves), jax.numpy.asarray(points), 10)
    assert_same_neighbors(Neighbors(*(np.array(part) for part in found)), brute(halves, points, 10))
    with pytest.raises(TypeError, match=r"float8_e5m2 is not supported.*\.astype\('float32'\)"):
        tonari.search(jax.numpy.asarray(queries, "float8_e5m2"), jax.numpy.asarray(points), 10)


@pytest.mark.parametrize(
    ("metric", "within"),
    [("euclidean", {"radius": 2.2}), ("cosine", {"min_similarity": 0.2}), ("inner_product", {"min_similarity": 0.5})],
)
@pytest.mark.parametrize("from_host", [False, True])
def test_everything_within_a_radius(metric: str, within: dict[str, float], from_host: bool) -> None:
    points = rows(N if HAS_CUDA else 40)
    queries = points[:M]
    given: dict[str, Any] = {"metric": metric, "method": "exact", **within}
    device = {"device": "cuda"} if from_host else {}

    def to(x: Any) -> Any:
        return x if from_host else there(x)

    def same(found: Any, truth: Any) -> None:
        assert len(truth[-1])
        for ours, theirs in zip(found, truth, strict=True):
            assert type(ours) is (np.ndarray if from_host else torch.Tensor)
            ours = ours if from_host else ours.cpu().numpy()
            assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes())

    asked, among, index = to(queries), to(points), tonari.Index(to(points), metric=metric, method="exact", **device)
    on_cpu = tonari.Index(points, metric=metric, method="exact")
    found = tonari.radius_search(queries, points, **given)
    same(tonari.radius_search(asked, among, **given, **device), found)
    same(index.radius_search(asked, **within), found)
    same([tonari.radius_count(asked, among, **given, **device)], [np.diff(found.indptr)])
    same(tonari.radius_graph(among, **given, **device), tonari.radius_graph(points, **given))
    same(tonari.pairs(among, **given, **device), tonari.pairs(points, **given))
    for most in (2, 100):
        truth = tonari.radius_search(queries, points, max_neighbors=most, **given)
        same(tonari.radius_search(asked, among, max_neighbors=most, **given, **device), truth)
    chunks = zip(index.radius_chunks(asked, **within), on_cpu.radius_chunks(queries, **within), strict=True)
    for ours, theirs in chunks:
        same(ours, theirs)


@pytest.mark.parametrize(("from_host", "many"), [(False, 0.0), (True, 1.0)])
def test_a_spanning_tree_is_that_of_host_memory(from_host: bool, many: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LISTED_MORE", 1)
    monkeypatch.setattr(tuning, "MANY", many)
    points = rows(600 if HAS_CUDA else 15)
    points[::3] += 9
    given: dict[str, Any] = {"device": "cuda"} if from_host else {}
    tree = tonari.mutual_reachability_tree(points if from_host else there(points), 3, **given)
    expected = spanning_tree(points, 3)
    assert type(tree.edges) is np.ndarray
    assert tree.edges.tolist() == expected.edges.tolist()
    assert tree.weights.tobytes() == expected.weights.tobytes()
