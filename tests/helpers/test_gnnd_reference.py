"""The plain round of "gnnd": lists are valid, only improve, and converge to the neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import gnnd_reference as plain
from tests.helpers.gnnd_reference import PlainForm
from tonari.metrics.reference import brute
from tonari.nn_descent.entries import ID, NEW, random_entries

Array = np.ndarray[Any, Any]


def a_form(points: Array) -> PlainForm:
    squares = np.square(points.astype(np.float32)).sum(1)
    return PlainForm(points.astype(np.float16), squares, squares)


def reverse_of(own: Array, room: int) -> Array:
    """Return for each point the first rows that have it among their samples."""
    found = np.full((len(own), room), -1, np.int32)
    for point in range(len(own)):
        rows = np.flatnonzero((own == point).any(axis=1))[:room]
        found[point, : len(rows)] = rows
    return found


@pytest.mark.parametrize(("size", "segment"), [(16, 16), (64, 32)])
@pytest.mark.parametrize("boundary", [None, 25])
def test_rounds_come_to_hold_the_neighbours(size: int, segment: int, boundary: int | None) -> None:
    n, k, samples = 60, 5, 8
    rng = np.random.default_rng(0)
    points = (4 * rng.integers(-3, 4, (3, 8))[rng.integers(3, size=n)] + rng.integers(-3, 4, (n, 8))).astype(np.float32)
    form = a_form(points)
    lists = plain.lists_of(form, random_entries(n, samples, 0), size, segment)
    for _ in range(3):
        before = np.sort(lists.distances, axis=1)
        new, old, lists = plain.own_samples(lists, samples)
        assert not ((new >= 0)[:, :, None] & (new[:, :, None] == old[:, None, :])).any()
        new, old = (plain.joined(own, reverse_of(own, 2 * samples)) for own in (new, old))
        had = [set(row.tolist()) for row in lists.entries & ID]
        lists = plain.round_of(form, lists, new, old, segment, boundary)
        assert (np.sort(lists.distances, axis=1) <= before).all()
        found = [(row, entry & ID, entry) for row in range(n) for entry in lists.entries[row].tolist() if entry >= 0]
        found = [(row, id, entry) for row, id, entry in found if id not in had[row]]
        assert found
        assert all(entry & NEW for _, _, entry in found)
        assert boundary is None or all((row < boundary) != (id < boundary) for row, id, _ in found)
    for row in range(n):
        entries = lists.entries[row]
        ids = (entries[entries >= 0] & ID).tolist()
        assert row not in ids
        assert len(ids) == len(set(ids))
        for begin in range(0, size, segment):
            here = slice(begin, begin + segment)
            pairs = list(zip(lists.distances[row, here].tolist(), entries[here].tolist(), strict=True))
            held = [(value, entry & ID) for value, entry in pairs if entry >= 0]
            assert held == sorted(held)
            assert pairs[len(held) :] == [(np.inf, -1)] * (segment - len(held))
    if boundary is None:
        truth = brute(points, points, k, self_ids=np.arange(n)).distances
        nearest = np.sqrt(np.sort(lists.distances, axis=1)[:, :k])
        assert (nearest <= truth[:, -1:] + 1e-3).mean() > 0.95
