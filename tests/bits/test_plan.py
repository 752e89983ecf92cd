"""The choice of the method for rows of bits, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tonari.core.errors import Unsupported
from tonari.metrics import BIT_METRICS, METRICS, get_metric

ROWS = np.random.default_rng(0).integers(0, 256, (40, 4), dtype=np.uint8)
HAMMING: dict[str, Any] = {"metric": "hamming"}


def search(queries: Any = ROWS, points: Any = ROWS, **given: Any) -> Any:
    return tonari.search(queries, points, 3, **HAMMING | given)


GRAPH = tonari.knn_graph(ROWS, 3, **HAMMING)

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "numbers": (lambda: search(ROWS.astype(np.float32)), TypeError, r"use numpy.packbits\(queries > 0, axis=1\)"),
    "signs": (lambda: search(points=ROWS.view(np.int8)), TypeError, "points: int8 are no bits"),
    "widths": (lambda: search(ROWS[:, :3].copy()), ValueError, "must have the same number of columns"),
    "exact": (lambda: search(method="exact"), Unsupported, "use method='bits' or 'auto'"),
    "tree": (lambda: search(method="kdtree"), Unsupported, "use method='bits' or 'auto'"),
    "other metric": (lambda: search(metric="l1", method="bits"), Unsupported, "supports hamming, jaccard, not l1"),
    "descent": (lambda: tonari.knn_graph(ROWS, 3, method="nn-descent", **HAMMING), Unsupported, "compares bits"),
    "merging": (lambda: tonari.merge(GRAPH, GRAPH, ROWS, ROWS), Unsupported, "on all points together"),
    "recall": (lambda: GRAPH.recall(ROWS), Unsupported, "compares bits"),
    "one point": (lambda: tonari.knn_graph(ROWS, 1, include_self=True, method="exact", **HAMMING), Unsupported, "bits"),
    "similarity": (
        lambda: tonari.radius_search(ROWS, ROWS, min_similarity=0.5, metric="jaccard"),
        ValueError,
        "has distances; pass radius=",
    ),
    "plan of numbers": (lambda: tonari.plan(9, 9, 4, 2, **HAMMING), Unsupported, "use dtype='uint8'"),
    "wide": (
        lambda: tonari.plan(9, 9, 2**21 + 1, 2, dtype="uint8", **HAMMING),
        Unsupported,
        "takes d up to 2097152",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_fix(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("metric", BIT_METRICS)
def test_auto_takes_bits_and_says_so(metric: str) -> None:
    made = tonari.explain((10, 8), (500, 8), 3, metric=metric)
    assert (made.method, [one.method for one in made.candidates if one.plan is not None]) == ("bits", ["bits"])
    assert tonari.plan(500, 10, 8, 3, dtype="uint8", metric=metric).method == "bits"
    assert tonari.knn_graph(ROWS, 3, metric=metric, recall=0.9).method == "bits"


def test_bits_are_no_numbers() -> None:
    assert not set(BIT_METRICS) & set(METRICS)
    assert all(get_metric(name).bits for name in ("Hamming", "tanimoto", "bitwise_hamming"))


def test_few_queries_share_the_points() -> None:
    for m, parts, block in ((200, 1, 50), (64, 4, 64), (1, 4, 1)):
        made = tonari.plan(500, m, 8, 3, dtype="uint8", threads=4, **HAMMING)
        assert (made.parts, made.query_block) == (parts, block)


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
@pytest.mark.parametrize("columns", [1, 5, 8, 13, 64, 67])
def test_bools_of_any_number_of_columns(metric: str, columns: int, tmp_path: Path) -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    rows = np.random.default_rng(columns).random((40, columns)) < 0.4
    scale = columns if metric == "hamming" else 1
    expected = np.sort(distance.cdist(rows[:9], rows, metric) * scale, axis=1)[:, :5]
    index = tonari.Index(rows, metric=metric)
    index.save(tmp_path / "bits.index")
    for found in (
        tonari.search(rows[:9], rows, 5, metric=metric),
        tonari.search(rows[:9], rows, 5, metric=metric, where=np.ones(40, bool)),
        index.search(rows[:9], 5),
        tonari.Index.load(tmp_path / "bits.index").search(rows[:9], 5),
    ):
        np.testing.assert_allclose(found.distances, expected, atol=1e-6)
    if columns % 8 == 0:
        return
    wider = np.hstack([rows, rows[:, :1]]) if columns % 8 != 7 else rows[:, :-1]
    for ask in (
        lambda: tonari.search(wider, rows, 5, metric=metric),
        lambda: tonari.search(np.packbits(rows, axis=1), rows, 5, metric=metric),
        lambda: tonari.radius_search(wider, rows, 5, metric=metric),
        lambda: index.search(wider, 5),
        lambda: index.add(wider),
        lambda: tonari.Index.load(tmp_path / "bits.index").search(wider, 5),
        lambda: tonari.search(wider, rows, 5, metric=metric, where=np.ones(40, bool)),
    ):
        if wider.shape[1]:
            with pytest.raises(ValueError, match="must have the same number of"):
                ask()
