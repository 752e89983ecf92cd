"""Rounds compared with Prim's algorithm, with lists so short that points need searches, and these searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute
from tonari.spanning import boruvka, tuning
from tonari.spanning.boruvka import Forest, spanning_edges
from tonari.spanning.reference import spanning_tree
from tonari.spanning.tree import SpanningTree, tree_of


def grid(n: int, d: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Make points with whole coordinates in random order: most distances equal many others."""
    side = int(np.ceil(n ** (1 / d)))
    places = np.stack(np.unravel_index(np.arange(n), (side,) * d), axis=1)
    return np.random.default_rng(seed).permutation(places).astype(np.float32)


def apart(n: int, d: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Make clusters of different sizes, far from each other: lists end within them."""
    rng = np.random.default_rng(seed)
    labels = np.minimum(rng.geometric(0.3, size=n), 6)
    return (100.0 * rng.standard_normal((7, d))[labels] + rng.standard_normal((n, d))).astype(np.float32)


def dense_in_sparse(n: int, d: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Make a tight cluster among points with large core distances: the nearest outside points do not have the best
    edges.
    """
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d)) * 10
    points[: n // 3] *= 0.01
    return rng.permutation(points).astype(np.float32)


def star(n: int, d: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Make a point to which all others are nearer than to each other: all core distances but its own are larger."""
    return np.eye(n, n - 1, dtype=np.float32)


DATA = {maker.__name__: maker for maker in (grid, apart, dense_in_sparse, star)} | checks.HOSTILE


class Asked:
    """Searches for points with other labels by the reference, which record the number of points and k."""

    def __init__(self, points: Any) -> None:
        self.points = points
        self.calls: list[tuple[int, int]] = []

    def __call__(self, rows: Any, k: int, labels: Any) -> Neighbors:
        self.calls.append((len(rows), k))
        assert len(self.calls) < 1000, "questions without end"
        n = len(self.points)
        near = brute(self.points[rows], self.points, n)
        found = Neighbors(
            np.full((len(rows), k), np.inf, near.distances.dtype), np.full((len(rows), k), -1, near.indices.dtype)
        )
        for at, row in enumerate(rows):
            kept = np.flatnonzero(labels[near.indices[at]] != labels[row])[:k]
            found.distances[at, : len(kept)] = near.distances[at, kept]
            found.indices[at, : len(kept)] = near.indices[at, kept]
        return found


def grown(
    points: Any, min_samples: int, k: int, least: Any = None, memory: int | None = None
) -> tuple[SpanningTree, Asked]:
    """Return the tree by rounds over lists of k, and the recorded searches."""
    n, asked = len(points), Asked(points)
    lists = brute(points, points, min(k, n - 1), self_ids=np.arange(n))
    core = lists.distances[:, min_samples - 2] if min_samples > 1 else np.zeros(n, lists.distances.dtype)
    with Progress(False, total=n - 1, seconds=None, label="") as bar:
        found = spanning_edges(lists, core, asked, bar, least, memory)
    assert bar.done == n - 1
    return tree_of(found, n), asked


def same(found: SpanningTree, expected: SpanningTree) -> None:
    assert found.weights.dtype == expected.weights.dtype
    assert found.weights.tobytes() == expected.weights.tobytes()
    np.testing.assert_array_equal(found.edges, expected.edges)


@pytest.mark.parametrize("maker", DATA)
@pytest.mark.parametrize("min_samples", [1, 2, 5])
@pytest.mark.parametrize("more", [0, 1, 4])
def test_the_tree_is_that_of_prim(maker: str, min_samples: int, more: int) -> None:
    points = DATA[maker](70, 2, 0)
    k = max(1, min_samples - 1 + more)
    same(grown(points, min_samples, k)[0], spanning_tree(points, min_samples))


@pytest.mark.parametrize("n", [2, 3, 4, 7, 17])
@pytest.mark.parametrize("maker", DATA)
def test_few_points(n: int, maker: str) -> None:
    points = DATA[maker](n, 1, 0)
    for min_samples in {1, 2, n}:
        for k in {max(1, min_samples - 1), n - 1}:
            same(grown(points, min_samples, k)[0], spanning_tree(points, min_samples))


def test_blocks_of_questions_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    points = apart(80, 2)
    whole, asked = grown(points, 3, 2)
    monkeypatch.setattr(tuning, "ENTRIES", 8)
    parts, more = grown(points, 3, 2)
    same(parts, whole)
    assert len(more.calls) > len(asked.calls)
    assert max(rows * k for rows, k in more.calls if rows > 1) <= 8


def test_a_budget_makes_blocks_of_questions_smaller() -> None:
    points = apart(80, 2)
    whole = grown(points, 3, 2)[0]
    parts, asked = grown(points, 3, 2, memory=8 * boruvka._ENTRY_BYTES)
    same(parts, whole)
    assert max(rows * k for rows, k in asked.calls if rows > 1) <= 8


def test_lists_of_all_others_ask_nothing() -> None:
    for maker in DATA.values():
        assert grown(maker(20, 2, 0), 3, 19)[1].calls == []


def test_copies_of_one_point_ask_nothing() -> None:
    """Row numbers break ties: the edges to point 0 come before all others."""
    assert grown(np.zeros((50, 2)), 1, 2)[1].calls == []


def test_the_largest_component_does_not_ask() -> None:
    few, many = checks.gaussian(4, 2), checks.gaussian(60, 2, 1) + 100
    tree, asked = grown(np.concatenate([many, few]).astype(np.float32), 1, 3)
    assert tree.weights[-1] > 50
    assert asked.calls[-1] == (4, 1)


def test_a_round_leaves_three_quarters_at_most() -> None:
    points = grid(90, 2)
    lists = brute(points, points, 2, self_ids=np.arange(90))
    forest = Forest(lists, np.zeros(90, np.float32), Asked(points))
    while forest.count > 1:
        before = forest.count
        taken = forest.grow()
        assert len(taken.pairs) == before - forest.count
        assert forest.count <= 0.75 * before + 0.5


class Nearest:
    """Bounds that equal the distances to the nearest outside point, times a factor."""

    def __init__(self, points: Any, factor: float = 1.0) -> None:
        self.points, self.factor = points, factor

    def __call__(self, labels: Any, component: int) -> Any:
        inside = labels == component
        near = brute(self.points[inside], self.points[~inside], 1).distances[:, 0]
        return near.astype(np.float64) * self.factor


@pytest.mark.parametrize("maker", DATA)
@pytest.mark.parametrize("factor", [0.0, 0.9, 1.0])
def test_bounds_from_elsewhere_change_nothing(maker: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that equal a distance do not exclude it."""
    monkeypatch.setattr(tuning, "LARGE_COMPONENT", 1)
    monkeypatch.setattr(tuning, "FIRST_ASKED", 1)
    points = DATA[maker](50, 2, 0)
    for min_samples in (1, 3):
        found, _ = grown(points, min_samples, max(1, min_samples - 1), Nearest(points, factor))
        same(found, spanning_tree(points, min_samples))


def test_bounds_never_fall() -> None:
    points = apart(60, 2)
    lists = brute(points, points, 3, self_ids=np.arange(60))
    least = Nearest(points, 0.0)
    forest = Forest(lists, np.zeros(60, np.float32), Asked(points), least)
    while forest.count > 6:
        forest.grow()
    before, pairs = forest.bounds.copy(), forest.bound_pairs.copy()
    forest._bound(0)
    np.testing.assert_array_equal(forest.bounds, before)
    np.testing.assert_array_equal(forest.bound_pairs, pairs)
    least.factor = 0.5
    forest._bound(0)
    risen = forest.bounds > before
    assert (risen == (forest.labels == 0)).all()
    assert (forest.bound_pairs == np.where(risen, -1, pairs)).all()


def test_points_of_small_bounds_answer_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LARGE_COMPONENT", 20)
    monkeypatch.setattr(tuning, "FIRST_ASKED", 3)
    points = np.concatenate([checks.gaussian(30, 2), checks.gaussian(40, 2, 1) + 50])
    asked = grown(points, 1, 5, Nearest(points, 0.99))[1].calls
    assert asked[-1][0] <= 3
    assert sum(rows for rows, _ in asked) < sum(rows for rows, _ in grown(points, 1, 5)[1].calls) / 2
