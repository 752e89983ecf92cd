"""Sparse queries of dense points, and dense queries of sparse points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tonari.sparse.rows import SparseRows

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import ALL_METRICS, as_dense, radius_of, same_bits, words  # noqa: E402

MANY, FEW = words(200, 40).astype(np.float32), words(20, 40, 1).astype(np.float32)


@pytest.mark.parametrize("metric", ALL_METRICS)
def test_answers_have_the_bits_of_one_layout(metric: str) -> None:
    within = radius_of(metric)
    for queries, points in ((FEW, MANY), (MANY, FEW), (MANY, MANY.astype(np.float64))):
        dense = as_dense(queries, metric), as_dense(points, metric)
        if metric == "jaccard":
            dense = queries != 0, points != 0
        expected = tonari.search(*dense, 7, metric=metric)
        inside = tonari.radius_search(*dense, metric=metric, **within)
        counts = tonari.radius_count(*dense, metric=metric, **within)
        pairs = tonari.mutual_neighbors(*dense, 3, metric=metric)
        for q, x in ((sparse.csr_array(queries), dense[1]), (dense[0], sparse.csr_array(points))):
            same_bits(tonari.search(q, x, 7, metric=metric), expected)
            same_bits(tonari.radius_search(q, x, metric=metric, **within), inside)
            same_bits([tonari.radius_count(q, x, metric=metric, **within)], [counts])
            same_bits(tonari.mutual_neighbors(q, x, 3, metric=metric), pairs)
            if metric != "jaccard" or x is not dense[1]:
                same_bits(tonari.Index(x, metric=metric).search(q, 7), expected)


def test_the_shorter_side_takes_the_layout_of_the_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the longer side was converted")

    monkeypatch.setattr("tonari.api.sparse.mixed.compressed", calls)
    assert tonari.search(sparse.csr_array(FEW), MANY, 3).indices.shape == (20, 3)
    monkeypatch.undo()
    monkeypatch.setattr(SparseRows, "toarray", calls)
    assert tonari.search(FEW, sparse.csr_array(MANY), 3).indices.shape == (20, 3)
    assert tonari.search(sparse.csr_array(MANY), FEW, 3).indices.shape == (200, 3)


def test_weights_filters_ties_and_no_queries() -> None:
    weights, where = np.arange(40) % 3, np.arange(200) % 2 == 0
    same_bits(
        tonari.search(FEW, sparse.csr_array(MANY), 5, weights=weights, where=where),
        tonari.search(FEW, MANY, 5, weights=weights, where=where),
    )
    same_bits(
        tonari.search(sparse.csr_array(FEW), MANY, 5, weights=weights, ties="all"),
        tonari.search(FEW, MANY, 5, weights=weights, ties="all"),
    )
    assert tonari.search(FEW[:0], sparse.csr_array(MANY), 3).indices.shape == (0, 3)
    assert tonari.search(sparse.csr_array((0, 40), dtype=np.float32), MANY, 3).indices.shape == (0, 3)


def test_results_are_in_the_library_of_the_queries() -> None:
    torch = pytest.importorskip("torch")
    queries = torch.from_numpy(FEW).bfloat16()
    found = tonari.search(queries, sparse.csr_array(MANY), 3)
    same_bits([x.numpy() for x in found], tonari.search(queries.float().numpy(), MANY, 3))


SPARSE = sparse.csr_array(MANY)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "metric": (lambda: tonari.search(FEW, SPARSE, 3, metric="l1"), ValueError, "metric='l1' does not support sparse"),
    "metric of few": (lambda: tonari.search(SPARSE, FEW, 3, metric="l1"), ValueError, "metric='l1' does not support"),
    "method": (lambda: tonari.search(sparse.csr_array(FEW), MANY, 3, method="kdtree"), ValueError, "method='kdtree'"),
    "transform": (lambda: tonari.search(SPARSE, FEW, 3, transform=np.eye(40)), ValueError, "transform: changes rows"),
    "packed bits": (
        lambda: tonari.search(np.packbits(FEW != 0, axis=1), SPARSE, 3, metric="jaccard"),
        TypeError,
        r"queries: are uint8, .*numpy\.unpackbits",
    ),
    "columns": (lambda: tonari.search(FEW[:, :5], SPARSE, 3), ValueError, "have 5 columns, but points have 40"),
    "NaN": (lambda: tonari.search(np.full((2, 40), np.nan), SPARSE, 3), ValueError, "row 0 has a value that is not"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    call, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        call()
