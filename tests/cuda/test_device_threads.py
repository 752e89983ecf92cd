"""One thread for each device: results in order, in the caller's context."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch

if HAS_TORCH:
    from tonari.cuda.device_threads import a_thread_each, side_by_side

pytestmark = needs_torch
SEEN: ContextVar[str] = ContextVar("seen", default="nothing")


def test_equal_devices_share_a_thread() -> None:
    cases: list[Any] = [(("cpu",), 1), (("cpu", "cpu"), 1), (("cpu", "meta"), 2)]
    for devices, threads in cases:
        assert a_thread_each(devices).threads == threads


def test_results_are_in_order_and_threads_see_what_the_caller_set() -> None:
    both = threading.Barrier(2, timeout=30)
    SEEN.set("ours")

    def work(at: int) -> tuple[int, str]:
        both.wait()  # until the other thread runs, too
        return at, SEEN.get()

    assert side_by_side(a_thread_each(("cpu", "meta")), ("cpu", "meta"), 2, work) == [(0, "ours"), (1, "ours")]


def test_what_one_device_raises_comes_out() -> None:
    def work(at: int) -> int:
        if at == 1:
            raise MemoryError("of the second device")
        return at

    with pytest.raises(MemoryError, match="of the second device"):
        side_by_side(a_thread_each(("cpu", "meta")), ("cpu", "meta"), 2, work)
