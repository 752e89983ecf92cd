"""The buffered traversal on the CPU: its rounds and buffers, and the end of every query.

test_search.py tests its bits.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.trees import ISAS, searched, tree_of
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.kdtree.papers.rounds import Rounds
from tonari.metrics.reference import brute

BUFFERED: dict[str, Any] = {"traversal": "buffered"}


def counted(m: int, n: int = 2000, *, k: int = 5, **choices: Any) -> Rounds:
    """Return the counts of the rounds of a search whose bits equal the reference's and whose leaves equal the
    walk's.
    """
    points, queries = checks.gaussian(n, 3), checks.gaussian(m, 3, 1)
    tree, rounds = tree_of(points), Rounds()
    choices = BUFFERED | {"query_block": m} | choices
    found, visits = searched(queries, points, tree, k, rounds=rounds, **choices)
    assert_same_neighbors(found, brute(queries, points, k))
    assert visits == searched(queries, points, tree, k)[1]
    assert rounds.compared == visits.leaves
    assert 1 <= rounds.tiles <= rounds.compared
    return rounds


def test_small_buffers_fill_and_large_ones_wait_for_all_queries() -> None:
    small, large = counted(300, buffer=8), counted(300, buffer=10_000)
    assert small.rounds > 2 * large.rounds
    assert 0 < small.full < small.emptied  # at the end there are too few queries to fill one
    assert small.emptied <= small.rounds
    assert large.full == 0
    assert large.emptied == large.rounds - 1  # all queries advance together until they end in the last round
    assert large.compared == small.compared


def test_queries_of_a_leaf_are_compared_together() -> None:
    together = counted(300, buffer=10_000)
    assert together.compared > 1.5 * together.tiles
    alone = counted(300, buffer=1)  # half of one is one: buffers are emptied in every round
    assert alone.emptied == alone.full


def test_blocks_have_rounds_of_their_own() -> None:
    whole, cut = counted(300, buffer=10_000), counted(300, buffer=10_000, query_block=50, threads=2)
    assert cut.rounds > 2 * whole.rounds
    assert cut.compared == whole.compared
    assert cut.tiles > whole.tiles


def test_the_time_of_both_phases_is_counted() -> None:
    rounds = counted(50)
    assert 0 < rounds.find_seconds < 10
    assert 0 < rounds.process_seconds < 10
    assert rounds.walked == rounds.sort_seconds == 0


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("buffer", [1, 2, 8])
def test_tiles_of_any_number_of_queries(m: int, buffer: int) -> None:
    # One leaf: all queries of a round share it.
    points, queries = checks.gaussian(37, 5), checks.gaussian(m, 5, 1)
    tree, truth = tree_of(points, height=0), brute(queries, points, 37)
    for isa in ISAS:
        rounds = Rounds()
        found, visits = searched(queries, points, tree, 37, rounds=rounds, isa=isa, buffer=buffer, **BUFFERED)
        assert_same_neighbors(found, truth)
        assert (visits.leaves, visits.nodes, visits.points) == (m, m, 37 * m)
        assert -(-m // 4) <= rounds.tiles <= m


def test_queries_of_a_tile_keep_apart() -> None:
    # Adjacent queries of a tile differ in everything: value, excluded point, threshold.
    points = checks.gaussian(60, 13) * 100
    ids = np.repeat(np.arange(20, dtype=np.int64), 2)
    queries = points[ids]
    queries[1::2] *= -1
    tree = tree_of(points, height=1)
    for isa in ISAS:
        for k in (1, 59):
            found, _ = searched(queries, points, tree, k, self_ids=ids, isa=isa, buffer=100, **BUFFERED)
            assert_same_neighbors(found, brute(queries, points, k, self_ids=ids))


def block_of(m: int, buffer: int, k: int = 4, begin: int = 0, end: int | None = None) -> tuple[Any, Neighbors, Any]:
    points, order = checks.gaussian(300, 3), np.random.default_rng(0).permutation(m)
    tree, queries = tree_of(points), checks.gaussian(m, 3, 1)
    found = Neighbors(np.full((m, k), np.nan, np.float32), np.full((m, k), -7, np.int32))
    search = _native.TreeSearch(tree.native, ISAS[-1], "euclidean", k, queries, order, None, *found)
    return _native.TreeRounds(search, begin, m if end is None else end, buffer), found, (queries, points, order)


def test_a_budget_stops_within_a_round_and_changes_nothing() -> None:
    whole, _, _ = block_of(40, 16)
    finished, *visits = whole.run(1 << 40)
    assert finished == 40
    parts, found, (queries, points, _) = block_of(40, 16)
    calls, total = 0, np.zeros(4, np.int64)
    while total[0] < 40:
        total += parts.run(1)
        calls += 1
    assert total.tolist() == [40, *visits]
    assert parts.counts()[:4] == whole.counts()[:4]
    assert calls > 2 * whole.counts()[0]
    assert_same_neighbors(found, brute(queries, points, 4))
    assert parts.run(1 << 40) == (0, 0, 0, 0)


def test_only_the_block_is_searched() -> None:
    block, found, (queries, points, order) = block_of(20, 2, begin=5, end=11)
    assert block.run(1 << 40)[0] == 6
    truth, rows = brute(queries, points, 4), np.sort(order[5:11])
    assert np.array_equal(found.distances[rows], truth.distances[rows])
    assert np.array_equal(found.indices[rows], truth.indices[rows])
    others = np.setdiff1d(np.arange(20), rows)
    assert np.isnan(found.distances[others]).all()
    assert (found.indices[others] == -7).all()


def test_no_queries_are_finished_at_once() -> None:
    block, found, _ = block_of(20, 2, begin=5, end=5)
    assert block.run(1 << 40) == (0, 0, 0, 0)
    assert block.counts()[:4] == (0, 0, 0, 0)
    assert np.isnan(found.distances).all()


def test_rounds_are_for_squares_of_float32() -> None:
    points = checks.gaussian(30, 3)
    found = Neighbors(np.empty((30, 2), np.float32), np.empty((30, 2), np.int32))
    for metric, double in (("l1", False), ("euclidean", True)):
        tree = tree_of(points, double=double)
        search = _native.TreeSearch(tree.native, ISAS[-1], metric, 2, points, None, None, *found)
        with pytest.raises(ValueError, match="serves squares of differences in trees of float32"):
            _native.TreeRounds(search, 0, 30, 4)


def test_rounds_add_up() -> None:
    total = Rounds()
    total.add(rounds=2, find_seconds=0.5)
    total.add(rounds=3, tiles=1)
    assert dataclasses.replace(total) == Rounds(rounds=5, tiles=1, find_seconds=0.5)
