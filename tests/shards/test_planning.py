"""Plans at the limits: more points than NN-Descent supports in one graph, and budgets near the need of a slab."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.core.errors import BudgetExceeded
from tonari.cuda import memory as memory_of_devices
from tonari.cuda import tuning
from tonari.nn_descent.entries import MOST_POINTS
from tonari.shards import tuning as shards_tuning
from tonari.shards.planning.planner import devices_for_shards, plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.source import as_source


class Many:
    """More points than one graph may have."""

    def __init__(self, n: int = 2 * MOST_POINTS + 5) -> None:
        self.shape = n, 96

    def rows(self, begin: int, end: int) -> Any:
        return np.zeros((end - begin, 96), np.float32)


@pytest.mark.parametrize("method", ["exact", "clusters", "ggm"])
@pytest.mark.parametrize("memory", [8 * 10**9, 10**13])
def test_more_points_than_one_graph_may_have(method: str, memory: int) -> None:
    recall = None if method == "exact" else 0.9
    plan = plan_build(Sizes(as_source(Many()), 10, "euclidean", recall, (), 1), method, memory)
    assert plan.host_bytes <= memory
    assert plan.rows * plan.shards >= Many().shape[0]
    if method != "exact":
        assert plan.rows <= MOST_POINTS // (1 + (method == "ggm"))


def test_every_budget_that_suffices_has_a_plan() -> None:
    """Fewer rows do not always need less memory, because they change the blocks of a search."""
    sizes = Sizes(as_source(np.zeros((20_000, 16), np.float32)), 5, "euclidean", None, (), 1)
    plans = [plan_build(sizes, "exact", memory) for memory in range(7_000_000, 9_000_000, 100_000)]
    assert all(plan.rows * plan.shards >= 20_000 > plan.rows * (plan.shards - 1) for plan in plans)


@pytest.mark.parametrize("method", ["clusters", "ggm"])
@pytest.mark.parametrize("free", [4 * 10**9, 80 * 10**9])
def test_points_that_no_device_has_room_for(method: str, free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sizes of shards are considered; those too large for the device do not end the search for a plan."""
    monkeypatch.setattr(memory_of_devices, "free_memory", lambda devices: free)
    sizes = Sizes(as_source(Many()), 10, "euclidean", 0.9, ("cuda:0",), None)
    plan = plan_build(sizes, method, None)
    assert free / 2 < plan.device_bytes <= free - tuning.RESERVE
    assert plan.rows * plan.shards >= Many().shape[0]


@pytest.mark.parametrize("method", ["clusters", "ggm"])
def test_a_device_without_room_says_what_a_build_needs(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_of_devices, "free_memory", lambda devices: tuning.RESERVE + 10**6)
    sizes = Sizes(as_source(Many()), 10, "euclidean", 0.9, ("cuda:0",), None)
    with pytest.raises(BudgetExceeded, match=f"memory=1000000: method='{method}' needs at least"):
        plan_build(sizes, method, None)


@pytest.mark.parametrize(("n", "count"), [(8_000_000, 1), (200_000_000, 4)])
def test_as_many_devices_build_the_graphs_of_shards_as_the_host_can_keep_busy(
    n: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_of_devices, "free_memory", lambda devices: 80 * 10**9)
    devices = tuple(f"cuda:{at}" for at in range(4))
    sizes = Sizes(as_source(Many(n)), 10, "euclidean", 0.95, devices, None, workers=4)
    plan = plan_build(sizes, "clusters", 85 * n)
    assert plan.shards > 4
    chosen, why = devices_for_shards(sizes, plan)
    assert chosen == count
    assert why.startswith(f"{count} of 4: the graphs of the shards are expected to take ")
    assert [word for word in ("s on 1", "s on 2", "s on 3", "s on 4") if word not in why] == []


@needs_torch
def test_one_shard_is_built_on_one_device_and_slabs_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_of_devices, "free_memory", lambda devices: 80 * 10**9)
    sizes = Sizes(as_source(Many(1_000_000)), 10, "euclidean", 0.95, ("cuda:0", "cuda:1"), None, workers=2)
    assert devices_for_shards(sizes, plan_build(sizes, "clusters", None)) == (1, "1 of 2: one shard has all rows")
    assert devices_for_shards(sizes, plan_build(sizes, "exact", None)) == (2, "2 of 2: they share the slabs")


@needs_torch
@pytest.mark.parametrize("devices", [1, 4])
def test_a_billion_points_have_room_on_a_disk_of_235_gib(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_of_devices, "free_memory", lambda devices: 78 * 10**9)
    names = tuple(f"cuda:{at}" for at in range(devices))
    sizes = Sizes(as_source(Many(10**9)), 10, "euclidean", 0.95, names, None, workers=devices)
    plan = plan_build(sizes, "clusters", None)
    assert plan.disk_bytes < 235 << 30
    assert f"{plan.disk_bytes / 2**20:,.1f} MiB" in str(plan)
    assert plan.segments(10**9)[-1].stop == -(-(10**9) // plan.block)


@needs_torch
def test_what_a_killed_build_repeats_on_a_device_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of fewer rows are read together: as many rows at once as one large shard would have."""
    monkeypatch.setattr(memory_of_devices, "free_memory", lambda devices: 78 * 10**9)
    sizes = Sizes(as_source(Many(10**9)), 10, "euclidean", 0.95, ("cuda:0",), None)
    made = []
    for seconds in (1e9, shards_tuning.TASK_SECONDS, 1.0):
        monkeypatch.setattr(shards_tuning, "TASK_SECONDS", seconds)
        made.append(plan := plan_build(sizes, "clusters", None))
        written = sizes.lists_bytes(plan.rows) / shards_tuning.WRITE_RATE
        assert sizes.descent(plan.rows).seconds + written < 1.1 * seconds
        assert plan.device_bytes <= 78 * 10**9
    assert made[0].group == 1 < made[1].group < made[2].group
    assert [0.8 < plan.group * plan.rows / made[0].rows <= 1 for plan in made] == [True] * 3
