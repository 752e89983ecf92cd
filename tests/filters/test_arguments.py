"""Arguments that restrict which points may be found: refusals and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.metrics import get_metric

N, M, K = 230, 21, 7


def data(maker: str, metric: str) -> tuple[checks.Array, checks.Array]:
    """Make queries and points; rows of bits are the bytes of rows of numbers."""
    points = checks.HOSTILE[maker](N, 5, 0)
    points = np.abs(points) if get_metric(metric).nonnegative else points
    queries = np.concatenate([points[:3], points[-M + 3 :] * 0.5]).astype(points.dtype)
    return (queries.view(np.uint8), points.view(np.uint8)) if get_metric(metric).bits else (queries, points)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"where": np.arange(N)}, TypeError, "where: int64 is not supported, only bool, or uint8 of bits; to name"),
        ({"where": np.ones(N - 1, bool)}, ValueError, r"where: expected shape \(230,\) or \(21, 230\) for 21 queries"),
        ({"where": np.zeros((M, 28), np.uint8)}, ValueError, r"where: expected shape \(21, 29\)"),
        ({"exclude": [[0]] * (M - 1)}, ValueError, "exclude: expected 21 lists, one for each query, got 20"),
        (
            {"exclude": [[0]] * (M - 1) + [[3, N]]},
            ValueError,
            "exclude: the list of query 20 has 230, expected numbers",
        ),
        ({"exclude": [[-1]] + [[]] * (M - 1)}, ValueError, "exclude: the list of query 0 has -1"),
        ({"exclude": [[0.5]] * M}, TypeError, r"exclude\[0\]: float64 is not supported, only whole numbers"),
        ({"exclude": ([0, 1], [0])}, ValueError, r"exclude\[0\]: expected shape \(22,\), got \(2,\)"),
        ({"exclude": (np.arange(M + 1), [0])}, ValueError, r"exclude\[0\]: expected numbers that ascend from 0 to 1"),
        ({"exclude": "none"}, TypeError, "exclude: expected a list of numbers for each query"),
        ({"exclude": ([0], [0], [0])}, ValueError, "a tuple is a pair"),
        ({"query_groups": np.zeros(M, int)}, ValueError, "query_groups: came without point_groups"),
        ({"point_groups": np.zeros(N, int)}, ValueError, "point_groups: came without query_groups"),
        ({"groups": "other"}, ValueError, "groups='other': came without query_groups and point_groups"),
        (
            {"query_groups": [0] * M, "point_groups": [0] * N, "groups": "mine"},
            ValueError,
            "expected 'same' or 'other'",
        ),
        ({"query_groups": [0.0] * M, "point_groups": [0] * N}, TypeError, "query_groups: float64 is not supported"),
        ({"query_groups": [0] * M, "point_groups": [0] * M}, ValueError, r"point_groups: expected shape \(230,\)"),
    ],
)
def test_what_is_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    queries, points = data("gaussian", "euclidean")
    index = tonari.Index(points)
    for call in (
        lambda: tonari.search(queries, points, K, **given),
        lambda: tonari.radius_search(queries, points, 1.0, **given),
        lambda: tonari.radius_count(queries, points, 1.0, **given),
        lambda: index.search(queries, K, **given),
        lambda: index.radius_search(queries, 1.0, **given),
    ):
        with pytest.raises(error, match=message):
            call()


def test_what_graphs_refuse() -> None:
    points, mask = checks.gaussian(50, 3), np.ones(50, bool)
    for given, message in (
        ({"recall": 0.9}, "recall: where, batch and exclude_within are for exact graphs alone; leave it out"),
        ({"seed": 0, "start": "random"}, "seed, start: where, batch and exclude_within are for exact graphs alone"),
        ({"method": "nn-descent"}, "method='nn-descent': where, batch and exclude_within are for exact graphs alone"),
        (
            {"plan": tonari.plan(50, 50, 3, 2, self_join=True)},
            "plan: where, batch and exclude_within are for exact graphs alone",
        ),
        ({"where": np.ones((50, 50), bool)}, r"where: expected shape \(50,\), one mask for all rows"),
        ({"k": 50}, "k=50: the largest k is 49"),
        ({"method": "kdtree", "metric": "cosine"}, "method='kdtree' supports"),
    ):
        with pytest.raises(ValueError, match=message):
            tonari.knn_graph(points, **({"k": 2, "where": mask} | given))
    with pytest.raises(ValueError, match="plan: was made for all points; leave it out"):
        tonari.search(points, points, 2, where=mask, plan=tonari.plan(50, 50, 3, 2))
    for verb in (tonari.pairs, tonari.radius_graph):
        with pytest.raises(ValueError, match="one mask for all rows"):
            verb(points, 1.0, where=np.ones((50, 50), bool))
    with pytest.raises(ValueError, match="method='kdtree' supports"):
        tonari.radius_search(points, points, 0.1, where=mask, method="kdtree", metric="cosine")
