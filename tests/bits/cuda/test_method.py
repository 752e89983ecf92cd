"""Rows of bits on CUDA as a method: memory kept between searches, and plans for points already on the device."""

from __future__ import annotations

from typing import Any

from tests.helpers import plans
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.cuda import tuning

if HAS_TORCH:
    from tonari.bits.cuda.method import BitsOnCuda

pytestmark = needs_torch
FREE = 10**10


def test_only_points_that_stay_are_held() -> None:
    cases: list[Any] = [(FREE, False), (80 * 10**6, True)]
    for room, streamed in cases:
        plan = plans.bits_cuda(10**6, 10**4, 64, 10, devices=("cuda:0",), free_bytes=tuning.RESERVE + room)
        assert plan.streamed == streamed
        held = BitsOnCuda().held_bytes(None, plan)  # type: ignore[arg-type]
        assert held == (0 if streamed else 10**6 * 64)


def test_points_that_are_there_are_not_copied_again() -> None:
    problem = plans.problem(10**6, 10**4, 64, 10, dtype="uint8", metric="hamming", devices=("cuda:0",))
    first = BitsOnCuda().plan(problem, free_bytes=FREE)
    later = BitsOnCuda().plan(problem, free_bytes=FREE - first.packed_bytes, prepared_by=first)
    assert first.prepare_seconds > later.prepare_seconds == 0
    assert later.packed_bytes == first.packed_bytes
