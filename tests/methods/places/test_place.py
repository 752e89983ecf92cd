"""The CPU as the place of a search: rows that a metric accepts, plans for other devices, and lists with the point
itself.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tests.helpers.checks import gaussian
from tests.helpers.devices import needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.methods.places.place import CpuPlace
from tonari.metrics import METRICS, get_metric
from tonari.metrics.reference import brute

PLACE = CpuPlace()


def test_rows_are_checked_for_their_metric() -> None:
    rows = gaussian(5, 3)
    rows[2, 1] = -1
    assert PLACE.rows(rows, "points", get_metric("euclidean")) is rows
    with pytest.raises(ValueError, match=r"points: row .* has a negative value"):
        PLACE.rows(rows, "points", get_metric("chi2"))
    bools = gaussian(5, 16) > 0
    bits = PLACE.rows(bools, "points", get_metric("hamming"))
    assert bits.dtype == np.uint8
    assert bits.tolist() == np.packbits(bools, axis=1).tolist()


def test_a_plan_for_elsewhere_names_its_device() -> None:
    cases: list[Any] = [(("cuda:0",), "device='cuda:0'"), (("cuda:0", "cuda:1"), r"device=\['cuda:0', 'cuda:1'\]")]
    for devices, fix in cases:
        plan = plans.exact(10, 10, 3, 2)
        PLACE.check_plan(plan)
        with pytest.raises(ValueError, match=f"the plan was made for cuda:0.*pass {fix}"):
            PLACE.check_plan(dataclasses.replace(plan, devices=devices))


def test_each_point_comes_first_with_the_value_of_the_reference() -> None:
    for metric in METRICS:
        rows = np.abs(gaussian(9, 5))
        found = brute(rows, rows, 2, metric, self_ids=np.arange(9))
        made = PLACE.with_self(found, rows, get_metric(metric))
        truth = np.stack([brute(row[None], row[None], 1, metric).distances[0] for row in rows])
        assert made.distances[:, :1].tobytes() == truth.tobytes()
        assert made.indices[:, 0].tolist() == list(range(9))
        for part, before in zip(made, found, strict=True):
            assert part.dtype == before.dtype
            assert part[:, 1:].tobytes() == before.tobytes()


def test_lists_without_others_have_rows_and_no_columns() -> None:
    cases: list[Any] = [("float64", "float64"), ("float16", "float32"), ("uint8", "float32")]
    for dtype, value in cases:
        made = PLACE.no_others(np.ones((4, 2), dtype), get_metric("euclidean"))
        assert (made.distances.shape, made.distances.dtype, made.indices.shape) == ((4, 0), value, (4, 0))


def test_threads_are_those_asked_for_or_what_the_work_is_worth() -> None:
    assert PLACE.threads_to_prepare(3, 10) == 3
    assert PLACE.threads_to_prepare(None, 10) == 1


@needs_torch
def test_arrays_of_others_become_numpy_arrays() -> None:
    import torch

    rows = gaussian(3, 2)
    assert PLACE.there(rows) is rows
    tensor: Any = torch.from_numpy(rows)
    assert isinstance(PLACE.there(tensor), np.ndarray)
    assert isinstance(PLACE.no_others(rows, get_metric("l1")), Neighbors)
