"""Replayed searches of an Index on several devices: answers, unproved rows, records, refusals.

Without a GPU, Triton's interpreter replaces each device, and stand-ins for CUDA graphs repeat all their work.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import on_host, rows_of, tensor_of
from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import recording
from tonari.exact.cuda import tuning
from tonari.exact.cuda.replay import cache as graphs
from tonari.exact.cuda.replay.cache import Graphs
from tonari.metrics.reference import brute

pytestmark = [needs_torch, pytest.mark.skipif(HAS_CUDA, reason="one device stands for several")]
if HAS_TORCH:
    import torch

    from tonari.cuda import memory as device_memory
    from tonari.exact.cuda import divisions, planning
    from tonari.exact.cuda.replay import capture, kept, spread
    from tonari.exact.cuda.routes import multi_gpu
    from tonari.inputs.arrays import device_rows

N, M, D, K = 30, 3, 17, 4
DEVICES = 2


def tensors_in(made: Any) -> Iterator[Any]:
    """Return all tensors in nested tuples."""
    if isinstance(made, tuple):
        for part in made:
            yield from tensors_in(part)
    else:
        yield made


class Redone:
    """A stand-in for a CUDA graph, with fixed outputs."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.made = work, work()
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        for ours, theirs in zip(tensors_in(self.made), tensors_in(self.work()), strict=True):
            ours.copy_(theirs)


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    """Start without graphs; the CPU acts as two devices."""
    fresh = Graphs()
    for module in (graphs, capture, kept, spread):
        monkeypatch.setattr(module, "GRAPHS", fresh)

    def place_of(x: Any, name: str) -> str | None:
        return "cpu" if isinstance(x, torch.Tensor) else None

    def record(work: Callable[[], Any], device: Any) -> tuple[Redone, Any]:
        graph = Redone(work)
        return graph, graph.made

    for module in (inputs, device_rows):
        monkeypatch.setattr(module, "place_of", place_of)
    monkeypatch.setattr(inputs, "devices_for", lambda device, **given: ("cpu",) * DEVICES)
    monkeypatch.setattr(device_memory, "free_memory", lambda devices: 4 * 10**9)
    monkeypatch.setattr(multi_gpu, "share", lambda count, devices: -(-count // devices))
    monkeypatch.setattr(graphs, "_facts", lambda x: (x.dtype, x.shape) if isinstance(x, torch.Tensor) else None)
    monkeypatch.setattr(spread, "record", record)
    return fresh


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record for each replay of a whole search whether it gave an answer."""
    made, usual = list[bool](), spread.SpreadSearch.answer

    def answer(self: Any, *given: Any) -> Neighbors | None:
        found = usual(self, *given)
        made.append(found is not None)
        return found

    monkeypatch.setattr(spread.SpreadSearch, "answer", answer)
    return made


def queries_of(seed: int, m: int = M, dtype: str = "float32") -> Array:
    return rows_of(m, D, dtype, seed=100 + seed)


def check(index: Any, queries: Array, points: Array, k: int = K, metric: str = "euclidean") -> None:
    found = index.search(tensor_of(queries), k)
    assert_same_neighbors(on_host(found), brute(queries, points, k, metric), metric=metric)


@pytest.mark.parametrize("full", [0, 1, 2])
def test_a_search_on_a_device_without_free_memory_is_not_captured(
    full: int, held: Graphs, replays: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free memory is checked on each device before its part is captured, and on the first device before lists are
    merged.
    """
    asked, captured, usual = [], [], spread.record
    monkeypatch.setattr(
        device_memory, "driver_memory", lambda device: (asked.append(device), 10**9 * (len(asked) <= full))[1]
    )
    monkeypatch.setattr(spread, "record", lambda *given: (captured.append(given), usual(*given))[1])
    points = rows_of(N, D)
    index = tonari.Index(tensor_of(points), method="exact")
    with recording("search", 4 * M) as record:
        for seed in range(4):
            check(index, queries_of(seed), points)
    assert any("step by step: a CUDA graph of them may need " in choice.why for choice in record.choices)
    assert len(captured) == full
    assert len(asked) == full + 1
    assert not replays
    assert held.nbytes == 0


@pytest.mark.parametrize(
    ("metric", "dtype", "k"),
    [
        ("euclidean", "float32", K),
        ("inner_product", "float32", 1),
        ("euclidean", "float64", 20),  # more points than a part has
        ("l1", "uint8", 20),
    ],
)
def test_the_second_search_is_captured_and_later_ones_are_replayed(
    metric: str, dtype: str, k: int, held: Graphs, replays: list[bool]
) -> None:
    points = rows_of(N, D, dtype)
    index = tonari.Index(tensor_of(points), metric=metric, method="exact")
    for seed in range(4):
        check(index, queries_of(seed, dtype=dtype), points, k, metric)
    assert replays == [True] * 3
    (graph,) = held._kept.values()
    assert [part._graph.replays for part in graph._parts] == [3] * DEVICES  # type: ignore[attr-defined]


def test_queries_in_host_memory_are_replayed_too(replays: list[bool]) -> None:
    points = rows_of(N, D)
    index = tonari.Index(points, method="exact")
    for seed in range(3):
        queries = queries_of(seed)
        found = index.search(queries if seed < 2 else np.asfortranarray(queries), K)
        assert type(found.indices) is type(found.distances) is np.ndarray
        assert_same_neighbors(found, brute(queries, points, K))
    bad = queries_of(3)
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match="queries: row 1 has a value that is not finite"):
        index.search(bad, K)
    assert replays == [True, True, False]


def test_queries_may_be_shared_among_devices(replays: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    points = rows_of(N, D)
    usual = divisions.divisions
    monkeypatch.setattr(divisions, "divisions", lambda *given: [way for way in usual(*given) if way[0] == "queries"])
    index = tonari.Index(tensor_of(points), method="exact")
    for seed in range(3):
        check(index, queries_of(seed, 7), points)
    assert replays == [True] * 2


def partly_equal(n: int = 400) -> Array:
    """Make points, most of them copies of one: rows near the copies are not proved at once."""
    points = rows_of(n, D)
    points[20:] = points[20]
    return points


def test_rows_that_a_device_does_not_prove_are_searched_again(
    replays: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    points = partly_equal()
    index = tonari.Index(tensor_of(points), method="exact")
    queries = queries_of(0)
    queries[1:] = points[20]
    check(index, queries, points)
    with caplog.at_level(logging.INFO, logger="tonari"), recording("search", M) as record:
        check(index, queries, points)
        check(index, queries_of(5), points)
    assert replays == [True] * 2
    assert record.proved == 2 * M
    (part,) = record.parts
    assert part.rows == part.proved == DEVICES * 2 * M
    assert part.attempts[0].name == "float16, replayed as a CUDA graph on each device"
    assert part.attempts[0].proved < part.rows
    assert [attempt.name for attempt in record.attempts] == ["lists of 2 devices, merged"]
    counts = [message.split(": ")[1] for message in caplog.messages if " rows in " in message]
    assert len(counts) == 2
    for text in counts:  # a row counts once for each device
        assert sum(int(part.split(" at ")[0]) for part in text.split(", ")) == DEVICES * M


def test_bad_values_are_refused_and_the_next_search_is_replayed(replays: list[bool]) -> None:
    points = rows_of(N, D)
    index = tonari.Index(tensor_of(points), method="exact")
    for seed in range(2):
        check(index, queries_of(seed), points)
    queries = queries_of(2)
    queries[1, 2] = np.nan
    with pytest.raises(ValueError, match="queries: row 1 has a value that is not finite"):
        index.search(tensor_of(queries), K)
    check(index, queries_of(3), points)
    assert replays == [True, False, True]


def test_answers_are_the_callers_own(replays: list[bool]) -> None:
    points = rows_of(N, D)
    index = tonari.Index(tensor_of(points), method="exact")
    found = [index.search(tensor_of(queries_of(seed)), K) for seed in range(4)]
    for seed, each in enumerate(found):
        assert_same_neighbors(on_host(each), brute(queries_of(seed), points, K))
    assert replays == [True] * 3


def test_without_memory_for_an_answer_graphs_are_given_up(
    held: Graphs, replays: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(self: Any, *given: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("no memory")

    points = partly_equal()
    index = tonari.Index(tensor_of(points), method="exact")
    queries = queries_of(0)
    queries[1:] = points[20]
    for _ in range(2):
        check(index, queries, points)
    monkeypatch.setattr(spread._Part, "finish", no_memory)
    with recording("search", M) as record:
        check(index, queries, points)
    assert replays == [True, False]
    assert record.proved == M
    assert record.choices[0].why == "launched step by step instead: no memory"
    assert not held._kept


def test_the_graphs_of_an_index_go_with_it(held: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    points = rows_of(N, D)
    index = tonari.Index(tensor_of(points), method="exact")
    for seed in range(2):
        check(index, queries_of(seed), points)
    assert len(held._kept) == 1
    del index
    gc.collect()
    assert not held._kept


def test_what_is_not_prepared_or_takes_long_is_not_captured(
    replays: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, points = queries_of(0), rows_of(N, D)
    for _ in range(2):
        found = tonari.search(tensor_of(queries), tensor_of(points), K, method="exact")
        assert_same_neighbors(on_host(found), brute(queries, points, K))
    for name, most in (("HELD_BYTES", 1 << 20), ("LONGEST_SECONDS", 0.0)):
        with monkeypatch.context() as patched:
            patched.setattr(tuning, name, most)
            index = tonari.Index(tensor_of(points), method="exact")
            for _ in range(2):
                check(index, queries, points)
    assert not replays


def test_a_small_index_takes_one_of_all_devices_and_says_so() -> None:
    points, queries = rows_of(N, D), queries_of(0)
    with recording("search", 2 * M) as record:
        index = tonari.Index(tensor_of(points), method="exact", device="cuda:all")
        check(index, queries, points)
        found = tonari.search(tensor_of(queries), tensor_of(points), K, method="exact", device="cuda:all")
    assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert index.devices == ("cpu",)
    assert tonari.Index(tensor_of(points), device=["cuda:0", "cuda:1"]).devices == ("cpu",) * DEVICES
    assert len({choice.why.split(": ")[0] for choice in record.choices if choice.what == "devices"}) == 1
    assert record.choices[0].why.startswith("1 of 2: ")
    shown = str(tonari.explain(tensor_of(queries), tensor_of(points), K, device="cuda:all"))
    assert "; devices: 1 of 2: " in shown


def test_all_devices_are_taken_where_that_is_expected_to_be_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "CARD", planning.CARD._replace(further=-1.0))
    points, queries = rows_of(N, D), queries_of(0)
    index = tonari.Index(tensor_of(points), method="exact", device="cuda:all")
    assert index.devices == ("cpu",) * DEVICES
    check(index, queries, points)
    with recording("search", M) as record:
        found = tonari.search(tensor_of(queries), tensor_of(points), K, method="exact", device="cuda:all")
    assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert record.choices[0].why.startswith("2 of 2: ")


def test_progress_is_reported_once() -> None:
    points, told = rows_of(N, D), list[tuple[int, int]]()
    index = tonari.Index(tensor_of(points), method="exact")
    for seed in range(3):
        told.clear()
        index.search(tensor_of(queries_of(seed)), K, progress=lambda done, total: told.append((done, total)))
    assert told == [(M * N, M * N)]
