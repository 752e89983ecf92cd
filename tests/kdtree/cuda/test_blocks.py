"""Queries from host memory in blocks: the bits of a single search, copies during the search, errors and Ctrl-C."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import GB, interrupt, on_host
from tests.helpers.tree_search import DEVICE, check, plan_for, search
from tonari.cuda import tuning
from tonari.kdtree import memory
from tonari.kdtree.plan import TreePlan
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.cuda import memory as device_memory
    from tonari.cuda.copying import staging
    from tonari.cuda.copying.prefetch import Feeder
    from tonari.cuda.copying.staging import Collector
    from tonari.kdtree.cuda import blocks
    from tonari.kdtree.cuda import dispatch as run

pytestmark = [needs_torch]
BLOCK = 2


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every block take several buffers."""
    monkeypatch.setattr(tuning, "PIECE_BYTES", 16)


def slabs(points: int | None) -> dict[str, Any]:
    return {} if points is None else {"point_slab": points}


def full(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.full)


@pytest.mark.parametrize("m", [1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
@pytest.mark.parametrize("point_slab", [None, full(64), full(30)])
@pytest.mark.usefixtures("small_pieces")
def test_blocks_give_the_bits_of_the_whole(m: int, point_slab: int | None) -> None:
    points = checks.duplicates(70, 2)
    check(checks.gaussian(m, 2, 1), points, 5, "l1", query_block=BLOCK, **slabs(point_slab))


@pytest.mark.parametrize(
    ("n", "point_slab", "devices", "traversal"),
    [
        (5, 3, 1, "walk"),
        *(full(35, slab, devices, way) for slab in (None, 20) for devices in (1, 2) for way in ("walk", "buffered")),
    ],
)
@pytest.mark.usefixtures("small_pieces")
def test_self_joins_leave_out_the_query_in_every_block(
    n: int, point_slab: int | None, devices: int, traversal: str
) -> None:
    rows = checks.duplicates(n, 2)
    choices = slabs(point_slab) | {"traversal": traversal, "devices": (DEVICE,) * devices}
    check(rows, rows, 4, self_join=True, query_block=8 if n > 5 else BLOCK, **choices)


@pytest.mark.full
@pytest.mark.parametrize(("points", "queries"), [("float32", "float64"), ("float64", "float32"), ("uint8", "float16")])
@pytest.mark.parametrize("point_slab", [None, 30])
@pytest.mark.usefixtures("small_pieces")
def test_other_types_in_blocks(points: str, queries: str, point_slab: int | None) -> None:
    rows = (np.abs(checks.gaussian(70, 2)) * 30).astype(points)
    check(checks.gaussian(5, 2, 1).astype(queries), rows, 5, query_block=BLOCK, **slabs(point_slab))


@pytest.mark.parametrize(("point_slab", "devices"), [(None, 2), (8, 1), full(8, 2)])
@pytest.mark.usefixtures("small_pieces")
def test_queries_beyond_reach_in_any_block(
    point_slab: int | None, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Array] = []

    def by_reference(queries: Array, points: Array, plan: TreePlan, own: Any, bar: Any) -> Neighbors:
        asked.append(queries)
        return brute(queries, points, plan.k, plan.metric, self_ids=own)

    monkeypatch.setattr(run, "_by_brute_force", by_reference)
    points, queries = checks.gaussian(15, 2), checks.gaussian(5, 2, 1)
    queries[[0, 2, 4], 1] = np.float32(1e30)
    check(queries, points, 3, query_block=BLOCK, devices=(DEVICE,) * devices, **slabs(point_slab))
    assert np.array_equal(np.concatenate(asked), queries[[0, 2, 4]])


@pytest.mark.full
@pytest.mark.parametrize("point_slab", [None, 8])
def test_brute_force_answers_what_is_beyond_reach(point_slab: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if not HAS_CUDA:
        monkeypatch.setattr(device_memory, "free_memory", lambda devices: 8 * GB)
    rows = checks.gaussian(15, 2)
    rows[[0, 2, 12], 1] = np.float32(1e19)
    near = checks.gaussian(15, 2, 1)
    check(rows, near, 3, query_block=BLOCK, **slabs(point_slab))
    check(rows, rows, 3, query_block=BLOCK, self_join=True, **slabs(point_slab))


@pytest.mark.parametrize("point_slab", [None, full(8)])
def test_a_query_that_is_no_number_is_named(point_slab: int | None) -> None:
    queries = checks.gaussian(7, 2, 1)
    queries[6, 1] = np.nan
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="queries: row 6 has a value that is not finite"):
        search(queries, checks.gaussian(15, 2), 3, query_block=BLOCK, **slabs(point_slab))
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("point_slab", [None, full(8)])
@pytest.mark.usefixtures("small_pieces")
def test_ctrl_c_in_the_middle_ends_all_threads(point_slab: int | None) -> None:
    points, queries = checks.gaussian(15, 2), checks.gaussian(7, 2, 1)
    before = set(threading.enumerate())

    def stop(done: int, total: int) -> None:
        if done >= 2 * BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(queries, points, 3, query_block=BLOCK, progress=stop, **slabs(point_slab))
    assert set(threading.enumerate()) == before
    check(queries, points, 3, query_block=BLOCK, **slabs(point_slab))


@pytest.mark.parametrize("way", ["in", "out"])
def test_an_error_of_a_copy_is_raised(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(100))
    kind, name = (Feeder, "send") if way == "in" else (Collector, "collect")
    copies = getattr(kind, name)

    def fails(here: slice, piece: Any) -> None:
        raise OSError("the disk is gone")

    def copied(self: Any, *arguments: Any) -> None:
        if next(calls) == 2:
            self._carry(8, 4, fails)
        else:
            copies(self, *arguments)

    monkeypatch.setattr(kind, name, copied)
    before = set(threading.enumerate())
    with pytest.raises(OSError, match="the disk is gone"):
        search(checks.gaussian(7, 2, 1), checks.gaussian(15, 2), 3, query_block=BLOCK)
    assert set(threading.enumerate()) == before


def test_the_next_block_comes_and_the_last_one_goes_while_one_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(kind: Any, name: str, word: str) -> None:
        work = getattr(kind, name)

        def also(*arguments: Any, **named: Any) -> Any:
            seen.append(word)
            return work(*arguments, **named)

        monkeypatch.setattr(kind, name, also)

    noted(Feeder, "send", "in")
    noted(Collector, "collect", "out")
    noted(Collector, "arrive", "arrived")
    noted(blocks, "walk_in_steps", "search")
    search(checks.gaussian(5, 2, 1), checks.gaussian(15, 2), 3, query_block=BLOCK)
    first, middle, last = ["in", "in", "search"], ["in", "search", "arrived"], ["search", "arrived"]
    out = ["out"] * 3  # values, indices, and which queries are beyond reach
    assert seen == [*first, *out, *middle, *out, *last, *out, "arrived"]


def test_few_queries_and_queries_on_the_device_take_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("threads were started")

    monkeypatch.setattr(staging.Carrier, "__init__", refuse)
    points, queries = checks.gaussian(15, 2), checks.gaussian(3, 2, 1)
    found = search(queries, points, 3)
    there = search(torch.from_numpy(queries).to(DEVICE), points, 3, query_block=BLOCK)
    assert_same_neighbors(on_host(there), found)


def late(work: Any, milliseconds: float) -> Any:
    """Do the same work after the device has waited."""

    def slept(*arguments: Any, **named: Any) -> Any:
        torch.cuda._sleep(int(2e6 * milliseconds))
        return work(*arguments, **named)

    return slept


@on_gpu
@pytest.mark.parametrize("point_slab", [None, 90_000])
@pytest.mark.parametrize("traversal", ["walk", "buffered"])
def test_no_copy_overtakes_a_late_search(
    point_slab: int | None, traversal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are searched long after their queries arrived: the next queries must not overwrite them, nor lists be
    copied early.

    What is read too early are values of poisoned memory, or of another block.
    """
    points, queries = checks.gaussian(200_000, 3), checks.gaussian(1_000_000, 3, 1)
    choices: dict[str, Any] = (
        slabs(point_slab) | {"traversal": traversal, "buffer": 1000} if traversal == "buffered" else slabs(point_slab)
    )
    truth = search(torch.from_numpy(queries).to(DEVICE), points, 10, traversal="walk")
    monkeypatch.setattr(blocks, "order_of", late(blocks.order_of, 20))
    monkeypatch.setattr(blocks, "walk_in_steps", late(blocks.walk_in_steps, 20))
    monkeypatch.setattr(blocks, "search_by_rounds", late(blocks.search_by_rounds, 20))
    for _ in range(2):
        found = search(queries, points, 10, query_block=150_000, **choices)
        assert_same_neighbors(found, on_host(truth))


@on_gpu
def test_a_default_plan_stays_within_its_memory() -> None:
    points, queries = checks.gaussian(1_000_000, 8), checks.gaussian(3_000_000, 8, 1)
    for choices in ({}, {"point_slab": 300_000}):
        plan = plan_for(queries, points, 10, **choices)
        assert plan.query_block < len(queries)
        run.search_once(queries[:1000], points, plan_for(queries[:1000], points, 10, **choices))
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        prepared = run.prepare(points, plan)
        found = run.search(queries, prepared, plan)
        assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
        some = slice(1_040_000, 1_060_000)
        truth = search(queries[some], points, 10)
        assert_same_neighbors(Neighbors(*(part[some] for part in found)), truth)


@on_gpu
def test_ctrl_c_in_blocks_stops_within_a_second() -> None:
    assert memory.host_block(20_000_000) < 20_000_000
    interrupt("np.random.default_rng(0).random((20_000_000, 12), np.float32)", 10, "method='kdtree', device='cuda'")
