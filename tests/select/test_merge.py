"""Merging: lists of parts of the points become the list of all points, to the last bit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tonari.core.results.neighbors import Neighbors, first_repeated_row, index_dtype
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.select.merge import merge_neighbors


def _lists(distances: Any, indices: Any, dtype: Any = np.float32) -> Neighbors:
    return Neighbors(np.array(distances, dtype), np.array(indices, np.int32))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["duplicates", "gaussian", "huge", "all_equal", "offset_float64"])
def test_parts_give_the_whole(metric: str, name: str) -> None:
    points = np.abs(checks.HOSTILE[name](90, 4, 0))
    queries, k, cuts = points[::7], 12, [0, 13, 50, 90]
    parts = [brute(queries, points[a:b], k, metric) for a, b in itertools.pairwise(cuts)]
    whole = brute(queries, points, k, metric)
    checks.assert_same_neighbors(merge_neighbors(parts, cuts[:3], metric=metric), whole, metric=metric)
    checks.assert_same_neighbors(
        merge_neighbors(parts[::-1], cuts[2::-1], metric=metric), whole, metric=metric
    )  # the order of the parts does not matter
    staged = merge_neighbors(parts[1:], cuts[1:3], metric=metric)
    checks.assert_same_neighbors(merge_neighbors([parts[0], staged], [0, 0], metric=metric), whole, metric=metric)


def test_small_parts_fill_a_wider_list() -> None:
    points = checks.gaussian(10, 3)
    parts = [brute(points, points[:4], 4), brute(points, points[4:], 6)]
    merged = merge_neighbors(parts, [0, 4], k=10)
    checks.assert_same_neighbors(merged, brute(points, points, 10))
    assert merge_neighbors(parts, [0, 4]).indices.shape == (10, 6)
    assert merge_neighbors(parts, [0, 4], k=1).indices.tolist() == [[i] for i in range(10)]


def test_row_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.duplicates(40, 3)
    parts = [brute(points, points[:20], 5), brute(points, points[20:], 5)]
    monkeypatch.setattr("tonari.select.tuning.MERGE_BLOCK", 30)
    checks.assert_same_neighbors(merge_neighbors(parts, [0, 20]), brute(points, points, 5))
    repeated = Neighbors(parts[1].distances, parts[1].indices.copy())
    repeated.indices[32, 1] = repeated.indices[32, 0]
    with pytest.raises(ValueError, match="row 32 lists a point twice after the offsets"):
        merge_neighbors([parts[0], repeated], [0, 20])


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_missing_entries_come_last(metric: str) -> None:
    far = -np.inf if metric == "inner_product" else np.inf
    left = _lists([[far, 7.0]], [[2, -1]])  # a real neighbour at distance inf, and a missing one with a number
    right = _lists([[5.0, np.nan]], [[0, -1]])
    merged = merge_neighbors([left, right], [0, 10], k=4, metric=metric)
    assert merged.indices.tolist() == [[10, 2, -1, -1]]
    assert merged.distances.tolist() == [[5.0, far, far, far]]


def test_inner_product_descends() -> None:
    merged = merge_neighbors([_lists([[3, 1]], [[0, 1]]), _lists([[3, 2]], [[0, 1]])], [5, 0], metric="inner_product")
    assert merged.distances.tolist() == [[3, 3]]
    assert merged.indices.tolist() == [[0, 5]]


def test_parts_are_left_alone() -> None:
    part = _lists([[7.0]], [[-1]])
    merge_neighbors([part, part], [0, 3])
    assert part.distances.tolist() == [[7.0]]
    assert part.indices.tolist() == [[-1]]


def test_index_dtype() -> None:
    part = _lists([[1.0]], [[5]])
    assert index_dtype(2**31 - 1) == np.int32
    assert index_dtype(2**31) == np.int64
    assert merge_neighbors([part], [2**31 - 7]).indices.dtype == np.int32
    assert merge_neighbors([part], [2**31 - 6]).indices.dtype == np.int64
    assert merge_neighbors([part], [2**40]).indices.tolist() == [[2**40 + 5]]
    wide = Neighbors(part.distances, part.indices.astype(np.int64))
    assert merge_neighbors([wide, part], [0, 10]).indices.dtype == np.int64


def test_first_repeated_row() -> None:
    assert first_repeated_row(np.array([[3, 1, 2], [0, -1, -1]])) == -1
    assert first_repeated_row(np.array([[3, 1, 2], [4, 0, 4], [1, 1, 0]])) == 1
    assert first_repeated_row(np.zeros((3, 1), np.int32)) == -1


ONE = _lists([[1.0, 2.0]], [[0, 1]])


@pytest.mark.parametrize(
    ("parts", "offsets", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "nothing to merge"),
        ([ONE], [0, 1], {}, ValueError, "1 parts need 1 offsets, got 2"),
        ([ONE], [-1], {}, ValueError, r"offsets\[0\]=-1: expected a whole number of at least 0"),
        ([ONE], [0.5], {}, TypeError, r"offsets\[0\]=0.5: expected a whole number, got float"),
        ([ONE], [0], {"k": True}, TypeError, "k=True: expected a whole number, got a bool"),
        ([tuple(ONE)], [0], {}, TypeError, r"part 0: expected tonari.Neighbors\(distances, indices\), got tuple"),
        (
            [Neighbors(np.ma.masked_less(ONE.distances, 2), ONE.indices)],
            [0],
            {},
            ValueError,
            "part 0: has masked values",
        ),
        ([ONE], [0], {"k": 3}, ValueError, "k=3: the parts have 2 columns together"),
        ([ONE], [0], {"k": 0}, ValueError, "k=0: expected a whole number of at least 1"),
        ([ONE], [0], {"metric": "l3"}, ValueError, "unknown metric"),
        ([ONE, ONE], [0, 1], {}, ValueError, "row 0 lists a point twice after the offsets"),
        ([ONE, _lists([[1], [1]], [[0], [0]])], [0, 2], {}, ValueError, "part 1 has 2 rows"),
        ([ONE, _lists([[1]], [[0]], np.float64)], [0, 2], {}, ValueError, "float64"),
        ([_lists([[np.nan]], [[0]])], [0], {}, ValueError, "part 0: row 0 has a NaN distance"),
        ([_lists([[1.0]], [[0, 1]])], [0], {}, ValueError, "must have the same shape .m, k."),
        ([_lists([[1]], [[0]], np.float16)], [0], {}, TypeError, "got float16 and int32"),
        ([Neighbors(ONE.distances, ONE.indices.astype(np.uint32))], [0], {}, TypeError, "uint32"),
    ],
)
def test_refuses(parts: Any, offsets: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        merge_neighbors(parts, offsets, **options)
