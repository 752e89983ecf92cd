"""Centres, compared with plain loops, and their division into shards."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.shards.routes.test_dealing import nearest
from tonari.core.rows.draws import Purpose, generator
from tonari.shards import tuning
from tonari.shards.routes.cluster_centres import deal, train


def test_k_means_is_lloyds_iteration() -> None:
    rows = gaussian(300, 4)
    centres = train(rows, 7, nearest, seed=3)
    drawn = np.sort(generator(3, Purpose.SHARD_CENTRES).choice(300, 7, replace=False))
    expected = rows[drawn].copy()
    for _ in range(tuning.KMEANS_ROUNDS):
        of = ((rows[:, None].astype(np.float64) - expected[None]) ** 2).sum(axis=2).argmin(axis=1)
        for centre in range(7):
            expected[centre] = rows[of == centre].astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(centres, expected, rtol=1e-6, atol=1e-7)  # sums in another order, rounded once


def test_an_empty_cluster_keeps_its_centre() -> None:
    rows = np.repeat(np.array([[1.0], [5.0]], np.float32), 10, axis=0)
    centres = train(rows, 20, nearest, seed=0)
    assert sorted(set(centres.ravel().tolist())) == [1.0, 5.0]


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 8, 20, 40])
@pytest.mark.parametrize("seed", range(3))
def test_centres_are_cut_into_shards_of_about_equal_weight(shards: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, weights = gaussian(40, 3, seed), rng.integers(1, 10, 40).astype(np.float64)
    of = deal(centres, weights, shards)
    assert sorted(set(of.tolist())) == list(range(shards))  # none of them is empty
    held = np.bincount(of, weights, shards)
    # Every cut is off by at most one centre; a shard results from log2(shards) cuts.
    assert held.max() <= weights.sum() / shards + weights.max() * np.ceil(np.log2(max(2, shards)))
    np.testing.assert_array_equal(of, deal(centres, weights, shards))


def test_cuts_are_across_the_longest_axis() -> None:
    square = np.stack(np.meshgrid(np.arange(8.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    of = deal(square.astype(np.float32), np.ones(32), 2)
    left = set(of[square[:, 0] < 4].tolist())
    assert len(left) == 1
    assert left.isdisjoint(of[square[:, 0] >= 4].tolist())
    assert np.bincount(of).tolist() == [16, 16]
