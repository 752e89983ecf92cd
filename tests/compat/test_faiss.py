"""`tonari.compat.faiss` compared with NumPy and, if it is installed, with FAISS."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers
from tests.helpers.refusals import assert_refused_by_name
from tonari.compat import faiss, tuning
from tonari.compat.faiss import nearest
from tonari.compat.faiss import nearest as threads
from tonari.metrics.reference import brute

LARGEST = np.finfo(np.float32).max
METRICS = {
    faiss.METRIC_L2: "sqeuclidean",
    faiss.METRIC_INNER_PRODUCT: "inner_product",
    faiss.METRIC_L1: "l1",
    faiss.METRIC_Linf: "linf",
    faiss.METRIC_Canberra: "canberra",
}
X = checks.gaussian(20, 4)


def filled(points: Any, metric: int) -> faiss.IndexFlat:
    """Make an index whose points are added in two calls."""
    index = faiss.IndexFlat(points.shape[1], metric)
    index.add(points[:1])
    index.add(points[1:])
    return index


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 7, 9])
@pytest.mark.parametrize("n", [1, 7, 8])
@pytest.mark.parametrize("name", ["gaussian", "duplicates", "one_hot", "offset_1e4"])
def test_the_nearest_are_those_of_the_reference(name: str, n: int, k: int, metric: int) -> None:
    points, queries = checks.HOSTILE[name](n, 3, 0), checks.HOSTILE[name](6, 3, 1)
    truth = brute(queries, points, min(k, n), METRICS[metric])
    for D, I in (faiss.knn(queries, points, k, metric), filled(points, metric).search(queries, k)):  # noqa: E741
        assert (D.dtype, I.dtype, D.shape, I.shape) == (np.float32, np.int64, (6, k), (6, k))
        np.testing.assert_array_equal(D[:, :n], truth.distances)
        np.testing.assert_array_equal(I[:, :n], truth.indices)
        assert (I[:, n:] == -1).all()
        assert (D[:, n:] == (-LARGEST if metric == faiss.METRIC_INNER_PRODUCT else LARGEST)).all()


def test_the_numbers_are_those_of_faiss() -> None:
    assert (faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2, faiss.METRIC_L1, faiss.METRIC_Linf) == (0, 1, 2, 3)
    assert faiss.METRIC_Canberra == 20
    assert faiss.IndexFlatL2(3).metric_type == faiss.IndexFlat(3).metric_type == 1
    assert faiss.IndexFlatIP(3).metric_type == 0


def test_a_range_does_not_hold_its_end() -> None:
    index = faiss.IndexFlatL2(1)
    index.add([[0.0], [1.0], [2.0], [1.0]])
    lims, D, I = index.range_search([[0.0], [9.0], [2.0]], 1.0)  # noqa: E741
    assert (lims.dtype, D.dtype, I.dtype) == (np.uint64, np.float32, np.int64)
    assert (lims.tolist(), D.tolist(), I.tolist()) == ([0, 1, 1, 2], [0.0, 0.0], [0, 2])
    lims, D, I = index.range_search([[0.0]], np.nextafter(np.float32(1), 2))  # noqa: E741
    assert (lims.tolist(), D.tolist(), I.tolist()) == ([0, 3], [0.0, 1.0, 1.0], [0, 1, 3])
    for nothing in (0.0, -1.0):
        assert index.range_search([[0.0]], nothing)[0].tolist() == [0, 0]
    # Squared, and compared in float32: 0.7 is slightly larger than the nearest float32 number.
    near = faiss.IndexFlat(1, faiss.METRIC_L1)
    near.add(np.array([[0.7]], np.float32))
    assert near.range_search([[0.0]], 0.7)[0].tolist() == [0, 0]
    assert near.range_search([[0.0]], math.inf)[0].tolist() == [0, 1]


def test_a_range_of_inner_products_is_above_the_threshold() -> None:
    index = faiss.IndexFlatIP(1)
    index.add([[1.0], [3.0], [2.0]])
    lims, D, I = index.range_search([[1.0], [-1.0]], 1.0)  # noqa: E741
    assert (lims.tolist(), D.tolist(), I.tolist()) == ([0, 2, 2], [3.0, 2.0], [1, 2])
    assert index.range_search([[-1.0]], -2.5)[2].tolist() == [0, 2]


def test_an_index_is_filled_read_and_emptied() -> None:
    index = faiss.IndexFlatL2(4)
    assert index.is_trained
    index.verbose = True
    index.train(X)
    assert index.ntotal == len(index) == 0
    assert index.search(X, 2)[1].tolist() == [[-1, -1]] * 20
    assert index.range_search(X, 1.0)[0].tolist() == [0] * 21
    assert index.reconstruct_n().shape == (0, 4)
    given = X.copy()
    index.add(given)
    given[:] = 0  # the index has its own copies
    assert index.search(X, 1)[1].ravel().tolist() == list(range(20))
    index.add(X[:0])
    index.add(X[:3] + np.float32(9))
    assert index.ntotal == 23
    assert index.search(X[:3] + np.float32(9), 1)[1].ravel().tolist() == [20, 21, 22]
    np.testing.assert_array_equal(index.reconstruct(21), X[1] + np.float32(9))
    np.testing.assert_array_equal(index.reconstruct_n(19, 2), [X[19], X[0] + np.float32(9)])
    np.testing.assert_array_equal(index.reconstruct_n()[:20], X)
    index.reconstruct_n()[:] = 0  # so does the reader
    assert index.search(X[:0], 2)[0].shape == (0, 2)
    for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index)):
        np.testing.assert_array_equal(other.search(X, 3), index.search(X, 3))
    index.reset()
    assert index.ntotal == 0
    assert index.search(X, 1)[1].tolist() == [[-1]] * 20


def test_other_dtypes_become_float32() -> None:
    whole = np.arange(12).reshape(4, 3)
    for x in (whole, whole.tolist(), whole.astype(np.float64), np.asfortranarray(whole, np.float32)):
        D, I = faiss.knn(x, x, 2)  # noqa: E741
        assert D.dtype == np.float32
        assert (D.tolist(), I[:, 0].tolist()) == ([[0.0, 27.0]] * 4, [0, 1, 2, 3])
    assert faiss.knn(whole[:0], whole, 2)[0].shape == (0, 2)
    assert faiss.knn(whole, whole[:0], 2)[1].tolist() == [[-1, -1]] * 4


def test_rows_are_removed_and_later_ones_move_up() -> None:
    index = filled(X, faiss.METRIC_L2)
    assert index.search(X[5:6], 1)[1].tolist() == [[5]]
    assert index.remove_ids(np.array([3, 1, 3, 77, -1])) == 2
    assert index.ntotal == 18
    np.testing.assert_array_equal(index.reconstruct_n(), np.delete(X, [1, 3], axis=0))
    assert index.search(X[5:6], 1)[1].tolist() == [[3]]
    index.add(X[:1] + np.float32(9))
    assert index.search(X[:1] + np.float32(9), 1)[1].tolist() == [[18]]
    assert index.remove_ids([]) == 0
    assert index.remove_ids(np.arange(19, dtype=np.uint8)) == 19
    assert index.search(X[:1], 2)[1].tolist() == [[-1, -1]]


@pytest.mark.parametrize("kind", [faiss.IndexIDMap, faiss.IndexIDMap2])
def test_rows_have_ids(kind: type[faiss.IndexIDMap]) -> None:
    index = kind(faiss.IndexFlatL2(4))
    ids = np.arange(20) * 7 - 3
    index.train(X)
    index.add_with_ids(X[:12], ids[:12].tolist())
    index.add_with_ids(X[12:], ids[12:])
    assert (index.d, index.ntotal, len(index), index.metric_type, index.is_trained, index.verbose) == (
        4,
        20,
        20,
        1,
        True,
        False,
    )
    D, I = index.search(X, 23)  # noqa: E741
    plain = filled(X, faiss.METRIC_L2)
    np.testing.assert_array_equal(D, plain.search(X, 23)[0])
    np.testing.assert_array_equal(I, np.append(ids, -1)[plain.search(X, 23)[1]])
    lims, _, I = index.range_search(X, 2.0)  # noqa: E741
    np.testing.assert_array_equal(lims, plain.range_search(X, 2.0)[0])
    np.testing.assert_array_equal(I, ids[plain.range_search(X, 2.0)[2]])
    assert index.remove_ids(ids[[0, 5]]) == index.index.remove_ids([]) + 2
    assert index.id_map.tolist() == np.delete(ids, [0, 5]).tolist()
    assert index.search(X[6:7], 1)[1].tolist() == [[ids[6]]]
    for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index)):
        np.testing.assert_array_equal(other.search(X, 3), index.search(X, 3))
    index.reset()
    assert index.search(X[:1], 1)[1].tolist() == [[-1]]
    with pytest.raises(TypeError, match="add: this index has ids, expected add_with_ids"):
        index.add(X)


def test_rows_of_ids_are_returned() -> None:
    index = faiss.IndexIDMap2(faiss.IndexFlatL2(4))
    index.add_with_ids(X[:3], [5, -9, 5])
    np.testing.assert_array_equal(index.reconstruct(-9), X[1])
    np.testing.assert_array_equal(index.reconstruct(5), X[2])
    assert index.remove_ids([5, 6]) == 2
    with pytest.raises(ValueError, match="key=5: no row has this id"):
        index.reconstruct(5)


def test_rows_are_normalized_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "NORMALIZED", 12)
    x = np.concatenate(
        [X, np.zeros((1, 4), np.float32), np.full((1, 4), 1e30, np.float32), np.full((1, 4), 1e-38, np.float32)]
    )
    wide = x.astype(np.float64)
    lengths = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    faiss.normalize_L2(x)
    np.testing.assert_array_equal(x, (wide / np.where(lengths > 0, lengths, 1)).astype(np.float32))
    assert x[-2].tolist() == x[-1].tolist() == [0.5] * 4
    strided = np.repeat(X, 2, axis=1)[:, ::2].copy(order="F")
    faiss.normalize_L2(strided)
    np.testing.assert_array_equal(strided, x[:20])


def test_the_number_of_threads_is_that_of_later_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads._Setting, "threads", None)
    asked: list[Any] = []

    def watched(search: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            asked.append(options["threads"])
            return search(*given, **options)

        return call

    for owner, name in ((tonari.Index, "search"), (tonari.Index, "radius_search"), (nearest, "search")):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    most = faiss.omp_get_max_threads()
    assert most >= 1
    for number in (None, 3):
        if number is not None:
            faiss.omp_set_num_threads(number)
        INDEX.search(X, 1)
        INDEX.range_search(X, 1.0)
        faiss.knn(X, X, 1)
    assert asked == [None] * 3 + [3] * 3
    assert faiss.omp_get_max_threads() == 3


INDEX = filled(X, faiss.METRIC_L2)
NAMED = faiss.IndexIDMap2(faiss.IndexFlat(4))
NAMED.add_with_ids(X, np.arange(20))
ROWS = (None, 5, X[0], X[:, :2], X.astype(complex), [["a"]], X * np.nan, [[1e200] * 4], [[1], [2, 3]])
K = (0, -1, 2.5, True, None, "2")
REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str, tuple[Any, ...]]] = [
    (faiss.knn, {"xq": X, "xb": X, "k": 2}, "xq", ROWS),
    (faiss.knn, {"xq": X, "xb": X, "k": 2}, "xb", (None, 5, X[0], X.astype(complex), X * np.nan)),
    (faiss.knn, {"xq": X, "xb": X, "k": 2}, "k", K),
    (faiss.knn, {"xq": X, "xb": X, "k": 2}, "metric", (4, 21, -1, "L2", None, True)),
    (faiss.knn, {"xq": X, "xb": X, "k": 2}, "metric_arg", (2.0, None)),
    (faiss.IndexFlat, {"d": 4}, "d", (0, -1, 2.5, None)),
    (faiss.IndexFlat, {"d": 4}, "metric", (4, "L2", None)),
    (INDEX.train, {"x": X}, "x", ROWS),
    (faiss.IndexFlatL2(4).add, {"x": X}, "x", ROWS),
    (INDEX.search, {"x": X, "k": 2}, "x", ROWS),
    (INDEX.search, {"x": X, "k": 2}, "k", K),
    (INDEX.search, {"x": X, "k": 2}, "params", (5, object())),
    (INDEX.range_search, {"x": X, "thresh": 1.0}, "x", ROWS),
    (INDEX.range_search, {"x": X, "thresh": 1.0}, "thresh", (math.nan, None, "1", True, [1.0])),
    (filled(X, faiss.METRIC_INNER_PRODUCT).range_search, {"x": X, "thresh": 1.0}, "thresh", (math.inf, -math.inf)),
    (INDEX.range_search, {"x": X, "thresh": 1.0}, "params", (5,)),
    (INDEX.remove_ids, {"x": [99]}, "x", (None, 5, [0.5], [[1]], ["a"], [True], [2**64 - 1])),
    (NAMED.remove_ids, {"x": [99]}, "x", (None, 5, [0.5])),
    (faiss.IndexIDMap(faiss.IndexFlat(4)).add_with_ids, {"x": X, "ids": np.arange(20)}, "x", ROWS),
    (NAMED.add_with_ids, {"x": X[:1], "ids": [50]}, "ids", (None, 5, [0.5], [1, 2], [], [[1]])),
    (NAMED.search, {"x": X, "k": 2}, "k", K),
    (NAMED.search, {"x": X, "k": 2}, "params", (5, object())),
    (NAMED.reconstruct, {"key": 0}, "key", (77, 0.5, None)),
    (faiss.IndexIDMap, {"index": faiss.IndexFlat(4)}, "index", (None, INDEX, NAMED)),
    (
        faiss.normalize_L2,
        {"x": X.copy()},
        "x",
        (None, X.tolist(), X.astype(np.float64), X[0], np.broadcast_to(X, X.shape), X * np.nan),
    ),
    (faiss.omp_set_num_threads, {"num_threads": faiss.omp_get_max_threads()}, "num_threads", (0, -1, 2.5, None)),
    (INDEX.reconstruct, {"key": 0}, "key", (-1, 20, 0.5, None)),
    (INDEX.reconstruct_n, {}, "n0", (-1, 21, 0.5)),
    (INDEX.reconstruct_n, {}, "ni", (-2, 21, 0.5)),
]


@pytest.mark.parametrize(("call", "good", "name", "values"), REFUSED)
def test_no_argument_is_ignored_or_fails_in_raw_words(
    call: Callable[..., Any], good: dict[str, Any], name: str, values: tuple[Any, ...]
) -> None:
    assert_refused_by_name(call, good, name, values)


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["gaussian", "duplicates", "one_hot"])
def test_faiss_gives_the_same(name: str, metric: int) -> None:
    original: Any = consumers.consumer("faiss")
    if (name, metric) == ("one_hot", faiss.METRIC_Canberra):
        pytest.skip("FAISS does not find rows that have a 0 in the same column: 0 / 0 is NaN there")
    points, queries = checks.HOSTILE[name](50, 4, 0), checks.HOSTILE[name](9, 4, 1)
    ours, theirs = filled(points, metric), original.IndexFlat(4, metric)
    theirs.add(points)
    assert (ours.d, ours.ntotal, ours.metric_type, ours.is_trained, ours.verbose) == (
        *(theirs.d, theirs.ntotal, theirs.metric_type, theirs.is_trained, theirs.verbose),
    )
    for k in (1, 5, 50, 60):
        mine, other = ours.search(queries, k), theirs.search(queries, k)
        assert [part.dtype for part in mine] == [part.dtype for part in other]
        np.testing.assert_allclose(mine[0], other[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(mine[1] == -1, other[1] == -1)
        np.testing.assert_allclose(faiss.knn(queries, points, k, metric)[0], mine[0])
        if name == "gaussian":
            np.testing.assert_array_equal(mine[1], other[1])
            np.testing.assert_array_equal(original.knn(queries, points, k, metric)[1], mine[1])
    if metric in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT):
        for thresh in (0.0, 1.0, 2.0):  # one-hot rows are at these distances
            if name != "duplicates":
                mine, other = ours.range_search(queries, thresh), theirs.range_search(queries, thresh)
                np.testing.assert_array_equal(mine[0], other[0])
                assert [part.dtype for part in mine] == [part.dtype for part in other]
                for begin, end in pairwise(mine[0]):
                    assert set(mine[2][begin:end]) == set(other[2][begin:end])
    np.testing.assert_array_equal(ours.reconstruct_n(3, 5), theirs.reconstruct_n(3, 5))
    np.testing.assert_array_equal(ours.reconstruct(7), theirs.reconstruct(7))


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_faiss_has_the_same_ids() -> None:
    original: Any = consumers.consumer("faiss")
    ids = np.random.default_rng(0).permutation(1000)[:20].astype(np.int64)
    ours, theirs = faiss.IndexIDMap2(faiss.IndexFlatL2(4)), original.IndexIDMap2(original.IndexFlatL2(4))
    for index in (ours, theirs):
        index.add_with_ids(X, ids)
    gone = np.append(ids[3:7], 5000)
    np.testing.assert_array_equal(ours.search(X, 22)[1], theirs.search(X, 22)[1])
    assert ours.remove_ids(gone) == theirs.remove_ids(gone) == 4
    np.testing.assert_array_equal(ours.search(X, 22)[1], theirs.search(X, 22)[1])
    np.testing.assert_array_equal(ours.reconstruct(int(ids[9])), theirs.reconstruct(int(ids[9])))
    assert (ours.ntotal, ours.d, ours.metric_type) == (theirs.ntotal, theirs.d, theirs.metric_type)
    assert ours.id_map.tolist() == original.vector_to_array(theirs.id_map).tolist()
    mine, other = filled(X, faiss.METRIC_L2), original.IndexFlatL2(4)
    other.add(X)
    for gone in ([0, 3], [50], [1, 1, 17]):
        assert mine.remove_ids(np.array(gone)) == other.remove_ids(np.array(gone))
        np.testing.assert_array_equal(mine.reconstruct_n(), other.reconstruct_n())
    x, y = X.copy(), X.copy()
    faiss.normalize_L2(x)
    original.normalize_L2(y)
    np.testing.assert_allclose(x, y, rtol=1e-6)
