"""Points that are prepared as a tree: built once, by the plan."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.kdtree.plan import TreePlan
from tonari.metrics.reference import brute

POINTS = checks.gaussian(700, 4)
QUERIES = checks.gaussian(41, 4, seed=1)


def test_the_height_of_the_plan_is_that_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.kdtree.cpu import prepared

    built = []
    build = prepared.build
    monkeypatch.setattr(prepared, "build", lambda *a, **given: built.append(build(*a, **given)) or built[-1])
    for height in (0, 3, 9):
        tonari.search(QUERIES, POINTS, 5, plan=tonari.plan(700, 41, 4, 5, method="kdtree", height=height))
    assert [tree.height for tree in built] == [0, 3, 9]


def test_searches_at_once_build_a_tree_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index, at_once = tonari.Index(POINTS, method="kdtree"), 4
    built: list[str] = []
    prepare = PreparedTree.__init__

    def slowly(self: PreparedTree, points: Any, plan: TreePlan, progress: Any = None) -> None:
        built.append(plan.held)
        time.sleep(0.1)  # so that all threads arrive before one is done
        prepare(self, points, plan, progress)

    monkeypatch.setattr(PreparedTree, "__init__", slowly)
    queries, together = QUERIES.astype(np.float64), threading.Barrier(at_once)

    def work() -> Neighbors:
        together.wait()
        return index.search(queries, 5)

    with ThreadPoolExecutor(at_once) as pool:
        answers = [pool.submit(work) for _ in range(at_once)]
        for answer in answers:
            assert_same_neighbors(answer.result(), brute(queries, POINTS, 5))
    assert built == ["float64"]
    copied = pickle.loads(pickle.dumps(index))
    assert_same_neighbors(copied.search(queries, 5), brute(queries, POINTS, 5))
