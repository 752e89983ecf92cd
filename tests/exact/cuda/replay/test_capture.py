"""Small searches that are replayed: which calls are replayed, right answers, and when there is no graph.

Without a GPU, Triton's interpreter replaces the device, and a stand-in for a CUDA graph repeats all its work.
"""

from __future__ import annotations

import gc
import itertools
import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.checks import DTYPES, Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import on_host, rows_of, tensor_of
from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import recording
from tonari.exact.cuda import tuning
from tonari.exact.cuda.replay import cache as graphs
from tonari.exact.cuda.replay.cache import Graphs, key_of, key_on
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

pytestmark = needs_torch
if HAS_TORCH:
    import torch

    from tonari.cuda import memory as device_memory
    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.exact.cuda import dispatch as run
    from tonari.exact.cuda.attempts.in_batches import in_batches
    from tonari.exact.cuda.replay import capture as replay
    from tonari.exact.cuda.replay import few as few_kept
    from tonari.exact.cuda.replay import kept as kept_search
    from tonari.inputs.arrays import device_rows

DEVICE = "cuda" if HAS_CUDA else "cpu"
GB = 10**9
N, M, D, K = 45, 3, 17, 4


class Redone:
    """A stand-in for a CUDA graph, with fixed outputs."""

    def __init__(self, work: Callable[[], tuple[Neighbors, Any]]) -> None:
        self.work, self.made = work, work()

    def replay(self) -> None:
        (found, proved), (new, new_proved) = self.made, self.work()
        for ours, theirs in zip((*found, proved), (*new, new_proved), strict=True):
            ours.copy_(theirs)


class NoStream:
    """A stand-in for a CUDA stream."""

    def synchronize(self) -> None:
        """Do nothing, since all work is finished."""


def record(
    work: Callable[[], tuple[Neighbors, Any]], device: Any, earlier: Any = None
) -> tuple[Redone, tuple[Neighbors, Any]]:
    graph = Redone(work)
    return graph, graph.made


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    """Start without graphs; without a GPU, the CPU is the device "cuda"."""
    fresh = Graphs()
    for module in (graphs, replay, kept_search, few_kept):
        monkeypatch.setattr(module, "GRAPHS", fresh)
    if HAS_CUDA:
        return fresh
    places, devices = inputs.place_of, inputs.devices_for

    def place_of(x: Any, name: str) -> str | None:
        return "cpu" if isinstance(x, torch.Tensor) else places(x, name)

    def devices_for(device: Any, **given: Any) -> tuple[str, ...]:
        there = device == "cuda" or "cpu" in {place_of(x, name) for name, x in given.items()}
        return ("cpu",) if there else devices(device, **given)

    def facts(x: Any) -> Any:
        return (x.dtype, x.shape, x.device, x.layout) if type(x) is torch.Tensor else None

    for module in (inputs, device_rows):
        monkeypatch.setattr(module, "place_of", place_of)
    monkeypatch.setattr(inputs, "devices_for", devices_for)
    monkeypatch.setattr(device_memory, "free_memory", lambda devices: 4 * GB)
    monkeypatch.setattr(graphs, "_facts", facts)
    monkeypatch.setattr(replay, "record", record)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: NoStream())
    return fresh


class Counts:
    """Counts how searches were made."""

    def __init__(self) -> None:
        self.captured = self.replayed = self.refused = self.stepwise = self.again = 0

    def __repr__(self) -> str:
        return f"{self.captured} captured, {self.replayed} replayed, {self.refused} refused, {self.stepwise} stepwise"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counts = Counts()
    route, take, make, finish = run.ROUTES["resident"], replay.record, replay.FewKept, kept_search.finish

    def counted(answer: Callable[..., Neighbors | None]) -> Callable[..., Neighbors | None]:
        def counted_answer(self: Any, *given: Any) -> Neighbors | None:
            found = answer(self, *given)
            counts.replayed += found is not None
            counts.refused += found is None
            return found

        return counted_answer

    def counted_search(*given: Any, **named: Any) -> Any:
        counts.stepwise += 1
        return route.search(*given, **named)

    def counted_record(*given: Any) -> Any:
        counts.captured += 1
        return take(*given)

    def counted_make(*given: Any, **named: Any) -> Any:
        counts.captured += 1
        return make(*given, **named)

    def counted_finish(*given: Any, **named: Any) -> Any:
        counts.again += 1
        return finish(*given, **named)

    monkeypatch.setattr(kept_search, "finish", counted_finish)
    for kept_as in (replay.CapturedSearch, make):
        monkeypatch.setattr(kept_as, "answer", counted(kept_as.answer))
    monkeypatch.setattr(replay, "FewKept", counted_make)
    monkeypatch.setattr(replay, "record", counted_record)
    monkeypatch.setitem(run.ROUTES, "resident", run.Route(route.prepare, counted_search))
    return counts


def there(x: Array) -> Any:
    """Return an array as a tensor on the device."""
    return tensor_of(x).to(DEVICE)


