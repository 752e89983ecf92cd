"""Searches by codes that are replayed as CUDA graphs; without a GPU, a replay does all the work again."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from tests.exact.cuda.attempts.test_contracted import near_a_plane
from tests.exact.cuda.routes.test_codes import HERE, D, K, M, N
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import on_host, plan_of
from tonari.core.trail import recording
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.exact.cuda import dispatch as run
    from tonari.exact.cuda.routes.codes import replays, search


class Redone:
    """A stand-in for a CUDA graph: a replay does all the work again."""

    made: ClassVar[list[Redone]] = []

    def __init__(self, work: Any) -> None:
        self.work, self.done, self.replays = work, work(), 0
        self.made.append(self)

    def replay(self) -> None:
        self.replays += 1
        again = self.work()
        for ours, theirs in zip(self.done, again, strict=True):
            ours.copy_(theirs)


@pytest.fixture
def redone(monkeypatch: pytest.MonkeyPatch) -> list[Redone]:
    """The captured batches, also without a GPU."""
    monkeypatch.setattr(Redone, "made", [])

    def record(work: Any, device: Any, *, run_first: bool) -> tuple[Any, Any]:
        graph = Redone(work)
        return graph, graph.done

    monkeypatch.setattr(replays, "record", record)
    monkeypatch.setattr(search, "captures", lambda device: True)
    return Redone.made


def test_the_second_search_of_some_sizes_is_captured(redone: list[Redone]) -> None:
    points, given = near_a_plane(N, D), {"width": 16, "form_dim": 4, **HERE}
    queries = [near_a_plane(M, D, seed) for seed in range(1, 4)]
    plan = plan_of(queries[0], points, K, **given)
    prepared = run.prepare(points, plan)
    for each in queries:
        assert_same_neighbors(on_host(run.search(each, prepared, plan)), brute(each, points, K))
    assert [graph.replays for graph in redone] == [2]
    queries[2][2, 1] = np.nan
    with pytest.raises(ValueError, match="queries: row 2"):
        run.search(queries[2], prepared, plan)
    assert_same_neighbors(on_host(run.search(queries[0], prepared, plan)), brute(queries[0], points, K))
    assert [graph.replays for graph in redone] == [4]
    assert replays._forget_replays()
    assert not replays._forget_replays()


def test_the_row_of_a_refused_value_counts_from_the_first_batch(redone: list[Redone]) -> None:
    points, queries = near_a_plane(N, D), near_a_plane(6, D, 1)
    plan = plan_of(queries, points, 1, width=16, form_dim=4, query_batch=2, **HERE)
    prepared = run.prepare(points, plan)
    queries[5, 0] = np.inf
    with pytest.raises(ValueError, match="queries: row 5"):
        run.search(queries, prepared, plan)
    assert [graph.replays for graph in redone] == [2]


def test_a_search_that_cannot_be_captured_is_launched_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "captures", lambda device: True)
    tried: list[Any] = []

    def no_room(*given: Any) -> None:
        tried.append(given)
        raise MemoryError("no room")

    monkeypatch.setattr(search, "check_room", no_room)
    points, queries = near_a_plane(N, D), near_a_plane(M, D, 1)
    plan = plan_of(queries, points, K, width=16, form_dim=4, **HERE)
    prepared = run.prepare(points, plan)
    with recording("search", 3 * M) as noted:
        for _ in range(3):
            assert_same_neighbors(on_host(run.search(queries, prepared, plan)), brute(queries, points, K))
    assert len(tried) == 1
    why = [choice.why for choice in noted.choices if choice.what == "replay"]
    assert why == ["searches like this one are launched step by step: no room"]


def test_as_many_graphs_are_kept_as_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CODED_GRAPHS", 2)
    kept: Any = replays.Replays()
    for key in "abc":
        assert kept.graph((key,), object) is None
    _, second, third = (kept.graph((key,), object) for key in "abc")
    assert kept.graph(("b",), object) is second
    assert kept.graph(("c",), object) is third
    assert kept.graph(("a",), object) is None, "it was dropped, and is seen for the first time again"
