"""Rows that stay in host memory are read as they are, by the device and by the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.gpu_checks import numpy_of, rows_of
from tonari import inputs

if HAS_TORCH:
    import torch

    from tonari.cuda.host_rows import HostRows

pytestmark = needs_torch


@on_device
@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "gathered"])
@pytest.mark.parametrize(
    ("dtype", "d"), [("uint8", 128), ("uint8", 7), ("float16", 3), ("bfloat16", 10), ("float32", 70), ("float64", 5)]
)
def test_rows_arrive(device: str, dtype: str, d: int, mapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not mapped:
        monkeypatch.setattr(HostRows, "_lock", lambda self, rows: False)
    rows = rows_of(90, d, dtype)
    held = HostRows(inputs.held(rows), torch.device(device))
    if not mapped and device == "cpu":
        held._there = None
    numbers = torch.tensor([5, -1, 89, 0, 5, -1] + list(range(60)), dtype=torch.int32, device=device)
    out: Any = torch.zeros((len(numbers), d), dtype=getattr(torch, dtype), device=device)
    held.fetch(numbers, out)
    wanted = numbers.cpu().numpy()
    assert np.array_equal(numpy_of(out)[wanted >= 0], rows[wanted[wanted >= 0]])


@on_device
def test_no_rows(device: str) -> None:
    held = HostRows(np.zeros((0, 4), np.float32), torch.device(device))
    out = torch.zeros((2, 4), device=device)
    held.fetch(torch.full((2,), -1, dtype=torch.int32, device=device), out)
    assert not out.any()