def data(seed: int, n: int = N, dtype: str = "float32", metric: str = "euclidean") -> tuple[Array, Array]:
    """Make queries and points."""
    return rows_of(M, D, dtype, metric, seed=2 * seed), rows_of(n, D, dtype, metric, seed=2 * seed + 1)


def check(queries: Array, points: Array, metric: str = "euclidean", **choices: Any) -> None:
    found = tonari.search(there(queries), there(points), K, metric=metric, **choices)
    assert_same_neighbors(on_host(found), brute(queries, points, K, metric), metric=metric)


class Held:
    """A graph of which only the size matters."""

    def __init__(self, nbytes: int = 1) -> None:
        self.nbytes = nbytes

    def answer(self, given: tuple[Any, ...], progress: Any = None) -> Neighbors | None:
        return Neighbors(given[0], None)


# Graphs that are kept.


def test_the_least_recently_used_graph_makes_room() -> None:
    few = Graphs(most=3, held_bytes=100)
    for name in "abc":
        few.put((None, name), Held())
    assert few.get((None, "a")) is not None
    few.put((None, "d"), Held())
    assert [few.get((None, name)) is not None for name in "abcd"] == [True, False, True, True]


def test_graphs_hold_no_more_than_they_may() -> None:
    few = Graphs(most=9, held_bytes=100)
    for name, size in (("a", 40), ("b", 40), ("c", 20)):
        few.put((None, name), Held(size))
    assert few.nbytes == 100
    few.make_room(30)
    assert few.nbytes == 60
    few.put((None, "d"), Held(90))
    assert few.nbytes == 90
    assert few.get((None, "d")) is not None


def asked_for(few: Graphs, name: Hashable) -> bool:
    """Look up a key that has no graph, and return whether its search is to be captured."""
    assert few.get((None, name)) is None
    return few.claim((None, name))


def test_the_second_call_is_captured_and_no_other() -> None:
    few = Graphs()
    assert [asked_for(few, "a") for _ in range(4)] == [False, True, False, False]
    assert not asked_for(few, "b")
    assert not few.claim((None, "c"))


def test_of_calls_at_once_one_is_captured() -> None:
    few = Graphs()
    for _ in range(4):
        assert few.get((None, "a")) is None
    assert [few.claim((None, "a")) for _ in range(4)] == [True, False, False, False]
    assert not asked_for(few, "a")


def test_a_graph_that_was_given_up_has_to_be_called_for_twice_again() -> None:
    few = Graphs()
    assert [asked_for(few, "a") for _ in range(2)] == [False, True]
    few.put((None, "a"), Held())
    assert not few.claim((None, "a"))
    assert few.forget((None, "a"))
    assert not few.forget((None, "a"))
    assert [asked_for(few, "a") for _ in range(2)] == [False, True]


def test_calls_that_never_come_again_are_forgotten() -> None:
    few = Graphs()
    asked_for(few, "a")
    for number in range(tuning.REMEMBERED):
        asked_for(few, number)
    assert not asked_for(few, "a")


def test_the_graphs_of_an_index_go_with_it() -> None:
    class Owner:
        pass

    few, owner, other = Graphs(), Owner(), Owner()
    rows = there(data(0)[0])
    for one in (owner, other):
        call = key_on(one, rows, 3)
        assert call is not None
        few.put(call, Held())
    assert few.nbytes == 2
    del owner, one
    gc.collect()
    assert few.nbytes == 1
    assert few.get(key_on(other, rows, 3) or ()) is not None


def test_forgetting_while_others_look_for_graphs() -> None:
    few = Graphs(most=4)
    errors: list[BaseException] = []

    def work(offset: int) -> None:
        try:
            for step in range(2000):
                call = (None, (step + offset) % 7)
                if few.get(call) is None:
                    few.put(call, Held())
                if step % 50 == 0:
                    few.forget()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert few.nbytes <= 4


# Calls that share a graph.


def test_values_and_strides_do_not_tell_calls_apart() -> None:
    queries, points = map(there, data(0))
    others = [there(rows) for rows in data(1)]
    wide = torch.zeros((N, 2 * D), device=DEVICE)[:, ::2]
    call = key_of(queries, points, K, "euclidean")
    assert call is not None
    assert call == key_of(*others, K, "euclidean") == key_of(queries, wide, np.int64(K), "euclidean", "cuda")


def test_all_else_tells_calls_apart() -> None:
    queries, points = map(there, data(0))
    calls = [
        key_of(queries, points, K, "euclidean"),
        key_of(queries, points, K + 1, "euclidean"),
        key_of(queries, points, K, "l1"),
        key_of(queries, points[:-1], K, "euclidean"),
        key_of(queries[:-1], points, K, "euclidean"),
        key_of(queries.double(), points, K, "euclidean"),
        key_of(queries, points.half(), K, "euclidean"),
        key_of(points, points, K, "euclidean"),
        key_of(points, points, K, "euclidean", self_join=True),
        key_on(checks, queries, K),
        key_on(graphs, queries, K),
        key_on(graphs, queries, K + 1),
        key_on(graphs, queries[:-1], K),
    ]
    assert None not in calls
    assert len(set(calls)) == len(calls)


