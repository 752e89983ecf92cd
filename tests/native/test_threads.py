"""Native code in four threads at a time, with every instruction set and unusual shapes, for sanitizers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute
from tonari.select.registry import METHODS

Array = npt.NDArray[Any]
ISAS = _native.supported_isas()
SIZES = (1, 7, 95, 96, 97, 700)
D = 11


@cache
def rows(n: int) -> Array:
    """Make whole numbers, so that many distances tie and rows are compacted again and again."""
    return np.random.default_rng(n).integers(-3, 4, (n, D)).astype(np.float32)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("isa", ISAS)
def test_search(isa: str, n: int) -> None:
    k, queries = min(5, n), rows(97)
    truth = brute(queries, rows(n), k)
    for choices in ({"query_block": 7}, {"point_splits": 3, "point_chunk": 96}, {"capacity": 1, "query_block": 33}):
        plan = tonari.plan(n, 97, D, k, method="exact", threads=4, isa=isa, **choices)
        assert_same_neighbors(tonari.search(queries, rows(n), k, plan=plan), truth)


@pytest.mark.parametrize("capacity", [1, 64])
@pytest.mark.parametrize("isa", ISAS)
def test_self_join(isa: str, capacity: int) -> None:
    points = rows(1153)
    choices = {"isa": isa, "active_rows": 576, "capacity": capacity}
    plan = tonari.plan(1153, 1153, D, 9, method="exact", threads=4, self_join=True, **choices)
    graph = tonari.knn_graph(points, 9, plan=plan)
    truth = brute(points, points, 9, self_ids=np.arange(1153))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), truth)


@pytest.mark.parametrize("n", [*SIZES[1:], 5000])
@pytest.mark.parametrize("isa", ISAS)
def test_kdtree(isa: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    queries = rows(97)[:, :3].copy()
    points = rows(n)[:, :3].copy()
    found = tonari.search(queries, points, 5, method="kdtree", threads=4)
    assert_same_neighbors(found, brute(queries, points, 5))


@pytest.mark.parametrize("isa", ISAS)
def test_nn_descent(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    points = rows(700)
    graph = tonari.knn_graph(points, 5, method="nn-descent", seed=1, threads=4)
    alone = tonari.knn_graph(points, 5, method="nn-descent", seed=1, threads=1)
    assert (graph.indices == alone.indices).all()
    assert (graph.distances == alone.distances).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("isa", ISAS)
def test_select(isa: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    for m, n in ((1, 1), (7, 7), (33, 95), (33, 96), (33, 97), (4, 5000)):
        values = np.random.default_rng(n).integers(0, 50, (m, n)).astype(np.float32)
        k = min(n, 20)
        found = tonari.select_k(values, k, method=method, threads=4)
        order = np.argsort(values, axis=1, kind="stable")[:, :k]
        assert (found.indices == order).all()
        assert (found.values == np.take_along_axis(values, order, axis=1)).all()
