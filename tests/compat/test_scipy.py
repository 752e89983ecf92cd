"""`tonari.compat.scipy.KDTree` gives the same results as SciPy's, on data that is hard to search."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial

import tonari
from tests.helpers import checks
from tests.helpers.refusals import assert_refused_by_name
from tonari.compat.scipy import KDTree, cKDTree

NORMS = (1, 1.5, 2, 3, 4, math.inf)
X = checks.gaussian(20, 3, dtype=np.float64)
TREE, ORIGINAL = KDTree(X), scipy.spatial.KDTree(X)


def both(points: Any) -> tuple[KDTree, Any]:
    return KDTree(points), scipy.spatial.KDTree(points)


def assert_close(ours: Any, theirs: Any) -> None:
    """Check that distances agree up to the order in which squares are added."""
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=0)


def distances_of(tree: KDTree, x: Any, numbers: Any, p: float) -> Any:
    """Compute the distances of the found points again; inf for missing ones."""
    there = numbers < tree.n
    found = tree.data[np.where(there, numbers, 0)]
    gaps = np.abs(np.asarray(x, np.float64)[..., None, :] - found)
    value = gaps.max(-1) if p == math.inf else (gaps**p).sum(-1) ** (1 / p)
    return np.where(there, value, np.inf)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("k", [1, 7, 41, 60])
@pytest.mark.parametrize("name", checks.HOSTILE)
def test_query_has_scipys_distances(name: str, k: int, p: float) -> None:
    points = checks.HOSTILE[name](41, 3, 0)
    queries = np.concatenate([points[:9], checks.HOSTILE[name](5, 3, 1)])
    ours, theirs = both(points)
    d, i = ours.query(queries, k, p=p)
    expected, _ = theirs.query(queries, k, p=p)
    assert_close(d, expected)
    assert (d.dtype, i.dtype) == (np.float64, np.intp)
    if k > 1:
        assert_close(distances_of(ours, queries, i, p), d)
        tied = (d[:, :-1] == d[:, 1:]) & (i[:, 1:] < ours.n)
        assert (i[:, :-1][tied] < i[:, 1:][tied]).all()


@pytest.mark.parametrize("n", [1, 7, 8, 9])
@pytest.mark.parametrize("k", [1, [1], [3, 1], 2, [8], 12])
@pytest.mark.parametrize("lead", [(), (1,), (4,), (2, 3), (0,), (0, 2)])
def test_query_has_scipys_shapes(n: int, k: Any, lead: tuple[int, ...]) -> None:
    points, x = checks.gaussian(n, 2), checks.gaussian(24, 2, 1).ravel()[: 2 * math.prod(lead)].reshape(*lead, 2)
    ours, theirs = (tree.query(x, k) for tree in both(points))
    assert_close(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert [type(part) for part in ours] == [type(part) for part in theirs]


@pytest.mark.parametrize("p", NORMS)
def test_the_upper_bound_of_a_distance_is_not_reached(p: float) -> None:
    ours, theirs = both([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    for bound in (0.0, 1.0, np.nextafter(1.0, 2.0), 2.0, math.inf):
        for k in (1, 2, 5):
            for mine, original in zip(
                ours.query([0.0, 0.0], k, p=p, distance_upper_bound=bound),
                theirs.query([0.0, 0.0], k, p=p, distance_upper_bound=bound),
                strict=True,
            ):
                np.testing.assert_array_equal(mine, original)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("name", ["gaussian", "duplicates", "all_equal", "one_hot", "tight_far_clusters"])
def test_what_is_within_a_distance_is_what_scipy_finds(name: str, p: float) -> None:
    points, others = checks.HOSTILE[name](40, 3, 0), checks.HOSTILE[name](23, 3, 1)
    (ours, theirs), (mine, original) = both(points), both(others)
    for r in (0.0, 1.0, 1.5):
        # Radii between distances, or equal to exactly representable ones: no last bit decides.
        assert ours.query_ball_point(others, r, p=p).tolist() == theirs.query_ball_point(others, r, p=p).tolist()
        assert ours.query_pairs(r, p=p) == theirs.query_pairs(r, p=p)
        assert ours.query_ball_tree(mine, r, p=p) == [sorted(each) for each in theirs.query_ball_tree(original, r, p=p)]
        assert ours.count_neighbors(mine, r, p=p) == theirs.count_neighbors(original, r, p=p)
        a = ours.sparse_distance_matrix(mine, r, p=p, output_type="coo_matrix")
        b = theirs.sparse_distance_matrix(original, r, p=p, output_type="coo_matrix")
        assert a.nnz == b.nnz
        assert_close(a.toarray(), b.toarray())


def test_a_radius_is_reached_and_may_be_one_for_each_point() -> None:
    ours, theirs = both([[0.0], [1.0], [3.0]])
    x = [[[0.0], [1.0]], [[2.0], [3.0]]]
    for r in (1, [[1.0, 2.0], [0.0, 9.0]], [1.0, 2.0], math.inf):
        found, expected = ours.query_ball_point(x, r), theirs.query_ball_point(x, r)
        assert found.shape == expected.shape == (2, 2)
        assert found.tolist() == expected.tolist()
        counts = ours.query_ball_point(x, r, return_length=True)
        np.testing.assert_array_equal(counts, theirs.query_ball_point(x, r, return_length=True))
        assert counts.dtype == np.intp
    assert ours.query_ball_point([1.0], 2) == theirs.query_ball_point([1.0], 2) == [0, 1, 2]
    assert ours.query_ball_point([1.0], 2, return_length=True) == 3
    assert ours.query_ball_point([2.5], 9, return_sorted=False) == [2, 1, 0]
    assert ours.query_ball_point([[2.5]], 9, return_sorted=True)[0] == [0, 1, 2]
    assert ours.query_ball_point(np.empty((0, 1)), 1).shape == (0,)
    assert ours.query_ball_point(np.empty((0, 1)), 1, return_length=True).dtype == np.intp


@pytest.mark.parametrize("r", [0.5, [0.5, 1.0, 4.0], [1.0, 0.5], [], [2.0, 2.0]])
@pytest.mark.parametrize("cumulative", [True, False])
def test_pairs_are_counted_as_by_scipy(r: Any, cumulative: bool) -> None:
    if r == [1.0, 0.5] and not cumulative:
        with pytest.raises(ValueError, match="r: expected radii that do not descend"):
            TREE.count_neighbors(TREE, r, cumulative=cumulative)
        return
    ours = TREE.count_neighbors(TREE, r, cumulative=cumulative)
    theirs = ORIGINAL.count_neighbors(ORIGINAL, r, cumulative=cumulative)
    np.testing.assert_array_equal(ours, theirs)
    assert type(ours) is type(theirs)


@pytest.mark.parametrize("r", [0.5, [0.5, 1.0, 4.0], [2.0, 0.5], []])
@pytest.mark.parametrize("weights", ["both", "left", "right", "one"])
def test_weights_of_pairs_are_summed_as_by_scipy(weights: str, r: Any) -> None:
    w, other = X[:, 0], checks.gaussian(31, 3, seed=1, dtype=np.float64)
    given = {"both": (w, other[:, 0]), "left": (w, None), "right": (None, other[:, 0]), "one": w}[weights]
    pair = (TREE, ORIGINAL) if weights == "one" else both(other)
    for cumulative in (True,) if r == [2.0, 0.5] else (True, False):
        ours = TREE.count_neighbors(pair[0], r, weights=given, cumulative=cumulative)
        theirs = ORIGINAL.count_neighbors(pair[1], r, weights=given, cumulative=cumulative)
        assert type(ours) is type(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_weights_of_pairs_at_a_radius_count() -> None:
    ours, theirs = both([[0.0], [1.0], [3.0]])
    for r in (1.0, [1.0, 2.0, 3.0], 0.0):
        expected = theirs.count_neighbors(theirs, r, weights=np.array([1.0, 10.0, 100.0]))
        np.testing.assert_array_equal(ours.count_neighbors(ours, r, weights=np.array([1.0, 10.0, 100.0])), expected)


def test_pairs_and_matrices_come_in_every_form() -> None:
    pairs = TREE.query_pairs(1.0, output_type="ndarray")
    assert pairs.dtype == np.intp
    assert set(map(tuple, pairs.tolist())) == ORIGINAL.query_pairs(1.0)
    assert TREE.query_pairs(0.0, output_type="ndarray").shape == (0, 2)
    records = TREE.sparse_distance_matrix(TREE, 1.0, output_type="ndarray")
    theirs = ORIGINAL.sparse_distance_matrix(ORIGINAL, 1.0, output_type="ndarray")
    assert records.dtype == theirs.dtype
    np.testing.assert_array_equal(*(np.sort(each, order=("i", "j"))[["i", "j"]] for each in (records, theirs)))
    table = TREE.sparse_distance_matrix(TREE, 1.0, output_type="dict")
    assert table.keys() == ORIGINAL.sparse_distance_matrix(ORIGINAL, 1.0, output_type="dict").keys()
    assert all(type(i) is int and type(v) is float for (i, _), v in table.items())
    matrix = TREE.sparse_distance_matrix(TREE, 1.0)
    assert (matrix.format, matrix.nnz, matrix.shape) == ("dok", len(table), (20, 20))


@pytest.mark.parametrize("output_type", ["dok_matrix", "coo_matrix", "dict", "ndarray"])
def test_distances_are_those_from_the_first_tree_to_the_second(output_type: str) -> None:
    other = checks.gaussian(31, 3, seed=1, dtype=np.float64)
    made = TREE.sparse_distance_matrix(KDTree(other), 1.5, output_type=output_type)
    expected = np.sqrt(np.square(X[:, None] - other).sum(axis=2))
    found = np.zeros_like(expected)
    if output_type == "ndarray":
        found[made["i"], made["j"]] = made["v"]
    elif output_type == "dict":
        found[tuple(np.array(list(made)).T)] = list(made.values())
    else:
        found = made.toarray()
    assert_close(found, np.where(expected <= 1.5, expected, 0))


def test_attributes_and_copies_are_scipys() -> None:
    given = X.copy()
    shared, kept = KDTree(given), KDTree(given, copy_data=True, leafsize=7, compact_nodes=False, balanced_tree=False)
    assert np.shares_memory(shared.data, given)
    assert not np.shares_memory(kept.data, given)
    assert (kept.n, kept.m, kept.leafsize, kept.boxsize) == (20, 3, 7, None)
    np.testing.assert_array_equal([kept.maxes, kept.mins], [ORIGINAL.maxes, ORIGINAL.mins])
    assert issubclass(KDTree, cKDTree)
    assert (KDTree(X).leafsize, cKDTree(X).leafsize) == (10, 16)
    whole = KDTree([[1, 2], [3, 4]])
    assert whole.data.dtype == np.float64
    for other in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept)):
        np.testing.assert_array_equal(other.query(X, 3), TREE.query(X, 3))


def test_read_only_and_strided_input_is_fine() -> None:
    wide = np.repeat(X, 2, axis=1)
    wide.setflags(write=False)
    assert KDTree(wide[::-1, ::2]).query(wide[0, ::2])[1] == 19


@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (3, 3), (-1, None)])
def test_workers_are_threads(workers: int, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watched(search: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            asked.append(options["threads"])
            return search(*given, **options)

        return call

    for name in ("search", "radius_search", "radius_count"):
        monkeypatch.setattr(tonari.Index, name, watched(getattr(tonari.Index, name)))
    np.testing.assert_array_equal(TREE.query(X, 3, workers=workers)[1], ORIGINAL.query(X, 3)[1])
    TREE.query_ball_point(X, 1.0, workers=workers)
    TREE.query_ball_point(X, 1.0, workers=workers, return_length=True)
    assert asked == [threads] * 3


# Valid arguments of each method, and values that no method accepts.
REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str, tuple[Any, ...]]] = [
    (
        KDTree,
        {"data": X},
        "data",
        (None, 5, X[0], X[:, :0], X.astype(complex), [["a"]], [[math.nan]], [[1e200]], [[1], [2, 3]]),
    ),
    (KDTree, {"data": X}, "leafsize", (0, 2.5, True)),
    (KDTree, {"data": X}, "compact_nodes", (1, None)),
    (KDTree, {"data": X}, "balanced_tree", (1, None)),
    (KDTree, {"data": X}, "copy_data", (1, None)),
    (KDTree, {"data": abs(X)}, "boxsize", (-1.0, math.nan, math.inf, "1", [9.0, 9.0], [[9.0]], True, 1j)),
    (KDTree, {"data": abs(X), "boxsize": 9.0}, "data", (X, 9 + abs(X), [[9.0, 1.0]])),
    (
        TREE.query,
        {"x": X},
        "x",
        (None, 5, X[:, :2], X.astype(complex), [[math.nan] * 3], "abc", np.ma.masked_array(X, X > 1)),
    ),
    (TREE.query, {"x": X}, "k", (0, -1, 2.0, True, None, [], [0], [2.0], [[1]], "1")),
    (TREE.query, {"x": X}, "eps", (-1, True, "0", None, math.nan)),
    (TREE.query, {"x": X}, "p", (5, 0.5, True, "2", None, math.nan)),
    (TREE.query, {"x": X}, "distance_upper_bound", (-1.0, math.nan, "1", None, True)),
    (TREE.query, {"x": X}, "workers", (0, -2, 1.5, True, None)),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "x", (None, X[:, :2])),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "r", (-1.0, math.nan, "1", [1.0, 2.0], None)),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "eps", (-0.1,)),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "p", (5,)),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "workers", (0,)),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "return_sorted", (1, "yes")),
    (TREE.query_ball_point, {"x": X, "r": 1.0}, "return_length", (1, None)),
    (TREE.query_ball_tree, {"other": TREE, "r": 1.0}, "other", (None, X, ORIGINAL, KDTree(X[:, :2]))),
    (TREE.query_ball_tree, {"other": TREE, "r": 1.0}, "r", (-1.0, [1.0], None, True)),
    (TREE.query_ball_tree, {"other": TREE, "r": 1.0}, "p", (5,)),
    (TREE.query_ball_tree, {"other": TREE, "r": 1.0}, "eps", (-0.1,)),
    (TREE.query_pairs, {"r": 1.0}, "r", (-1.0, [1.0], None, math.nan)),
    (TREE.query_pairs, {"r": 1.0}, "p", (5,)),
    (TREE.query_pairs, {"r": 1.0}, "eps", (-0.1,)),
    (TREE.query_pairs, {"r": 1.0}, "output_type", ("list", None)),
    (TREE.count_neighbors, {"other": TREE, "r": 1.0}, "other", (None,)),
    (TREE.count_neighbors, {"other": TREE, "r": 1.0}, "r", (-1.0, [[1.0]], None, [math.nan])),
    (TREE.count_neighbors, {"other": TREE, "r": 1.0}, "p", (5,)),
    (
        TREE.count_neighbors,
        {"other": TREE, "r": 1.0},
        "weights",
        (X, X[1:, 0], (X[:, 0],), ("a", None), (np.inf * X[:, 0], None)),
    ),
    (TREE.count_neighbors, {"other": KDTree(X), "r": 1.0}, "weights", (X[:, 0],)),
    (TREE.count_neighbors, {"other": TREE, "r": 1.0}, "cumulative", (1, None)),
    (TREE.sparse_distance_matrix, {"other": TREE, "max_distance": 1.0}, "other", (None,)),
    (TREE.sparse_distance_matrix, {"other": TREE, "max_distance": 1.0}, "max_distance", (-1.0, None)),
    (TREE.sparse_distance_matrix, {"other": TREE, "max_distance": 1.0}, "p", (5,)),
    (TREE.sparse_distance_matrix, {"other": TREE, "max_distance": 1.0}, "output_type", ("csr_matrix",)),
]


@pytest.mark.parametrize(("call", "good", "name", "values"), REFUSED)
def test_no_argument_is_ignored_or_fails_in_raw_words(
    call: Callable[..., Any], good: dict[str, Any], name: str, values: tuple[Any, ...]
) -> None:
    assert_refused_by_name(call, good, name, values)


def test_eps_changes_nothing() -> None:
    assert np.array_equal(TREE.query(X, 3, eps=0.5), TREE.query(X, 3))
    assert TREE.query_ball_point(X[:3], 0.7, eps=1).tolist() == TREE.query_ball_point(X[:3], 0.7).tolist()
    assert TREE.query_ball_tree(TREE, 0.7, eps=0.1) == TREE.query_ball_tree(TREE, 0.7)
    assert TREE.query_pairs(0.7, eps=0.1) == TREE.query_pairs(0.7)


@pytest.mark.parametrize("boxsize", [None, 9.0])
def test_a_tree_without_points(boxsize: float | None) -> None:
    none, rows = np.empty((0, 3)), abs(X[:4])
    ours, theirs = (kind(none, boxsize=boxsize) for kind in (KDTree, scipy.spatial.KDTree))
    some, others = (kind(rows, boxsize=boxsize) for kind in (KDTree, scipy.spatial.KDTree))
    assert (ours.n, ours.m, ours.mins.tolist(), ours.maxes.tolist()) == (0, 3, [0.0] * 3, [0.0] * 3)
    for k in (1, 2, [1, 3]):
        for found, expected in zip(ours.query(rows, k), theirs.query(rows, k), strict=True):
            assert np.array_equal(found, expected)
            assert found.dtype == expected.dtype
    assert ours.query_ball_point(rows, 1.0).tolist() == theirs.query_ball_point(rows, 1.0).tolist()
    assert ours.query_ball_point(rows[0], 1.0) == theirs.query_ball_point(rows[0], 1.0) == []
    assert ours.query_ball_point(rows, 1.0, return_length=True).tolist() == [0] * 4
    assert ours.query_pairs(1.0) == theirs.query_pairs(1.0) == set()
    assert ours.query_pairs(1.0, output_type="ndarray").shape == (0, 2)
    assert ours.query_ball_tree(some, 1.0) == theirs.query_ball_tree(others, 1.0)
    assert some.query_ball_tree(ours, 1.0) == others.query_ball_tree(theirs, 1.0)
    assert ours.count_neighbors(some, 1.0) == theirs.count_neighbors(others, 1.0) == 0
    assert some.count_neighbors(ours, [1.0, 2.0]).tolist() == [0, 0]
    assert some.sparse_distance_matrix(ours, 1.0).shape == (4, 0)
