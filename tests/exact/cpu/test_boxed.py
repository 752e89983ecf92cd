"""Searches of few queries read only the codes in boxes within reach, and find every neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.exact.cpu import boxed
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]


def clustered(n: int, d: int = 32) -> Array:
    rng = np.random.default_rng(1)
    return (rng.standard_normal((60, d)) * 5)[rng.integers(0, 60, n)].astype(np.float32) + rng.standard_normal(
        (n, d), np.float32
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_boxes_that_hold_neighbours_are_screened(metric: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = clustered(9000, 4)  # of four columns, so that a box is as far as its points
    queries = points[:4] + np.float32(0.5)
    queries[3] *= 1e3  # far from all boxes
    monkeypatch.setattr("tonari.exact.tuning.BOXED_FIRST", 16)
    monkeypatch.setattr("tonari.exact.tuning.BOXED_SHARED", 24)  # all threads take a share
    index = tonari.Index(points, metric=metric, codes="int8", threads=threads)
    assert_same_neighbors(index.search(queries, 300), brute(queries, points, 300, metric), metric=metric)


def test_few_boxes_are_screened(monkeypatch: pytest.MonkeyPatch) -> None:
    points, marked = clustered(20_000), []
    index = tonari.Index(points, codes="int8", threads=1)
    groups = boxed.Boxes.groups
    monkeypatch.setattr(boxed.Boxes, "groups", lambda self, some: marked.append(some.mean()) or groups(self, some))
    assert_same_neighbors(index.search(points[:1], 10), brute(points[:1], points, 10))
    assert len(marked) == 1
    assert marked[0] < 0.1


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_one_query_by_every_kernel(isa: str) -> None:
    points = clustered(700)
    for precision in ("int8", "bfloat16", "float32"):
        if f"inner/{precision}/{isa}" in _native.kernel_names():
            plan = tonari.plan(700, 2, 32, 9, isa=isa, precisions=(precision,), direct=False)
            found = tonari.search(points[:2], points, 9, plan=plan)
            assert_same_neighbors(found, brute(points[:2], points, 9))
