"""Searches of one batch on several devices: launched one after the other by one thread, then ended side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, search, tensors
from tonari.core.trail import Record, recording
from tonari.metrics.reference import brute

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.exact.cuda.routes import multi_gpu, resident

M, N, D, K = 9, 300, 5, 4


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that are begun and ended."""
    made, usual = [], resident.begin_part

    def noting(*given: Any) -> Callable[[], Any]:
        made.append("begun")
        end = usual(*given)
        return lambda: (made.append("ended"), end())[1]

    monkeypatch.setattr(resident, "begin_part", noting)
    return made


def assert_each_row_is_proved_once(record: Record, parts: int) -> None:
    """Check a record in which devices share the points, if there are parts of points, or else the queries."""
    assert record.proved == record.rows == M
    merged = [f"lists of {parts} devices, merged"] if parts else []
    assert [attempt.name for attempt in record.attempts if "devices" in attempt.name] == merged
    assert [(part.rows, part.proved) for part in record.parts] == ([(parts * M, parts * M)] if parts else [])


@pytest.mark.parametrize("shard", ["points", "queries"])
def test_all_parts_are_launched_before_one_is_waited_for(
    shard: str, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_gpu, "share", lambda count, devices: -(-count // devices))
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    with recording("search", M) as record:
        found, _ = search(*tensors(DEVICE, queries, points), K, shard=shard, devices=(DEVICE,) * 3)
    assert_same_neighbors(found, brute(queries, points, K))
    assert steps == ["begun"] * 3 + ["ended"] * 3
    assert_each_row_is_proved_once(record, 3 if shard == "points" else 0)


def test_parts_of_several_batches_wait_by_themselves(steps: list[str]) -> None:
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    given = tensors(DEVICE, queries, points)
    with recording("search", M) as record:
        found, _ = search(*given, K, shard="points", devices=(DEVICE,) * 2, query_batch=2)
    assert_same_neighbors(found, brute(queries, points, K))
    assert_each_row_is_proved_once(record, 2)
    assert steps == ["begun", "ended"] * 2  # by one thread, as both devices are the same


@pytest.mark.parametrize("k", [2, 150])
def test_lists_of_all_parts_are_merged(k: int) -> None:
    """With k above the points of a part its lists are shorter than those of the result."""
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    found, _ = search(*tensors(DEVICE, queries, points), k, shard="points", devices=(DEVICE,) * 3)
    assert_same_neighbors(found, brute(queries, points, k))
