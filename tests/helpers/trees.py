"""Trees built in plain NumPy, and searches of them by plans with overrides."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers import plans
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.inputs import held
from tonari.kdtree.cpu.search import Visits, search_tree
from tonari.kdtree.cpu.tree import Tree, plan_height
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TREE_ISAS
from tonari.kdtree.reference import build_reference

Array = npt.NDArray[Any]

ISAS = [isa for isa in TREE_ISAS if isa in _native.supported_isas()]
# Plan overrides for each traversal; buffers are so small that some are half full before all queries have started.
WAYS: list[dict[str, Any]] = [{"traversal": "walk"}, {"traversal": "buffered", "buffer": 3}]


def ways(metric: str, dtype: npt.DTypeLike) -> list[dict[str, Any]]:
    """Return plan overrides for each traversal that supports a metric and a tree of this dtype."""
    return WAYS if metric in ("euclidean", "sqeuclidean") and dtype == np.float32 else WAYS[:1]


class Count:
    """A progress bar that only adds up the amounts that a search reports."""

    def __init__(self) -> None:
        self.done = 0
        self._lock = threading.Lock()

    def add(self, amount: int) -> None:
        with self._lock:
            self.done += amount


def tree_of(points: Array, *, leaf: int = 8, height: int | None = None, double: bool | None = None) -> Tree:
    """Build a tree in plain NumPy."""
    height = plan_height(len(points), leaf) if height is None else height
    return build_reference(points, height, points.dtype == np.float64 if double is None else double)


def searched(
    queries: Array,
    points: Array,
    tree: Tree,
    k: int,
    metric: str = "euclidean",
    *,
    self_ids: Any = None,
    rounds: Rounds | None = None,
    **choices: Any,
) -> tuple[Neighbors, Visits]:
    """Search by a plan with these overrides, and check that progress counts every query once."""
    choices = {"threads": 1, "isa": ISAS[-1]} | choices
    made = plans.tree(len(points), len(queries), points.shape[1], k, dtype=points.dtype, metric=metric, **choices)
    count = Count()
    found = search_tree(held(queries), held(points), tree, made, self_ids=self_ids, bar=count, rounds=rounds)
    assert count.done == len(queries)
    return found
