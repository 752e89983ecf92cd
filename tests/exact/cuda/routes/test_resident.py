"""Long searches leave out surplus copies of rows, and no answer changes.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import assert_same_neighbors
from tests.helpers.copies import D, K, N, copied, counted
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, GB, on_host, plan_of, rows_of, tensors
from tests.helpers.plans import exact_cuda
from tonari.metrics.reference import brute

pytestmark = [needs_torch]
if HAS_TORCH:
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts.rehearse import rehearse_search
    from tonari.exact.cuda.routes.resident import PreparedOnce, prepare_resident_once, search_resident
    from tonari.exact.report import Report

METRICS = ("euclidean", "cosine", "inner_product", "l1")


def search(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> tuple[Any, Report, Any]:
    """Search once without copies, and return the neighbours, the report, and the prepared points."""
    self_join = choices.get("self_join", False)
    plan = dataclasses.replace(
        plan_of(queries, points, k, metric, devices=(DEVICE,), **choices), subsets=True, seconds=1.0
    )
    with dispatch.on(plan.devices[0]):
        prepared = prepare_resident_once(points if self_join else queries, points, plan)
        found, report = search_resident(queries, prepared, plan, self_join=self_join, progress=False)
    return on_host(found), report, prepared


@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_no_answer_changes(metric: str, self_join: bool) -> None:
    points = copied(metric=metric)
    queries = points if self_join else np.concatenate([points[:6], rows_of(3, D, metric=metric, seed=5)])
    q, p = tensors(DEVICE, queries, points)
    q = p if self_join else q
    found, _, prepared = search(q, p, K, metric, self_join=self_join)
    assert isinstance(prepared, PreparedOnce)
    assert len(prepared.first.kept) == len(counted(points, K + 1)) < N / 2
    own = np.arange(N) if self_join else None
    assert_same_neighbors(found, brute(queries, points, K, metric, self_ids=own), metric=metric)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8"])
def test_other_types_from_host_memory(dtype: str) -> None:
    points = copied(dtype="float32" if dtype == "bfloat16" else dtype)
    rows = tensors("cpu", points)[0].bfloat16() if dtype == "bfloat16" else points
    seen = rows.float().numpy() if dtype == "bfloat16" else points
    found, _, prepared = search(rows, rows, K, self_join=True)
    assert isinstance(prepared, PreparedOnce)
    assert_same_neighbors(found, brute(seen, seen, K, "euclidean", self_ids=np.arange(N)), metric="euclidean")


def test_all_points_are_one_row() -> None:
    points = np.full((N, D), 0.25, np.float32)
    found, _, prepared = search(*tensors(DEVICE, points) * 2, K, self_join=True)
    assert isinstance(prepared, PreparedOnce)
    assert prepared.first.kept.tolist() == list(range(K + 1))
    assert not found.distances.any()
    assert found.indices[[0, 1, 3, 4, -1]].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


@pytest.mark.usefixtures("attempts")
def test_rows_near_copies_are_proved_at_once() -> None:
    """More groups share the k-th value than are refined: unless copies are left out, all points are compared."""
    row = rows_of(1, D, seed=3)
    points = np.concatenate([rows_of(8, D), np.repeat(row, 150, 0)])
    q, p = tensors(DEVICE, row * np.linspace(0.9, 1.1, 8, dtype=np.float32)[:, None], points)
    choices: dict[str, Any] = {"group": 8, "width": 1, "precisions": ("float16", "values")}
    plan = plan_of(q, p, K, devices=(DEVICE,), **choices)
    with dispatch.on(plan.devices[0]):
        _, usual = search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    found, report, _ = search(q, p, K, **choices)
    assert usual.rows_by_precision == {"values": 8}
    assert report.rows_by_precision == {"float16": 8}
    assert_same_neighbors(found, brute(q.cpu().numpy(), points, K, "euclidean"), metric="euclidean")


def test_contracted_rows() -> None:
    points = copied(140, 12)
    found, report, prepared = search(*tensors(DEVICE, points) * 2, K, self_join=True, form_dim=5)
    assert isinstance(prepared, PreparedOnce)
    assert any("in 5 dimensions" in level for level in report.rows_by_precision)
    expected = brute(points, points, K, "euclidean", self_ids=np.arange(140))
    assert_same_neighbors(found, expected, metric="euclidean")


def test_messages_number_all_points() -> None:
    points = copied()
    points[80, 2] = np.nan
    with pytest.raises(ValueError, match=r"points: row 80 has a value that is not finite \(nan in column 2\)"):
        search(*tensors(DEVICE, points) * 2, K, self_join=True)


def test_progress_ends_at_all_pairs() -> None:
    seen: list[tuple[int, int]] = []
    (points,) = tensors(DEVICE, copied())
    plan = dataclasses.replace(plan_of(points, points, K, devices=(DEVICE,), self_join=True), subsets=True)
    plan = dataclasses.replace(plan, seconds=1.0)
    dispatch.search_once(points, points, plan, self_join=True, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (N * N, N * N)


def test_long_searches_look_for_copies_where_there_is_room() -> None:
    def looks(n: int, m: int, **given: Any) -> bool:
        return exact_cuda(n, m, 128, 10, devices=given.pop("devices", ("cuda:0",)), **given).copies_first

    assert looks(10**6, 10**6, free_bytes=80 * GB)
    assert not looks(10**6, 10**4, free_bytes=80 * GB)
    assert not looks(10**6, 10**6, free_bytes=80 * GB, devices=("cuda:0", "cuda:1"))
    plan = exact_cuda(10**6, 10**6, 128, 10, devices=("cuda:0",), free_bytes=80 * GB)
    assert not looks(10**6, 10**6, free_bytes=80 * GB, memory=plan.total_bytes - 1)
    assert looks(10**6, 10**6, free_bytes=80 * GB, memory=plan.total_bytes)
    assert not exact_cuda(10**6, 10**6, 128, 10, devices=("cuda:0",), free_bytes=8 * GB, route="streamed").subsets
    assert exact_cuda(10**6, 10**4, 128, 10, devices=("cuda:0",), free_bytes=80 * GB).subsets
    assert not exact_cuda(10**4, 10**4, 128, 10, devices=("cuda:0",), free_bytes=80 * GB).subsets


def test_points_that_are_prepared_for_many_searches_keep_all_copies() -> None:
    (points,) = tensors(DEVICE, copied())
    plan = dataclasses.replace(plan_of(points, points, K, devices=(DEVICE,)), subsets=True, seconds=1.0)
    assert len(dispatch.prepare(points, plan).points) == N


def test_kernels_are_rehearsed() -> None:
    from tonari.cuda.compiling.rehearsal import Card, rehearsing

    plan = exact_cuda(1000, 1000, 40, 10, devices=("cuda:0",), free_bytes=GB)
    names = []
    for made in (plan, dataclasses.replace(plan, subsets=True, seconds=1.0)):
        with rehearsing(Card((9, 0), 132)) as rehearsal:
            rehearse_search(made, "float32", self_join=True)
        names.append({call.kernel.fn.__name__ for call in rehearsal.calls.values()})
    assert names[1] - names[0] == {"hash_rows_kernel", "same_rows_kernel"}
