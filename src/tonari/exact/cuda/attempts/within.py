"""The schedule of a search within a radius on one GPU, which finds all points within a limit of each query.

for batch of queries:
    threshold   an upper bound on the scores of all points within the query's limit
    screen      all points                        -> lists of the groups at or below the threshold
    refine      exact values of these groups      -> the points within the limit
    order       each row by (value, id)

A search for pairs finds each pair once: it compares a batch only with its own points and later ones, from the batch's
first tile on, which halves the products and the exact values. If all elements are integers of one byte, rows are also
packed as int8. Products in int8 take half the time of float16 and are exact, so hardly any group is listed in vain. If
the queries are the points, their exact values are computed from the packed copy, which has a quarter of the bytes of
float32.

Points and queries are packed and screened as for the k nearest (attempts/first.py). The threshold is known in advance,
so one pass over the points is enough. The pass takes 2 m n d' operations for d' packed columns, and reads 8 d bytes for
each point of a candidate group. To count candidates in one pass and write them in another would double the time,
because the screen takes nearly all of it. A row is screened again if its list was too short, or at a higher precision
if that is cheaper than refining a long list.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.process.progress import Counter
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.cuda.matrix_units import check_matrix_units
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.as_bytes import byte_points, in_int8
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.candidate_parts import (
    Blocks,
    blocks_of_lists,
    blocks_of_minima,
    thresholds_for,
)
from tonari.exact.cuda.refine.groups import refined_bytes
from tonari.exact.cuda.refine.within import Hits, parts_per_block, refine_within
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, POINT_TILE, group_count
from tonari.exact.cuda.rows.pack import PackedPoints, new_flags, pack_queries, packed_row_bytes, query_bytes
from tonari.exact.cuda.rows.part import Place
from tonari.exact.cuda.rows.tiles import Lists
from tonari.exact.cuda.screens.all_minima import screen_below, slots_of
from tonari.exact.cuda.screens.elementwise import screen_parts
from tonari.metrics import get_metric
from tonari.select.cuda.ordering.ragged import order_lists

MOST_POINTS = 250_000_000  # most points for products: with more, positions in the lists of 256 rows would exceed int32


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
    place : Place
        The position of these points and queries in the whole search; in a self-join no point finds itself.
    bar : Counter, optional
        Counts pairs, m * n in all.
    """

    _ALIGNED: ClassVar[int] = 4 * POINT_TILE  # divides every first point, to align error bounds of tiles

    def __init__(
        self,
        queries: Any,
        prepared: DevicePoints,
        plan: CudaPlan,
        limits: Any,
        *,
        listed: bool,
        place: Place,
        bar: Counter | None = None,
    ) -> None:
        prepared.written.read()
        in_bytes = byte_points(queries, prepared.points, plan) if plan.bytes_first and plan.bytes_later else None
        self.prepared, self.plan = (prepared, plan) if in_bytes is None else (in_bytes, in_int8(plan))
        self.queries, self.limits, self.place = queries, limits, place
        self.listed, self.bar = listed, bar
        self.own = place.own(len(queries), prepared.points.device)
        first = place.first_query - place.first_point
        are_points = place.self_join and 0 <= first <= len(prepared.points) - len(queries)
        self._rows, self._points = queries, prepared.points
        if in_bytes is not None and are_points:  # differences of packed rows equal differences of the original rows
            self._points = in_bytes.copies.packed("int8").values[: len(prepared.points), : plan.d]
            self._rows = self._points[first : first + len(queries)]
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
        self.list_bytes = plan.query_batch * 4 * group_count(n, plan.group)  # the plan reserves these bytes for minima
        self.capacity = self.all_listed
        # Products of 8-bit integers are exact, so no other precision would list fewer groups.
        self.finer = plan.precisions[1] if len(plan.precisions) > 2 and in_bytes is None else None

    def run(self) -> list[Any]:
        """Search all batches, and return their answers.

        Returns
        -------
        list of RadiusNeighbors of tensors, or of int64 tensors
            Lists in the order of the queries, whose ids are int32 row numbers of ``prepared.points``; or counts.

        Raises
        ------
        ValueError
            A row has a value that searches refuse; points are reported before queries.
        MemoryError
            The device has not enough memory for even one query at a time.
        """
        found: list[Any] = []
        m, n = len(self.queries), len(self.prepared.points)
        first = tuning.WITHIN_FIRST_ROWS if m > 2 * tuning.WITHIN_FIRST_ROWS else m
        for top, end in ((0, first), (first, m)):

            def work(rows: slice, top: int = top) -> None:
                found.append(self._batch(slice(rows.start + top, rows.stop + top)))
                if self.bar is not None:
                    self.bar.add((rows.stop - rows.start) * n)

            in_batches(end - top, self.rows_at_once(), work, planned=self.plan.total_bytes)
        if self.plan.precisions[0] != self.plan.precisions[-2]:
            self.prepared.copies.forget(self.plan.precisions[-2])
        inputs.check_flags(self.prepared.flags, self.prepared.points, "points", first=self.place.first_point)
        if self.own is None:
            inputs.check_flags(self.flags, self.queries, "queries", first=self.place.first_query)
        return found

    def rows_at_once(self) -> int:
        """Return the number of queries per block that the plan's memory allows.

        The plan reserves memory for the minima of its batches, but lists are usually much shorter. Batches can
        therefore be longer than in the plan, and the host waits for the device less often. Their memory, except for
        results, stays within the reserved memory.
        """
        points, plan = self.prepared.points, self.plan
        if self.elementwise:
            return max(1, min(plan.query_batch, self.list_bytes // (4 * group_count(len(points), LEAST_GROUP))))
        usual = min(plan.query_batch, self.list_bytes // (8 * min(self.all_listed, 2 * self.capacity)))
        row = packed_row_bytes(plan.d, plan.precisions[0])
        slots = slots_of(tuning.WITHIN_ROWS, len(points), row, 2 * self.capacity, points.device)
        other = query_bytes(plan.d, plan.precisions[:-1]) + refined_bytes(0, plan.d) + tuning.WITHIN_ROW_BYTES
        return max(1, usual, min(tuning.WITHIN_ROWS, self.list_bytes // (8 * slots + other)))

    def _batch(self, rows: slice) -> Any:
        """Return the points within the limits of some queries, as lists, or only their counts."""
        import torch

        if self._begin(rows) >= len(self.prepared.points):  # pairs are searched, and no point follows these queries
            return self._none(rows.stop - rows.start)
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

    def _none(self, m: int) -> Any:
        """Return empty lists, or counts of 0."""
        import torch

        ends = torch.zeros(m + self.listed, dtype=torch.int64, device=self.limits.device)
        if not self.listed:
            return ends
        return RadiusNeighbors(ends, ends.new_empty(0, dtype=torch.int32), self.limits.new_empty(0))

    def _begin(self, rows: slice) -> int:
        """Return the row number of the first point with which these queries are compared.

        The point is the first of a tile, and the error bounds from this tile on start at an aligned address. Otherwise
        Triton would compile another variant of the kernels.
        """
        if not self.place.later:
            return 0
        first: int = self.place.first_query - self.place.first_point + rows.start
        return max(0, first) // self._ALIGNED * self._ALIGNED

    def _packed(self, precision: str, begin: int) -> PackedPoints:
        """Return the packed points from row number `begin` on."""
        packed = self.prepared.copies.packed(precision)
        return packed.part(begin, packed.n - begin) if begin else packed

    def _by_minima(self, rows: slice) -> list[tuple[Any, Hits]]:
        """Find the points within the limits of some queries from all groups' minima, for an elementwise metric."""
        precision, begin = self.plan.precisions[0], self._begin(rows)
        packed = pack_queries(self.queries[rows], self.prepared.form, precision, self.flags, first=rows.start)
        thresholds = thresholds_for(packed, self.prepared.form, self.limits[rows])
        minima = screen_parts(packed, self._packed(precision, begin), self.plan.metric)
        blocks = blocks_of_minima(minima, thresholds, parts_per_block(self.plan.metric))
        return [(None, self._refine(rows, begin, blocks))]

    def _by_lists(self, rows: slice) -> list[tuple[Any, Hits]]:
        """Find the points within the limits of some queries from lists of groups, for a metric of products.

        Return (positions, hits) pairs. The first pair is for all queries (positions None), but without points for
        queries that are screened again; each further pair is for some of these queries.
        """
        import torch

        begin = self._begin(rows)
        lists = self._lists(rows, self.plan.precisions[0], self.capacity, self.flags, begin)
        listed = lists.counts.sum(1)
        short = (lists.counts > lists.room).any(1)
        fewest = max(tuning.WITHIN_FEWEST_HARD, tuning.WITHIN_HARD * len(self.prepared.points))
        hard = listed > (fewest if self.finer else self.all_listed)
        facts = [short.sum(), hard.sum()]
        if rows.start == 0:
            facts.append(torch.quantile(listed[: tuning.WITHIN_FIRST_ROWS].float(), tuning.WITHIN_USUAL).long())
        too_short, too_many, *usual = torch.stack(facts).tolist()
        if usual:
            self.capacity = min(usual[0] + 1, self.all_listed)
        elif too_short > tuning.WITHIN_TOO_SHORT * len(listed):
            # Slots per row that fit into the bytes reserved for lists.
            most = max(self.capacity, self.list_bytes // (16 * len(listed)))
            self.capacity = min(2 * self.capacity, most, self.all_listed)
        if too_short + too_many:
            lists.counts.masked_fill_((short | hard)[:, None], 0)
        found = [(None, self._refine(rows, begin, blocks_of_lists(lists, parts_per_block(self.plan.metric))))]
        del lists
        if too_many:
            found += self._again(rows, hard.nonzero()[:, 0], self.finer, listed)
        if too_short:
            found += self._again(rows, (short & ~hard).nonzero()[:, 0], None, listed)
        return found

    def _again(self, rows: slice, numbers: Any, precision: str | None, listed: Any) -> list[tuple[Any, Hits]]:
        """Search some rows of a batch again, with room for every group, and at `precision` if that is faster."""
        found, begin = [], self._begin(rows)
        for some in numbers.split(max(1, self.list_bytes // (8 * self.all_listed))):
            these = some + rows.start
            level = precision if precision == self.finer else None
            flags = new_flags(some.device)  # invalid values of these rows have been flagged before
            lists = self._lists(these, level or self.plan.precisions[0], self.all_listed, flags, begin)
            if level and int(lists.counts.sum()) > tuning.WITHIN_WORTH * int(listed[some].sum()):
                self.finer = None
            blocks = blocks_of_lists(lists, parts_per_block(self.plan.metric))
            del lists
            found.append((some, self._refine(these, begin, blocks)))
        return found

    def _lists(self, rows: Any, precision: str, capacity: int, flags: Any, begin: int) -> Lists:
        """List, for each query, the groups that may have points within its limit.

        `rows` is a slice of the queries, or their positions. Only groups from point `begin` on are listed.
        """
        first = rows.start if isinstance(rows, slice) else 0
        packed = pack_queries(self.queries[rows], self.prepared.form, precision, flags, first=first)
        thresholds = thresholds_for(packed, self.prepared.form, self.limits[rows])
        everything = slice(0, len(thresholds))
        return screen_below(packed, self._packed(precision, begin), everything, thresholds, capacity)

    def _refine(self, rows: Any, begin: int, blocks: Blocks) -> Hits:
        """Return the points in some blocks that are within the limits of queries.

        `rows` is a slice of the queries, or their positions. Row numbers in `blocks` count from point `begin`."""
        own = None if self.own is None else self.own[rows]
        hits = refine_within(
            self._rows[rows],
            self._points[begin:],
            blocks,
            self.limits[rows],
            self.plan.metric,
            own=own if own is None or not begin else own - begin,
            later=self.place.later,
            listed=self.listed,
        )
        if begin and self.listed:
            hits.ids.add_(begin)
        return hits
