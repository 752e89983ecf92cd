"""Searches of one batch on several devices: one thread launches the parts in order, and they finish in parallel."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import tonari
from tests.helpers import plans
from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, GB, on_host, plan_of, search, tensors
from tonari.core.trail import Record, recording
from tonari.metrics.reference import brute

pytestmark = needs_torch
if HAS_TORCH:
    import torch

    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts import first
    from tonari.exact.cuda.attempts.retries.attempt import Begun
    from tonari.exact.cuda.routes import multi_gpu, resident
    from tonari.exact.cuda.screens import screener

M, N, D, K = 9, 300, 5, 4


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the parts that begin and end."""
    made, usual = [], resident.begin_part

    def noting(*given: Any) -> Begun:
        made.append("begun")
        part = usual(*given)
        end = part._end
        part._end = lambda: (made.append("ended"), end())[1]
        return part

    monkeypatch.setattr(resident, "begin_part", noting)
    return made


def assert_each_row_is_proved_once(record: Record, parts: int) -> None:
    """Check a record in which devices share the points, if there are parts of points, or otherwise the queries."""
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
    """If k exceeds the number of points of a part, the part's lists are shorter than those of the result."""
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    found, _ = search(*tensors(DEVICE, queries, points), k, shard="points", devices=(DEVICE,) * 3)
    assert_same_neighbors(found, brute(queries, points, k))


@pytest.mark.parametrize(("shard", "left"), [("points", True), ("points", False), ("queries", False)])
def test_lists_are_joined_before_the_parts_have_ended_and_again_if_rows_were_left(
    shard: str, left: bool, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = multi_gpu.join
    monkeypatch.setattr(multi_gpu, "join", lambda *given: (steps.append("joined"), usual(*given))[1])
    queries, points = gaussian(M, 17, 1), gaussian(2 * N, 17)
    if left:  # on the second device alone
        points[400:], queries[1:] = points[400], points[400]
    found, report = search(*tensors(DEVICE, queries, points), K, shard=shard, devices=(DEVICE,) * 2)
    assert_same_neighbors(found, brute(queries, points, K))
    assert (len(report.rows_by_precision) > 1) == left
    parts = 2 if shard == "points" else 1  # queries that fit in one tile are searched on one device
    assert steps == ["begun"] * parts + ["joined"] + ["ended"] * parts + ["joined"] * left


def test_a_device_screens_before_the_next_is_launched_and_refines_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part with the most points comes first."""
    made: list[str] = []

    def noting(owner: Any, name: str, told: str) -> None:
        usual = getattr(owner, name)

        def noted(*given: Any, **named: Any) -> Any:
            if not any(isinstance(one, torch.Tensor) and one.is_meta for one in given):  # a rehearsal
                made.append(told)
            return usual(*given, **named)

        monkeypatch.setattr(owner, name, noted)

    noting(screener.Screener, "screened", "screened")
    noting(first, "refine_lowest", "refined")
    noting(resident, "prepare_points", "prepared")
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    given = tensors(DEVICE, queries, points)
    plan = dataclasses.replace(plan_of(*given, K, shard="points", devices=(DEVICE,) * 2), points_at_home=256)
    assert_same_neighbors(on_host(dispatch.search_once(*given, plan)), brute(queries, points, K))
    assert made == ["prepared", "screened"] * 2 + ["refined"] * 2


def test_a_device_without_memory_does_not_end_the_part_that_was_being_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device raises its own error, and the previous part is not searched in smaller batches instead."""
    usual, sizes = resident.prepare_points, []

    def prepare(rows: Any, *given: Any, **named: Any) -> Any:
        sizes.append(len(rows))
        if len(sizes) == 2:
            raise torch.cuda.OutOfMemoryError("the second device is full")
        return usual(rows, *given, **named)

    monkeypatch.setattr(resident, "prepare_points", prepare)
    given = tensors(DEVICE, gaussian(M, D, 1), gaussian(N, D))
    plan = dataclasses.replace(plan_of(*given, K, shard="points", devices=(DEVICE,) * 2), points_at_home=256)
    with pytest.raises(torch.cuda.OutOfMemoryError, match="the second device is full"):
        dispatch.search_once(*given, plan)
    assert sizes == [256, 44]


@pytest.mark.parametrize("shard", ["points", "queries"])
def test_points_of_the_host_are_copied_to_all_devices_at_once(shard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that copy points are shared by all devices."""
    seen, usual = [], multi_gpu.to_device

    def noting(rows: Any, device: Any, **given: Any) -> Any:
        seen.append(given.get("at_once"))
        return usual(rows, device)

    monkeypatch.setattr(multi_gpu, "to_device", noting)
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    found, _ = search(queries, points, K, shard=shard, devices=(DEVICE,) * 2)
    assert_same_neighbors(found, brute(queries, points, K))
    assert seen == [2, 2]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_device_of_the_points_searches_more_of_them_once(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_gpu, "share", lambda count, devices: -(-count // devices))
    _, points = tensors(DEVICE, gaussian(M, D, 1), gaussian(N, D))
    names = ["cuda:7", "cuda:8"]
    names.insert(at, str(points.device))
    plan = plans.exact_cuda(N, M, D, K, devices=tuple(names), host_points=False, host_queries=False, free_bytes=GB)
    assert plan.points_at_home == 0  # there are too few points
    plan = dataclasses.replace(plan, points_at_home=200)
    sizes = [50, 50]
    sizes.insert(at, 200)
    bounds = multi_gpu._bounds(points, plan, True)
    assert [part.stop - part.start for part in bounds] == sizes
    assert [part.start for part in bounds] == [0, *(part.stop for part in bounds[:-1])]
    assert bounds[-1].stop == N
    equal = [slice(0, 100), slice(100, 200), slice(200, 300)]
    assert multi_gpu._bounds(points, plan, False) == multi_gpu._bounds(gaussian(N, D), plan, True) == equal


def test_a_single_search_of_unequal_parts_has_the_answers_of_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    given = tensors(DEVICE, queries, points)
    plan = plan_of(*given, K, shard="points", devices=(DEVICE,) * 3)
    plan = dataclasses.replace(plan, points_at_home=256)
    seen, usual = [], multi_gpu._bounds
    monkeypatch.setattr(multi_gpu, "_bounds", lambda *given: seen.append(usual(*given)) or seen[-1])
    found = dispatch.search_once(*given, plan)
    assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert seen == [[slice(0, 256), slice(256, 300)]]


@on_gpu
def test_an_index_on_two_devices_is_replayed_with_the_answers_of_one() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    source = torch.Generator("cuda").manual_seed(0)
    points = torch.randn(100_000, 33, device="cuda", generator=source)
    points[50_000:] = points[50_000]  # copies, near which rows are not proved at once
    one = tonari.Index(points, device="cuda:0", method="exact", memory="8GB")
    two = tonari.Index(points, device=["cuda:0", "cuda:1"], method="exact")
    for turn in range(12):
        queries = torch.randn(700, 33, device="cuda", generator=source)
        queries[::2] = points[-1] + 1e-3 * queries[::2]
        stream = torch.cuda.Stream() if turn % 2 else torch.cuda.default_stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            late = torch.zeros_like(queries)
            torch.cuda._sleep(2_000_000)
            late.copy_(queries)
            with recording("search", len(queries)) as record:
                found = two.search(late, K)
            expected = one.search(queries, K)
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
        assert (record.method == "") == (turn > 1)  # the second search captures; later ones make no decisions
