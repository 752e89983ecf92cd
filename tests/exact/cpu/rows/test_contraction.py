"""Contracted rows, screened or looked at before the screen: the same bits as with all columns.

Columns are those of the form (form_dim) or of the look (look_dim). Rows, directions and schedules are of all kinds.
"""

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
from tonari.core.process.isa import chosen_isa
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
PRODUCTS = [name for name, record in METRICS.items() if not record.elementwise]
N, M, D, K = 500, 20, 24, 17

BOTH = ("form_dim", "look_dim")
Columns = tuple[str, int]


def of_both(*numbers: int) -> list[Columns]:
    """Return options with this number of columns of the form, and of the look."""
    return [(name, number) for name in BOTH for number in numbers]


def contracted(
    queries: Array, points: Array, k: int, columns: Columns, metric: str = "euclidean", **choices: Any
) -> Neighbors:
    shape = len(points), len(queries), points.shape[1], k
    chosen: dict[str, Any] = {"threads": 1, "method": "exact", "metric": metric} | dict([columns]) | choices
    plan = tonari.plan(*shape, dtype=points.dtype, **chosen)
    return tonari.search(queries, points, k, metric=metric, plan=plan)


@cache
def rows(maker: str) -> Array:
    return HOSTILE[maker](N, D, 0)


@cache
def truth(maker: str, metric: str) -> Neighbors:
    return brute(rows(maker)[:M], rows(maker), K, metric)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("columns", of_both(2, 9, D - 1))
@pytest.mark.parametrize("metric", PRODUCTS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("capacity", [2048, 1], ids=["roomy", "settles"])
def test_hostile_data(isa: str, columns: Columns, metric: str, maker: str, capacity: int) -> None:
    points = rows(maker)
    found = contracted(points[:M], points, K, columns, metric, isa=isa, capacity=capacity)
    assert_same_neighbors(found, truth(maker, metric), metric=metric)


@cache
def of_dtype(dtype: str, metric: str) -> tuple[Array, Neighbors]:
    points = np.abs(checks.gaussian(300, 21, 3) * 20).astype(dtype)
    return points, brute(points[:M], points, 9, metric)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", of_both(2, 10))
@pytest.mark.parametrize("metric", PRODUCTS)
def test_every_dtype(dtype: str, columns: Columns, metric: str) -> None:
    points, expected = of_dtype(dtype, metric)
    assert_same_neighbors(contracted(points[:M], points, 9, columns, metric), expected, metric=metric)


@pytest.mark.parametrize("precision", ["int8", "bfloat16", "float32"])
@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("maker", ["gaussian", "tight_far_clusters", "duplicates"])
@pytest.mark.parametrize("columns", of_both(7))
def test_every_kernel(precision: str, isa: str, maker: str, columns: Columns) -> None:
    if f"inner/{precision}/{isa}" not in _native.kernel_names():
        pytest.skip("this machine has no kernel of that precision and instruction set")
    points = rows(maker)
    levels = (precision,) if precision == "float32" else (precision, "float32")
    found = contracted(points[:M], points, K, columns, isa=isa, precisions=levels, capacity=40)
    assert_same_neighbors(found, truth(maker, "euclidean"))


@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 96, 97])
@pytest.mark.parametrize("m", [1, 7, 33])
def test_small_shapes_up_to_all_points(n: int, m: int) -> None:
    points, queries = checks.duplicates(n, 5), checks.gaussian(m, 5, 1)
    for k in {1, (n + 1) // 2, n}:
        for columns in of_both(2, 4):
            assert_same_neighbors(contracted(queries, points, k, columns), brute(queries, points, k))


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("d", [3, 16, 17, 33, 300])
def test_every_number_of_columns(d: int, name: str) -> None:
    points = checks.gaussian(150, d)
    expected = brute(points[:9], points, 6)
    for number in sorted({2, 3, 16, 17, 18, 32, 33, d - 1} & set(range(2, d))):
        assert_same_neighbors(contracted(points[:9], points, 6, (name, number)), expected)


SCHEDULES: dict[str, dict[str, Any]] = {
    "threads": {"threads": 3, "query_block": 7},
    "splits": {"point_splits": 3, "threads": 2, "point_chunk": 96},
    "adaptive": {"adaptive": True, "query_block": 2, "precisions": ("int8", "float32")},
    "streamed": {"resident": False, "point_chunk": 96},
    "sampled": {"point_chunk": 96, "sample_stride": 2, "sample_rank": 60},
}
ONLY = {"streamed": "form_dim", "sampled": "look_dim"}  # options that the other does not have


@pytest.mark.parametrize(
    ("name", "schedule"),
    [(name, schedule) for name in BOTH for schedule in SCHEDULES if ONLY.get(schedule, name) == name],
)
@pytest.mark.parametrize("k", [1, 70])
def test_every_schedule(name: str, schedule: str, k: int) -> None:
    if schedule == "adaptive" and f"inner/int8/{chosen_isa()}" not in _native.kernel_names():
        pytest.skip("this machine has no int8 kernel, and the schedule changes precisions")
    points = rows("tight_far_clusters")
    found = contracted(points[:M], points, k, (name, 6), **SCHEDULES[schedule])
    assert_same_neighbors(found, brute(points[:M], points, k))


@pytest.mark.parametrize("how", [{name: 6, "active_rows": joined} for name in BOTH for joined in (0, 576)], ids=str)
@pytest.mark.parametrize("metric", PRODUCTS)
@pytest.mark.parametrize("maker", ["gaussian", "duplicates", "tight_far_clusters", "zero_rows"])
def test_graphs(how: dict[str, int], metric: str, maker: str) -> None:
    points, n = rows(maker)[:400], 400
    shape: dict[str, Any] = {"self_join": True, "metric": metric, "threads": 2, "method": "exact"}
    plan = tonari.plan(n, n, D, 9, **shape, dtype=points.dtype, **how)
    graph = tonari.knn_graph(points, 9, metric=metric, plan=plan)
    expected = brute(points, points, 9, metric, self_ids=np.arange(n))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected, metric=metric)


