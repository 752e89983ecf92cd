"""The host launches at most one step ahead of the device."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch

if HAS_TORCH:
    import torch

    from tonari.cuda.pace import Pace

pytestmark = needs_torch


def test_a_step_waits_for_the_end_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, int]] = []

    class Event:
        made = 0

        def __init__(self, blocking: bool) -> None:
            assert blocking  # a waiting thread releases its processor
            self.number, Event.made = Event.made, Event.made + 1

        def record(self, stream: Any) -> None:
            assert stream == "stream of cuda:0"
            done.append(("recorded", self.number))

        def synchronize(self) -> None:
            done.append(("waited for", self.number))

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    pace = Pace("cuda:0")
    for _ in range(3):
        pace.step()
    steps = [("recorded", 0), ("recorded", 1), ("waited for", 0), ("recorded", 2), ("waited for", 1)]
    assert done == steps


def test_on_the_cpu_nothing_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", lambda **_: pytest.fail("made an event"))
    Pace("cpu").step()
