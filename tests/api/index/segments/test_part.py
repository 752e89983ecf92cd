"""A segment of an Index knows the ids of its points and which points are removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.checks import gaussian
from tonari.api.index.segments.part import Part
from tonari.api.index.segments.segment import Segment
from tonari.methods.call import Call
from tonari.methods.places.place import CpuPlace
from tonari.metrics import get_metric

POINTS = gaussian(6, 2)
IDS = np.array([3, 4, 8, 9, 20, 21])


def part_of(ids: Any = IDS, gone: Any = None) -> Part:
    segment = Segment(POINTS, Call(metric=get_metric("euclidean"), place=CpuPlace(), method="exact"))
    return Part(segment, ids, None if gone is None else np.array(gone))


def test_rows_are_those_of_points_that_are_left() -> None:
    cases: list[Any] = [(None, [-1, 0, 2, 5, -1]), ([2], [-1, 0, -1, 5, -1])]
    for gone, expected in cases:
        assert part_of(gone=gone).rows_of(np.array([2, 3, 8, 21, 99])).tolist() == expected


def test_ids_are_row_numbers_only_of_a_whole_segment_from_0() -> None:
    whole = part_of(ids=None)
    assert whole.are_rows
    assert whole.ids.tolist() == list(range(6))
    assert part_of(ids=np.arange(6)).are_rows
    assert not part_of().are_rows
    assert not part_of(ids=None, gone=[1]).are_rows


def test_more_rows_are_removed_and_the_first_part_stays() -> None:
    whole = part_of()
    less = whole.without(np.array([4, 1])).without(np.array([1, 5]))
    assert (whole.n, less.n) == (6, 3)
    assert less.left.tolist() == [0, 2, 3]
    assert less.ids_left.tolist() == [3, 8, 9]
    assert less.points_left.tobytes() == POINTS[[0, 2, 3]].tobytes()
    assert whole.points_left is POINTS
    assert whole.without(np.empty(0, np.int64)) is whole


def test_names_are_minus_1_where_points_are_removed() -> None:
    part = part_of(gone=[0, 5])
    names = part.names(np.int32)
    assert names.dtype == np.int32
    assert names.tolist() == [-1, 4, 8, 9, 20, -1]
    assert part.names(np.int32) is names  # as many searches ask for them
    assert part.names(np.int64).dtype == np.int64


def test_a_copy_shares_the_points_and_what_was_removed() -> None:
    part = part_of(gone=[0])
    copy = part.copied()
    assert copy.segment is not part.segment
    assert copy.segment.points is part.segment.points
    assert (copy.ids_left == part.ids_left).all()
