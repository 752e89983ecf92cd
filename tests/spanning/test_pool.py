"""Edges that leave components, and the first edge of each component."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.spanning.boruvka import NO_PAIR, Pool, pairs_of


def pool_of(edges: list[tuple[int, int, float]], n: int = 6) -> Pool:
    sources, targets, weights = (np.array(part) for part in zip(*edges, strict=True))
    return Pool(n, sources.astype(np.int32), targets.astype(np.int32), weights.astype(np.float32))


def test_pairs_ascend_as_their_ends_do() -> None:
    ends = [(left, right) for left in range(5) for right in range(left + 1, 5)]
    pairs = pairs_of(*(np.array(part, np.int32) for part in zip(*ends, strict=True)), 5)
    assert pairs.tolist() == sorted(pairs.tolist())
    np.testing.assert_array_equal(
        pairs, pairs_of(*(np.array(part) for part in zip(*(e[::-1] for e in ends), strict=True)), 5)
    )
    assert [(pair // 5, pair % 5) for pair in pairs.tolist()] == ends


def test_pairs_of_many_points_are_not_cut_off() -> None:
    n = 2**31 - 1
    pairs = pairs_of(np.array([n - 1], np.int32), np.array([n - 2], np.int32), n)
    assert pairs.tolist() == [(n - 2) * n + n - 1]


def test_the_first_edge_of_a_component_may_be_in_the_list_of_either_end() -> None:
    pool = pool_of([(0, 1, 3.0), (2, 0, 1.0), (2, 3, 1.0), (4, 2, 1.0)])
    weights, pairs = pool.lightest(np.array([0, 1, 2, 3, 4, 5]), 6)
    assert weights.tolist() == [1.0, 3.0, 1.0, 1.0, 1.0, np.inf]
    assert pairs.tolist() == [2, 1, 2, 2 * 6 + 3, 2 * 6 + 4, NO_PAIR]  # of 2's three edges the one with point 0


def test_edges_within_a_component_are_dropped() -> None:
    pool = pool_of([(0, 1, 3.0), (2, 0, 1.0), (2, 3, 2.0)])
    pool.keep_leaving(np.array([0, 1, 0, 1, 2, 2]))
    assert list(zip(pool.sources.tolist(), pool.targets.tolist(), pool.weights.tolist(), strict=True)) == [
        (0, 1, 3.0),
        (2, 3, 2.0),
    ]
    assert pool.listed().tolist() == [1, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_what_is_added_has_the_dtype_of_what_is_there(dtype: str) -> None:
    pool = pool_of([(0, 1, 3.0)])
    pool.add(np.array([4], dtype), np.array([5], dtype), np.array([0.5], np.float32))
    assert (pool.sources.dtype, pool.targets.dtype) == ("int32", "int32")
    assert (pool.sources.tolist(), pool.targets.tolist(), pool.weights.tolist()) == ([0, 4], [1, 5], [3.0, 0.5])
