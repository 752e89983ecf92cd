"""Detect rows whose elements are integers of one byte, such as pixels, in any dtype.

An integer, the shift, is subtracted from all elements; it turns 0 to 255 into -128 to 127, for example.
"""

from __future__ import annotations

from typing import Any

from tonari.exact.cuda import tuning

SHIFTS = (128, 0)  # the shift for unsigned bytes, and the shift for signed bytes


def shifts_of(rows: Any) -> list[int]:
    """Return the shifts that turn all elements of a sample of rows into whole numbers from -128 to 127.

    Waits for the device.
    """
    import torch

    few = rows[: tuning.BYTES_LOOKED].cpu().double()
    if not ((few == few.round()) & (few.abs() < 256)).all():
        return []
    sample = rows[:: -(-len(rows) // tuning.BYTES_SAMPLE)]
    least, most = sample.aminmax()
    whole = (sample == sample.round()).all() if sample.is_floating_point() else torch.ones_like(least)
    low, high, is_whole = torch.stack([least.double(), most.double(), whole.double()]).tolist()
    return [shift for shift in SHIFTS if is_whole and low >= shift - 128 and high <= shift + 127]
