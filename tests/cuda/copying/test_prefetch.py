"""Rows are copied to a device: several arrays at the same time, and streams that wait for each other.

tests/exact/cuda/routes/test_routes.py has the tests of one array.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tonari.cuda import tuning

if HAS_TORCH:
    import torch

    from tonari.core.rows.slices import cut
    from tonari.cuda.copying.prefetch import Feeder, slabs_of

pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
CYCLES = 400_000_000  # a fifth of a second on a GPU


@pytest.mark.parametrize("size", [1, 7, 76, 77, 78])
@pytest.mark.parametrize("on_device", [False, True])
def test_slices_of_several_arrays_come_together(size: int, on_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PIECE_BYTES", 64)
    arrays = [checks.gaussian(77, 5), np.arange(77 * 3, dtype=np.int32).reshape(77, 3), checks.gaussian(77, 1) > 0]
    given = [torch.from_numpy(array).to(DEVICE) for array in arrays] if on_device else arrays
    order = cut(77, size)
    count = 0
    for here, parts in zip(order, slabs_of(given, order, DEVICE), strict=True):
        for array, part in zip(arrays, parts, strict=True):
            assert part.dtype == torch.from_numpy(array).dtype
            assert np.array_equal(part.cpu().numpy(), array[here])
        count += 1
    assert count == -(-77 // size)


@on_gpu
def test_rows_wait_for_the_work_before_and_work_for_the_rows() -> None:
    """The device reads the old rows late, and the new rows arrive late."""
    rows = [np.full((1 << 23, 4), turn, np.float32) for turn in (1, 2, 3)]
    slot = torch.zeros((1 << 23, 4), device="cuda")
    torch.cuda._sleep(1)
    slot.clone()
    seen = []
    with Feeder("cuda:0") as feeder:
        for part in rows:
            torch.cuda._sleep(CYCLES)
            seen.append(slot.clone())
            feeder.send(part, slot)
            with torch.cuda.stream(feeder._stream):
                torch.cuda._sleep(3 * CYCLES)
            feeder.arrive()
    assert [(float(part.min()), float(part.max())) for part in (*seen, slot)] == [(at, at) for at in range(4)]