def test_what_the_border_would_refuse_or_change_is_of_no_kind() -> None:
    queries, points = map(there, data(0))
    for k in (True, 4.0, "4", None):
        assert key_of(queries, points, k, "euclidean") is None
        assert key_on(checks, queries, k) is None
    assert key_of(queries, points, K, ["euclidean"]) is None
    assert key_of(queries, points, K, "euclidean", ["cuda:0"]) is None
    assert key_of(queries, points, K, "euclidean", "cuda:all") is None
    assert key_of(torch.nn.Parameter(queries), points, K, "euclidean") is None
    assert key_of(*data(0), K, "euclidean") is None
    assert key_on(checks, data(0)[0], K) is None


# Answers.


@pytest.mark.parametrize("metric", METRICS if HAS_CUDA else ("euclidean", "inner_product", "chi2"))
def test_the_second_call_is_captured_and_later_ones_are_replayed(metric: str, counts: Counts) -> None:
    for seed in range(4):
        check(*data(seed, metric=metric), metric)
    assert (counts.stepwise, counts.captured, counts.replayed) == (1, 1, 3), counts


@pytest.mark.full
@pytest.mark.parametrize("dtype", DTYPES if HAS_CUDA else ("float64", "int8"))
def test_every_dtype_is_replayed(dtype: str, counts: Counts) -> None:
    for seed in range(3):
        check(*data(seed, dtype=dtype))
    assert counts.replayed == 2, counts


def test_strided_rows_are_replayed(counts: Counts) -> None:
    for seed in range(3):
        queries, points = data(seed)
        wide = torch.full((N, 2 * D + 1), np.nan, device=DEVICE)
        wide[:, : 2 * D : 2] = there(points)
        found = tonari.search(there(queries), wide[:, : 2 * D : 2], K)
        assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert counts.replayed == 2, counts


@pytest.mark.full
def test_answers_are_the_callers_own(counts: Counts) -> None:
    first, second = ([there(rows) for rows in data(seed)] for seed in (0, 1))
    for _ in range(2):
        tonari.search(*first, K)
    found = tonari.search(*first, K)
    kept = [part.clone() for part in found]
    tonari.search(*second, K).indices.zero_()
    assert all(bool((ours == theirs).all()) for ours, theirs in zip(found, kept, strict=True))
    check(*data(0))
    assert counts.replayed == 4, counts


@pytest.mark.full
@pytest.mark.parametrize("include_self", [False, True])
def test_graphs_of_neighbours_are_replayed(include_self: bool, counts: Counts) -> None:
    for seed in range(3):
        points = data(seed, 9)[1]
        made = tonari.knn_graph(there(points), K, include_self=include_self)
        expected = tonari.knn_graph(points, K, include_self=include_self)
        assert made.to_numpy().indices.tolist() == expected.indices.tolist()
        assert made.to_numpy().distances.tobytes() == expected.distances.tobytes()
    assert (counts.stepwise, counts.replayed) == (1, 2), counts


def test_an_index_is_replayed_while_it_lives(counts: Counts, kept: Graphs) -> None:
    one, other = (tonari.Index(there(data(seed)[1])) for seed in (0, 1))
    for seed, (index, k) in itertools.product(range(3), ((one, K), (other, K), (one, K + 1))):
        queries = data(seed)[0]
        found = index.search(there(queries), k)
        assert_same_neighbors(on_host(found), brute(queries, data(0 if index is one else 1)[1], k))
    assert (counts.stepwise, counts.captured, counts.replayed) == (3, 3, 6), counts
    del one, index
    gc.collect()
    assert len(kept._kept) == 1
    found = other.search(there(data(7)[0]), K)
    assert_same_neighbors(on_host(found), brute(data(7)[0], data(1)[1], K))


