"""Tensors that share an array's memory for copies to a device, also if the array is read-only."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tonari import inputs

if HAS_TORCH:
    import torch

    from tonari.cuda.devices import on, over, to_device

pytestmark = needs_torch


def test_a_tensor_over_an_array_shares_its_memory_without_a_warning() -> None:
    for writeable in [True, False]:
        for dtype in ["float32", "uint8", "bfloat16"]:
            values = np.abs(gaussian(5, 3) * 20).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
            rows = inputs.held(values)
            rows.flags.writeable = writeable
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                tensor = over(rows)
            assert tensor.dtype == getattr(torch, dtype)
            assert tensor.data_ptr() == rows.ctypes.data
            assert tensor.double().tolist() == values.astype(np.float64).tolist()


def test_rows_are_moved_only_if_they_are_elsewhere() -> None:
    rows = torch.from_numpy(gaussian(5, 3))
    assert to_device(rows, "cpu") is rows
    assert to_device(rows.numpy(), "cpu").data_ptr() == rows.data_ptr()
    assert to_device(rows, "meta").device.type == "meta"


def test_the_cpu_needs_no_current_device() -> None:
    with on("cpu") as nothing:
        assert nothing is None


@on_gpu
def test_work_does_not_wait_for_copies_to_another_device() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    rows, late = torch.arange(1 << 20, device="cuda:0"), torch.cuda.Event()
    with torch.cuda.stream(torch.cuda.Stream("cuda:1")):
        with on("cuda:1"):
            torch.cuda._sleep(1 << 32)  # two seconds: other processes may keep the first device busy
        there = to_device(rows, "cuda:1")
        late.record(torch.cuda.current_stream("cuda:1"))
        torch.cuda.current_stream("cuda:0").synchronize()
        assert not late.query()
        assert torch.equal(there.cpu(), rows.cpu())
