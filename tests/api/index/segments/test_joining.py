"""Lists of the segments of an Index are merged: without removed points, and with ids instead of row numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.api.index.segments.joining import allowed_ones, join, join_within, named
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics import get_metric

NAMES = np.array([10, -1, 12, 30, -1, 50], np.int32)  # two of these points are removed
FOUND = Neighbors(np.array([[0, 1, 2, 3], [1, 1, 1, 2]], np.float32), np.array([[4, 0, 1, 5], [1, 2, 3, 4]], np.int32))


@pytest.mark.parametrize("as_tensors", [False, pytest.param(True, marks=needs_torch)])
def test_removed_points_are_left_out_and_the_others_stay_in_order(as_tensors: bool) -> None:
    found, names = FOUND, NAMES
    if as_tensors:
        import torch

        found, names = Neighbors(*map(torch.from_numpy, FOUND)), torch.from_numpy(NAMES)  # type: ignore[assignment]
    made = named(found, names, 2)
    assert made.indices.tolist() == [[10, 50], [12, 30]]
    assert made.distances.tolist() == [[1, 3], [1, 1]]
    whole = named(Neighbors(found.distances[:, 1:2], found.indices[:, 1:2]), names, 1)
    assert whole.indices.tolist() == [[10], [12]]


def test_missing_entries_keep_their_number() -> None:
    found = Neighbors(np.array([[1.0, np.inf]], np.float32), np.array([[5, -1]], np.int32))
    assert allowed_ones(found, NAMES).indices.tolist() == [[50, -1]]


def test_lists_are_merged_by_value_and_then_id() -> None:
    cases: list[Any] = [("euclidean", 1), ("inner_product", -1)]
    for metric, sign in cases:
        near = Neighbors(np.float32([[1, 2], [0, 5]]) * np.float32(sign), np.array([[7, 9], [8, 9]]))
        far = Neighbors(np.float32([[1, 1], [5, 6]]) * np.float32(sign), np.array([[3, 8], [1, 2]]))
        made = join([near, far], 3, get_metric(metric))
        assert made.indices.tolist() == [[3, 7, 8], [8, 1, 9]]
        assert (sign * made.distances).tolist() == [[1, 1, 1], [0, 5, 5]]
        assert join([near], 2, get_metric(metric)) is near


def within(indptr: list[int], ids: list[int], values: list[float]) -> RadiusNeighbors:
    return RadiusNeighbors(np.array(indptr), np.array(ids), np.float32(values))


def test_what_is_within_a_radius_is_merged_without_removed_points() -> None:
    near, far = within([0, 2, 3, 3], [0, 1, 2], [1, 2, 4]), within([0, 1, 2, 2], [1, 0], [1, 4])
    for metric, sign in (("euclidean", 1), ("inner_product", -1)):
        parts = [
            (found._replace(distances=sign * found.distances), names)
            for found, names in ((near, NAMES), (far, np.array([5, 6])))
        ]
        made = join_within(parts, get_metric(metric))
        assert made.indptr.tolist() == [0, 2, 4, 4]
        assert made.indices.tolist() == [6, 10, 5, 12]
        assert (sign * made.distances).tolist() == [1, 1, 4, 4]
