"""The steps of NN-Descent on CUDA: the start, seeds across a boundary, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tonari.metrics.reference import brute
from tonari.nn_descent.entries import ID, random_entries

if HAS_TORCH:
    from tests.helpers.descent_on_cuda import check_lists, recall_of, steps_for
pytestmark = [needs_torch, pytest.mark.usefixtures("plain_exact_neighbors")]


@pytest.mark.parametrize(
    "metric", ["euclidean", "cosine", "correlation", "inner_product", "l1", "chi2"] if HAS_CUDA else ["inner_product"]
)
def test_the_start_finds_most_neighbours(metric: str) -> None:
    n, groups = (700, 12) if HAS_CUDA else (90, 3)
    rng = np.random.default_rng(1)
    points = rng.normal(size=(groups, 10))[rng.integers(groups, size=n)] + 0.3 * rng.normal(size=(n, 10))
    points = checks.accepted(points, metric).astype(np.float32)
    on_card, _ = steps_for(
        points, 5, metric, n_clusters=groups, n_probe=groups // 3, train_per_cluster=8, kmeans_iters=1
    )
    ids = check_lists(on_card.start("clusters").cpu().numpy(), n)
    assert recall_of(ids, points, 5, metric) > (0.5 if metric == "inner_product" else 0.85)


def test_the_start_of_equal_points_is_bounded_and_full() -> None:
    n = 3000 if HAS_CUDA else 120
    on_card, _ = steps_for(np.ones((n, 3), np.float32), 5, n_clusters=n // 60, kmeans_iters=1, train_per_cluster=4)
    ids = check_lists(on_card.start("clusters").cpu().numpy(), n)
    assert (ids >= 0).sum(axis=1).min() >= 5


@pytest.mark.parametrize("side", [1, 15, 59])
def test_seeds_are_the_nearest_across(side: int) -> None:
    n, boundary = (400, 400 * side // 60) if HAS_CUDA else (60, side)
    points = checks.gaussian(n, 5)
    # all pairs of points are compared
    on_card, _ = steps_for(points, 5, n_clusters=3, n_probe=3, train_per_cluster=8, kmeans_iters=1)
    ids = check_lists(on_card.seeds(boundary, 8).cpu().numpy(), n)
    below = np.arange(n) < boundary
    assert not ((ids < boundary) == below[:, None])[ids >= 0].any()
    for here, there in ((below, ~below), (~below, below)):
        k = min(8, int(there.sum()))
        others, listed = np.flatnonzero(there), ids[here]
        assert (listed[:, :k] >= 0).all()
        truth = others[brute(points[here], points[there], k).indices]
        assert (listed[:, :, None] == truth[:, None, :]).any(axis=1).mean() > 0.95


def test_lists_side_by_side() -> None:
    on_card, plain = steps_for(checks.gaussian(30, 2), 3, list_size=8)
    ids = random_entries(30, 5, 1) & np.int32(ID)
    first, wanted = on_card.entries_of(ids, new=False), plain.entries_of(ids, new=False)
    np.testing.assert_array_equal(first.cpu().numpy(), wanted)
    for columns in (2, 5):
        both = on_card.joined_entries(first, on_card.entries_of(ids[:, :columns], new=True))
        np.testing.assert_array_equal(
            both.cpu().numpy(), plain.joined_entries(wanted, plain.entries_of(ids[:, :columns], new=True))
        )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    points = checks.gaussian(50, 3)
    points[31, 1] = value
    with pytest.raises(ValueError, match="row 31 has a value that is not finite"):
        steps_for(points, 3)


def test_negative_values_are_refused_for_chi2() -> None:
    with pytest.raises(ValueError, match="row 0 has a negative value"):
        steps_for(-np.ones((5, 2), np.float32), 3, "chi2")
