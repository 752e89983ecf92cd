"""The assignment of rows to shards, compared with plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, gaussian
from tonari.metrics.reference import brute
from tonari.shards import tuning
from tonari.shards.routes import dealing
from tonari.shards.routes.cluster_centres import deal, gaps_of, train


def nearest(rows: Array, centres: Array, k: int) -> tuple[Any, Any]:
    found = brute(rows, centres, k)
    return found.distances, found.indices


@pytest.mark.parametrize("near", [1, 2, 8])
@pytest.mark.parametrize("margin", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("most_turns", [1, 3])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_memberships_are_those_of_a_loop(library: str, most_turns: int, margin: float, near: int) -> None:
    rng = np.random.default_rng(near)
    reaches = rng.uniform(0, 1.2, (200, near)).astype(np.float32)
    reaches[:, 0], reaches[5] = 0, 0  # one row is on several borders at once
    reaches[7, 1:] = np.inf
    centres = np.argsort(rng.random((200, 12)), axis=1)[:, :near]
    first, turns, numbers = rng.integers(5, size=12), rng.integers(1, most_turns + 1, 12), rng.integers(10**9, size=200)
    arrays = [reaches, centres, numbers, first, turns]
    if library == "torch":
        arrays = list(map(pytest.importorskip("torch").from_numpy, arrays))
    shards = dealing.Shards(arrays[3], arrays[4], margin)
    of, rows = dealing.memberships(dealing.Near(*arrays[:3]), shards)
    expected = {
        (int(first[centre] + numbers[row] % turns[centre]), row)
        for row in range(200)
        for at, centre in enumerate(centres[row].tolist())
        if reaches[row, at] <= np.float32(margin)
    }
    assert list(zip(of.tolist(), rows.tolist(), strict=True)) == sorted(expected)
    assert shards.total == (first + turns).max()


def expectation(chosen: dealing.ChosenShards, samples: dealing.Samples) -> tuple[float, float, float]:
    """Share of neighbours that share a shard, shards per row, and the largest shard, by loops over sets."""

    def inside(near: dealing.Near) -> list[set[int]]:
        of, rows = dealing.memberships(near, chosen.shards)
        return [set(of[rows == row].tolist()) for row in range(len(near.rows))]

    ours, theirs, many = map(inside, (samples.sample, samples.others, samples.many))
    shared = [bool(ours[row] & theirs[other]) for row in range(len(samples.truth)) for other in samples.truth[row]]
    sizes = [sum(shard in held for held in many) for shard in range(chosen.shards.total)]
    return float(np.mean(shared)), sum(map(len, many)) / len(many), max(sizes) / len(many)


def samples_of(rows: Array, centres: Array, near: int, k: int = 5) -> dealing.Samples:
    sampled = np.arange(0, len(rows), 3)
    truth = brute(rows[sampled], rows, k, self_ids=sampled).indices
    others, places = np.unique(truth, return_inverse=True)
    numbers = (np.arange(1, len(rows), 2), sampled, others)
    gaps = gaps_of(centres, nearest)

    def near_of(some: Array) -> dealing.Near:
        distances, of = nearest(rows[some], centres, near)
        return dealing.Near(dealing.reaches(distances, of, gaps, squared=False), of, some)

    return dealing.Samples(*map(near_of, numbers), places.reshape(truth.shape))


@pytest.mark.parametrize(("most", "wanted"), [(0.15, 0.5), (0.15, 0.9), (0.5, 0.5), (0.5, 0.9), (0.5, 0.999)])
def test_the_choice_has_the_numbers_that_it_says(most: float, wanted: float) -> None:
    rows = gaussian(600, 3)
    centres = train(rows, 48, nearest, seed=0)
    samples = samples_of(rows, centres, 8)
    chosen = dealing.choose(centres, samples, shards=4, most=most, wanted=wanted)
    assert (chosen.covered, chosen.copies, chosen.largest) == pytest.approx(expectation(chosen, samples))
    assert chosen.covered >= wanted
    assert chosen.largest <= most
    assert (chosen.shards.turns == 1).all()
    if chosen.shards.margin:  # the smallest that is enough
        smaller = chosen._replace(shards=chosen.shards._replace(margin=0.999 * chosen.shards.margin))
        assert expectation(smaller, samples)[0] < wanted


# If shards shared no rows, 2 would be enough for 0.5, and 4 for 0.25.
@pytest.mark.parametrize(("most", "fewest"), [(0.99, 2), (0.51, 2), (0.5, 3), (0.34, 3), (0.26, 4), (0.25, 5)])
def test_there_are_as_few_shards_as_are_small_enough(most: float, fewest: int) -> None:
    line = np.linspace(0, 1, 600, dtype=np.float32)[:, None]
    centres = line[5::10].copy()
    chosen = dealing.choose(centres, samples_of(line, centres, 2, k=8), shards=20, most=most, wanted=1.0)
    assert chosen.shards.total == fewest
    assert chosen.largest <= most


def test_a_margin_that_makes_shards_too_large_is_lowered() -> None:
    rows = gaussian(400, 30)
    centres = rows[::4].copy()
    samples = samples_of(rows, centres, 8)
    wide = dealing.choose(centres, samples, shards=4, most=1.0, wanted=1.0)
    assert wide.largest > 0.5
    narrow = dealing.choose(centres, samples, shards=4, most=0.1, wanted=1.0)
    assert narrow.largest <= 0.1
    assert narrow.shards.margin < wide.shards.margin


def test_where_no_margin_is_enough_the_largest_is_taken() -> None:
    rows = gaussian(200, 30)
    centres = rows[:64]
    chosen = dealing.choose(centres, samples_of(rows, centres, 2, k=20), shards=16, most=1.0, wanted=1.0)
    assert (chosen.shards.margin, chosen.shards.total) == (tuning.MOST_MARGIN, 2)
    assert chosen.covered < 1


@pytest.mark.parametrize("copies", [1.0, 0.7])
def test_rows_of_one_centre_that_are_too_many_take_turns(copies: float) -> None:
    rows = gaussian(600, 3)
    rows[: round(600 * copies)] = 1.5
    centres = train(rows, 20, nearest, seed=0)
    samples = samples_of(rows, centres, 8)
    chosen = dealing.choose(centres, samples, shards=3, most=0.2, wanted=0.99)
    assert chosen.largest <= 0.2
    assert chosen.shards.turns.max() >= 4 if copies == 1.0 else chosen.shards.turns.max() >= 3
    assert (chosen.covered, chosen.copies, chosen.largest) == pytest.approx(expectation(chosen, samples))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_reaches_are_distances_from_borders(offset: float, squared: bool, library: str) -> None:
    rows, centres = gaussian(50, 3) + offset, gaussian(9, 3, 1) + offset
    metric = "sqeuclidean" if squared else "euclidean"
    found, between = brute(rows, centres, 4, metric), brute(centres, centres, 9, metric)
    gaps = gaps_of(centres, lambda *given: (between.distances, between.indices))
    given = [found.distances, found.indices.astype(np.int64), gaps]
    if library == "torch":
        given = list(map(pytest.importorskip("torch").from_numpy, given))
    reached = np.asarray(dealing.reaches(*given, squared=squared))
    wide, middles = rows.astype(np.float64), centres.astype(np.float64)
    for row in range(50):
        for at, other in enumerate(found.indices[row].tolist()):
            here, there = middles[found.indices[row, 0]], middles[other]
            apart = np.linalg.norm(there - here)
            by_hand = ((here + there) / 2 - wide[row]) @ (there - here) / apart**2 if at else 0.0
            assert reached[row, at] == pytest.approx(by_hand, abs=2e-3 if offset else 1e-5)


def test_reaches_that_cannot_be_told() -> None:
    """Centres at one place, and distances that overflow."""
    distances = np.array(
        [[1.0, 1.0, 2.0], [0.0, 0.0, 3.0], [1.0, np.inf, np.inf], [np.inf, np.inf, np.inf]], np.float32
    )
    numbers = np.tile(np.arange(3), (4, 1))
    gaps = np.array([[0, 0, 2], [0, 0, 2], [2, 2, 0]], np.float32)
    found = dealing.reaches(distances, numbers, gaps, squared=False)
    assert found.tolist() == [[0, 0, 0.375], [0, 0, 1.125], [0, np.inf, np.inf], [0, 0, 0]]


def test_shards_are_equal_with_their_copies() -> None:
    """Rows in the middle are copied more often than outer ones: of shards with equal weight, one would be larger."""
    rows = gaussian(2000, 16)
    centres = train(rows, 80, nearest, seed=0)
    samples = samples_of(rows, centres, 8)
    weights = np.bincount(samples.many.centres[:, 0], minlength=80) + 1e-3
    chosen = dealing.choose(centres, samples, shards=24, most=0.35, wanted=0.95)
    of = deal(centres, weights, chosen.shards.total)
    unequal = dealing._with_margin(of, np.ones(80, np.int64), samples, 0.95, tuning.MOST_MARGIN)
    assert chosen.largest <= 0.35 < dealing._shares(unequal, samples.many).max()


def test_rows_that_are_all_the_same_have_few_shards() -> None:
    """Each row is on the border to every centre, so no number of turns makes shards small, and turns of turns are
    many.
    """
    rows = np.full((350, 6), 3.0, np.float32)
    centres = rows[:32].copy()
    chosen = dealing.choose(centres, samples_of(rows, centres, 8), shards=16, most=0.27, wanted=0.75)
    assert chosen.shards.total < 200
