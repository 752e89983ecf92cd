"""Exact graphs by pairs of slabs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.shards import assert_exact, by_shards
from tonari.shards.planning import planner as exact
from tonari.shards.planning.planner import plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.source import as_source


def built(points: Any, k: int, out: Path, **given: Any) -> tonari.KNNGraph:
    return tonari.build_graph(points, k, out / "graph", method="exact", **given)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("rows", [34, pytest.param(13, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", checks.HOSTILE)
def test_hostile_points_by_pairs(
    name: str, rows: int, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, rows, route="exact-pairs")
    points = checks.in_range(checks.accepted(checks.HOSTILE[name](101, 5, 1), metric), metric)
    assert_exact(built(points, 5, tmp_path, metric=metric), points, 5, metric)


@pytest.mark.parametrize("dtype", checks.DTYPES)
def test_dtypes_by_pairs(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 290, route="exact-pairs")  # more than a block of rows that share products
    points = np.abs(30 * checks.gaussian(1000, 6)).clip(0, 120).astype(dtype)
    assert_exact(built(points, 4, tmp_path), points, 4)


class Shape:
    """A source of which a plan reads no row."""

    def __init__(self, n: int, d: int) -> None:
        self.shape, self.dtype = (n, d), np.dtype(np.float32)

    def rows(self, begin: int, end: int) -> Array:
        return np.zeros((end - begin, self.shape[1]), self.dtype)


@pytest.mark.parametrize(
    ("memory", "metric", "queries", "route", "one"),
    [
        (120_000_000, "euclidean", None, "exact-pairs", False),
        (600_000_000, "euclidean", None, "exact", True),  # everything fits
        (36_000_000, "euclidean", None, "exact", False),  # too little for pairs
        (120_000_000, "l1", None, "exact", False),  # no products
        (120_000_000, "euclidean", 200_000, "exact", False),  # no graph
    ],
)
def test_pairs_meet_where_products_are_shared(
    memory: int, metric: str, queries: int | None, route: str, one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TONARI_ISA", "generic")
    sizes = Sizes(as_source(Shape(200_000, 128)), 10, metric, None, (), 2, queries)
    made = plan_build(sizes, "exact", memory)
    assert (made.route, made.shards == 1) == (route, one)
    assert made.host_bytes <= memory
    assert made.is_exact
    if route == "exact-pairs":
        assert made.rows * made.shards >= 200_000
        assert made.seconds < exact._exact_from_each_side(sizes, memory).seconds
