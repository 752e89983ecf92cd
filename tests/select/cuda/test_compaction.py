"""Compaction of the survivors of a threshold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, on_device
from tests.helpers.select_checks import make
from tonari.select.cuda import keys
from tonari.select.cuda.compaction import compact
from tonari.select.cuda.survivors import Survivors
from tonari.select.registry import make_options
from tonari.select.request import Request

if HAS_TORCH:
    import torch


@on_device
def test_survivors_beyond_their_room_are_only_counted(device: str) -> None:
    values = torch.from_numpy(make("random", 2, 700, "float32")).to(device)
    request = Request(values, "float32", 5, make_options("threshold", {}, "cuda"))
    everything = torch.full((2,), 2**31 - 1, dtype=torch.int32, device=device)
    counts = torch.zeros_like(everything)
    bits, ids = (torch.full((3, 64), -7, dtype=torch.int32, device=device) for _ in range(2))
    nan_row = torch.full((1,), 2**31 - 1, dtype=torch.int32, device=device)
    whole = keys.as_bits(values, "float32")
    survivors = Survivors(slice(0, 2), bits[:2], ids[:2], counts, nan_row)
    compact(request, whole, None, (everything, everything), survivors, exact=False)
    assert nan_row.item() == 2**31 - 1
    assert counts.tolist() == [700, 700]
    for row, found in enumerate(ids[:2].long()):
        assert len(set(found.tolist())) == 64
        assert torch.equal(bits[row].view(torch.float32), values[row, found])
    assert (torch.stack([bits[2], ids[2]]) == -7).all()


@on_device
@pytest.mark.parametrize("exact", [True, False])
def test_comparisons_that_let_no_other_zero_or_nan_pass(device: str, exact: bool) -> None:
    """Values at or below (0.0, 300), with -0.0 above it and NaN of either sign among them."""
    row = make("zeros", 1, 700, "float32")
    row[0, 350], row[0, 400] = -np.nan, np.nan
    values = torch.from_numpy(row).to(device)
    request = Request(values, "float32", 5, make_options("radix", {}, "cuda"), check_nan=False)
    key, last, counts = (torch.tensor([number], dtype=torch.int32, device=device) for number in (0, 300, 0))
    bits, ids = (torch.empty((1, 700), dtype=torch.int32, device=device) for _ in range(2))
    survivors = Survivors(slice(0, 1), bits, ids, counts, None)
    compact(request, keys.as_bits(values, "float32"), None, (key, last), survivors, exact=exact)
    wanted = np.flatnonzero((row[0] < 0) | ((row[0] == 0) & (np.arange(700) <= 300)))
    found = ids[0, : counts.item()].sort().values.cpu().numpy()
    assert np.isin(wanted, found).all()
    assert exact == (len(found) == len(wanted))
