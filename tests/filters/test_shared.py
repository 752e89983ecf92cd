"""Masks that all queries share: the allowed points are found once, on the device of the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.scopes import Prepared, scope_of
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.filters import shared, tuning
from tonari.filters.arguments import Given
from tonari.filters.rules import Rules
from tonari.filters.scope import Scope
from tonari.filters.searches.nearest import nearest_allowed
from tonari.filters.shared import SharedMask, true_places
from tonari.methods.places.points import Points
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.methods.places.place_cuda import CudaPlace


def rules_of(m: int, n: int, where: Any) -> Rules:
    rules = Given(where=where).rules(m, n)
    assert rules is not None
    return rules


@pytest.mark.parametrize("n", [0, 1, 15, 16, 63, 64, 65, 127, 128, 1003])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.07, 0.5, 1.0])
def test_true_places_are_those_of_numpy(n: int, share: float) -> None:
    mask = np.random.default_rng(n).random(n) < share
    mask[-1:] = True
    other = mask.view(np.uint8) * np.arange(1, n + 1).astype(np.uint8)  # NumPy takes any byte but 0 for true
    for same in (mask, np.repeat(mask, 2)[::2], mask[::-1][::-1], other.view(bool)):
        places = true_places(same)
        assert places.dtype == np.int64
        assert np.array_equal(places, np.flatnonzero(same))


def test_entries_beyond_the_room_are_not_written() -> None:
    for n in (64, 70):
        for room in (0, 1, 5, 6):
            mask, places = np.zeros(n, np.uint8), np.full(room + 1, -7)
            mask[[0, 7, 8, 62, 63, n - 1]] = 255
            found = _native.true_entries(mask, places[:room])
            expected = np.flatnonzero(mask)
            assert found == (len(expected) if len(expected) <= room else room + 1)
            assert places[room] == -7
            if len(expected) <= room:
                assert places[:found].tolist() == expected.tolist()


def test_a_mask_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()

    def counted(mask: Any) -> Any:
        read.append(len(mask))
        return np.flatnonzero(mask)

    monkeypatch.setattr(shared, "true_places", counted)
    points, mask = gaussian(900, 4), np.random.default_rng(0).random(900) < 0.1
    rules = {"exclude": [[0]] * 3, "query_groups": [0, 1, 1], "point_groups": np.arange(900) % 2}
    for given in ({}, rules, rules | {"groups": "other"}):
        tonari.search(points[:3], points, 5, where=mask, **given)
        tonari.radius_search(points[:3], points, 1.0, where=mask, **given)
        tonari.radius_count(points[:3], points, 1.0, where=mask, **given)
    assert read == [900] * 9


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("share", [0.0, 0.002, 0.3, 1.0])
@pytest.mark.parametrize("held", [False, True])
def test_places_stay_on_the_device_of_mask_and_points(
    held: bool, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, queries, mask = gaussian(900, 4), gaussian(5, 4, 1), np.random.default_rng(0).random(900) < share
    there = torch.from_numpy(points)

    def nearest(scope: Scope, some: Any, k: int, _progress: Any) -> Neighbors:
        found = brute(some.numpy(), scope.rows.numpy(), k, "euclidean")
        return Neighbors(*map(torch.from_numpy, found))

    def copied(_mask: SharedMask) -> Any:
        raise AssertionError("the mask was copied to host memory")

    monkeypatch.setattr(Scope, "nearest", nearest)
    allowed = np.flatnonzero(mask)
    if len(allowed):
        monkeypatch.setattr(SharedMask, "host", property(copied))
        monkeypatch.setattr(SharedMask, "host_places", property(copied))
    rules = rules_of(5, 900, torch.from_numpy(mask))
    scope = scope_of(there, place=CudaPlace(("cpu",)), kind=Prepared if held else Points, method="exact")
    found = nearest_allowed(scope, torch.from_numpy(queries), 3, rules)
    if not len(allowed):
        assert (np.asarray(found.indices) == -1).all()
        return
    k = min(3, len(allowed))
    expected = brute(queries, points[allowed], k, "euclidean")
    assert np.array_equal(np.asarray(found.indices)[:, :k], allowed[expected.indices])
    assert np.array_equal(np.asarray(found.distances)[:, :k], expected.distances)
    assert (np.asarray(found.indices)[:, k:] == -1).all()


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("kind", ["plain", "read-only", "reversed"])
def test_large_masks_in_host_memory_are_copied_to_the_device_of_the_points(
    kind: str, share: float, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, queries, mask = gaussian(900, 4), gaussian(5, 4, 1), np.random.default_rng(0).random(900) < share
    mask[-4:] = False, True, False, True  # the last byte has four valid bits
    there, allowed = torch.from_numpy(points), np.flatnonzero(mask)
    given = np.ascontiguousarray(mask[::-1])[::-1] if kind == "reversed" else mask
    given.flags.writeable = kind != "read-only"
    monkeypatch.setattr(tuning, "COPIED_ENTRIES", 900 if large else 901)
    found_on_host: list[int] = []

    def places(mask: Any) -> Any:
        found_on_host.append(len(mask))
        return np.flatnonzero(mask)

    def nearest(scope: Scope, some: Any, k: int, _progress: Any) -> Neighbors:
        return Neighbors(*map(torch.from_numpy, brute(some.numpy(), scope.rows.numpy(), k, "euclidean")))

    monkeypatch.setattr(shared, "true_places", places)
    monkeypatch.setattr(Scope, "nearest", nearest)
    scope = scope_of(there, place=CudaPlace(("cpu",)), kind=Points, method="exact")
    found = nearest_allowed(scope, torch.from_numpy(queries), 3, rules_of(5, 900, given))
    expected = brute(queries, points[allowed], 3, "euclidean")
    assert np.array_equal(np.asarray(found.indices), allowed[expected.indices])
    assert found.indices.dtype == torch.from_numpy(expected.indices).dtype
    assert found_on_host == ([] if large else [900])


@needs_torch
@pytest.mark.parametrize("count", [0, 1, 55, 56])
def test_places_of_a_large_mask_are_found_in_host_memory_if_few_entries_are_true(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "COPIED_ENTRIES", 900)
    mask = np.zeros(900, bool)
    mask[16 * np.arange(count) + 3] = mask[-1] = True
    places = SharedMask(mask).places_for("cpu")
    assert isinstance(places, np.ndarray) == (count < 900 // 16)
    assert np.asarray(places).tolist() == np.flatnonzero(mask).tolist()
    assert np.asarray(places).dtype == np.int64


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_masks_on_a_device_are_checked_there() -> None:
    for wrong, error in ((torch.ones(3), TypeError), (torch.ones(4, dtype=torch.bool), ValueError)):
        with pytest.raises(error, match="where: "):
            rules_of(2, 3, wrong)
    assert rules_of(2, 3, torch.ones((2, 3), dtype=torch.bool)).mask is not None
    assert rules_of(2, 3, torch.ones((2, 1), dtype=torch.uint8)).mask is not None
