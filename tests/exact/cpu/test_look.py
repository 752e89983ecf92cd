"""Properties of looks at contracted rows alone: clusters, sketches, and graphs of contracted rows.

`test_contraction.py` tests the properties that looks share with forms.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import HOSTILE, assert_same_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
PRODUCTS = [name for name, record in METRICS.items() if not record.elementwise]
N, M, D, K = 500, 20, 24, 17


def looked(queries: Array, points: Array, k: int, look_dim: int, metric: str = "euclidean") -> Neighbors:
    shape = len(points), len(queries), points.shape[1], k
    chosen: dict[str, Any] = {"metric": metric, "threads": 1, "method": "exact", "look_dim": look_dim}
    return tonari.search(queries, points, k, metric=metric, plan=tonari.plan(*shape, dtype=points.dtype, **chosen))


@cache
def rows(maker: str) -> Array:
    return HOSTILE[maker](N, D, 0)


@cache
def truth(maker: str, metric: str) -> Neighbors:
    return brute(rows(maker)[:M], rows(maker), K, metric)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("metric", PRODUCTS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("active_rows", [0, 576], ids=["rows", "joined"])
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
    from tonari.exact.cpu.rows.clusters import Clusters

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
    # First thresholds are exact values of the points that the sketch names; wrong points only make a search slower.
    from tonari.exact.cpu.rows.clusters import Clusters

    def wrong(*args: Any) -> Array:
        found = kept(*args)
        return np.random.default_rng(0).permutation(found) * np.float32(1e10)

    kept = Clusters._rows
    monkeypatch.setattr(Clusters, "_rows", wrong)
    points = rows(maker)
    found = looked(points[:M], points, K, 6, metric)
    assert_same_neighbors(found, truth(maker, metric), metric=metric)


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
