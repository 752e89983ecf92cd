"""Keys with the order of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.select_checks import (
    DTYPES,
    FLOATS,
    make,
)
from tonari.select.cuda import keys

if HAS_TORCH:
    import torch


def keys_of(bits: Any, dtype: str, largest: bool) -> Any:
    """Compute the keys of a tensor of bits, like ``kernels.registers.keys.to_keys``."""
    form = keys.FORMATS[dtype]
    wide = bits.to(torch.int64 if form.wide else torch.int32)
    if not form.infinite:
        return ~wide if largest else wide
    limits = torch.iinfo(bits.dtype)
    magnitude = wide & limits.max
    found = torch.where(wide < 0, -magnitude, magnitude)
    return torch.where(magnitude > form.infinite, torch.iinfo(wide.dtype).max, ~found if largest else found)


@needs_torch
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_order_as_values_do(dtype: str, largest: bool) -> None:
    tensor = torch.cat([torch.as_tensor(make(maker, 1, 200, dtype)) for maker in ("random", "infinities", "zeros")], 1)
    missing = keys.FORMATS[dtype].missing(largest)
    assert (keys_of(keys.as_bits(tensor, dtype), dtype, largest) <= missing).all()
    if dtype in FLOATS:  # of either sign, and last in both orders
        tensor[0, 3], tensor[0, 400] = float("nan"), -float("nan")
    found = keys_of(keys.as_bits(tensor, dtype), dtype, largest).numpy()[0]
    numbers = tensor.double().numpy()[0]
    order = np.argsort(-numbers if largest else numbers, kind="stable")
    np.testing.assert_array_equal(np.argsort(found, kind="stable"), order)
