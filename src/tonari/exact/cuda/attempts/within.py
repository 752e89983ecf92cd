"""The schedule of a search within a radius on one GPU: all points within a limit of each query.

for batch of queries:
    threshold   the score that no point within the row's limit exceeds
    screen      all points                        -> lists of the groups at or below the threshold
    refine      exact values of these groups      -> the points within the limit
    order       each row by (value, id)

Points and queries are packed and screened as for the k nearest (attempts/first.py). The threshold is known in advance,
so one pass is enough: m n 2 d' operations for d' packed columns, and 8 d bytes of points per point of a candidate
group. Counting in a first pass and writing in a second would screen twice, and the screen takes nearly all of the time.
A row is screened again if its list was too short, or at a higher precision if that is cheaper than refining a long
list.
"""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.progress import Counter
from tonari.cuda.matrix_units import check_matrix_units
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.candidate_parts import (
    Blocks,
    blocks_of_lists,
    blocks_of_minima,
    thresholds_for,
)
from tonari.exact.cuda.refine.within import Hits, parts_per_block, refine_within
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, group_count
from tonari.exact.cuda.rows.pack import new_flags, pack_queries
from tonari.exact.cuda.rows.tiles import Lists
from tonari.exact.cuda.screens.all_minima import screen_below
from tonari.exact.cuda.screens.elementwise import screen_parts
from tonari.metrics import get_metric
from tonari.select.cuda.ragged import order_lists

FIRST_ROWS = 1024  # of the first batch, whose lists have room for everything: they tell how long lists are
USUAL = 0.99  # share of rows that the length of lists is meant for
TOO_SHORT = 1 / 16  # share of a batch whose lists are too short from which on they are made twice as long
# Listed groups, as a share of all points, from which on screening at the next precision costs less than refining them:
# the screen takes 0.016 ps per point and column, refining a listed group 8 to 32 times 4 bytes per column.
HARD = 1 / 512
FEWEST_HARD = 32
MOST_POINTS = 250_000_000  # at once by products: places in the lists of 256 rows are numbered in int32
WORTH = 0.5  # the next precision is given up if it leaves more than this share of the groups


