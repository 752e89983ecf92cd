"""Memory of searches among rows of bits."""

from __future__ import annotations

import numpy as np

from tests.helpers.bits_on_cuda import plan_for
from tests.helpers.devices import needs_torch

pytestmark = [needs_torch]


def test_points_leave_the_device_if_they_leave_no_room_for_work() -> None:
    rows = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (1_500_000, 128), (0, 0))
    made = plan_for(rows[:3_000], rows, 2_000, "hamming", free_bytes=10**11, memory=3 * 10**8)
    assert made.streamed
    assert (
        -(-made.m // made.query_block) * -(-made.n // made.point_slab) < 2_000
    )  # including them, a hundred times as many
