"""Checked sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tonari.sparse import tuning  # noqa: E402
from tonari.sparse.rows import Ranking, as_sparse_rows, joined_rows  # noqa: E402


def matrix(values: Any = (1.0, 2.0, 3.0), columns: Any = (0, 2, 1), indptr: Any = (0, 2, 3), d: int = 3) -> Any:
    made = sparse.csr_array((2, d), dtype=np.float64)
    made.data, made.indices, made.indptr = np.array(values), np.array(columns), np.array(indptr)
    return made


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_those_of_scipy(kind: str, dtype: Any, index: Any) -> None:
    dense = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, 0, 1]], dtype)
    given = getattr(sparse, kind)(dense)
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    rows = as_sparse_rows(given, "points")
    assert rows.shape == (3, 4)
    assert rows.dtype == dtype
    assert np.array_equal(rows.toarray(), dense)


def test_columns_are_sorted_repeated_ones_summed_and_zeros_dropped() -> None:
    given = matrix([1.0, 2.0, 4.0, -1.0, 0.0, 5.0], [2, 0, 2, 1, 2, 1], (0, 3, 6))
    before = given.data.copy(), given.indices.copy()
    rows = as_sparse_rows(given, "points")
    assert rows.toarray().tolist() == [[2, 0, 5], [0, 4, 0]]
    assert rows.columns.tolist() == [0, 2, 1]
    assert np.array_equal(given.data, before[0])
    assert np.array_equal(given.indices, before[1])


def test_repeated_columns_that_cancel_are_dropped() -> None:
    assert not len(as_sparse_rows(matrix([1.0, -1.0], [1, 1], (0, 2, 2)), "points").columns)


def test_values_of_a_column_are_added_in_the_order_in_which_they_are_stored() -> None:
    values = np.array([1e8, 1.0, -1e8, 1.0], np.float32)
    assert as_sparse_rows(matrix(values, [1, 1, 1, 1], (0, 4, 4)), "points").values.tolist() == [1.0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int16])
def test_whole_numbers_become_float32(dtype: Any) -> None:
    rows = as_sparse_rows(matrix(np.array([1, 2, 3], dtype)), "points")
    assert rows.dtype == np.float32
    assert rows.toarray().tolist() == [[1, 0, 2], [0, 3, 0]]


@pytest.mark.parametrize("values", [[True, False, True], [2.5, 0.0, -1.0], [2**40, 0, 7]])
def test_sets_hold_ones(values: Any) -> None:
    rows = as_sparse_rows(matrix(values), "points", sets=True)
    assert rows.dtype == np.float32
    assert rows.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]


def test_rows_of_several_blocks_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "ORDERED_ENTRIES", 5)
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 40)
    indptr = np.concatenate([[0], lengths.cumsum()])
    given = sparse.csr_array((40, 6))
    given.data, given.indices, given.indptr = (
        rng.integers(-2, 3, indptr[-1]) * 1.0,
        rng.integers(0, 6, indptr[-1]),
        indptr,
    )
    assert np.array_equal(as_sparse_rows(given, "points").toarray(), given.toarray())


def test_some_rows_and_joined_ones_are_those_of_dense_arrays() -> None:
    dense = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, 0, 1]])
    rows = as_sparse_rows(sparse.csr_array(dense), "points")
    assert np.array_equal(rows.take(np.array([2, 1, 2])).toarray(), dense[[2, 1, 2]])
    assert rows.take(np.array([], int)).shape == (0, 4)
    assert np.array_equal(joined_rows([rows, rows.take(np.array([0]))]).toarray(), dense[[0, 1, 2, 0]])


def test_canonical_rows_are_not_copied() -> None:
    given = matrix()
    rows = as_sparse_rows(given, "points")
    assert np.shares_memory(rows.values, given.data)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (sparse.csc_array(np.eye(3)), TypeError, r"points: is a sparse csc_array, .*use \.tocsr"),
        (
            sparse.csr_array(np.eye(3, dtype=np.complex128)),
            TypeError,
            "sparse values are complex128, expected float32, float64 or whole numbers",
        ),
        (sparse.csr_array(np.eye(3, dtype=bool)), TypeError, "values are bool, .* or metric='jaccard' for sets"),
        (matrix([1, 2, 2**24 + 1]), ValueError, "points: row 1 has the int64 number 16777217 in column 1"),
        (sparse.csr_array((2, 0)), ValueError, "has no columns"),
        (matrix([1.0, np.nan, 2.0]), ValueError, "points: row 0 holds nan"),
        (matrix([1.0, 2.0, np.inf]), ValueError, "points: row 1 holds inf"),
        (matrix([1.0, 2.0, -1e151]), ValueError, r"row 1 holds -1e\+151, .*of at most 1e\+150"),
        (matrix([1e150, 2.0, 1e150], [0, 1, 0], (0, 3, 3)), ValueError, r"row 0 holds 2e\+150"),
        (matrix(columns=[0, 3, 1]), ValueError, "column beyond its 3 columns"),
        (matrix(columns=[0, -1, 1]), ValueError, "column beyond its 3 columns"),
        (matrix(indptr=(0, 2, 4)), ValueError, "indptr does not divide its values into 2 rows"),
        (matrix(indptr=(0, 3, 2)), ValueError, "indptr does not divide its values into 2 rows"),
        (matrix(indptr=(1, 2, 3)), ValueError, "indptr does not divide its values into 2 rows"),
        (sparse.csr_array((1, 2**40), dtype=np.float64), ValueError, "has 1099511627776 columns"),
    ],
)
def test_what_is_no_matrix_of_rows_is_refused(given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        as_sparse_rows(given, "points")


@pytest.mark.parametrize("d", [4, 2**30])
def test_ranks_are_in_descending_order_of_counts(d: int) -> None:
    rows = as_sparse_rows(matrix([1.0, 1.0, 1.0, 1.0], [0, 3, 2, 3], (0, 2, 4), d), "points")
    ranking = Ranking(rows)
    assert ranking.counts.tolist() == [2, 1, 1]
    assert ranking.points.tolist() == [1, 0, 2, 0]
    others = as_sparse_rows(matrix([1.0, 1.0, 1.0], [1, 2, 3], (0, 2, 3), d), "queries")
    assert ranking.of(others).tolist() == [-1, 2, 0]
    assert Ranking(as_sparse_rows(matrix([], np.zeros(0, int), (0, 0, 0), d), "points")).of(others).tolist() == [-1] * 3
