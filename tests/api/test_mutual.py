"""Pairs of points of two sets that are among the nearest neighbours of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tonari
from tests.helpers import checks
from tonari.core.errors import Unsupported
from tonari.metrics.reference import pairwise, returned

A = checks.gaussian(90, 4)
B = np.concatenate([checks.gaussian(40, 4, seed=5), A[:7], A[:3]])


def by_hand(a: Any, b: Any, k: int, metric: str) -> list[tuple[int, int, float]]:
    """Return all mutual pairs of the first k, in the order of (value, row number)."""
    values = returned(pairwise(a, b, metric), np.float64 if a.dtype == np.float64 else np.float32)
    signed = -values if metric == "inner_product" else values
    ranks = [np.argsort(np.argsort(each, axis=1, kind="stable"), axis=1) for each in (signed, signed.T)]
    mutual = (ranks[0] < k) & (k > ranks[1].T)
    found = [(i, signed[i, j], j, values[i, j]) for i, j in np.argwhere(mutual).tolist()]
    return [(i, j, value) for i, _, j, value in sorted(found)]


@pytest.mark.parametrize("k", [1, 7, 50])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
@pytest.mark.parametrize("data", ["gaussian", "duplicates", "equal", "offset"])
def test_pairs_are_those_that_a_table_of_all_distances_has(data: str, metric: str, k: int) -> None:
    a, b = {
        "gaussian": (A, B),
        "duplicates": (checks.duplicates(90, 2), checks.duplicates(50, 2)),
        "equal": (np.ones((90, 2), np.float32), np.ones((50, 2), np.float32)),
        "offset": (checks.offset_float64(90, 3), checks.offset_float64(50, 3, seed=2)),
    }[data]
    found = tonari.mutual_neighbors(a, b, k, metric=metric)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == by_hand(a, b, k, metric)
    assert [part.dtype for part in found] == [np.int32, np.int32, np.float64 if data == "offset" else np.float32]


def test_changed_rows_sparse_rows_and_functions() -> None:
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    wanted = by_hand(A * np.sqrt(weights), B * np.sqrt(weights), 3, "euclidean")
    found = tonari.mutual_neighbors(A, B, 3, weights=weights)
    assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == [(i, j) for i, j, _ in wanted]
    assert found.distances.dtype == np.float64
    plain = tonari.mutual_neighbors(A, B, 3)
    sparse = tonari.mutual_neighbors(*map(scipy.sparse.csr_array, (A, B)), 3)
    function = tonari.mutual_neighbors(A, B, 3, metric=lambda a, rows: np.sqrt(((rows - a) ** 2).sum(axis=1)))
    for other in (sparse, function):
        assert other.left.tolist() == plain.left.tolist()
        assert other.right.tolist() == plain.right.tolist()


@pytest.mark.parametrize(("a", "b"), [(A[:0], B), (A, B[:0]), (A[:0], B[:0])])
def test_an_empty_set_has_no_pairs(a: Any, b: Any) -> None:
    found = tonari.mutual_neighbors(a, b, 3)
    assert [part.shape for part in found] == [(0,)] * 3
    assert [part.dtype for part in found] == [np.int32, np.int32, np.float32]


def test_two_empty_sets_are_checked_like_others() -> None:
    a, b = A[:0], B[:0]
    for options, dtype in (
        ({}, np.float32),
        ({"weights": np.arange(4.0)}, np.float64),
        ({"metric": "cosine"}, np.float32),
    ):
        assert tonari.mutual_neighbors(a, b, 3, **options).distances.dtype == dtype
    sparse = tonari.mutual_neighbors(*map(scipy.sparse.csr_array, (a, b)), 3)
    assert [len(part) for part in sparse] == [0, 0, 0]
    with pytest.raises(ValueError, match="columns"):
        tonari.mutual_neighbors(a, b[:, :3], 3)
    with pytest.raises(ValueError, match="k"):
        tonari.mutual_neighbors(a, b, 0)
    with pytest.raises(ValueError, match="euclid"):
        tonari.mutual_neighbors(a, b, 3, metric="euclid")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="k=51"):
        tonari.mutual_neighbors(A, B, 51)
    with pytest.raises(ValueError, match="points_a has 4 columns, points_b 3"):
        tonari.mutual_neighbors(A, B[:, :3], 1)
    with pytest.raises(Unsupported, match="precomputed': pass the points, or search the distances and their transpose"):
        tonari.mutual_neighbors(np.ones((3, 3)), None, 1, metric="precomputed")
