"""The values of all pairs of queries and points, computed by blocks of queries and slabs of points.

for each block of queries:
    unpack      the queries                      8 d bytes per query
    for each slab of points:
        unpack      the points                   again for each block, at little cost compared with its products
        values      of all pairs                 m n products of 8 d bits, m n values of 4 bytes
        (the caller selects the nearest points, or the points within a limit)

All m n values are written to memory and read again. For 10^10 pairs, 40 GB are written and 40 GB are read, and the
products of rows of 1,024 bits take 2 * 10^13 operations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tonari.bits.cuda.plan import BitsCudaPlan
from tonari.bits.cuda.prepared import PreparedBits
from tonari.bits.cuda.unpack import room_for, unpack
from tonari.bits.cuda.values import write_values
from tonari.core.process.progress import Counter, Progress, ProgressLike
from tonari.core.rows.slices import cut
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on, to_device
from tonari.cuda.pace import Pace


def over_devices(
    queries: Any,
    prepared: PreparedBits,
    plan: BitsCudaPlan,
    work: Callable[[Pairs, slice], Any],
    *,
    self_join: bool,
    progress: ProgressLike,
) -> list[Any]:
    """Call ``work(pairs, rows)`` for each block of queries, on the block's device; return the results in row order.

    Several devices share the queries.
    """
    bounds = cut(len(queries), -(-len(queries) // len(plan.devices)))
    workers = a_thread_each(plan.devices)
    total = len(queries) * plan.n
    with (
        on(plan.devices[0]),
        Progress(progress, total=total, seconds=plan.seconds, label="neighbours") as bar,
    ):

        def answer(at: int) -> list[Any]:
            pairs = Pairs(queries, prepared, plan, at, self_join=self_join, check=workers.check, bar=bar)
            return [work(pairs, rows) for rows in pairs.blocks(bounds[at])]

        parts = side_by_side(workers, plan.devices, len(bounds), answer)
    return [block for part in parts for block in part]


class Pairs:
    """The pairs of a device's share of the queries with all points, and their values.

    Parameters
    ----------
    queries : uint8 array or tensor of shape (m, d)
        All queries of the search.
    prepared : PreparedBits
        The points.
    plan : BitsCudaPlan
    at : int
        The index of the device among the plan's devices.
    self_join : bool
        Whether query i is point i; the value of such a pair is then inf.
    check : callable
        Called between kernel launches; it may raise an error to end the search.
    bar : Counter
        Counts pairs.
    """

    def __init__(
        self,
        queries: Any,
        prepared: PreparedBits,
        plan: BitsCudaPlan,
        at: int,
        *,
        self_join: bool,
        check: Callable[[], None],
        bar: Counter,
    ) -> None:
        self.device = torch.device(plan.devices[at])
        self.slabs = cut(plan.n, plan.point_slab)
        self._queries, self._prepared, self._plan, self._at = queries, prepared, plan, at
        self._self_join, self._check, self._bar = self_join, check, bar
        self._pace = Pace(self.device)
        self._asked = room_for(plan.query_block, plan.d, self.device)
        self._points = room_for(plan.point_slab, plan.d, self.device)
        self._values = torch.empty((plan.query_block, plan.point_slab), dtype=torch.float32, device=self.device)

    def blocks(self, part: slice) -> list[slice]:
        """Cut a slice of the queries into blocks."""
        ahead = part.start
        return [slice(ahead + one.start, ahead + one.stop) for one in cut(part.stop - ahead, self._plan.query_block)]

    def values(self, rows: slice) -> Iterator[tuple[slice, Any]]:
        """Yield each slab of points with the values of all pairs of a block of queries and these points.

        The values are overwritten when the next slab is requested.
        """
        plan, count = self._plan, rows.stop - rows.start
        unpacked = unpack(to_device(self._queries[rows], self.device), self._asked)
        with contextlib.closing(self._prepared.arriving(plan, self._at)) as arriving:
            for slab in self.slabs:
                self._check()
                points = unpack(next(arriving), self._points)
                values = self._values[:count, : slab.stop - slab.start]
                own = rows.start - slab.start if self._self_join else None
                write_values(unpacked, points, plan.metric, values, first_own=own)
                yield slab, values
                self._pace.step()
                self._bar.add(values.numel())
