"""Batches of rows on a device that runs out of memory: first cached memory is released, then batches are halved."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.exact.cuda.attempts import in_batches as module
from tonari.exact.cuda.attempts.in_batches import in_batches

if HAS_TORCH:
    import torch

pytestmark = needs_torch


def worked(fits: int, monkeypatch: pytest.MonkeyPatch, idle: list[bool]) -> list[tuple[int, int, bool]]:
    """Try 10 rows, 8 at a time, on a device with room for fewer; return the slices that were tried, and whether they
    fitted.
    """
    tried: list[tuple[int, int, bool]] = []
    monkeypatch.setattr(module, "IDLE", [lambda: idle.pop(0) if idle else False])

    def work(rows: slice) -> None:
        good = rows.stop - rows.start <= fits
        tried.append((rows.start, rows.stop, good))
        if not good:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate. GPU 0 has. Advice. More")

    in_batches(10, 8, work, planned=77)
    return tried


def test_batches_that_fit_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worked(8, monkeypatch, []) == [(0, 8, True), (8, 10, True)]


def test_a_batch_is_halved_and_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = worked(4, monkeypatch, [])
    assert tried == [(0, 8, False), (0, 4, True), (4, 8, True), (8, 10, True)]


def test_idle_memory_is_given_up_before_a_batch_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worked(4, monkeypatch, [True, False])[:3] == [(0, 8, False), (0, 8, False), (0, 4, True)]


def test_no_room_for_one_row_says_what_the_plan_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError, match=r"the plan needs 77 bytes there: .*Tried to allocate\. GPU 0 has\.$"):
        worked(0, monkeypatch, [])
