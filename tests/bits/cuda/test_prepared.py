"""Prepared points of bits on a device."""

from __future__ import annotations

from typing import Any

from tests.helpers.bit_rows import noise
from tests.helpers.bits_on_cuda import DEVICE, plan_for
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.cuda import tuning

if HAS_TORCH:
    from tonari.bits.cuda.method import BitsOnCuda

pytestmark = [needs_torch]


def test_prepared_points_stay_where_they_are() -> None:
    queries, points = noise(3, 4, 1), noise(20, 4)
    method, plan = BitsOnCuda(), plan_for(queries, points, 2, "hamming")
    beside = plan.total_bytes - plan.packed_bytes + tuning.RESERVE
    later = method.plan(plan_problem(queries, points), prepared_by=plan, free_bytes=beside)
    assert (later.streamed, later.query_block, later.point_slab) == (False, plan.query_block, plan.point_slab)
    whole = {"free_bytes": 8 * 10**9, "query_block": 2, "point_slab": 9}
    few = plan_for(queries, points, 2, "hamming", **whole)
    streamed = plan_for(queries, points, 2, "hamming", **whole, memory=few.total_bytes - 1)
    later = method.plan(plan_problem(queries, points), prepared_by=streamed, free_bytes=8 * 10**9)
    assert streamed.streamed
    assert later.streamed
    assert later.prepare_seconds == 0.0 < plan.prepare_seconds
    assert method.held_bytes(method.prepare(points, plan), plan) == points.nbytes


def plan_problem(queries: Any, points: Any) -> Any:
    from tonari.metrics.problem import make_problem

    given: dict[str, Any] = {"dtype": "uint8", "metric": "hamming", "devices": (DEVICE,)}
    return make_problem(len(points), len(queries), points.shape[1], 2, **given)
