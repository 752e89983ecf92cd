"""An Index of sparse rows, against an Index of the same rows as dense arrays, bit for bit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tonari

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import METRICS, same_bits, words  # noqa: E402
from tonari.api import tuning  # noqa: E402
from tonari.core.errors import BudgetExceeded  # noqa: E402

D = 30
POINTS, QUERIES = words(300, D).astype(np.float32), words(20, D, 1).astype(np.float32)


class Twins:
    """An Index of sparse rows and one of dense rows, which are changed and searched together."""

    def __init__(self, metric: str, **options: Any) -> None:
        self.metric = metric
        self.ours = tonari.Index(sparse.csr_array(POINTS), metric=metric, **options)
        self.others = tonari.Index(self.dense(POINTS), metric=metric, **options)

    def dense(self, rows: Any) -> Any:
        return rows != 0 if self.metric == "jaccard" else rows

    def add(self, rows: Any) -> None:
        same_bits([self.ours.add(sparse.csr_array(rows))], [self.others.add(self.dense(rows))])

    def remove(self, ids: Any) -> None:
        self.ours.remove(ids)
        self.others.remove(ids)

    def compare(self) -> None:
        ours, others = self.ours, self.others
        given, dense = sparse.csr_array(QUERIES), self.dense(QUERIES)
        assert ours.next_id == others.next_id
        same_bits([ours.ids], [others.ids])
        if self.metric != "jaccard":
            same_bits([ours.points.toarray()], [others.points])
        within = {"min_similarity": 0.5} if self.metric == "inner_product" else {"radius": 0.6}
        rng, n = np.random.default_rng(0), ours.next_id
        groups = {"query_groups": rng.integers(0, 3, 20), "point_groups": rng.integers(0, 3, n), "groups": "other"}
        for rules in ({}, {"where": rng.random(n) < 0.5}, {"where": rng.random((20, n)) < 0.5}, groups):
            k = min(25, len(ours))
            if k:
                same_bits(ours.search(given, k, **rules), others.search(dense, k, **rules))
            for most in (None, 3):
                options = within | {"max_neighbors": most} | rules
                same_bits(ours.radius_search(given, **options), others.radius_search(dense, **options))
            same_bits(*([each.radius_count(q, **within, **rules)] for each, q in ((ours, given), (others, dense))))


@pytest.mark.parametrize("metric", [*METRICS, "jaccard"])
def test_a_life_of_an_index(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 16)
    monkeypatch.setattr(tuning, "AROUND", 8)
    twins = Twins(metric)
    twins.compare()
    for seed, rows in enumerate((3, 40, 90, 1)):
        twins.add(words(rows, D, 5 + seed).astype(np.float32))
        twins.remove(np.random.default_rng(seed).choice(twins.others.ids, 7, replace=False))
        twins.compare()
    twins.ours.compact()
    twins.compare()
    twins.remove(twins.others.ids)
    twins.compare()
    twins.add(POINTS[:4])
    twins.compare()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
def test_copies_are_changed_apart(copied: Any) -> None:
    twins = Twins("euclidean", weights=np.arange(D) % 3)
    twins.add(QUERIES)
    twins.remove([4, 301])
    before = twins.ours
    twins.ours = copied(before)
    twins.compare()
    twins.remove([0, 1])
    twins.compare()
    assert len(before) == len(twins.ours) + 2


def test_the_array_of_the_caller_may_change() -> None:
    given = sparse.csr_array(POINTS)
    index = tonari.Index(given)
    found = index.search(given[:5], 3)
    queries = given[:5].copy()
    given.data[:] = 7
    same_bits(index.search(queries, 3), found)


def test_a_float64_query_and_zero_queries() -> None:
    index = tonari.Index(sparse.csr_array(POINTS), metric="cosine")
    queries = QUERIES.astype(np.float64)
    same_bits(index.search(sparse.csr_array(queries), 4), tonari.search(queries, POINTS, 4, metric="cosine"))
    none = sparse.csr_array((0, D), dtype=np.float32)
    assert index.search(none, 4).indices.shape == (0, 4)
    assert index.radius_count(none, 1.0).shape == (0,)
    assert not len(index.add(none))


def test_an_index_keeps_to_its_memory_or_says_how_much_it_needs() -> None:
    rows = sparse.csr_array(words(3000, 200).astype(np.float32))
    with pytest.raises(BudgetExceeded) as refused:
        tonari.Index(rows, memory=1000)
    index = tonari.Index(rows, memory=refused.value.least)
    assert index.memory == refused.value.least
    with pytest.raises(BudgetExceeded) as refused:
        index.search(rows, 50, threads=1)
    index = tonari.Index(rows, memory=refused.value.least)
    same_bits(index.search(rows, 50, threads=1), tonari.search(rows, rows, 50))
    with pytest.raises(BudgetExceeded, match="allow at least"):
        index.add(rows)
    assert len(index) == 3000


INDEX = tonari.Index(sparse.csr_array(POINTS))
DENSE_INDEX = tonari.Index(POINTS)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "sparse points": (lambda: DENSE_INDEX.add(sparse.csr_array(QUERIES)), TypeError, r"dense; use \.toarray"),
    "sparse queries of bits": (
        lambda: tonari.Index(POINTS > 0, metric="jaccard").search(sparse.csr_array(QUERIES), 3),
        TypeError,
        r"rows of bits; use \.toarray\(\) and \.astype\(bool\)",
    ),
    "dense points": (lambda: INDEX.add(QUERIES), TypeError, "points: is a dense ndarray"),
    "dtype": (
        lambda: INDEX.add(sparse.csr_array(QUERIES.astype(float))),
        TypeError,
        "points: float64, expected float32",
    ),
    "columns": (lambda: INDEX.add(sparse.csr_array(QUERIES[:, :5])), ValueError, "have 5 columns, but .* have 30"),
    "id": (lambda: INDEX.remove([900]), ValueError, "900 was never given"),
    "twice": (lambda: INDEX.remove([3, 3]), ValueError, "3 is given twice"),
    "chunks": (lambda: INDEX.search_chunks(QUERIES, 3), ValueError, "search_chunks: an Index of sparse rows"),
    "radii": (lambda: INDEX.radius_chunks(QUERIES, 3.0), ValueError, "radius_search_chunks|radius_chunks"),
    "metric": (lambda: tonari.Index(sparse.csr_array(POINTS), metric="l1"), ValueError, "metric='l1' does not"),
    "codes": (lambda: tonari.Index(sparse.csr_array(POINTS), codes="int8"), ValueError, "codes: not supported"),
    "plan": (lambda: tonari.Index(sparse.csr_array(POINTS), form_dim=4), ValueError, "form_dim: not supported"),
    "device": (lambda: tonari.Index(sparse.csr_array(POINTS), method="kdtree"), ValueError, "method='kdtree'"),
    "no rows": (lambda: tonari.Index(sparse.csr_array((0, 4), dtype=np.float32)), ValueError, "has no rows"),
    "k": (lambda: INDEX.search(sparse.csr_array(QUERIES), 301), ValueError, "the largest k is 300"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_index_of_sparse_rows_does_not_have_is_refused_by_name(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
