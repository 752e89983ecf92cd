"""The cost of a search by codes (routes/codes/), with the interface of memory.py."""

from __future__ import annotations

import dataclasses
import math

from tonari.costs.rates import CARD
from tonari.exact.cuda import tuning
from tonari.exact.cuda.memory import LEAST_BATCH, LISTED_BYTES, SMALL_CHANGE, CudaNeeds, Slabs
from tonari.exact.cuda.rows.codes import code_columns, code_width, codes_bytes, coding_bytes
from tonari.exact.cuda.rows.contraction import contracted_row_bytes, contraction_bytes, sample_rows
from tonari.exact.cuda.rows.groups import group_count
from tonari.exact.cuda.screens.sampling import Sample, sample_for_codes
from tonari.exact.cuda.screens.widths import usual_width
from tonari.select.cuda.ordering.order import MERGE_BYTES

PRECISIONS = ("int8", "values")
# Possible numbers of queries in a batch: whole tiles of the screen, and smaller ones if memory is short.
_BATCHES = (*range(1, LEAST_BATCH), LEAST_BATCH, *range(tuning.HOPPER_ROWS, tuning.CODED_BATCH + 1, tuning.HOPPER_ROWS))
# Bytes per listed point of a query: for the point, and for CODED_GROUPS groups.
CODED_BYTES = LISTED_BYTES + 4 * tuning.CODED_GROUPS


class CodesNeeds(CudaNeeds):
    """The sizes and properties of a search by codes; `form_dim` is the number of coordinates of a code."""

    def packed_bytes(self, slabs: Slabs, precision: str) -> int:
        """Return the size in bytes of the codes."""
        return codes_bytes(self.n, self.form_dim)

    def copied_bytes(self, slabs: Slabs) -> int:
        """Return 0: the original rows stay in host memory."""
        return 0

    def output_bytes(self, slabs: Slabs) -> int:
        """Return 0: results of batches are copied to host memory."""
        return 0

    def working_bytes(self, slabs: Slabs, batch: int) -> int:
        """Return the bytes of working memory: a batch of queries, slabs in transfer, and a sample of codes."""
        contracting = contraction_bytes(self.d, self.form_dim) + coding_bytes(self.d, self.form_dim)
        contracting += sample_rows(self.d) * self.d * self.itemsize
        lists = MERGE_BYTES if self.merged else 0
        buffers = (2 if slabs.points < self.n else 1) * slabs.points * self.d * self.itemsize
        # The codes are complete before the first batch.
        return lists + max(SMALL_CHANGE + contracting + buffers, self._beside_codes(self._batch_bytes(batch)))

    def _beside_codes(self, batch_bytes: int) -> int:
        """Return the bytes that a search needs in addition to all codes: a batch, a sample, and the rows to refine."""
        sample = self._sample()
        sampled = 0 if sample is None else codes_bytes(-(-self.n // sample.stride), self.form_dim)
        members = self._most_members() * (self.d * self.itemsize + CODED_BYTES)
        return SMALL_CHANGE + sampled + batch_bytes + max(members, 3 * tuning.REFINE_SCRATCH_BYTES)

    def batch(self, slabs: Slabs, budget: int) -> int:
        """Return the queries per batch that the budget and MINIMA_BYTES allow, in whole tiles; 0 if none fit.

        All batches of a search have about the same number of queries.
        """
        room = budget - self.packed_bytes(slabs, PRECISIONS[0]) - self._beside_codes(0)
        room -= MERGE_BYTES if self.merged else 0
        if self.total_bytes(slabs, 0) > budget:
            return 0

        def fits(batch: int) -> bool:
            small = batch <= LEAST_BATCH or self._screened_bytes(batch) <= tuning.MINIMA_BYTES
            return small and self._batch_bytes(batch) <= room

        most = max((batch for batch in _BATCHES if fits(batch)), default=0)
        even = max(LEAST_BATCH, -(-self.m // -(-self.m // max(1, most))))
        return next((batch for batch in _BATCHES if even <= batch <= most), most)

    def copying_seconds(self, slabs: Slabs) -> float:
        """Return the total seconds of copying points and queries to the device and of reading the rows to refine."""
        rows = (min(self.refined_groups(slabs), tuning.CODED_READ) + 2 * self.k) * self.d * self.itemsize
        queries = self.d * self.query_itemsize * self.host_queries
        return (self.n * self.d * self.itemsize + self.m * (rows + queries)) / CARD.link

    def _sample(self) -> Sample | None:
        """Return the sample from which the screen computes thresholds; None if it uses no sample."""
        return sample_for_codes(self.n, self.m, self.width, self.group)

    def _screened_bytes(self, batch: int) -> int:
        """Return the bytes that a batch's screen needs: minima of all groups, or a sample's minima and the lists."""
        sample = self._sample()
        if sample is None or batch == 0:
            return batch * 4 * group_count(self.n, self.group)
        # Each segment of a list has the slots that `room_of` in rows/tiles.py returns; lists of few rows have more
        # segments.
        segments = 4 * tuning.MOST_ROUNDS * tuning.CODED_MULTIPROCESSORS * tuning.HOPPER_ROWS
        slots = batch * sample.capacity
        slots += math.ceil(tuning.UNEVEN * (math.sqrt(slots * segments) + segments))
        return batch * 4 * group_count(-(-self.n // sample.stride), self.group) + 8 * slots

    def _most_members(self) -> int:
        """Return the largest number of points that may be listed for a row: the limit of the last retry."""
        return min(self.n, tuning.NEAR_KEPT * tuning.ROOMY * tuning.CODED_WIDEST * self.width)

    def _batch_bytes(self, batch: int) -> int:
        screened = self._screened_bytes(batch)
        near = tuning.NEAR_KEPT * tuning.CODED_WIDEST * self.width * CODED_BYTES
        packed = code_width(self.form_dim) + 3 * contracted_row_bytes(self.form_dim)
        lists = 4 * self.k * (self.value_itemsize + 4)
        original = 2 * self.d * self.query_itemsize + 8 * self.d  # a row and its copy as stored, and in float64
        return screened + screened // 4 + batch * (near + packed + lists + original + 64 + 8 * self.self_join)


def in_codes(needs: CudaNeeds) -> list[CodesNeeds]:
    """Return the needs of a search by codes for each possible number of coordinates, in descending order."""
    fields = {field.name: getattr(needs, field.name) for field in dataclasses.fields(needs)}
    usual = usual_width(needs.k + needs.self_join)
    chosen = needs.width not in (usual, max(usual, tuning.CONTRACTED_WIDTH))  # the caller has chosen the width
    width = needs.width if chosen else max(needs.width, tuning.CODED_WIDTH)
    columns = [needs.form_dim] if needs.form_dim else code_columns(needs.d)
    return [CodesNeeds(**fields | {"precisions": PRECISIONS, "form_dim": p, "width": width}) for p in columns]
