"""The tensors that NN-Descent on CUDA holds, by size, with kernels that do nothing: as many bytes as planned."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tests.helpers.devices import HAS_CUDA, needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.core.units import MIB
from tonari.graph import tuning
from tonari.nn_descent import memory

pytestmark = [needs_torch, pytest.mark.skipif(HAS_CUDA, reason="a card counts its memory itself: test_rounds.py")]
CUDA = "tonari.nn_descent.cuda."
LAUNCHING = [CUDA + name for name in ("clusters", "scan", "rounds")]


def most_held(work: Callable[[], object]) -> int:
    """Return the largest number of bytes of tensors in host memory at any time, beyond those held before."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    held = most = 0
    events = seen.profiler.kineto_results.events()
    for event in sorted((event for event in events if event.name() == "[memory]"), key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


@pytest.fixture(autouse=True)
def _without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def nothing(kernel: Any, programs: int, arguments: dict[str, Any], **_: Any) -> None:
        for name in ("near_ptr", "ids_ptr"):  # tensors that are used as an index afterwards
            if name in arguments:
                arguments[name].zero_()

    def smallest(values: Any, k: int) -> Any:
        found = torch.zeros((len(values), k), dtype=torch.int32)
        return type("Selection", (), {"values": values[:, :k].clone(), "indices": found})

    def best(queries: Any, points: Any, met: Any, k: int, **_: Any) -> Any:
        widened = torch.zeros((len(queries), -(-queries.shape[1] // 16) * 16), dtype=torch.float64)
        keys = torch.zeros(met.shape, dtype=torch.float64)
        kept = torch.zeros(met.shape, dtype=torch.float64)  # at most the same again, while the best are selected
        del widened, keys, kept
        return torch.zeros((len(queries), k)), torch.zeros((len(queries), k), dtype=torch.int32)

    for module in map(importlib.import_module, LAUNCHING):
        monkeypatch.setattr(module, "launch", nothing)
    monkeypatch.setattr(CUDA + "scan.k_smallest", smallest)
    monkeypatch.setattr(CUDA + "rounds.refine_groups", best)


def steps(n: int, d: int) -> Any:
    import torch

    from tonari.nn_descent.cuda.backend import CudaBackend

    points = torch.randn((n, d), generator=torch.Generator().manual_seed(0))
    return CudaBackend(points, plans.descent(n, d, 10, devices=("cpu",), free_bytes=8 << 30))


@pytest.mark.parametrize(("n", "d"), [(8_000, 96), (20_000, 16)])
def test_a_start_and_a_round_hold_what_was_planned(n: int, d: int) -> None:
    made = steps(n, d)
    room = made.plan.total_bytes - memory._SMALL_CHANGE_ON_CUDA
    started = most_held(lambda: made.start("clusters"))
    entries = made.start("clusters")
    rounds = most_held(lambda: made.round(entries)) + n * made.plan.list_size * 4 + n * 8  # the entries, and the order
    assert room / 4 < started <= room
    assert room / 4 < rounds <= room


@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.filterwarnings("ignore:.*not reached")
def test_a_merge_of_lists_in_host_memory_holds_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tonari.graph.building import merging, sides
    from tonari.graph.lists import Lists
    from tonari.methods.call import Call
    from tonari.methods.options import Options
    from tonari.methods.places.place_cuda import CudaPlace

    def nearest(queries: Any, points: Any, k: int, metric: str, room: int) -> Neighbors:
        del points, metric
        if len(queries) == 2 * plan.sample:
            torch.empty(room, dtype=torch.uint8)  # bytes that the search may take
        return Neighbors(torch.zeros((len(queries), k)), torch.arange(k, dtype=torch.int32).repeat(len(queries), 1))

    monkeypatch.setattr(CUDA + "backend.nearest", nearest)
    monkeypatch.setattr(CudaPlace, "there", lambda place, x: torch.as_tensor(x).clone())  # as between two memories
    monkeypatch.setattr(sides.Sides, "check", lambda *_: None)
    monkeypatch.setattr(tuning, "MERGE_SHARE", 0.0)
    n, d, k = 60_000, 64, 10
    points, plan = torch.randn((n, d)), plans.descent(n, d, k, devices=("cpu",), free_bytes=8 << 30, start="graph")
    found = Neighbors(np.zeros((n // 2, k), np.float32), np.zeros((n // 2, k), np.int32))
    a, b = ((Lists(found, "euclidean", "nn-descent"), part) for part in points.split(n // 2))
    call = Call.of({"points": points}, Options(device="cuda", progress=False))
    held = most_held(lambda: merging.merge_lists(a, b, call, recall=plan.recall, seed=0))
    assert plan.total_bytes / 4 < held <= plan.total_bytes


def test_forms_and_reverse_lists_take_what_is_planned() -> None:
    import torch

    from tonari.nn_descent.cuda.form import form_of
    from tonari.nn_descent.cuda.rounds import reverse_of

    made = steps(60_000, 64)
    n, plan = made.plan.n, made.plan
    formed = most_held(lambda: form_of(made.points, plan.metric))
    assert n * 64 * 2 < formed <= memory.packed_bytes(plan) + memory._forming(plan)
    entries = torch.zeros((n, plan.list_size), dtype=torch.int32)
    reverse = n * (4 * plan.reverse + 8 + 8)
    assert (
        reverse < most_held(lambda: reverse_of(entries, plan.n_hubs, plan.reverse)) <= reverse + memory._sorting(plan)
    )


@pytest.mark.parametrize("d", [1, 96, 4096])
@pytest.mark.parametrize("n", [1, 7, 1 << 14, 10**6, 10**8])
def test_what_does_not_grow_with_the_points_is_small_beside_them(n: int, d: int) -> None:
    """This includes shards that fill a budget of some 100 MB."""
    ranges = memory.ranges_of(n)
    assert ranges >= 1
    assert 3 * 8 * ranges * d <= min(24 * MIB, n * d + 24 * d)
    for hubs in (1, 16):
        columns = memory.columns_sorted(n, hubs)
        assert 1 <= columns <= hubs
        assert columns == 1 or columns * n <= max(1 << 20, min(2 * n, 1 << 22))
