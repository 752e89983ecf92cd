"""What a tree on CUDA leaves to others within a radius, and how devices share the queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.radius_on_cuda import check_within, limits_at
from tests.helpers.tree_search import DEVICE, plan_for
from tonari.core.radius_neighbors import RadiusNeighbors

if HAS_TORCH:
    from tonari.kdtree.cuda.method import TreeOnCuda

pytestmark = [needs_torch, *([pytest.mark.gpu] if HAS_CUDA else [])]
# Queries, and points in three leaves or five.
M, N = (5, 300) if HAS_CUDA else (2, 130)


def check(
    queries: Array, points: Array, metric: str = "euclidean", limits: Any = 0.3, **choices: Any
) -> RadiusNeighbors:
    """Compare a search with the reference; `limits` may be the share of the points that is within them."""
    if isinstance(limits, float):
        limits = limits_at(queries, points, metric, limits)
    given = {name: choices.pop(name) for name in ("counted", "self_join", "as_searched") if name in choices}
    asked, rows = given.get("as_searched", (queries, points))
    plan = plan_for(asked, rows, 1, metric, self_join=given.get("self_join", False), **choices)
    return check_within(TreeOnCuda(), plan, queries, points, limits, **given)


def test_several_devices_share_the_queries() -> None:
    points = checks.duplicates(N, 2)
    check(points[:3], points, "linf", devices=(DEVICE, DEVICE))


@pytest.mark.parametrize("far", ["queries", "points", "both"])
@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_values_that_a_tree_cannot_compare(far: str, self_join: bool, counted: bool) -> None:
    points = checks.duplicates(9, 2)
    queries = points if self_join else points[:4].copy()
    for rows in (queries, points):
        if far == "both" or (rows is points) == (far == "points"):
            rows[-2] = 1e25
    slabs = {"point_slab": 5} if far == "points" else {}
    check(queries, points, limits=0.6, self_join=self_join, counted=counted, query_block=4, **slabs)


def test_a_query_that_is_not_finite_is_refused() -> None:
    queries, points = checks.gaussian(3, 2), checks.gaussian(9, 2)
    queries[1, 0] = np.nan
    method, plan = TreeOnCuda(), plan_for(queries, points, 1)
    with pytest.raises(ValueError, match=r"queries.*row 1"):
        method.find_within(queries, method.prepare(points, plan), plan, np.ones(3, np.float32), progress=False)