class WithinSearch:
    """A search within a radius: the state that its batches share.

    Parameters
    ----------
    queries : tensor of shape (m, d)
        The queries, on the device of the points.
    prepared : DevicePoints
    plan : CudaPlan
        For these points and queries.
    limits : float32 or float64 tensor of shape (m,), contiguous
        The limits, in the dtype of returned values.
    listed : bool
        Whether points are listed, or only counted.
    own : int64 tensor of shape (m,), optional
        For each query, the number of the point that it is itself, which is left out.
    bar : Counter, optional
        Counts pairs, m * n in all.
    first_point, first_query : int
        Numbers of ``prepared.points[0]`` and ``queries[0]`` in the whole search, for messages.
    """

    def __init__(
        self,
        queries: Any,
        prepared: DevicePoints,
        plan: CudaPlan,
        limits: Any,
        *,
        listed: bool,
        own: Any = None,
        bar: Counter | None = None,
        first_point: int = 0,
        first_query: int = 0,
    ) -> None:
        prepared.written.read()
        self.queries, self.prepared, self.plan, self.limits = queries, prepared, plan, limits
        self.listed, self.own, self.bar = listed, own, bar
        self.first_point, self.first_query = first_point, first_query
        self.flags = new_flags(prepared.points.device)
        self.metric = get_metric(plan.metric)
        self.elementwise = self.metric.form == "elementwise"
        n = len(prepared.points)
        if not self.elementwise:
            check_matrix_units(prepared.points.device)
            if n > MOST_POINTS:
                raise Unsupported(
                    f"a search within a radius takes at most {MOST_POINTS} points at once on a device by "
                    f"metric={plan.metric!r}, got {n}: pass route='streamed' and a smaller point_slab"
                )
        self.all_listed = group_count(n, LISTED)
        self.list_bytes = plan.query_batch * 4 * group_count(n, plan.group)  # what the plan has for minima
        self.capacity = self.all_listed
        self.finer = plan.precisions[1] if len(plan.precisions) > 2 else None

    def run(self) -> list[Any]:
        """Search, and return the answers of all batches.

        Returns
        -------
        list of RadiusNeighbors of tensors, or of int64 tensors
            Rows in order, ids int32 numbers of ``prepared.points``; or counts.

        Raises
        ------
        ValueError
            A row has a value that searches refuse; points are reported before queries.
        MemoryError
            The device has not enough memory for even one query at a time.
        """
        found: list[Any] = []
        m, n = len(self.queries), len(self.prepared.points)
        first = FIRST_ROWS if m > 2 * FIRST_ROWS else m
        for top, end in ((0, first), (first, m)):

            def work(rows: slice, top: int = top) -> None:
                found.append(self._batch(slice(rows.start + top, rows.stop + top)))
                if self.bar is not None:
                    self.bar.add((rows.stop - rows.start) * n)

            in_batches(end - top, self.rows_at_once(), work, planned=self.plan.total_bytes)
        if self.plan.precisions[0] != self.plan.precisions[-2]:
            self.prepared.copies.forget(self.plan.precisions[-2])
        inputs.check_flags(self.prepared.flags, self.prepared.points, "points", first=self.first_point)
        if self.own is None:
            inputs.check_flags(self.flags, self.queries, "queries", first=self.first_query)
        return found

    def rows_at_once(self) -> int:
        """Return the largest number of queries per batch that the plan's memory allows."""
        if self.elementwise:
            row = 4 * group_count(len(self.prepared.points), LEAST_GROUP)
        else:
            row = 8 * min(self.all_listed, 2 * self.capacity)
        return max(1, min(self.plan.query_batch, self.list_bytes // row))

    def _batch(self, rows: slice) -> Any:
        """Return the lists, or counts, of some queries."""
        import torch

        pieces = self._by_minima(rows) if self.elementwise else self._by_lists(rows)
        counts = pieces[0][1].counts
        begins = counts.cumsum(0) - counts
        behind = int(counts.sum()) if len(pieces) > 1 else 0
        for numbers, hits in pieces[1:]:
            counts[numbers] = hits.counts
            begins[numbers] = hits.counts.cumsum(0) - hits.counts + behind
            behind += int(hits.counts.sum())
        if not self.listed:
            return counts
        values, ids = pieces[0][1].values, pieces[0][1].ids
        if len(pieces) > 1:
            values = torch.cat([hits.values for _, hits in pieces])
            ids = torch.cat([hits.ids for _, hits in pieces])
        return order_lists(begins, counts, values, ids, descending=self.metric.descending)

    def _by_minima(self, rows: slice) -> list[tuple[Any, Hits]]:
        """Find the hits of some queries by an elementwise metric, which has one precision."""
        precision = self.plan.precisions[0]
        packed = pack_queries(self.queries[rows], self.prepared.form, precision, self.flags, first=rows.start)
        thresholds = thresholds_for(packed, self.prepared.form, self.limits[rows])
        minima = screen_parts(packed, self.prepared.copies.packed(precision), self.plan.metric)
        blocks = blocks_of_minima(minima, thresholds, parts_per_block(self.plan.metric))
        return [(None, self._refine(rows, blocks))]

    def _by_lists(self, rows: slice) -> list[tuple[Any, Hits]]:
        """Find the hits of some queries by products, and separately the hits of rows that are screened again.

        The second part has the row numbers; these rows have no hits in the first part.
        """
        import torch

        lists = self._lists(rows, self.plan.precisions[0], self.capacity, self.flags)
        listed = lists.counts.sum(1)
        short = (lists.counts > lists.room).any(1)
        hard = listed > (max(FEWEST_HARD, HARD * len(self.prepared.points)) if self.finer else self.all_listed)
        usual = torch.quantile(listed[:FIRST_ROWS].float(), USUAL).long()
        too_short, too_many, usual = torch.stack([short.sum(), hard.sum(), usual]).tolist()
        if rows.start == 0:
            self.capacity = min(usual + 1, self.all_listed)
        elif too_short > TOO_SHORT * len(listed):
            most = max(
                self.capacity, self.list_bytes // (16 * len(listed))
            )  # what batches of this length have room for
            self.capacity = min(2 * self.capacity, most, self.all_listed)
        if too_short + too_many:
            lists.counts.masked_fill_((short | hard)[:, None], 0)
        found = [(None, self._refine(rows, blocks_of_lists(lists, parts_per_block(self.plan.metric))))]
        del lists
        if too_many:
            found += self._again(rows, hard.nonzero()[:, 0], self.finer, listed)
        if too_short:
            found += self._again(rows, (short & ~hard).nonzero()[:, 0], None, listed)
        return found

    def _again(self, rows: slice, numbers: Any, precision: str | None, listed: Any) -> list[tuple[Any, Hits]]:
        """Find the hits of some rows of a batch with room for every group, at higher precisions if that is faster."""
        found = []
        for some in numbers.split(max(1, self.list_bytes // (8 * self.all_listed))):
            these = some + rows.start
            level = precision if precision == self.finer else None
            lists = self._lists(
                these, level or self.plan.precisions[0], self.all_listed, new_flags(some.device)
            )  # flagged before
            if level and int(lists.counts.sum()) > WORTH * int(listed[some].sum()):
                self.finer = None
            blocks = blocks_of_lists(lists, parts_per_block(self.plan.metric))
            del lists
            found.append((some, self._refine(these, blocks)))
        return found

    def _lists(self, rows: Any, precision: str, capacity: int, flags: Any) -> Lists:
        """Screen some queries, named by a slice or by their numbers."""
        first = rows.start if isinstance(rows, slice) else 0
        packed = pack_queries(self.queries[rows], self.prepared.form, precision, flags, first=first)
        thresholds = thresholds_for(packed, self.prepared.form, self.limits[rows])
        everything = slice(0, len(thresholds))
        return screen_below(packed, self.prepared.copies.packed(precision), everything, thresholds, capacity)

    def _refine(self, rows: Any, blocks: Blocks) -> Hits:
        """Return the hits of some queries, named by a slice or by their numbers."""
        return refine_within(
            self.queries[rows],
            self.prepared.points,
            blocks,
            self.limits[rows],
            self.plan.metric,
            own=None if self.own is None else self.own[rows],
            listed=self.listed,
        )
