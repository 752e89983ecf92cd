"""Entries of lists: ids, marks of new entries, and random starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, plans
from tonari.nn_descent.entries import ID, MISSING, NEW, random_entries
from tonari.nn_descent.reference import ReferenceBackend


def steps_for(points: Any, k: int, metric: str = "euclidean", **overrides: Any) -> ReferenceBackend:
    n, d = points.shape
    return ReferenceBackend(points, plans.descent(n, d, k, dtype=points.dtype, metric=metric, threads=1, **overrides))


SMALL = {"list_size": 7, "n_hubs": 3, "reverse": 2, "neighbors_per_hub": 5}


@pytest.mark.parametrize("start", ["clusters", "random"])
def test_starts_are_all_new_and_follow_the_seed(start: str) -> None:
    points = checks.gaussian(400, 6)
    made = [steps_for(points, 5, n_clusters=8, n_probe=2, seed=seed).start(start) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(made[0], made[1])
    assert (made[0] != made[2]).any()
    present = made[0] >= 0
    assert (made[0][present] & NEW != 0).all()
    ids = np.where(present, made[0] & ID, MISSING)
    assert (np.sort(ids, axis=1)[:, 1:] != np.sort(ids, axis=1)[:, :-1])[np.sort(ids, axis=1)[:, 1:] >= 0].all()
    assert (ids != np.arange(400)[:, None]).all()
    assert present.mean() > 0.9


def test_entries_and_blocks_of_them() -> None:
    steps = steps_for(checks.gaussian(50, 3), 4, **SMALL)
    first = steps.entries_of(np.array([[3, -1], [0, 7]], np.int64), new=True)
    assert first.dtype == np.int32
    assert first.tolist() == [[3 | NEW, -1], [0 | NEW, 7 | NEW]]
    assert steps.entries_of(np.array([[3, -1]], np.int32), new=False).tolist() == [[3, -1]]
    second = random_entries(50, 6, 0)[:2]
    both = steps.joined_entries(first, second)
    assert both.shape == (2, 7)
    assert both[:, :2].tolist() == first.tolist()
    assert both[:, 2:].tolist() == second[:, :5].tolist()
    assert steps.joined_entries(first, first[:, :0])[:, 2:].tolist() == [[MISSING] * 5] * 2