def search_along(
    directions: Array, queries: Array, points: Array, k: int, name: str, metric: str = "euclidean"
) -> Neighbors:
    """Search the points contracted to directions that the test chooses, as the form or as the look."""
    n, d = points.shape
    chosen: dict[str, Any] = {name: directions.shape[1] + 1, "threads": 1, "method": "exact", "metric": metric}
    plan = tonari.plan(n, len(queries), d, k, dtype=points.dtype, **chosen)

    class Along(PreparedPoints):
        def __init__(self) -> None:
            super().__init__(points, plan)
            contracted = _native.Form(metric, [0.0] * d, 1.0, directions)
            assert (self.look is None) is (name == "form_dim")
            self.form = contracted if name == "form_dim" else _native.Form(metric, [0.0] * d, 1.0)
            self.look = contracted if name == "look_dim" else None
            self._held = "", []

    return search_prepared(queries, Along(), plan)[0]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_points_that_only_look_near_give_no_threshold(metric: str, name: str) -> None:
    # The residuals of decoys are as long as the query's and opposite: contracted decoys coincide with the query, whose
    # neighbours are slightly displaced along the direction that is kept.
    n, k = 300, 10
    points = np.zeros((n, 6))
    points[:, 0] = 1
    points[:, 1 + np.arange(n) % 2] = -3
    points[n // 2 :, 1:] = 0
    points[n // 2 :, 1] = 3
    points[n // 2 :, 0] = 1 + np.arange(n - n // 2) / 1000
    points[:, 3] = np.random.default_rng(0).uniform(-1e-3, 1e-3, n)
    query = np.array([[1.0, 3, 0, 0, 0, 0]])
    found = search_along(np.eye(6)[:, :1] * (1 - 1e-9), query, points, k, name, metric)
    assert_same_neighbors(found, brute(query, points, k, metric), metric=metric)


@pytest.mark.parametrize("name", BOTH)
def test_any_directions_that_make_no_row_longer(name: str) -> None:
    points, rng = checks.gaussian(300, 10), np.random.default_rng(1)
    orthonormal = np.linalg.qr(rng.standard_normal((10, 4)))[0] * (1 - 1e-9)
    for directions in (orthonormal, orthonormal * [1, 0.3, 0, 1e-200], orthonormal @ np.full((4, 4), 0.25)):
        found = search_along(np.ascontiguousarray(directions), points[:20], points, 7, name)
        assert_same_neighbors(found, brute(points[:20], points, 7))


def test_directions_that_make_rows_longer_are_refused() -> None:
    longer = np.eye(5)[:, :3] * 1.001
    skewed = np.array([[1, 0.8], [0, 0.6], [0, 0.0]])
    for directions in (longer, skewed):
        with pytest.raises(ValueError, match="expected V"):
            _native.Form("euclidean", [0.0] * len(directions), 1.0, np.ascontiguousarray(directions))


@pytest.mark.parametrize("name", BOTH)
def test_rows_within_the_directions_have_no_rest(name: str) -> None:
    # |x|^2 - |V^T x|^2 is nothing but rounding error here, of either sign; the distances are far below its root.
    rng = np.random.default_rng(0)
    low = (1 + rng.standard_normal((400, 3)) * 1e-7) @ rng.standard_normal((3, 40))
    assert_same_neighbors(contracted(low[:30], low, 10, (name, 4)), brute(low[:30], low, 10))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"form_dim": D + 1}, "expected at most that"),
        ({"form_dim": 1}, "at least 2"),
        ({"form_dim": 4, "metric": "l1"}, "compares all"),
        ({"form_dim": 4, "sample_stride": 4, "sample_rank": 3}, "no sampled thresholds"),
    ],
)
def test_what_cannot_be_contracted_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.plan(N, M, D, K, method="exact", **choices)
