"""How rows are dealt to shards, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, gaussian
from tonari.metrics.reference import brute
from tonari.shards import dealing


def nearest(rows: Array, centres: Array, k: int) -> tuple[Any, Any]:
    found = brute(rows, centres, k)
    return found.distances, found.indices


def test_k_means_is_lloyds_iteration() -> None:
    rows = gaussian(300, 4)
    centres = dealing.train(rows, 7, nearest, seed=3)
    drawn = np.sort(np.random.default_rng(3).choice(300, 7, replace=False))
    expected = rows[drawn].copy()
    for _ in range(dealing._ROUNDS):
        of = ((rows[:, None].astype(np.float64) - expected[None]) ** 2).sum(axis=2).argmin(axis=1)
        for centre in range(7):
            expected[centre] = rows[of == centre].astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(centres, expected, rtol=1e-6, atol=1e-7)  # sums in another order, rounded once


def test_an_empty_cluster_keeps_its_centre() -> None:
    rows = np.repeat(np.array([[1.0], [5.0]], np.float32), 10, axis=0)
    centres = dealing.train(rows, 20, nearest, seed=0)
    assert sorted(set(centres.ravel().tolist())) == [1.0, 5.0]


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 8, 20, 40])
@pytest.mark.parametrize("seed", range(3))
def test_centres_are_cut_into_shards_of_about_equal_weight(shards: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, weights = gaussian(40, 3, seed), rng.integers(1, 10, 40).astype(np.float64)
    of = dealing.deal(centres, weights, shards)
    assert sorted(set(of.tolist())) == list(range(shards))  # none is empty
    held = np.bincount(of, weights, shards)
    # Every cut is off by at most one centre; there are log2(shards) cuts above a shard.
    assert held.max() <= weights.sum() / shards + weights.max() * np.ceil(np.log2(max(2, shards)))
    np.testing.assert_array_equal(of, dealing.deal(centres, weights, shards))


def test_cuts_are_across_the_longest_axis() -> None:
    square = np.stack(np.meshgrid(np.arange(8.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    of = dealing.deal(square.astype(np.float32), np.ones(32), 2)
    left = set(of[square[:, 0] < 4].tolist())
    assert len(left) == 1
    assert left.isdisjoint(of[square[:, 0] >= 4].tolist())
    assert np.bincount(of).tolist() == [16, 16]


@pytest.mark.parametrize("near", [1, 2, 8])
@pytest.mark.parametrize("margin", [0.0, 0.1, 1.0])
def test_memberships_are_those_of_a_loop(margin: float, near: int) -> None:
    rng = np.random.default_rng(near)
    distances = np.sort(rng.uniform(0, 3, (200, near)), axis=1).astype(np.float32)
    distances[5] = 0  # on several centres at once
    numbers = np.argsort(rng.random((200, 12)), axis=1)[:, :near]
    shard_of = rng.integers(5, size=12)
    of, rows = dealing.memberships(distances, numbers, shard_of, margin)
    expected = {
        (int(shard_of[numbers[row, at]]), row)
        for row in range(200)
        for at in range(near)
        if at == 0 or distances[row, at] <= np.float32(1 + margin) * distances[row, 0]
    }
    assert list(zip(of.tolist(), rows.tolist(), strict=True)) == sorted(expected)


def expectation(dealt: dealing.Dealt, sample: Any, theirs: Any, truth: Array) -> tuple[float, float, float]:
    """Share of neighbours that share a shard, shards per row, and the largest shard, by loops over sets."""
    inside = []
    for distances, near in (sample, theirs):
        of, rows = dealing.memberships(distances, near, dealt.shard_of, dealt.margin)
        inside.append([set(of[rows == row].tolist()) for row in range(len(near))])
    shared = [bool(inside[0][row] & inside[1][other]) for row in range(len(truth)) for other in truth[row]]
    sizes = [sum(shard in held for held in inside[0]) for shard in range(dealt.shards)]
    copies = sum(map(len, inside[0])) / len(truth)
    return float(np.mean(shared)), copies, max(sizes) / len(truth)


@pytest.mark.parametrize("wanted", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("most", [0.15, 0.5])
def test_the_choice_has_the_numbers_that_it_says(most: float, wanted: float) -> None:
    rows = gaussian(600, 3)
    centres = dealing.train(rows, 48, nearest, seed=0)
    truth = brute(rows[::3], rows, 5, self_ids=np.arange(0, 600, 3)).indices
    others, places = np.unique(truth, return_inverse=True)
    sample, theirs = nearest(rows[::3], centres, 8), nearest(rows[others], centres, 8)
    places = places.reshape(truth.shape)
    dealt = dealing.choose(centres, sample, theirs, places, shards=4, most=most, wanted=wanted)
    assert (dealt.covered, dealt.copies, dealt.largest) == pytest.approx(expectation(dealt, sample, theirs, places))
    assert dealt.covered >= wanted or dealt.margin == dealing.MARGINS[-1]
    assert dealt.largest <= most or dealt.shards == 24
    assert 4 <= dealt.shards <= 24
    # The least margin that is enough.
    less = dealing.MARGINS[max(0, dealing.MARGINS.index(dealt.margin) - 1)]
    if less < dealt.margin:
        smaller = dealing._measure(dealt.shard_of, dealt.shards, less, sample, theirs, places)
        assert smaller.covered < wanted


def test_where_no_margin_is_enough_the_largest_is_taken() -> None:
    rows = gaussian(200, 30)
    centres = rows[:64]
    truth = brute(rows, rows, 20, self_ids=np.arange(200)).indices
    near = nearest(rows, centres, 2)
    dealt = dealing.choose(centres, near, near, truth.astype(np.int64), shards=16, most=1.0, wanted=1.0)
    assert (dealt.margin, dealt.shards) == (dealing.MARGINS[-1], 16)
    assert dealt.covered < 1
