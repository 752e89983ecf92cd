"""Lists that are merged in place, compared with a plain reference that sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array
from tonari.core import _native

DTYPES = [(values, ids) for values in (np.float32, np.float64) for ids in (np.int32, np.int64)]


def reference(kept: tuple[Array, Array], rows: Array, other: tuple[Array, Array], descending: bool) -> tuple[Any, Any]:
    """Return the first k entries of both lists by distance and id, each point once."""
    distances, indices = kept[0].copy(), kept[1].copy()
    k = distances.shape[1]
    for at, row in enumerate(rows.tolist()):
        entries = {
            (-float(value) if descending else float(value), int(point))
            for values, points in ((kept[0][row], kept[1][row]), (other[0][at], other[1][at]))
            for value, point in zip(values, points, strict=True)
            if point >= 0
        }
        nearest = sorted(entries)[:k]
        nowhere = np.inf
        nearest += [(nowhere, -1)] * (k - len(nearest))
        distances[row] = [-value if descending else value for value, _ in nearest]
        indices[row] = [point for _, point in nearest]
    return distances, indices


def lists(
    rng: np.random.Generator, n: int, k: int, points: int, values: Any, ids: Any, descending: bool
) -> tuple[Array, Array]:
    """Make random sorted lists whose distances depend on row and point; some are short, some empty."""
    distances = np.full((n, k), -np.inf if descending else np.inf, values)
    indices = np.full((n, k), -1, ids)
    for row in range(n):
        size = int(rng.choice([0, max(0, k - 1), k]))
        chosen = rng.permutation(points)[:size]
        of = (chosen * 7919 % 11) / 4  # eleven values: many ties
        order = np.lexsort((chosen, -of if descending else of))
        distances[row, : len(chosen)], indices[row, : len(chosen)] = of[order], chosen[order]
    return distances, indices


@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("k", "width"), [(1, 1), (5, 1), (1, 6), (5, 5), (4, 9), (12, 3)])
@pytest.mark.parametrize("points", [6, 40, 3000])
def test_random_lists(points: int, k: int, width: int, descending: bool, dtypes: Any) -> None:
    """With few points, both lists often contain the same ones; with many, they rarely do."""
    rng = np.random.default_rng(points + k)
    k, width = min(k, points), min(width, points)
    kept = lists(rng, 60, k, points, *dtypes, descending)
    rows = np.sort(rng.permutation(60)[:37]).astype(np.int64)
    other = lists(rng, 37, width, points, *dtypes, descending)
    before = [part.copy() for part in other]
    wanted = reference(kept, rows, other, descending)
    _native.merge_into(*kept, rows, *other, descending)
    np.testing.assert_array_equal(kept[1], wanted[1])
    np.testing.assert_array_equal(kept[0], wanted[0])
    for part, was in zip(other, before, strict=True):
        np.testing.assert_array_equal(part, was)


@pytest.mark.parametrize("descending", [False, True])
def test_merging_again_changes_nothing(descending: bool) -> None:
    rng = np.random.default_rng(0)
    kept = lists(rng, 50, 8, 20, np.float32, np.int32, descending)
    other = lists(rng, 50, 8, 20, np.float32, np.int32, descending)
    _native.merge_into(*kept, np.arange(50), *other, descending)
    once = [part.copy() for part in kept]
    for again in (other, [part.copy() for part in kept]):
        _native.merge_into(*kept, np.arange(50), *again, descending)
        for part, was in zip(kept, once, strict=True):
            np.testing.assert_array_equal(part, was)


def test_rows_that_are_not_named_stay() -> None:
    kept = np.full((4, 2), np.inf, np.float32), np.full((4, 2), -1, np.int32)
    other = np.array([[1.0, 2.0]], np.float32), np.array([[7, 3]], np.int32)
    _native.merge_into(*kept, np.array([2]), *other, False)
    assert kept[1].tolist() == [[-1, -1], [-1, -1], [7, 3], [-1, -1]]
    _native.merge_into(*kept, np.array([], np.int64), *(part[:0] for part in other), False)
    assert kept[0].tolist() == [[np.inf] * 2, [np.inf] * 2, [1.0, 2.0], [np.inf] * 2]


def test_ids_beyond_32_bits() -> None:
    kept = np.array([[1.0, np.inf]]), np.array([[2**40, -1]])
    _native.merge_into(*kept, np.array([0]), np.array([[1.0, 1.0]]), np.array([[2**40 - 1, 2**40]]), False)
    assert kept[1].tolist() == [[2**40 - 1, 2**40]]


def given() -> dict[str, Any]:
    return {
        "distances": np.full((5, 3), np.inf, np.float32),
        "indices": np.full((5, 3), -1, np.int32),
        "rows": np.array([4, 0], np.int64),
        "other_distances": np.ones((2, 4), np.float32),
        "other_indices": np.arange(8, dtype=np.int32).reshape(2, 4),
        "descending": False,
    }


@pytest.mark.parametrize(
    ("name", "wrong", "error", "message"),
    [
        ("indices", np.full((5, 2), -1, np.int32), ValueError, "indices"),
        ("indices", np.full((4, 3), -1, np.int32), ValueError, "indices"),
        ("indices", np.full((5, 3), -1, np.int64), TypeError, "incompatible"),
        ("distances", np.full((5, 3), np.inf, np.float64), TypeError, "incompatible"),
        ("distances", np.full((5, 6), np.inf, np.float32)[:, ::2], TypeError, "incompatible"),
        ("rows", np.array([4, 5], np.int64), ValueError, "rows"),
        ("rows", np.array([-1, 0], np.int64), ValueError, "rows"),
        ("rows", np.array([0, 1], np.int32), TypeError, "incompatible"),
        ("rows", np.array([0, 1, 2], np.int64), ValueError, "other_distances"),
        ("other_distances", np.ones((2, 3), np.float32), ValueError, "other_indices"),
        ("other_indices", np.zeros((3, 4), np.int32), ValueError, "other_indices"),
        ("other_indices", np.zeros((2, 4), np.int64), TypeError, "incompatible"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, wrong: Array, error: type[Exception], message: str) -> None:
    arguments = given()
    _native.merge_into(**arguments)
    arguments = given()
    kept = [arguments[each].copy() for each in ("distances", "indices")]
    with pytest.raises(error, match=message):
        _native.merge_into(**arguments | {name: wrong})
    for each, was in zip(("distances", "indices"), kept, strict=True):
        np.testing.assert_array_equal(arguments[each], was)
