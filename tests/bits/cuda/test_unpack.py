"""Bits are unpacked to columns for a matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.bit_rows import noise
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.bits.cuda.memory import unpacked_width

if HAS_TORCH:
    import torch

    from tonari.bits.cuda import unpack

pytestmark = needs_torch


def unpacked(rows: Any, device: str) -> Any:
    there = torch.from_numpy(rows).to(device)
    return unpack.unpack(there, unpack.room_for(len(rows) + 1, rows.shape[1], device))


@on_device
@pytest.mark.parametrize("d", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("n", [1, 16, 17])
def test_every_bit_has_a_column(device: str, d: int, n: int) -> None:
    rows = noise(n, d)
    made = unpacked(rows, device)
    truth = np.zeros((n, unpacked_width(d)), np.int8)
    truth[:, : 8 * d] = np.unpackbits(rows, axis=1, bitorder="little")
    assert made.rows.cpu().numpy().tolist() == truth.tolist()
    assert made.counts.tolist() == truth.sum(axis=1).tolist()


@on_device
def test_rows_of_any_stride(device: str) -> None:
    wide = torch.from_numpy(noise(9, 12)).to(device)
    rows = wide[::2, 3:8]
    made = unpack.unpack(rows, unpack.room_for(5, 5, device))
    again = unpacked(rows.cpu().contiguous().numpy(), device)
    assert torch.equal(made.rows, again.rows)
    assert torch.equal(made.counts, again.counts)
