"""The largest returned value within a radius, for radii that the dtype cannot represent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.core import tuning
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.pairs import pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors, cut_lists, later_points, limits_for, nearest_of

TINY = float(np.finfo(np.float64).smallest_subnormal)
RADII = [0.0, -0.0, TINY, -TINY, 0.1, 1.0, 1 / 3, -7.7, 1e30, 3.5e38, 1e300, -1e300, np.inf, -np.inf]


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", RADII)
def test_the_next_number_is_not_within(closed: bool, descending: bool, dtype: Any, radius: float) -> None:
    limit = limits_for(radius, 1, dtype, closed=closed, descending=descending)[0]
    assert limit.dtype == dtype
    outwards = -1.0 if descending else 1.0
    with np.errstate(over="ignore"):
        beyond = np.nextafter(limit, dtype(np.inf * outwards))

    def within(value: Any) -> bool:
        signed, asked = float(value) * outwards, radius * outwards
        return signed <= asked if closed else signed < asked

    nothing = float(limit) * outwards == -np.inf
    assert within(limit) or nothing
    assert beyond == limit or not within(beyond)


@needs_torch
def test_tensors_stay_tensors_of_their_types() -> None:
    import torch

    found = RadiusNeighbors(np.array([0, 2, 3]), np.array([1, 4, 0], np.int32), np.array([0.25, 1.5, 0.5], np.float32))
    there = RadiusNeighbors(*map(torch.from_numpy, found))
    lists = Neighbors(np.array([[0.25, 1.5]], np.float32), np.array([[4, 1]], np.int32))
    near = np.array([1.0], np.float32)
    for kept, truth in (
        (later_points(there, 0), later_points(found, 0)),
        (nearest_of(there, 1), nearest_of(found, 1)),
        (
            cut_lists(Neighbors(*map(torch.from_numpy, lists)), near, descending=False),
            cut_lists(lists, near, descending=False),
        ),
    ):
        assert len(truth.indices)
        for ours, theirs in zip(kept, truth, strict=True):
            assert isinstance(ours, torch.Tensor)
            assert ours.numpy().dtype == theirs.dtype
            assert ours.tolist() == theirs.tolist()


@needs_torch
@pytest.mark.parametrize("at_once", [1, 3, 64, 1 << 20])
def test_lists_on_a_device_are_cut_there_block_by_block(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Blocks end within lists, lists at both ends and between are empty, and nothing is copied to the host."""
    import torch

    monkeypatch.setattr(tuning, "CUT_ENTRIES", at_once)
    rng = np.random.default_rng(0)
    counts = np.array([0, 5, 0, 0, 1, 40, 2, 0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = rng.integers(0, 30, indptr[-1]).astype(np.int32)
    found = RadiusNeighbors(indptr, indices, rng.random(indptr[-1], dtype=np.float32))
    there = RadiusNeighbors(*map(torch.from_numpy, found))
    monkeypatch.setattr(torch.Tensor, "cpu", None)
    for ours, truth in (
        *((later_points(there, first), later_points(found, first)) for first in (0, 9, 30)),
        *((nearest_of(there, most), nearest_of(found, most)) for most in (1, 3, 40, 41)),
        (pairs_of(later_points(there, 2), 2), pairs_of(later_points(found, 2), 2)),
    ):
        for part, true in zip(ours, truth, strict=True):
            assert part.numpy().dtype == true.dtype
            assert part.tolist() == true.tolist()
    empty = RadiusNeighbors(torch.zeros(4, dtype=torch.int64), there.indices[:0], there.distances[:0])
    assert [part.tolist() for part in later_points(empty, 0)] == [[0] * 4, [], []]


def test_every_query_has_its_own() -> None:
    radii = np.array([0.5, np.inf, 0.1])
    limits = limits_for(radii, 3, np.float32, closed=True, descending=False)
    assert limits.tolist() == [0.5, np.inf, float(np.nextafter(np.float32(0.1), np.float32(0)))]
    assert radii[2] == 0.1


@pytest.mark.parametrize("m", [0, 1, 7])
def test_one_number_for_all_queries_is_held_once(m: int) -> None:
    limits = limits_for(0.5, m, np.float32, closed=False, descending=False)
    assert (limits.shape, limits.strides, limits.dtype) == ((m,), (0,), np.float32)
    assert not limits.flags.writeable
    assert limits.tolist() == [float(np.nextafter(np.float32(0.5), np.float32(0)))] * m


@pytest.mark.parametrize("descending", [True, False])
def test_what_a_list_lacks_is_within_no_radius(descending: bool) -> None:
    """A list that is not full ends with -1 at distance inf, which even an infinite radius does not include."""
    nowhere = -np.inf if descending else np.inf
    lists = Neighbors(np.array([[0.5, nowhere], [nowhere, nowhere]]), np.array([[3, -1], [-1, -1]]))
    kept = cut_lists(lists, np.full(2, nowhere), descending=descending)
    assert [part.tolist() for part in kept] == [[0, 1, 1], [3], [0.5]]


@pytest.mark.parametrize("first", [0, 2])
def test_later_points_are_those_after_the_point_itself(first: int) -> None:
    rng = np.random.default_rng(first)
    lists = [rng.permutation(9)[: rng.integers(0, 9)] for _ in range(5)]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in lists])])
    distances = rng.random(indptr[-1])
    found = later_points(RadiusNeighbors(indptr, np.concatenate(lists), distances), first)
    for row, own in enumerate(range(first, first + 5)):
        here, there = slice(*found.indptr[row : row + 2]), slice(*indptr[row : row + 2])
        later = lists[row] > own
        assert found.indices[here].tolist() == lists[row][later].tolist()
        assert found.distances[here].tolist() == distances[there][later].tolist()