@pytest.mark.parametrize("same_stream", [False, True])
def test_answers_of_an_index_are_the_callers_own(
    same_stream: bool, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not overwritten by the next call, which may run on the same stream."""
    if same_stream and not HAS_CUDA:
        stream = NoStream()
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: stream)
    queries, points = zip(*(data(seed) for seed in range(6)), strict=True)
    index = tonari.Index(there(points[0]))
    found = [index.search(there(some), K) for some in queries]
    assert len({part.data_ptr() for each in found for part in each}) == 12
    for some, each in zip(queries, found, strict=True):
        assert_same_neighbors(on_host(each), brute(some, points[0], K))
    assert counts.replayed == 5, counts


@pytest.mark.filterwarnings("ignore:.*requires gradients:UserWarning")
def test_queries_anywhere_in_memory_are_replayed(counts: Counts) -> None:
    """Addresses that wide loads cannot use, and rows with strides."""
    points = data(0)[1]
    index = tonari.Index(there(points))
    for seed, offset in enumerate([0, 1, 2, 3, 4]):
        queries = data(seed)[0]
        wide = torch.full((2 * M, D + offset), np.nan, device=DEVICE)
        wide[::2, offset:] = there(queries)
        flat = there(np.concatenate([np.zeros(offset, np.float32), queries.ravel()]))[offset:].view(M, D)
        for rows in (wide[::2, offset:], flat, flat.clone().requires_grad_()):
            found = index.search(rows, K)
            assert not found.distances.requires_grad
            assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert (counts.stepwise, counts.captured, counts.replayed) == (1, 1, 14), counts


def test_an_index_goes_on_after_bad_queries(counts: Counts) -> None:
    """The flags of bad queries are cleared."""
    points = data(0)[1]
    index = tonari.Index(there(points))
    for seed in range(6):
        queries = data(seed)[0]
        if seed % 2:
            queries[1, 2] = np.nan
            with pytest.raises(ValueError, match="queries: row 1 has a value that is not finite"):
                index.search(there(queries), K)
        else:
            assert_same_neighbors(on_host(index.search(there(queries), K)), brute(queries, points, K))
    assert (counts.captured, counts.refused) == (1, 3), counts


def test_an_index_that_changes_is_searched_as_it_is(counts: Counts) -> None:
    points = data(0, 60)[1]
    index = tonari.Index(there(points[:50]))
    for _ in range(3):
        index.search(there(data(0)[0]), K)
    index.add(there(points[50:]))
    for seed in range(4):
        queries = data(seed)[0]
        assert_same_neighbors(on_host(index.search(there(queries), K)), brute(queries, points, K))
    assert counts.replayed > 2, counts


def test_without_memory_for_the_next_answer_graphs_are_given_up(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, points = data(0)
    index = tonari.Index(there(points))
    for _ in range(3):
        index.search(there(queries), K)

    def no_memory(self: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("no memory")

    with recording("search", len(queries)) as record:
        index.search(there(queries), K)
    assert [attempt.name for attempt in record.attempts] == ["float16, two launches with kept buffers"]
    monkeypatch.setattr(few_kept.FewKept, "_empty", no_memory)
    assert_same_neighbors(on_host(index.search(there(queries), K)), brute(queries, points, K))
    assert kept.nbytes == 0
    assert (counts.stepwise, counts.refused) == (2, 1), counts


def test_bad_values_are_refused_as_ever(counts: Counts) -> None:
    for seed in range(3):
        check(*data(seed))
    queries, points = data(3)
    queries[1, 2], points[7, 3] = np.inf, np.nan
    with pytest.raises(ValueError, match=r"points: row 7 has a value that is not finite \(nan in column 3\)"):
        tonari.search(there(queries), there(points), K)
    with pytest.raises(ValueError, match=r"queries: row 1 has a value that is not finite \(inf in column 2\)"):
        tonari.search(there(queries), there(data(3)[1]), K)
    check(*data(4))
    assert (counts.refused, counts.replayed) == (2, 3), counts


@pytest.mark.full
def test_an_index_of_bad_points_is_refused_by_every_search() -> None:
    points = data(0)[1]
    points[7, 3] = np.nan
    index = tonari.Index(there(points))
    for _ in range(3):
        with pytest.raises(ValueError, match="points: row 7"):
            index.search(there(data(0)[0]), K)


def partly_equal(n: int) -> tuple[Array, Array]:
    """Make points, most of them copies of one, and queries; those near the copies are not proved at once."""
    queries, points = data(2, n)
    points[20:] = points[20]
    queries[1:] = points[20]
    return queries, points


def test_rows_that_are_not_proved_are_searched_again(
    counts: Counts, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "ROWS_AGAIN", 1)  # too few for a second graph
    n = 200
    for seed in range(2):
        check(*data(seed, n))
    check(data(2)[0], checks.all_equal(n, D))
    with caplog.at_level(logging.INFO, logger="tonari"):
        check(*partly_equal(n))
    assert f"{M} rows" in caplog.text
    check(*data(3, n))
    assert (counts.stepwise, counts.replayed, counts.refused, counts.again) == (1, 4, 0, 2), counts


def captured_of(n: int, kept: Graphs) -> Any:
    """Return the captured search of `n` points."""
    for seed in range(2):
        check(*data(seed, n))
    (graph,) = kept._kept.values()
    return graph


def nearly_equal(n: int) -> tuple[Array, Array]:
    """Make the same with points so near to each other that a first attempt misses the nearest one."""
    queries, points = data(2, n)
    points[20:] = points[20] + np.float32(1e-4) * points[20:]
    queries[1:] = points[20]
    return queries, points


def test_few_rows_that_are_left_once_more_are_searched_by_a_second_graph(counts: Counts, kept: Graphs) -> None:
    """They may be any rows; all other rows keep their answers."""
    captured_of(200, kept)
    queries, points = nearly_equal(200)
    with recording("search", 4 * M) as record:
        check(queries, points)
        check(queries, points)
        check(queries[::-1].copy(), points)  # other rows are unproved
        check(data(3)[0], checks.all_equal(200, D))  # all
    assert {attempt.name: (attempt.rows, attempt.proved) for attempt in record.attempts} == {
        "float16, replayed as a CUDA graph": (4 * M, 3),
        "values": (2, 2),
        "level 1, float16, replayed as a CUDA graph": (2 + 2 + M, 2 + 2 + M),
    }
    check(*data(3, 200))
    assert (counts.stepwise, counts.captured, counts.replayed, counts.again) == (1, 2, 6, 1), counts


def test_rows_that_a_second_graph_leaves_are_searched_step_by_step(
    counts: Counts, kept: Graphs, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured_of(200, kept)
    again = replay.attempt_again

    def one_row(*given: Any, own: Any) -> Any:
        return again(*given[:-1], 1, own=own)

    monkeypatch.setattr(replay, "attempt_again", one_row)
    check(*nearly_equal(200))
    with caplog.at_level(logging.INFO, logger="tonari"):
        for _ in range(2):
            check(*nearly_equal(200))
    assert caplog.messages[-1].endswith("2 at float16, 1 at values")
    assert (counts.captured, counts.replayed) == (2, 4), counts


def test_a_second_graph_that_proves_no_row_is_dropped(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = captured_of(200, kept)

    def prove_nothing(queries: Any, prepared: Any, plan: Any, found: Any, proved: Any, rows: int, own: Any) -> Any:
        return torch.cat([torch.full((6,), inputs.arrays.values.NO_ROW, device=DEVICE), proved.sum()[None]])

    monkeypatch.setattr(replay, "attempt_again", prove_nothing)
    for _ in range(3):
        check(*nearly_equal(200))
        assert graph._second is None
    assert (counts.captured, counts.replayed, counts.again) == (2, 4, 3), counts


def test_without_memory_for_a_second_graph_searches_do_without(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured_of(200, kept)
    tries = []

    def no_memory(*given: Any) -> Any:
        tries.append(given)
        raise torch.cuda.OutOfMemoryError("no memory")

    monkeypatch.setattr(replay, "record", no_memory)
    with recording("search", 4 * M) as record:
        for _ in range(4):
            check(*nearly_equal(200))
    assert [choice.why for choice in record.choices] == ["rows that are left are searched step by step: no memory"]
    assert len(tries) == 1
    assert (counts.replayed, counts.again) == (5, 3), counts  # the search that was to be captured has run


def test_without_memory_for_a_second_answer_graphs_are_given_up(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = captured_of(200, kept)
    for _ in range(2):
        check(*nearly_equal(200))
    answers = iter([graph._answer])  # of the first graph

    def no_memory() -> Any:
        for answer in answers:
            return answer()
        raise torch.cuda.OutOfMemoryError("no memory")

    monkeypatch.setattr(graph, "_answer", no_memory)
    check(*nearly_equal(200))
    assert kept.nbytes == 0
    assert (counts.stepwise, counts.refused) == (2, 1), counts


@on_gpu
def test_a_second_graph_takes_no_memory_beyond_what_is_counted(kept: Graphs) -> None:
    """Four rows are near more points than a first attempt refines."""

    def held() -> int:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    points = on_card(1, 300_000, 64, "float32", 0)[1]
    near = 4099 * torch.arange(60, device=DEVICE)  # in as many groups; only a second attempt refines all of them
    points[near] = points[7] + 1e-6 * points[near]
    index = tonari.Index(points)
    asked = [on_card(2000, 16, 64, "float32", seed)[0] for seed in range(5)]
    for queries in asked:
        queries[7:11] = points[near[:4]]
    truth = [stepwise(queries, points, 10) for queries in asked]
    index.search(asked[0], 10)
    before = held()
    for queries, true in zip(asked, truth, strict=True):
        assert same(index.search(queries, 10), true)
    (graph,) = kept._kept.values()
    assert graph._second is not None
    assert before < held() <= before + kept.nbytes + 5 * 2 * 10 * 2000 * 4


def test_rows_of_an_index_that_are_not_proved_are_searched_again(counts: Counts) -> None:
    queries, points = partly_equal(200)
    index, expected = tonari.Index(there(points)), brute(queries, points, K, "euclidean")
    for _ in range(3):
        assert_same_neighbors(on_host(index.search(there(queries), K)), expected)
    assert (counts.stepwise, counts.replayed, counts.refused) == (1, 2, 0), counts
    assert counts.again == 2, counts


@on_gpu
def test_rows_of_a_graph_that_are_not_proved_are_searched_again(counts: Counts) -> None:
    points = there(partly_equal(200)[1])
    stepwise, *again = (tonari.knn_graph(points, K, method="exact") for _ in range(3))
    for graph in again:
        assert torch.equal(graph.distances, stepwise.distances)
        assert torch.equal(graph.indices, stepwise.indices)
    assert (counts.stepwise, counts.replayed, counts.refused, counts.again) == (1, 2, 0, 2), counts


def test_without_memory_to_search_rows_again_searches_do_without_graphs(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **named: Any) -> Any:
        raise torch.cuda.OutOfMemoryError

    for seed in range(2):
        check(*data(seed, 200))
    monkeypatch.setattr(kept_search, "finish", fail)
    with recording("search", M) as record:
        check(*partly_equal(200))
    assert record.proved == M
    assert record.choices[0].why.startswith("launched step by step instead")
    assert (counts.stepwise, counts.replayed, counts.refused) == (2, 1, 1), counts
    assert kept.nbytes == 0


@pytest.mark.full
@pytest.mark.parametrize("enabled", [False, True])
def test_nothing_is_collected_while_a_search_is_captured(
    enabled: bool, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Collecting a captured graph as garbage would destroy it during the capture, which CUDA does not allow."""
    seen = []
    capture = replay.record

    def record_seeing(*given: Any) -> Any:
        seen.append(gc.isenabled())
        return capture(*given)

    monkeypatch.setattr(replay, "record", record_seeing)
    if not enabled:
        gc.disable()
    try:
        for seed in range(3):
            check(*data(seed))
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert seen == [False]
    assert counts.replayed == 2, counts


@pytest.mark.full
@pytest.mark.parametrize("captured_in", [False, True])
def test_inference_mode_may_come_and_go(captured_in: bool, counts: Counts) -> None:
    for seed, inside in enumerate([captured_in, captured_in, not captured_in]):
        with torch.inference_mode(inside):
            check(*data(seed))
    assert counts.replayed == 2, counts


@pytest.mark.filterwarnings("ignore:.*requires gradients:UserWarning")
def test_gradients_are_not_followed(counts: Counts) -> None:
    for seed in range(3):
        queries, points = data(seed)
        found = tonari.search(there(queries).requires_grad_(), there(points).requires_grad_(), K)
        assert not found.distances.requires_grad
        assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert counts.replayed == 2, counts


def test_without_memory_for_a_graph_searches_do_without(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def no_memory(*given: Any) -> Any:
        tries.append(given)
        raise torch.cuda.OutOfMemoryError("no memory")

    monkeypatch.setattr(replay, "record", no_memory)
    for seed in range(4):
        check(*data(seed))
    assert len(tries) == 1
    assert counts.stepwise == 4, counts


@pytest.mark.parametrize("free", [0, replay.POOL_BYTES - 1] if HAS_TORCH else ())
def test_nothing_is_captured_on_a_device_without_free_memory(
    free: int, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is asked once for searches of the same shapes."""
    asked = []
    monkeypatch.setattr(device_memory, "driver_memory", lambda device: (asked.append(device), free)[1])
    with recording("search", 4 * M) as record:
        for seed in range(4):
            check(*data(seed))
    (choice,) = [choice.why for choice in record.choices if choice.what == "replay"]
    assert choice.startswith("searches like this one are launched step by step: a CUDA graph of them may need ")
    assert choice.endswith(f" bytes, and {DEVICE} has {free} free" if DEVICE == "cpu" else f" has {free} free")
    assert len(asked) == 1
    assert (counts.stepwise, counts.captured) == (4, 0), counts


def test_no_second_graph_is_captured_on_a_device_without_free_memory(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured_of(200, kept)
    monkeypatch.setattr(device_memory, "driver_memory", lambda device: replay.POOL_BYTES - 1)
    with recording("search", 4 * M) as record:
        for _ in range(4):
            check(*nearly_equal(200))
    (choice,) = [choice.why for choice in record.choices]
    assert choice.startswith("rows that are left are searched step by step: a CUDA graph of them may need ")
    assert (counts.captured, counts.replayed, counts.again) == (1, 5, 3), counts


def test_without_memory_for_an_answer_graphs_are_given_up(
    counts: Counts, kept: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(2):
        check(*data(seed))
    (graph,) = kept._kept.values()

    def no_memory() -> None:
        raise torch.cuda.OutOfMemoryError("no memory")

    monkeypatch.setattr(graph, "_graph", type("Full", (), {"replay": staticmethod(no_memory)})())
    check(*data(2))
    assert kept.nbytes == 0
    assert counts.stepwise == 2, counts


def test_a_batch_without_memory_is_tried_again_without_graphs(kept: Graphs) -> None:
    kept.put((None, "a"), Held())
    sizes = []

    def work(rows: slice) -> None:
        sizes.append(rows.stop - rows.start)
        if kept.nbytes:
            raise torch.cuda.OutOfMemoryError("no memory")

    in_batches(8, 8, work, planned=0)
    assert sizes == [8, 8]


@pytest.mark.full
def test_budgets_and_plans_are_kept_to(counts: Counts) -> None:
    queries, points = map(there, data(0))
    plan = tonari.plan(N, M, D, K, device="cuda")
    for _ in range(2):
        tonari.search(queries, points, K, memory="1GB")
        tonari.search(queries, points, K, plan=plan)
        tonari.Index(points, memory="1GB").search(queries, K)
    assert (counts.captured, counts.stepwise) == (0, 6), counts


def test_what_takes_long_is_not_captured(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("LARGEST_BYTES", 1 << 20), ("LONGEST_SECONDS", 0.0)):
        with monkeypatch.context() as patched:
            patched.setattr(tuning, name, most)
            for seed in range(3):
                check(*data(seed))
    assert (counts.captured, counts.stepwise) == (0, 6), counts


def test_lists_below_thresholds_are_counted_not_all_minima() -> None:
    """10,000 queries among a million prepared points fit, but not if all minima are written."""
    card = Card((9, 0), 132)

    def held(metric: str) -> int:
        plan = plans.exact_cuda(10**6, 10**4, 128, 10, metric=metric, devices=("cuda:0",), free_bytes=10**11)
        with rehearsing(card):
            return replay._held_bytes(plan, (torch.empty((10**4, 128), device="meta"),), True)

    lists = 8 * 10**4 * 1024  # at least: the values and entries of the slots that the sample requests
    assert lists < held("euclidean") < tuning.LARGEST_BYTES < 8 * 10**4 * (10**6 // 32) < held("l1")


def test_progress_and_the_report_are_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[int, int]] = []
    with caplog.at_level(logging.INFO, logger="tonari"), recording("search", 3 * M) as record:
        for seed in range(3):
            check(*data(seed), progress=lambda done, total: told.append((done, total)))
    assert {attempt.name: attempt.proved for attempt in record.attempts} == {
        "float16": M,
        "float16, replayed as a CUDA graph": 2 * M,
    }
    assert told == [(M * N, M * N)] * 3
    assert len(caplog.messages) == 3
    assert all(f"{M} rows in" in message and f"{M} at float16" in message for message in caplog.messages)


# On a GPU.

SHAPES = [
    (1000, 10_000, 64, 10, "euclidean", "float32"),
    (1000, 10_000, 64, 10, "cosine", "float32"),
    (1000, 10_000, 64, 10, "l1", "float32"),
    (300, 10_000, 100, 10, "inner_product", "float16"),
    (200, 5_000, 33, 7, "sqeuclidean", "float64"),
    (500, 100_000, 64, 10, "euclidean", "float32"),  # with a sample
    (100, 20_000, 128, 100, "euclidean", "uint8"),
]


def on_card(m: int, n: int, d: int, dtype: str, seed: int) -> list[Any]:
    """Make random rows on the GPU."""
    source = torch.Generator("cuda").manual_seed(seed)
    rows = [torch.randn(count, d, generator=source, device="cuda") for count in (m, n)]
    if dtype == "uint8":
        return [(50 * part.abs()).clamp(max=255).to(torch.uint8) for part in rows]
    return [part.to(getattr(torch, dtype)) for part in rows]


def stepwise(queries: Any, points: Any, k: int, metric: str = "euclidean") -> Neighbors:
    """Return the log of a search that keeps no graph."""
    return tonari.search(queries, points, k, metric=metric, memory="8GB")


def same(a: Neighbors, b: Neighbors) -> bool:
    return all(torch.equal(ours, theirs) for ours, theirs in zip(a, b, strict=True))


@on_gpu
@pytest.mark.parametrize(("m", "n", "d", "k", "metric", "dtype"), SHAPES)
def test_fifty_replays_are_the_stepwise_answers(
    m: int, n: int, d: int, k: int, metric: str, dtype: str, counts: Counts
) -> None:
    for seed in range(50):
        queries, points = on_card(m, n, d, dtype, seed)
        found = tonari.search(queries, points, k, metric=metric)
        assert same(found, stepwise(queries, points, k, metric))
    assert counts.captured == 1, counts
    assert counts.replayed + counts.refused == 49, counts
    assert counts.replayed > 25, counts


@on_gpu
def test_the_current_stream_orders_replays(counts: Counts) -> None:
    """Inputs are written late on one stream after the other; results are read there."""
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [on_card(1000, 10_000, 64, "float32", seed) for seed in range(6)]
    expected = [stepwise(*pair, 10) for pair in inputs]
    torch.cuda.synchronize()
    for turn in range(30):
        with torch.cuda.stream(streams[turn % 3]):
            late = [torch.zeros_like(rows) for rows in inputs[turn % 6]]
            torch.cuda._sleep(2_000_000)
            for ours, theirs in zip(late, inputs[turn % 6], strict=True):
                ours.copy_(theirs)
            assert same(tonari.search(*late, 10), expected[turn % 6])
    assert counts.replayed == 29, counts


def wrong_answers_of_threads(search: Callable[[int], Any], expected: list[Any], turns: int) -> list[object]:
    """Search in four threads at once, each on its own stream; return wrong answers and errors."""
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for turn in range(turns):
                    which = (number + turn) % len(expected)
                    if not same(search(which), expected[which]):
                        wrong.append((number, turn))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


@on_gpu
def test_threads_share_a_graph(counts: Counts) -> None:
    inputs = [on_card(1000, 10_000, 64, "float32", seed) for seed in range(4)]
    expected = [stepwise(*pair, 10) for pair in inputs]
    torch.cuda.synchronize()
    assert not wrong_answers_of_threads(lambda which: tonari.search(*inputs[which], 10), expected, 50)
    assert counts.captured == 1, counts


@on_gpu
def test_graphs_that_are_given_up_give_back_their_memory(kept: Graphs) -> None:
    def held() -> int:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    tonari.search(*on_card(500, 5_000, 64, "float32", 0), 10)  # allocations that stay after a first search
    before = held()
    for m in range(500, 500 + 2 * tuning.MOST_GRAPHS):
        for _ in range(2):
            tonari.search(*on_card(m, 5_000, 64, "float32", 0), 10)
    assert 0 < len(kept._kept) <= tuning.MOST_GRAPHS
    assert before < held() <= before + kept.nbytes <= before + tuning.HELD_BYTES
    kept.forget()
    assert held() == before


@on_gpu
def test_an_index_gives_back_its_graphs_memory(kept: Graphs) -> None:
    queries, points = on_card(1000, 10_000, 64, "float32", 0)
    tonari.search(queries, points, 10, memory="8GB")
    before = torch.cuda.memory_allocated()
    index = tonari.Index(points)
    for seed in range(4):
        queries = on_card(1000, 16, 64, "float32", seed)[0]
        assert same(index.search(queries, 10), stepwise(queries, points, 10))
    assert len(kept._kept) == 1
    del index
    gc.collect()
    assert not kept._kept
    assert torch.cuda.memory_allocated() == before


@on_gpu
def test_lists_below_thresholds_are_replayed_in_the_memory_that_is_counted(kept: Graphs) -> None:
    """A batch of many queries lists groups, which takes less memory than all minima would."""

    def held() -> int:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    index = tonari.Index(on_card(1, 300_000, 64, "float32", 0)[1])
    asked = [on_card(10_000, 16, 64, "float32", seed)[0] for seed in range(4)]
    truth = [stepwise(queries, index.points, 10) for queries in asked]
    index.search(asked[0], 10)
    before = held()
    for queries, true in zip(asked, truth, strict=True):
        assert same(index.search(queries, 10), true)
    assert len(kept._kept) == 1
    answers = 4 * 2 * 10 * 10_000 * 4
    assert before < held() <= before + kept.nbytes + answers
    assert kept.nbytes < 8 * 10_000 * 300_000 // 32  # all minima


FEW = [
    (1, 100_000, 128, 10, "euclidean", "float32"),
    (1, 20_000, 96, 32, "cosine", "float32"),
    (4, 100_000, 64, 5, "inner_product", "float16"),
    (2, 5_000, 300, 1, "sqeuclidean", "float64"),
    (3, 20_000, 40, 20, "euclidean", "uint8"),
    (1, 7, 128, 7, "correlation", "float32"),
]


@on_gpu
@pytest.mark.parametrize(("m", "n", "d", "k", "metric", "dtype"), FEW)
def test_fifty_searches_of_an_index_are_the_stepwise_answers(
    m: int, n: int, d: int, k: int, metric: str, dtype: str, counts: Counts
) -> None:
    points = on_card(m, n, d, dtype, 0)[1]
    index, found, expected = tonari.Index(points, metric=metric, method="exact"), [], []
    for seed in range(50):
        queries = on_card(m, 1, d, dtype, seed)[0]
        found.append(index.search(queries, k))
        expected.append(stepwise(queries, points, k, metric))
    assert all(map(same, found, expected))
    assert (counts.captured, counts.replayed, counts.refused) == (1, 49, 0), counts


@on_gpu
def test_the_current_stream_orders_searches_of_an_index(counts: Counts) -> None:
    """Queries are written late on one stream after the other; results are read late on the same stream."""
    points = on_card(1, 50_000, 128, "float32", 0)[1]
    index = tonari.Index(points)
    streams = [torch.cuda.Stream() for _ in range(3)]
    rows = [on_card(2, 1, 128, "float32", seed)[0] for seed in range(6)]
    expected = [stepwise(queries, points, 10) for queries in rows]
    torch.cuda.synchronize()
    found = []
    for turn in range(60):
        with torch.cuda.stream(streams[turn // 2 % 3]):  # two in a row on each stream
            late = torch.zeros_like(rows[turn % 6])
            torch.cuda._sleep(1_000_000)
            late.copy_(rows[turn % 6])
            found.append(index.search(late, 10))
    torch.cuda.synchronize()
    assert all(same(each, expected[turn % 6]) for turn, each in enumerate(found))
    assert counts.replayed == 59, counts


@on_gpu
def test_threads_share_the_launches_of_an_index(counts: Counts) -> None:
    points = on_card(1, 50_000, 128, "float32", 0)[1]
    index = tonari.Index(points)
    rows = [on_card(1, 1, 128, "float32", seed)[0] for seed in range(4)]
    expected = [stepwise(queries, points, 10) for queries in rows]
    for queries in rows[:2]:
        index.search(queries, 10)
    torch.cuda.synchronize()
    assert not wrong_answers_of_threads(lambda which: index.search(rows[which], 10), expected, 200)
    assert (counts.captured, counts.replayed) == (1, 801), counts


@on_gpu
def test_the_launches_of_an_index_hold_none_of_its_memory_after_it(kept: Graphs) -> None:
    queries, points = on_card(1, 100_000, 128, "float32", 0)
    tonari.search(queries, points, 10, memory="8GB")
    before = torch.cuda.memory_allocated()
    index = tonari.Index(points)
    for _ in range(4):
        index.search(queries, 10)
    assert len(kept._kept) == 1
    del index
    gc.collect()
    assert not kept._kept
    assert torch.cuda.memory_allocated() == before
