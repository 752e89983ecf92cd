"""Periodic boxes: SciPy's answers, all images computed by hand, points on the border, and blocks."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.spatial

from tonari.compat.scipy import KDTree, tuning
from tonari.compat.scipy.periodic import Periodic
from tonari.metrics import get_metric

Array = npt.NDArray[np.float64]
NORMS = (1, 2, 3, math.inf)
METRICS = dict(zip(NORMS, ("l1", "euclidean", "minkowski:3", "linf"), strict=True))
ORDERED_BY = METRICS | {3: "power:3"}
KINDS = ("uniform", "border", "grid", "corners")
BOXES: dict[str, list[float]] = {"line": [1.0], "plane": [2.5, 1.0], "space": [1.0, 1.0, 1.0], "mixed": [0.0, 1.7, 1.0]}


def inside(kind: str, n: int, box: Array, seed: int = 0) -> Array:
    """Make points in a box; in dimensions that are not periodic, also beyond it."""
    rng = np.random.default_rng(seed)
    length = np.where(box > 0, box, 1.0)
    shape = n, len(box)
    shares = {
        "uniform": rng.random(shape),
        "border": rng.choice([0, 0.25, 0.5, 0.75, 1 - 2.0**-53, 2.0**-60], shape),  # distances tie, and 0 equals L
        "grid": rng.integers(0, 8, shape) / 8,
        "corners": np.mod(rng.random(shape) * 0.02 * rng.choice([1, -1], shape), 1.0),
    }[kind]
    points = shares * length
    points = np.where((box > 0) & (points >= box), 0.0, points)
    return np.where(box > 0, points, 3 * points - 1)


def outside(rows: Array, box: Array) -> Array:
    """Return images of the rows in the surrounding boxes."""
    return rows + box * np.random.default_rng(1).integers(-3, 4, rows.shape)


def table(rows: Array, points: Array, box: Array, p: float) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return all distances in the box, and for each row the order of the points."""
    gaps = np.abs(rows[:, None] - points)
    gaps = np.moveaxis(np.where((box > 0) & (gaps > box / 2), box - gaps, gaps), -1, 0)
    distances, before_root = (
        np.asarray(get_metric(metric).value(gaps, np.zeros_like(gaps)))
        for metric in (METRICS[p], ORDERED_BY[p])  # type: ignore[misc]
    )
    return distances, np.argsort(before_root, axis=1, kind="stable")


@pytest.mark.parametrize("most", [tuning.MOST_PERIODIC, 0], ids=["images", "all pairs"])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOXES)
def test_answers_are_those_of_all_pairs_and_of_scipy(
    name: str, kind: str, p: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "MOST_PERIODIC", most)
    box = np.array(BOXES[name])
    points = inside(kind, 40, box)
    rows = np.concatenate([points[:8], inside(kind, 8, box, 2)])
    ours, theirs = KDTree(points, boxsize=box), scipy.spatial.KDTree(points, boxsize=box)
    expected, order = table(rows, points, box, p)
    scale = 1e-15 * max(box)
    for k in (1, 5, 40, 43):
        d, i = ours.query(rows, [k] if k == 1 else k, p=p)
        np.testing.assert_array_equal(i[:, :40], order[:, :k])
        np.testing.assert_array_equal(d[:, :40], np.take_along_axis(expected, order[:, :k], axis=1))
        np.testing.assert_allclose(d, theirs.query(rows, [k] if k == 1 else k, p=p)[0], rtol=1e-13, atol=scale)
        np.testing.assert_allclose(
            ours.query(outside(rows, box), [k] if k == 1 else k, p=p)[0], d, rtol=1e-12, atol=9 * scale
        )
    for r in (0.0, 0.1234, 0.51, 0.77, 1.3, 9.0):
        within = [sorted(each) for each in theirs.query_ball_point(rows, r, p=p)]
        assert within == [np.flatnonzero(row <= r).tolist() for row in expected]
        assert ours.query_ball_point(rows, r, p=p).tolist() == within
        assert ours.query_ball_point(rows, r, p=p, return_length=True).tolist() == list(map(len, within))
        assert ours.query_pairs(r, p=p) == theirs.query_pairs(r, p=p)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOXES)
