"""Free memory of devices: the driver is asked only now and then, torch each time."""

from __future__ import annotations

import time

import pytest

from tonari.core.units import MIB
from tonari.cuda import memory

torch = pytest.importorskip("torch", reason="torch is not installed")


def test_the_driver_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    free, held, now, asked = {"cuda:0": 900, "cuda:1": 700}, {"reserved": 60, "allocated": 50}, [100.0], []

    def mem_get_info(device: str) -> tuple[int, int]:
        asked.append(device)
        return free[device], 1000

    def stats(device: str) -> dict[str, dict[str, dict[str, int]]]:
        return {f"{name}_bytes": {"all": {"current": count}} for name, count in held.items()}

    monkeypatch.setattr(torch.cuda, "mem_get_info", mem_get_info)
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", stats)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(memory, "_known", {})
    assert memory.free_memory(("cuda:0",)) == 910
    assert memory.free_memory(("cuda:0", "cuda:1")) == 710
    assert asked == ["cuda:0", "cuda:1"]
    held.update(reserved=160, allocated=150)  # torch takes 100 from the driver
    free.update({"cuda:0": 800})
    now[0] += 0.9
    assert memory.free_memory(("cuda:0",)) == 810
    assert asked == ["cuda:0", "cuda:1"]
    free.update({"cuda:0": 300})  # other processes take 500
    now[0] += 0.2
    assert memory.free_memory(("cuda:0",)) == 310
    assert asked == ["cuda:0", "cuda:1", "cuda:0"]
    assert memory.available(("cuda:0",)) == 0
    assert memory.available(("cuda:0",), 600 * MIB) == 88 * MIB
