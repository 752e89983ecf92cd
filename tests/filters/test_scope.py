"""Expected costs of searches without rules, by which filters choose."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.scopes import Prepared, scope_of
from tonari.core.results.neighbors import Neighbors
from tonari.cuda import memory, tuning
from tonari.exact.cuda.replay import cache as cuda_graph_cache
from tonari.filters.scope import Scope

if HAS_TORCH:
    import torch

    from tonari.methods.places.place_cuda import CudaPlace

N, D = 1_000_000, 128


def within_memory(scope: Scope, memory: int | None) -> Scope:
    return dataclasses.replace(scope, points=scope.points.within_memory(memory))


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_points_that_are_packed_are_not_packed_again(metric: str) -> None:
    points = np.broadcast_to(np.uint8(0), (N, D))
    anew, ready = scope_of(points, metric, threads=1), scope_of(points, metric, threads=1, method="bits", kind=Prepared)
    assert anew.seconds(1, 10) > 1.5 * ready.seconds(1, 10) > 0
    assert anew.seconds(1, 10, n=N // 1_000) < ready.seconds(1, 10)


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize(
    ("given", "is_replayed"),
    [({}, True), ({"method": "exact"}, True), ({"method": "kdtree"}, False), ({"memory": 10**9}, False)],
)
def test_what_was_captured_is_replayed(
    given: Any, is_replayed: bool, self_join: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, queries = torch.from_numpy(checks.gaussian(50, 3)), torch.from_numpy(checks.gaussian(2, 3))
    captured = Neighbors(np.full((2, 3), 1.0), np.full((2, 3), 7))
    asked: list[Any] = []

    def replayed(key: Any, rows: Any, progress: Any) -> Neighbors | None:
        if key is None:
            return None
        asked.append((key, rows))
        return captured

    monkeypatch.setattr(cuda_graph_cache, "key_of", lambda *facts, **more: (*facts, more["self_join"]))
    monkeypatch.setattr(cuda_graph_cache, "replayed", replayed)
    those = scope_of(points, "l1", place=CudaPlace(("cpu",)), **given).points
    found = those.replayed(points if self_join else queries, 3, False, self_join=self_join)
    assert (found is captured) == is_replayed == bool(asked)
    for key, rows in asked:
        assert key[1] is rows[-1] is points
        assert len(rows) == 2 - self_join
        assert self_join or key[0] is rows[0] is queries
        assert key[2:] == (3, "l1", "cpu", self_join)


def small_card(monkeypatch: pytest.MonkeyPatch, free: int) -> Any:
    """Return the scope of points on a GPU with this number of free bytes, which the CPU replaces."""
    monkeypatch.setattr(memory, "free_memory", lambda devices: tuning.RESERVE + free)
    return scope_of(torch.zeros(1, 20).expand(N, 20), place=CudaPlace(("cpu",)))


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_an_estimate_of_what_a_card_cannot_hold_is_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = small_card(monkeypatch, 2 * 10**9)
    assert scope.seconds(N, N) == np.inf
    assert 0 < scope.seconds(1_000, 10) < np.inf
    tight = within_memory(scope, 10**6)
    assert tight.seconds(1_000, 10) == np.inf


def test_an_estimate_knows_the_budget_and_what_copies_take_of_it() -> None:
    points = np.broadcast_to(np.float32(0), (N, 20))
    scope = scope_of(points, threads=1, memory=60 * 10**6)
    assert scope.seconds(67, N // 4) == np.inf
    assert scope.seconds(1_000, 16, n=N // 2) < np.inf
    assert scope.seconds(1_000, 16, n=N - 1) == np.inf
    assert within_memory(scope, None).seconds(67, N // 4) < np.inf
