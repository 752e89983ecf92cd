"""Looks at contracted rows: the same bits as without, whatever the rows, the directions and the schedule."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors
from tonari.core import _native
from tonari.core.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
PRODUCTS = [name for name, record in METRICS.items() if not record.elementwise]
N, M, D, K = 500, 20, 24, 17


def looked(queries: Array, points: Array, k: int, look_dim: int, metric: str = "euclidean", **choices: Any) -> Any:
    plan = tonari.plan(
        len(points), len(queries), points.shape[1], k, dtype=points.dtype, metric=metric, method="exact",
        look_dim=look_dim, **{"threads": 1} | choices,
    )  # fmt: skip
    return tonari.search(queries, points, k, metric=metric, plan=plan)


@cache
def rows(maker: str) -> Array:
    return HOSTILE[maker](N, D, 0)


@cache
def truth(maker: str, metric: str) -> Neighbors:
    return brute(rows(maker)[:M], rows(maker), K, metric)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("look_dim", [2, 9, D - 1])
@pytest.mark.parametrize("metric", PRODUCTS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("capacity", [2048, 1], ids=["roomy", "settles"])
def test_hostile_data(isa: str, look_dim: int, metric: str, maker: str, capacity: int) -> None:
    points = rows(maker)
    found = looked(points[:M], points, K, look_dim, metric, isa=isa, capacity=capacity)
    assert_same_neighbors(found, truth(maker, metric), metric=metric)


@cache
def of_dtype(dtype: str, metric: str) -> tuple[Array, Neighbors]:
    points = np.abs(checks.gaussian(300, 21, 3) * 20).astype(dtype)
    return points, brute(points[:M], points, 9, metric)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("look_dim", [2, 10])
@pytest.mark.parametrize("metric", PRODUCTS)
def test_every_dtype(dtype: str, look_dim: int, metric: str) -> None:
    points, expected = of_dtype(dtype, metric)
    assert_same_neighbors(looked(points[:M], points, 9, look_dim, metric), expected, metric=metric)


@pytest.mark.parametrize("precision", ["int8", "bfloat16", "float32"])
@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("maker", ["gaussian", "tight_far_clusters", "duplicates"])
def test_every_kernel(precision: str, isa: str, maker: str) -> None:
    if f"inner/{precision}/{isa}" not in _native.kernel_names():
        pytest.skip("this machine has no kernel of that precision and instruction set")
    points = rows(maker)
    levels = (precision,) if precision == "float32" else (precision, "float32")
    found = looked(points[:M], points, K, 7, isa=isa, precisions=levels, capacity=40)
    assert_same_neighbors(found, truth(maker, "euclidean"))


@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 96, 97])
@pytest.mark.parametrize("m", [1, 7, 33])
def test_small_shapes_up_to_all_points(n: int, m: int) -> None:
    points, queries = checks.duplicates(n, 5), checks.gaussian(m, 5, 1)
    for k in {1, (n + 1) // 2, n}:
        for look_dim in (2, 4):
            assert_same_neighbors(looked(queries, points, k, look_dim), brute(queries, points, k))


@pytest.mark.parametrize("d", [3, 16, 17, 33, 300])
def test_every_number_of_columns(d: int) -> None:
    points = checks.gaussian(150, d)
    expected = brute(points[:9], points, 6)
    for look_dim in sorted({2, 3, 16, 17, 18, 32, 33, d - 1} & set(range(2, d))):
        assert_same_neighbors(looked(points[:9], points, 6, look_dim), expected)


@pytest.mark.parametrize(
    "choices",
    [
        {"threads": 3, "query_block": 7},
        {"point_splits": 3, "threads": 2, "point_chunk": 96},
        {"point_chunk": 96, "sample_stride": 2, "sample_rank": 60},
        {"adaptive": True, "query_block": 2, "precisions": ("int8", "float32")},
    ],
    ids=["threads", "splits", "sampled", "adaptive"],
)
@pytest.mark.parametrize("k", [1, 70])
def test_every_schedule(choices: dict[str, Any], k: int) -> None:
    if "precisions" in choices and "inner/int8/avx2" not in _native.kernel_names():
        pytest.skip("this machine has no int8 kernel, and the schedule changes precisions")
    points = rows("tight_far_clusters")
    found = looked(points[:M], points, k, 6, **choices)
    assert_same_neighbors(found, brute(points[:M], points, k))


@pytest.mark.parametrize("active_rows", [0, 288])
@pytest.mark.parametrize("metric", PRODUCTS)
@pytest.mark.parametrize("maker", ["gaussian", "duplicates", "tight_far_clusters", "zero_rows"])
def test_graphs(active_rows: int, metric: str, maker: str) -> None:
    points, n = rows(maker)[:400], 400
    shape: dict[str, Any] = {"self_join": True, "metric": metric, "threads": 2, "method": "exact"}
    plan = tonari.plan(n, n, D, 9, **shape, dtype=points.dtype, look_dim=6, active_rows=active_rows)
    graph = tonari.knn_graph(points, 9, metric=metric, plan=plan)
    expected = brute(points, points, 9, metric, self_ids=np.arange(n))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected, metric=metric)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("metric", PRODUCTS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("active_rows", [0, 288], ids=["rows", "joined"])
def test_a_look_before_contracted_rows(isa: str, metric: str, maker: str, active_rows: int) -> None:
    points = rows(maker)[:300]
    shape: dict[str, Any] = {"self_join": True, "metric": metric, "threads": 2, "method": "exact", "isa": isa}
    plan = tonari.plan(
        300, 300, D, 9, **shape, dtype=points.dtype, form_dim=11, look_dim=4, active_rows=active_rows, capacity=40
    )
    graph = tonari.knn_graph(points, 9, metric=metric, plan=plan)
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), graph_truth(maker, metric), metric=metric)


@cache
def graph_truth(maker: str, metric: str) -> Neighbors:
    points = rows(maker)[:300]
    return brute(points, points, 9, metric, self_ids=np.arange(300))


@pytest.mark.parametrize("screen", _native.kernel_names())
def test_a_look_has_the_groups_and_tiles_of_its_screen(screen: str) -> None:
    kernel = _native.look_kernel(screen)
    assert kernel.split("/")[2] == screen.split("/")[2]
    if not screen.startswith("inner/"):
        return
    points = np.zeros((3, 4), np.float32)
    form = _native.Form("euclidean", [0.0] * 4, 1.0)
    groups = {_native.PackedPoints(name, form, points, 0, 3).group for name in (screen, kernel)}
    assert len(groups) == 1
    assert kernel == screen or (screen.split("/")[1], kernel.split("/")[1]) == ("float32", "int8")


def test_a_sketch_and_what_is_asked_belong_together() -> None:
    points, form = checks.gaussian(20, 6), _native.Form("euclidean", [0.0] * 6, 1.0)
    order, sketch = np.arange(20), np.zeros((3, 20), np.float32)
    given = "inner/float32/generic", form, points, points, 4, "generic", None, False, False, 64, 0, None

    with pytest.raises(ValueError, match="order of their own"):
        _native.RowBlock(*given, None, sketch)
    with pytest.raises(ValueError, match="sketch"):
        _native.RowBlock(*given, order, sketch[:, :19].copy())
    with pytest.raises(ValueError, match="sketch"):
        _native.RowBlock(*given, order, np.zeros((7, 20), np.float32))
    block, asked = _native.RowBlock(*given, order, sketch), np.zeros((20, 3), np.float32)
    for places, rows_asked in ((order, None), (None, asked)):
        with pytest.raises(ValueError, match="both or neither"):
            block.open(0, 20, places, rows_asked)
    with pytest.raises(ValueError, match="asked"):
        block.open(0, 20, order, asked[:, :2].copy())
    with pytest.raises(ValueError, match="no sketch"):
        _native.RowBlock(*given, order).open(0, 20, order, asked)


def test_queries_nearest_to_a_centre_without_points(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.exact.cpu.clusters import Clusters

    def with_one_far_away(*args: Any) -> Array:
        centres: Array = kept(*args)
        centres[-1] = 1000
        return centres

    kept = Clusters._lloyd
    monkeypatch.setattr(Clusters, "_lloyd", with_one_far_away)
    points = rows("gaussian")
    queries = np.full((5, D), 1e6, np.float32)
    assert_same_neighbors(looked(queries, points, K, 6), brute(queries, points, K))


def test_points_are_packed_for_the_look_of_their_search() -> None:
    points, form = checks.gaussian(40, 6), _native.Form("euclidean", [0.0] * 6, 1.0)
    look, kernel = form.contracted(points, 1, 3), "inner/float32/generic"
    without, other = (
        _native.PackedPoints(kernel, form, points, 0, 40, look=chosen)
        for chosen in (None, form.contracted(points, 1, 3))
    )
    block = _native.RowBlock(kernel, form, points, points, 4, "generic", None, False, False, 64, 0, look, np.arange(40))
    block.open(0, 40)
    join = _native.SelfJoin(kernel, form, points, 4, "generic", np.arange(40), False, False, 64, 1 << 20, look)
    join.open(0, 40)
    for packed in (without, other):
        with pytest.raises(ValueError, match="packed for another look, or none"):
            block.screen(packed, 0, packed.groups, looks=True)
        with pytest.raises(ValueError, match="packed for another look, or none"):
            join.prepare(0, 40, packed)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("maker", ["gaussian", "tight_far_clusters", "duplicates", "huge"])
def test_a_sketch_decides_nothing(metric: str, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # First thresholds are exact values of whatever points the sketch names: wrong ones make a search slow, no more.
    from tonari.exact.cpu.clusters import Clusters

    def wrong(*args: Any) -> Array:
        found = kept(*args)
        return np.random.default_rng(0).permutation(found) * np.float32(1e10)

    kept = Clusters._rows
    monkeypatch.setattr(Clusters, "_rows", wrong)
    points = rows(maker)
    found = looked(points[:M], points, K, 6, metric)
    assert_same_neighbors(found, truth(maker, metric), metric=metric)


def search_along(directions: Array, queries: Array, points: Array, k: int, metric: str = "euclidean") -> Neighbors:
    """Search the points contracted to directions that the test names."""
    n, d = points.shape
    shape = n, len(queries), d, k
    plan = tonari.plan(
        *shape, dtype=points.dtype, metric=metric, threads=1, method="exact", look_dim=directions.shape[1] + 1
    )

    class Along(PreparedPoints):
        def __init__(self) -> None:
            super().__init__(points, plan)
            self.form = _native.Form(metric, [0.0] * d, 1.0)
            assert self.look is not None
            self.look = _native.Form(metric, [0.0] * d, 1.0, directions)
            self._held = "", []

    return search_prepared(queries, Along(), plan)[0]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_points_that_only_look_near_give_no_threshold(metric: str) -> None:
    # The residuals of decoys are as long as the query's and point the other way: contracted, they are at the query,
    # whose neighbours are a little off along the direction that is kept.
    n, k = 300, 10
    points = np.zeros((n, 6))
    points[:, 0] = 1
    points[:, 1 + np.arange(n) % 2] = -3
    points[n // 2 :, 1:] = 0
    points[n // 2 :, 1] = 3
    points[n // 2 :, 0] = 1 + np.arange(n - n // 2) / 1000
    points[:, 3] = np.random.default_rng(0).uniform(-1e-3, 1e-3, n)
    query = np.array([[1.0, 3, 0, 0, 0, 0]])
    found = search_along(np.eye(6)[:, :1] * (1 - 1e-9), query, points, k, metric)
    assert_same_neighbors(found, brute(query, points, k, metric), metric=metric)


def test_any_directions_that_make_no_row_longer() -> None:
    points, rng = checks.gaussian(300, 10), np.random.default_rng(1)
    orthonormal = np.linalg.qr(rng.standard_normal((10, 4)))[0] * (1 - 1e-9)
    for directions in (orthonormal, orthonormal * [1, 0.3, 0, 1e-200], orthonormal @ np.full((4, 4), 0.25)):
        found = search_along(np.ascontiguousarray(directions), points[:20], points, 7)
        assert_same_neighbors(found, brute(points[:20], points, 7))


def test_rows_within_the_directions_have_no_rest() -> None:
    # |x|^2 - |V^T x|^2 is all rounding here, of either sign; the distances are far below its root.
    rng = np.random.default_rng(0)
    low = (1 + rng.standard_normal((400, 3)) * 1e-7) @ rng.standard_normal((3, 40))
    assert_same_neighbors(looked(low[:30], low, 10, 4), brute(low[:30], low, 10))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"look_dim": D}, "fewer than the 24"),
        ({"look_dim": 1}, "2 or more"),
        ({"look_dim": 6, "form_dim": 6}, "fewer than the 6 of form_dim"),
        ({"look_dim": 4, "metric": "l1"}, "compares all"),
        ({"look_dim": 4, "memory": "1GB"}, "all points in memory"),
        ({"look_dim": 4, "resident": False}, "all points in memory"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.plan(N, M, D, K, method="exact", **choices)
