"""Graphs with fewer neighbours, of a subset, and of reordered points, compared with sorting by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import get_metric

if HAS_TORCH:
    import torch

WITH_TIES = checks.duplicates(40, 2)
RNG = np.random.default_rng(0)


def _some_graph(what: str) -> KNNGraph:
    """Make graphs with many ties, with missing neighbours, with similarities, and with the point itself first."""
    if what == "similarities":
        return tonari.knn_graph(checks.gaussian(40, 3), 6, metric="inner_product", include_self=True)
    graph = tonari.knn_graph(WITH_TIES, 7, include_self=what == "self")
    if what == "missing":
        graph.indices[3, 2:], graph.distances[3, 2:] = -1, np.inf
        graph.indices[7], graph.distances[7] = -1, np.inf
        graph.distances[5, 5:] = np.inf  # neighbours at distance inf
    return graph


def _by_hand(graph: KNNGraph, kept: Any) -> tuple[list[list[int]], list[list[float]]]:
    """Make lists of the kept points: renumbered, sorted by (distance, index) with the point itself first, and
    padded.
    """
    sign = -1 if get_metric(graph.metric).descending else 1
    indices, distances = [], []
    for point in kept:
        row = [
            (other != point or not graph.include_self, sign * float(value), list(kept).index(other))
            for other, value in zip(graph.indices[point].tolist(), graph.distances[point].tolist(), strict=True)
            if other in kept
        ]
        row.sort()
        missing = graph.k - len(row)
        indices.append([number for _, _, number in row] + [-1] * missing)
        distances.append([sign * value for _, value, _ in row] + [sign * np.inf] * missing)
    return indices, distances


@pytest.mark.parametrize("what", ["ties", "missing", "similarities", "self"])
@pytest.mark.parametrize(
    "kept",
    [
        range(40),
        range(39, -1, -1),
        RNG.permutation(40),
        np.arange(40)[::2],
        RNG.choice(40, 7, replace=False).astype(np.uint8),
        [7],
    ],
    ids=["all", "reversed", "shuffled", "strided", "some", "one"],
)
def test_points_are_renumbered_and_lists_sorted_anew(what: str, kept: Any) -> None:
    graph = _some_graph(what)
    for part in (graph.indices, graph.distances):
        part.flags.writeable = False
    numbers = np.asarray(kept)
    made = graph.permute(numbers) if len(numbers) == 40 else graph.subset(numbers)
    indices, distances = _by_hand(graph, numbers.tolist())
    assert made.indices.tolist() == indices
    assert made.distances.tolist() == distances
    assert (made.metric, made.method, made.include_self) == (graph.metric, graph.method, graph.include_self)
    assert (made.indices.dtype, made.distances.dtype) == (graph.indices.dtype, graph.distances.dtype)
    # The result is a valid graph by its own checks.
    KNNGraph(made.indices, made.distances, made.metric, made.method, include_self=made.include_self)


def test_the_graph_of_permuted_points_has_the_bits_of_a_permuted_graph() -> None:
    order = RNG.permutation(40)
    built, permuted = tonari.knn_graph(WITH_TIES[order], 39), tonari.knn_graph(WITH_TIES, 39).permute(order)
    np.testing.assert_array_equal(permuted.indices, built.indices)
    np.testing.assert_array_equal(permuted.distances, built.distances)


def test_a_mask_keeps_the_points_where_it_is_true() -> None:
    graph, mask = _some_graph("ties"), np.arange(40) % 3 == 0
    one, other = graph.subset(mask), graph.subset(np.flatnonzero(mask))
    np.testing.assert_array_equal(one.indices, other.indices)
    assert one.n == 14


@pytest.mark.parametrize("what", ["missing", "self"])
@pytest.mark.parametrize("k", [1, 6, 7])
def test_trimmed_graphs_have_the_first_columns(what: str, k: int) -> None:
    graph = _some_graph(what)
    made = graph.trim(k)
    np.testing.assert_array_equal(made.indices, graph.indices[:, :k])
    np.testing.assert_array_equal(made.distances, graph.distances[:, :k])
    assert np.shares_memory(made.indices, graph.indices)
    assert made.include_self == graph.include_self


def test_what_was_measured_of_the_whole_is_not_told_of_a_part() -> None:
    graph = tonari.knn_graph(checks.gaussian(600, 4), 5, method="nn-descent", recall=0.5)
    assert graph.report is not None
    assert graph.trim(2).report is graph.subset([0, 1]).report is graph.permute(np.arange(600)).report is None


@needs_torch
def test_tensors_become_arrays_where_points_are_renumbered() -> None:
    graph = _some_graph("ties")
    tensors = KNNGraph(torch.from_numpy(graph.indices), torch.from_numpy(graph.distances), "euclidean", "exact")
    assert isinstance(tensors.trim(3).indices, torch.Tensor)
    made = tensors.subset(torch.tensor([5, 1, 2]))
    np.testing.assert_array_equal(made.indices, graph.subset([5, 1, 2]).indices)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda graph: graph.trim(0), ValueError, "k=0: expected a whole number of at least 1"),
        (lambda graph: graph.trim(8), ValueError, "k=8: the graph has 7 columns"),
        (lambda graph: graph.subset([0.0]), TypeError, "rows: expected whole numbers .* got float64"),
        (lambda graph: graph.subset([]), ValueError, "rows: no point is left"),
        (lambda graph: graph.subset(np.zeros(40, bool)), ValueError, "rows: no point is left"),
        (lambda graph: graph.subset(np.ones(39, bool)), ValueError, "rows: a mask of 39 values for 40 points"),
        (lambda graph: graph.subset([0, 40]), ValueError, "rows: got 40, expected numbers of points from 0 to 39"),
        (lambda graph: graph.subset([-1]), ValueError, "rows: got -1, expected"),
        (lambda graph: graph.subset([4, 2, 4]), ValueError, "rows: point 4 comes more than once"),
        (lambda graph: graph.subset([[1, 2]]), TypeError, "rows: expected whole numbers of shape"),
        (lambda graph: graph.permute(np.arange(39)), ValueError, "order: got 39 numbers, expected each of the 40"),
    ],
)
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(_some_graph("ties"))
