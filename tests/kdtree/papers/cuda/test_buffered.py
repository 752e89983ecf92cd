"""The buffered traversal on CUDA: rounds, tiles, and answers with the bits of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import on_host, tensors
from tonari.core.results.neighbors import Neighbors
from tonari.kdtree import tuning
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TREE_METRICS
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.kdtree.cuda.build import build_on_device
    from tonari.kdtree.cuda.search import TreeSearch, order_of, walk
    from tonari.kdtree.papers.cuda import buffered

pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"


@pytest.fixture(autouse=True)
def few_queries_make_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    if HAS_TORCH:
        monkeypatch.setattr(tuning, "WALKED_ALONE", 0)


class Bar:
    """Counts finished queries."""

    def __init__(self) -> None:
        self.done = 0

    def add(self, amount: int) -> None:
        self.done += amount


def searched(
    queries: Any, points: Any, k: int, metric: str = "euclidean", *, buffer: int = 4, leaf: int = 64, own: Any = None
) -> Rounds:
    """Search by rounds, compare the bits with the reference and the leaves with the walk, and return the counts."""
    double = np.float64 in (queries.dtype, points.dtype)
    tree = build_on_device(tensors(DEVICE, points)[0], leaf=leaf, double=double)
    (rows,) = tensors(DEVICE, queries)
    rows = rows.to(tree.rows.dtype).contiguous()
    m = len(rows)
    rounds, bar = Rounds(), Bar()
    found, again = (
        Neighbors(
            torch.empty((m, k), dtype=rows.dtype, device=DEVICE), torch.empty((m, k), dtype=torch.int32, device=DEVICE)
        )
        for _ in range(2)
    )
    order = order_of(rows, tree, metric)
    mine = None if own is None else torch.from_numpy(own).to(DEVICE)
    search = TreeSearch(rows, tree, k, metric, found, mine)
    buffered.search_by_rounds(search, order, buffer=buffer, check=lambda: None, bar=bar, rounds=rounds)
    assert_same_neighbors(on_host(found), brute(queries, points, k, metric, self_ids=own), metric=metric)
    assert bar.done == m
    visits = torch.zeros((m, 2), dtype=torch.int32, device=DEVICE)
    walk(search._replace(found=again), order, visits=visits)
    if not rounds.walked:
        assert rounds.compared == int(visits[:, 0].sum())
    return rounds


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("d", [1, 17, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_metric_width_and_dtype(metric: str, d: int, dtype: str) -> None:
    rounds = searched(checks.gaussian(3, d, 1).astype(dtype), checks.gaussian(130, d).astype(dtype), 7, metric)
    assert rounds.rounds >= 2


@pytest.mark.parametrize("k", [1, 32, 33, 64])
@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 130])
def test_numbers_of_points_up_to_all(n: int, k: int) -> None:
    searched(checks.gaussian(2, 2, 1), checks.gaussian(n, 2), min(n, k))


@pytest.mark.parametrize("name", ["all_equal", "duplicates", "tight_far_clusters", "subnormal", "gps_metres"])
def test_hard_rows(name: str) -> None:
    rows = checks.gps_metres(200) if name == "gps_metres" else getattr(checks, name)(200, 3)
    searched(rows[::70], rows, 9)


@pytest.mark.parametrize("leaf", [64, 192])
def test_own_points_are_left_out(leaf: int) -> None:
    points, own = checks.duplicates(150, 2), np.array([3, 70, 149, 3])
    searched(points[own], points, 5, own=own, leaf=leaf)


def test_queries_of_a_tile_keep_apart() -> None:
    """Copies of two queries and other queries, more than a tile holds, in one leaf of two blocks."""
    points = checks.gaussian(100, 2)
    queries = np.concatenate([np.repeat(points[:2], 6, axis=0), checks.gaussian(6, 2, 1) * np.float32(9)])
    rounds = searched(queries, points, 3, buffer=100, leaf=128)
    assert (rounds.tiles, rounds.compared) == (2, 18)  # 16 and 2


def test_levels_of_boxes_are_climbed_and_descended_again() -> None:
    """Points are excluded from their own lists, near the end of a node: its leaves are visited first, then nearer
    ones after it.
    """
    n, ends = (70_000, (2048, 65_536)) if HAS_CUDA else (2200, (2048,))
    points = np.random.default_rng(0).permutation(n).astype(np.float32)[:, None]
    own = np.array([int(np.flatnonzero(points[:, 0] == end - 8)[0]) for end in ends])
    searched(points[own], points, 64, own=own)


def test_small_buffers_fill_and_large_ones_wait_for_all_queries() -> None:
    points, queries = checks.gaussian(260, 2), checks.gaussian(12, 2, 1)
    small, large = (searched(queries, points, 4, buffer=buffer) for buffer in (2, 1000))
    assert small.rounds > large.rounds
    assert 0 < small.full <= small.emptied < small.rounds
    assert large.full == 0
    assert large.emptied == large.rounds - 1
    assert small.compared == large.compared
    assert large.tiles <= small.tiles
    assert large.tiles < large.compared


def test_the_few_that_are_left_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WALKED_SHARE", 2)
    rounds = searched(checks.gaussian(8, 3, 1), checks.gaussian(400, 3), 4)
    assert 1 <= rounds.walked <= 4
    assert rounds.rounds > 1


def test_so_many_that_the_walk_takes_at_once_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WALKED_ALONE", 8)
    for m, walked in ((8, 8), (9, 0)):
        rounds = searched(checks.gaussian(m, 3, 1), checks.gaussian(400, 3), 4)
        assert (rounds.walked == m, rounds.rounds == 0) == (walked == m, walked == m)
        assert 0 < rounds.walked <= 8


def test_the_time_of_phases_is_counted() -> None:
    rounds = searched(checks.gaussian(2, 2, 1), checks.gaussian(70, 2), 4)
    assert min(rounds.find_seconds, rounds.sort_seconds, rounds.process_seconds) > 0


def test_tiles_are_of_one_leaf() -> None:
    sizes = {3: 1, 4: 16, 9: 17, 11: 40, 12: 15}
    leaves = torch.repeat_interleave(torch.tensor(list(sizes)), torch.tensor(list(sizes.values()))).to(torch.int32)
    tiles = buffered.cut_tiles(leaves)
    covered = []
    for begin, count, leaf in zip(*(part.tolist() for part in tiles), strict=True):
        assert 1 <= count <= buffered.TILE
        assert (leaves[begin : begin + count] == leaf).all()
        covered += range(begin, begin + count)
    assert covered == list(range(len(leaves)))
    assert len(tiles.begins) == 1 + 1 + 2 + 3 + 1


@on_gpu
@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize(
    ("make", "n", "m", "d", "k"),
    [
        ("gaussian", 300_000, 20_000, 3, 10),
        ("gaussian", 1_100_000, 3_000, 5, 64),
        ("gaussian", 50_000, 2_000, 27, 5),
        ("tight_far_clusters", 20_000, 2_000, 10, 40),  # every query visits every leaf
    ],
)
def test_large_searches_have_the_bits_of_the_walk(make: str, n: int, m: int, d: int, k: int, metric: str) -> None:
    import tonari

    points, queries = tensors("cuda", getattr(checks, make)(n, d), getattr(checks, make)(m, d, 1))
    answers = [
        tonari.search(
            queries,
            points,
            k,
            metric=metric,
            plan=tonari.plan(n, m, d, k, metric=metric, method="kdtree", device="cuda", **choices),
        )
        for choices in ({}, {"traversal": "buffered"}, {"traversal": "buffered", "buffer": m // 10, "sort": False})
    ]
    for found in answers[1:]:
        assert torch.equal(found.distances, answers[0].distances)
        assert torch.equal(found.indices, answers[0].indices)


def test_a_check_that_raises_ends_the_rounds() -> None:
    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    points, queries = tensors(DEVICE, checks.gaussian(130, 2), checks.gaussian(3, 2, 1))
    tree = build_on_device(points, leaf=64, double=False)
    found = Neighbors(torch.empty((3, 2), device=DEVICE), torch.empty((3, 2), dtype=torch.int32, device=DEVICE))
    with pytest.raises(KeyboardInterrupt):
        buffered.search_by_rounds(
            TreeSearch(queries, tree, 2, "l1", found),
            torch.arange(3, device=DEVICE),
            buffer=4,
            check=check,
            bar=Bar(),
        )
    assert len(calls) == 2
