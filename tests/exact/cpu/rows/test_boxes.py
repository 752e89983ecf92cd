"""Boxes around cells: an order of all points, lower bounds of distances, and cells that are near."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.exact.cpu.rows.boxes import PARTS, Boxes, BoxForm, cell_of

Array = npt.NDArray[Any]
N, D = 500, 40


def boxes_of(points: Array, metric: str = "euclidean", group: int = 12) -> Boxes:
    form = BoxForm.chosen(points, metric, [0.0] * points.shape[1], 1.0)
    assert form is not None
    boxes = Boxes(form, len(points), group)
    boxes.arrange(points, 0, len(points), Workers(1))
    return boxes


def squares_of(boxes: Boxes, query: Array, isa: str) -> Array:
    sketch = boxes.sketched(query)
    assert sketch is not None
    return boxes.squares(sketch, isa, Workers(2)) * (boxes.made.step / PARTS) ** 2


@pytest.mark.parametrize("d", [3, D], ids=["all", "contracted"])
@pytest.mark.parametrize("isa", _native.supported_isas())
def test_no_gap_is_longer_than_a_distance(isa: str, d: int) -> None:
    rng = np.random.default_rng(3)
    points = (np.round(rng.standard_normal((N, d)) * 3) * 85 / np.arange(1, d + 1)).astype(np.float32)
    boxes = boxes_of(points)
    assert np.array_equal(np.sort(boxes.order), np.arange(N))
    for query in (points[:1], points[7:8] * 40, points[9:10] + np.float32(30)):
        squares = ((points[boxes.order].astype(np.float64) - query) ** 2).sum(1)
        nearest = np.minimum.reduceat(squares, np.arange(0, N, boxes.cell))
        assert (squares_of(boxes, query, isa) <= nearest).all()
    assert (squares_of(boxes, points[:1], isa) > 0).mean() > 0.5  # most boxes are apart from a point


def test_cells_are_near_and_are_groups_of_the_kernel() -> None:
    assert [cell_of(group) for group in (4, 6, 12, 32)] == [24, 24, 24, 32]
    tight = np.repeat(checks.gaussian(20, D, 1), 24, axis=0) * 100 + checks.gaussian(480, D, 2)
    shuffled = np.random.default_rng(0).permutation(tight).astype(np.float32)
    boxes = boxes_of(shuffled)
    assert (boxes.ends[1].astype(int) - boxes.ends[0]).max() < 20  # each cell is one cluster
    found = np.empty(3, np.int64)
    _native.nearest_boxes(np.array([5, 1, 4, 1, 1, 9], np.int32), found)
    assert found.tolist() == [1, 3, 4]


def test_rows_beyond_the_range_are_in_boxes_without_ends() -> None:
    points = checks.gaussian(100, D, 1)
    points[[3, 50]] = 1e30
    boxes = boxes_of(points)
    assert boxes.order[-2:].tolist() == [3, 50]
    assert (boxes.ends[0, :, -1] == 0).all()
    assert (boxes.ends[1, :, -1] == 255).all()
    assert boxes.sketched(points[3:4]) is None
