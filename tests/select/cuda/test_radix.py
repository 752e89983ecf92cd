"""Selection by digits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.select_checks import (
    check_kernels,
    make,
)
from tonari.select import tuning
from tonari.select.cuda import radix
from tonari.select.registry import make_options
from tonari.select.request import Request

if HAS_TORCH:
    import torch


@on_device
@pytest.mark.parametrize("bits", [1, 5, 8, 11])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_digits_of_any_width(device: str, dtype: str, bits: int) -> None:
    """Keys of both signs, and equal keys, which only the digits of the index distinguish."""
    values = np.concatenate([make(maker, 1, 700, dtype) for maker in ("random", "two_valued")])
    check_kernels(device, "radix", values, 300, options={"bits": bits})


@needs_torch
def test_rows_are_shared_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only if rows are long, and few enough."""
    asked: list[int] = []
    monkeypatch.setattr(radix, "_narrow_alone", lambda *_: asked.append(1))
    monkeypatch.setattr(radix, "_narrow_together", lambda _, __, parts: asked.append(parts))
    shortest = tuning.RADIX_SHARED_TILES * tuning.RADIX_TILE
    for rows, n in (
        (1, shortest - 1),
        (1, shortest),
        (tuning.RADIX_PROGRAMS // 2, shortest),
        (tuning.RADIX_PROGRAMS, shortest),
    ):
        values = torch.zeros((1, n)).expand(rows, n)
        options = make_options("radix", {}, "cuda")
        radix.select_on_gpu(Request(values, "float32", 5, options, sorted=False, check_nan=False))
    assert asked == [1, tuning.RADIX_SHARED_TILES // tuning.RADIX_PART_TILES, 2, 1]
