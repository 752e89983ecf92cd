"""CUDA devices, replaced by the CPU: rows on other devices, plans for others, and lists with the point itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tests.helpers.checks import gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.on_device import OnDevice
from tonari.metrics import get_metric
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.methods.places.place_cuda import CudaPlace

pytestmark = needs_torch
L2 = "euclidean"


def test_rows_on_another_device_are_refused() -> None:
    place = CudaPlace(("cuda:0", "cuda:1"))
    with pytest.raises(ValueError, match="queries: is on cuda:2, but the points are on cuda:0, cuda:1; copy it there"):
        place.rows(OnDevice(number=2), "queries", get_metric(L2))
    rows = gaussian(4, 2)
    rows[0, 0] = np.nan  # the kernels find it
    assert place.rows(rows, "queries", get_metric(L2)) is rows


def test_a_plan_is_for_these_devices_alone() -> None:
    cases: list[Any] = [(), ("cuda:1",), ("cuda:0", "cuda:1")]
    for devices in cases:
        place, plan = CudaPlace(("cuda:0",)), plans.exact(10, 10, 3, 2)
        place.check_plan(dataclasses.replace(plan, devices=("cuda:0",)))
        named = ", ".join(devices) or "cpu"
        with pytest.raises(ValueError, match=f"made for {named}, but this search runs on cuda:0"):
            place.check_plan(dataclasses.replace(plan, devices=devices))


def test_a_plan_may_be_for_some_of_all_devices() -> None:
    place, plan = CudaPlace(("cuda:0", "cuda:1"), may_take_fewer=True), plans.exact(10, 10, 3, 2)
    for devices in (("cuda:1",), ("cuda:0", "cuda:1")):
        place.check_plan(dataclasses.replace(plan, devices=devices))
        assert (place.on(devices).devices, place.on(devices).may_take_fewer) == (devices, False)
    with pytest.raises(ValueError, match="made for cuda:2, but this search runs on cuda:0, cuda:1"):
        place.check_plan(dataclasses.replace(plan, devices=("cuda:2",)))
    with pytest.raises(ValueError, match="made for cuda:1, but this search runs on cuda:0, cuda:1"):
        CudaPlace(("cuda:0", "cuda:1")).check_plan(dataclasses.replace(plan, devices=("cuda:1",)))


@pytest.mark.usefixtures("cpu_for_cuda")
def test_each_point_comes_first() -> None:
    for metric in ["euclidean", "inner_product"]:
        for as_tensors in [False, True]:
            rows = gaussian(9, 5)
            found, truth = (
                brute(rows, rows, 2, metric, self_ids=np.arange(9)),
                np.sum(rows.astype(np.float64) ** 2, axis=1),
            )
            place, given = CudaPlace(("cpu",)), rows
            if as_tensors:
                found, given = Neighbors(*map(torch.from_numpy, found)), torch.from_numpy(rows)  # type: ignore[assignment]
            made = place.with_self(found, given, get_metric(metric))
            assert all(isinstance(part, torch.Tensor) == as_tensors for part in made)
            assert made.indices[:, 0].tolist() == list(range(9))
            assert made.indices[:, 1:].tolist() == found.indices.tolist()
            first = np.asarray(made.distances[:, 0])
            np.testing.assert_allclose(first, truth if metric == "inner_product" else 0 * truth, rtol=1e-6)


@pytest.mark.usefixtures("cpu_for_cuda")
def test_lists_without_others_are_where_the_rows_are() -> None:
    place, rows = CudaPlace(("cpu",)), gaussian(4, 2)
    here = place.no_others(rows, get_metric(L2))
    assert isinstance(here.indices, np.ndarray)
    bits = place.no_others(torch.zeros((4, 2), dtype=torch.uint8), get_metric("hamming"))
    assert isinstance(bits.indices, torch.Tensor)
    assert tuple(here.indices.shape) == tuple(bits.indices.shape) == (4, 0)
    rows[3, 1] = np.inf
    with pytest.raises(ValueError, match="points: row 3 has a value that is not finite"):
        place.no_others(rows, get_metric(L2))
    assert place.threads_to_prepare(None, 10**9) is None
    assert isinstance(place.there(rows), torch.Tensor)