def test_two_trees(name: str, kind: str) -> None:
    box = np.array(BOXES[name])
    points, others = inside(kind, 30, box), inside(kind, 20, box, 1)
    ours, mine = KDTree(points, boxsize=box), KDTree(others, boxsize=box)
    theirs, original = (scipy.spatial.KDTree(each, boxsize=box) for each in (points, others))
    for r in (0.1234, 0.6, 2.1):
        assert ours.query_ball_tree(mine, r) == [sorted(each) for each in theirs.query_ball_tree(original, r)]
        table_ = ours.sparse_distance_matrix(mine, r, output_type="dict")
        expected = theirs.sparse_distance_matrix(original, r, output_type="dict")
        assert table_.keys() == expected.keys()
        np.testing.assert_allclose([table_[pair] for pair in expected], list(expected.values()), rtol=1e-13, atol=1e-15)
    radii = [0.1234, 0.6, 2.1]
    np.testing.assert_array_equal(ours.count_neighbors(mine, radii), theirs.count_neighbors(original, radii))
    weights = points[:, 0], others[:, 0]
    np.testing.assert_allclose(
        ours.count_neighbors(mine, radii, weights=weights), theirs.count_neighbors(original, radii, weights=weights)
    )
    with pytest.raises(ValueError, match=r"other: has boxsize=None, expected"):
        ours.query_ball_tree(KDTree(others), 1.0)
    with pytest.raises(ValueError, match="other: has boxsize="):
        KDTree(points).count_neighbors(mine, 1.0)
    assert KDTree(points, boxsize=0.0).count_neighbors(KDTree(others), 0.6) == scipy.spatial.KDTree(
        points
    ).count_neighbors(scipy.spatial.KDTree(others), 0.6)


@pytest.mark.parametrize("pairs", [1, 50, 1 << 22])
def test_blocks_change_no_answer(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    box = np.array([1.0, 1.0])
    points = inside("uniform", 60, box)
    expected = KDTree(points, boxsize=box).query(points, 7)
    lists = KDTree(points, boxsize=box).query_ball_point(points, 0.3).tolist()
    monkeypatch.setattr(tuning, "PAIRS", pairs)
    monkeypatch.setattr(tuning, "ELEMENTS", 3)
    tree = KDTree(points, boxsize=box)
    np.testing.assert_array_equal(tree.query(points, 7), expected)
    assert tree.query_ball_point(points, 0.3).tolist() == lists
    assert tree.query_ball_point(points, 0.3, return_length=True).tolist() == list(map(len, lists))


def test_only_rows_near_the_border_have_images(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    pairs = Periodic._pairs

    def watched(self: Periodic, asked: Any, rows: Any, threads: Any) -> Any:
        looked.extend(rows.tolist())
        return pairs(self, asked, rows, threads)

    monkeypatch.setattr(Periodic, "_pairs", watched)
    points = inside("uniform", 4000, np.ones(2))
    tree = KDTree(points, boxsize=1.0)
    tree.query(points, 3)
    assert 0 < len(looked) < 800
    assert np.abs(points[looked] - 0.5).max(axis=1).min() > 0.3


@pytest.mark.parametrize("p", NORMS)
def test_a_radius_is_reached_though_images_are_rounded(p: float) -> None:
    box = np.array([0.7, 1.3])
    points, rows = inside("corners", 300, box), inside("corners", 300, box, 1)
    radii = table(rows, points, box, p)[0][np.arange(300), np.arange(300)]
    tree = KDTree(points, boxsize=box)
    found = tree.query_ball_point(rows, radii, p=p)
    assert all(i in each for i, each in enumerate(found))
    found = tree.query_ball_point(rows, np.nextafter(radii, 0), p=p)
    assert not any(i in each for i, each in enumerate(found))


def test_a_row_that_is_rounded_to_the_length_of_the_box_is_at_0() -> None:
    tree = KDTree([[0.0], [0.5]], boxsize=1.0)
    for x in (-1e-20, 1.0, -3.0, 1e100, 2.0**60):
        assert tree.query([x]) == (0.0, 0)
    assert tree.query([0.75])[0] == tree.query([-0.25])[0] == 0.25


def test_a_tree_can_be_pickled() -> None:
    points = inside("uniform", 30, np.ones(3))
    tree = KDTree(points, boxsize=1)
    expected = tree.query(points, 4)
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again.query(points, 4), expected)
    assert again.boxsize.tolist() == [1.0, 1.0, 1.0]


def test_many_dimensions_compare_all_pairs() -> None:
    box = np.full(8, 1.5)
    points = inside("uniform", 50, box)
    ours, theirs = KDTree(points, boxsize=box), scipy.spatial.KDTree(points, boxsize=box)
    np.testing.assert_array_equal(ours.query(points, 5)[1], theirs.query(points, 5)[1])
    assert ours.count_neighbors(ours, 1.2) == theirs.count_neighbors(theirs, 1.2)
