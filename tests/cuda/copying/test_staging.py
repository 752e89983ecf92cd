"""Copies in the background: each byte once, errors raised on arrival, and no remaining thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.cuda import tuning

if HAS_TORCH:
    import torch

    from tonari.cuda.copying import staging
    from tonari.cuda.copying.staging import Carrier, empty_on_host

pytestmark = needs_torch


def test_every_byte_is_moved_once() -> None:
    cases: list[Any] = [(10, 4), (8, 4), (3, 4), (1, 1)]
    for total, step in cases:
        moved: list[int] = []
        with Carrier("cpu", pieces=2) as carrier:
            carrier._carry(total, step, lambda here, _, moved=moved: moved.extend(range(here.start, here.stop)))
            carrier.arrive()
            assert sorted(moved) == list(range(total))


def test_an_error_is_raised_once_when_copies_arrive() -> None:
    before = set(threading.enumerate())

    def move(here: slice, piece: object) -> None:
        raise OSError("the file behind the map is gone")

    with Carrier("cpu", pieces=2) as carrier:
        carrier._carry(4, 2, move)
        with pytest.raises(OSError, match="the file behind the map is gone"):
            carrier.arrive()
        carrier.arrive()
    assert set(threading.enumerate()) == before


def test_devices_that_are_copied_to_at_once_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "default_threads", lambda: 64)
    for at_once, threads in ((1, tuning.MOST_THREADS), (2, tuning.MOST_THREADS // 2), (99, 1)):
        with Carrier("cpu", 2, at_once) as carrier:
            assert carrier._workers.threads == threads


def test_memory_of_the_host_has_the_shape_and_dtype() -> None:
    made = empty_on_host((3, 2), "float64", locked=False)
    assert (tuple(made.shape), made.dtype, made.device.type) == ((3, 2), torch.float64, "cpu")
    assert not made.is_pinned()
