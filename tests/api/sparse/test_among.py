"""Searches among sparse points: ties, and values that overflow or underflow."""

from __future__ import annotations

import numpy as np
import pytest

import tonari

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import ALL_METRICS, as_dense, few, radius_of, same_bits, uniform  # noqa: E402


@pytest.mark.parametrize("metric", ALL_METRICS)
def test_counts_and_many_ties_have_the_bits_of_dense_rows(metric: str) -> None:
    points = few(3, 6)[np.random.default_rng(0).integers(0, 3, 5000)]
    queries = np.concatenate([points[:2], few(2, 6, 1), np.zeros((1, 6), np.float32)])
    given, dense = ([make(queries), make(points)] for make in (sparse.csr_array, lambda rows: as_dense(rows, metric)))
    same_bits(tonari.search(*given, 700, metric=metric), tonari.search(*dense, 700, metric=metric))
    counts = [tonari.radius_count(*rows, metric=metric, **radius_of(metric)) for rows in (given, dense)]
    same_bits(counts[:1], counts[1:])


def test_values_beyond_their_type_are_refused() -> None:
    large = sparse.csr_array(uniform(20, 10).astype(np.float32) * np.float32(1e30))
    with pytest.raises(ValueError, match="overflows"):
        tonari.search(large, large, 5, metric="sqeuclidean")
    small = sparse.csr_array(uniform(20, 10).astype(np.float32) * np.float32(1e-30))
    for metric in ("sqeuclidean", "inner_product"):
        with pytest.raises(ValueError, match="underflows"):
            tonari.search(small, small, 5, metric=metric)
        with pytest.raises(ValueError, match="underflows"):
            tonari.kth_distance(small, 5, metric=metric)
    assert (tonari.search(small, small, 1).distances == 0).all()
    for radius in (0.0, float("inf")):
        with pytest.raises(ValueError, match=r"underflows|overflows"):
            tonari.radius_count(*([large] * 2 if radius else [small] * 2), radius, metric="sqeuclidean")
    assert tonari.radius_count(large, large, 1e38, metric="sqeuclidean").shape == (20,)
    with pytest.raises(ValueError, match="overflows"):
        tonari.radius_search(large, large, min_similarity=5e48, metric="inner_product")
    apart = sparse.csr_array(np.eye(5, dtype=np.float32))
    assert (tonari.search(apart, apart, 5, metric="inner_product").distances[:, 1:] == 0).all()


def test_values_that_round_to_zero_tie() -> None:
    rows = np.zeros((7, 2), np.float32)
    rows[3, 1] = 2e-23
    given = sparse.csr_array(rows)
    same_bits(
        tonari.search(given, given, 1, metric="inner_product"), tonari.search(rows, rows, 1, metric="inner_product")
    )
