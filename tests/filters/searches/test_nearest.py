"""The choice of points to copy, and of groups to search one by one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.scopes import Prepared, scope_of
from tonari.core.results.neighbors import Neighbors
from tonari.cuda import memory, tuning
from tonari.filters import dropping
from tonari.filters.rules import Rules
from tonari.filters.scope import Scope
from tonari.filters.searches import nearest

if HAS_TORCH:
    import torch

    from tonari.methods.places.place_cuda import CudaPlace

N, D = 1_000_000, 128


def within_memory(scope: Scope, memory: int | None) -> Scope:
    return dataclasses.replace(scope, points=scope.points.within_memory(memory))


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("share", [0.7, 0.5, 0.01])
def test_rows_on_a_device_are_gathered_rather_than_dropped(share: float) -> None:
    """On a device a copy is almost free; in host memory it costs more than a search for more neighbours."""
    rows = torch.zeros(1, D).expand(N, D)
    ids = np.arange(int(share * N))
    for points, place in ((rows, CudaPlace(("cpu",))), (np.broadcast_to(np.float32(0), (N, D)), CudaPlace(("cpu",)))):
        scope = scope_of(points, place=place, kind=Prepared, method="exact")
        gathered = not nearest._keeps_all(scope, 1_000, 10, Rules(m=1_000, n=N), len(ids))
        assert gathered == (points is rows or share < 0.1)


@needs_torch
@pytest.mark.parametrize("columns", [3, 5])
@pytest.mark.parametrize(("near_there", "ids_there"), [(False, False), (False, True), (True, True)])
def test_numbers_among_all_points(near_there: bool, ids_there: bool, columns: int) -> None:
    indices, distances = np.array([[2, 0, 1], [1, 2, 0]], np.int32), np.arange(6, dtype=np.float32).reshape(2, 3)
    ids = np.array([4, 70, 900])
    near = Neighbors(*map(torch.from_numpy, (distances, indices))) if near_there else Neighbors(distances, indices)
    scope = scope_of(np.zeros((1000, 1), np.float32), "inner_product")
    found = nearest._renumbered(near, torch.from_numpy(ids) if ids_there else ids, columns, scope)
    assert all(isinstance(part, torch.Tensor) == near_there for part in found)
    missing = columns - 3
    np.testing.assert_array_equal(found.indices, np.pad(ids[indices], ((0, 0), (0, missing)), constant_values=-1))
    np.testing.assert_array_equal(found.distances, np.pad(distances, ((0, 0), (0, missing)), constant_values=-np.inf))
    assert str(found.indices.dtype).endswith("int32")


def small_card(monkeypatch: pytest.MonkeyPatch, free: int) -> Any:
    """Return the scope of points on a GPU with this number of free bytes, which the CPU replaces."""
    monkeypatch.setattr(memory, "free_memory", lambda devices: tuning.RESERVE + free)
    return scope_of(torch.zeros(1, 20).expand(N, 20), place=CudaPlace(("cpu",)))


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("free", [10**9, 4 * 10**9, 80 * 10**9])
def test_other_groups_are_searched_whatever_a_card_holds(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All points of the largest group may be nearer, but lists of that many points are made in blocks, if at all."""
    scope = small_card(monkeypatch, free)
    groups = np.repeat(np.arange(2), [N - 1_000, 1_000])
    asked = np.concatenate([np.zeros(200_000, np.int64), np.ones(1_000, np.int64)])
    rules = Rules(m=len(asked), n=N, query_groups=asked, point_groups=groups, same=False)
    assert nearest._is_complement_faster(scope, len(asked), 16, rules)
    wanted = np.array([20, 5_000, 200_000])
    for budget in (None, 10**8):
        listed = dropping._is_listed(within_memory(scope, budget), 16, wanted // 2, wanted)
        assert listed.dtype == bool
    assert dropping._is_listed(within_memory(scope, 10**6), 16, wanted // 2, wanted).all()
