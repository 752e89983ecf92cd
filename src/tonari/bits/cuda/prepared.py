"""Points as rows of bits on CUDA devices, prepared once for many searches."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tonari.bits.cuda.plan import BitsCudaPlan
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.devices import to_device
from tonari.cuda.streams import Written


class PreparedBits:
    """Points as rows of bits, on each device of a plan, or in host memory if the plan streams points.

    Parameters
    ----------
    points : uint8 array or tensor of shape (n, d)
    """

    def __init__(self, points: Any, plan: BitsCudaPlan) -> None:
        self._points = points
        self._there = [] if plan.streamed else [to_device(points, device) for device in plan.devices]
        self._written = [Written(rows) for rows in self._there]

    def arriving(self, plan: BitsCudaPlan, at: int) -> Generator[Any, None, None]:
        """Yield slabs of points on the device ``plan.devices[at]``; a slab is valid until the next is requested."""
        order = cut(plan.n, plan.point_slab)
        if plan.streamed:
            yield from slabs(self._points, order, plan.devices[at])
            return
        self._written[at].read()
        for here in order:
            yield self._there[at][here]
