"""Choose and run the screen of a batch: minima of all groups, or lists of the groups below sampled thresholds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tonari.core.trail import decided
from tonari.cuda.matrix_units import check_matrix_units
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.group_lists import AllMinima, Listed, Mirrored
from tonari.exact.cuda.rows.groups import group_count
from tonari.exact.cuda.rows.pack import PackedQueries, packed_row_bytes
from tonari.exact.cuda.rows.prepared import Prepared
from tonari.exact.cuda.rows.tiles import row_bytes
from tonari.exact.cuda.screens.all_minima import screen, screen_below, slots_of
from tonari.exact.cuda.screens.elementwise import screen_elementwise
from tonari.exact.cuda.screens.mirrored import Mirror, is_faster
from tonari.exact.cuda.screens.sampling import FirstAttempt, Sample, sample_for, sample_like, sample_within
from tonari.metrics import get_metric
from tonari.select.cuda.dispatch import k_smallest


def first_sample(plan: CudaPlan, n: int, width: int | None = None) -> Sample | None:
    """Return the sample that gives a first attempt its thresholds; None if the search uses no sample.

    A threshold keeps about `width` groups of the n points per row; the default is the plan's width.
    """
    if get_metric(plan.metric).form == "elementwise" or min(plan.m, plan.query_batch) < tuning.LEAST_ROWS:
        return None
    return sample_for(n, plan.width if width is None else width, plan.group)


class Screener:
    """Chooses the screen of each batch of queries, and runs it.

    Parameters
    ----------
    prepared : Prepared
    plan : CudaPlan
        Determines the metric and the group size.
    """

    def __init__(self, prepared: Prepared, plan: CudaPlan) -> None:
        self.prepared, self.plan = prepared, plan
        self.like: FirstAttempt | None = None  # the first attempt at all points, if `prepared` is a subset of them
        self.mirror: Mirror | None = None
        self.elementwise = get_metric(plan.metric).form == "elementwise"
        if not self.elementwise:
            check_matrix_units(prepared.form.centre.device)

    @property
    def query_batch(self) -> int:
        """The number of rows of a batch."""
        return self.plan.query_batch if self.mirror is None else self.mirror.batch

    def sample(self, width: int) -> Sample | None:
        """Return the sample whose threshold keeps about `width` groups per row; None if the search uses no sample."""
        n, group = len(self.prepared.points), self.plan.group
        if self.like is not None and (sample := sample_like(n, width, group, self.like)) is not None:
            return sample
        return first_sample(self.plan, n, width)

    def first_attempt(self, width: int) -> FirstAttempt | None:
        """Return the sample and the sizes of the first attempt, for later searches among subsets of the points.

        None if the first attempt uses no sample.
        """
        sample, plan = self.sample(width), self.plan
        if sample is None:
            return None
        rows, n = min(plan.m, plan.query_batch), len(self.prepared.points)
        length = packed_row_bytes(plan.d, plan.precisions[0])
        slots = slots_of(rows, n, length, sample.capacity, self.prepared.points.device)
        return FirstAttempt(n, sample, max(slots, sample.least_slots))

    def begin_mirror(self, width: int, precision: str, pack: Callable[[slice], PackedQueries]) -> None:
        """From now on, compute each score of two rows of a graph only once, if the plan has room for the longer lists.

        `pack` packs some of the rows, as queries.
        """
        import torch

        slots, points = self.plan.mirrored_slots, self.prepared.copies.packed(precision)
        sample = None if self.sample(width) is None else sample_for(points.n, width, self.plan.group, tuning.NOTED_COST)
        if not slots or sample is None or not is_faster(row_bytes(points.values), points.low.device):
            return
        sample = sample_within(points.n, width, self.plan.group, sample, slots)
        if sample is None:
            return
        try:
            self.mirror = Mirror(
                points,
                sample,
                slots,
                self.plan.query_batch,
                pack,
                lambda packed: self._thresholds(packed, precision, sample),
            )
        except torch.cuda.OutOfMemoryError as error:  # another program may have taken memory that was free
            decided("mirror", f"rows and points are compared twice: {error}")
            return
        decided("mirror", "each product of a row and a point is used for both")

    def screened_in_turn(
        self, packed: PackedQueries, precision: str, sample: Sample | None, first: int | None
    ) -> AllMinima | Listed | Mirrored:
        """Screen all points for a batch.

        In a graph, each score is used for both of its rows, as long as batches are searched in order.

        `first` is the row number of the first query, or None if the queries are not successive rows of the graph.
        """
        if self.mirror is not None and first is not None:
            if self.mirror.takes(first, len(packed.values)):
                return self.mirror.screened(packed, first)
            decided("mirror", "rows and points are compared twice from here on, as a batch is out of turn")
            self.mirror = None
        return self.screened(packed, precision, sample)

    def screened(self, packed: PackedQueries, precision: str, sample: Sample | None) -> AllMinima | Listed:
        """Screen all points for a batch; return all minima or, with a sample, the groups below the thresholds."""
        if sample is None:
            minima = self._minima(packed, precision, 1, group_count(len(self.prepared.points), self.plan.group))
            return AllMinima(minima, self.plan.group)
        thresholds = self._thresholds(packed, precision, sample)
        points, everything = self.prepared.copies.packed(precision), slice(0, len(packed.values))
        return Listed(
            screen_below(packed, points, everything, thresholds, sample.capacity, least_slots=sample.least_slots),
            thresholds,
        )

    def _minima(self, packed: Any, precision: str, stride: int, groups: int) -> Any:
        import torch

        points = self.prepared.copies.packed(precision, stride)
        minima = torch.empty((len(packed.values), groups), dtype=torch.float32, device=packed.values.device)
        everything = slice(0, len(packed.values))
        if self.elementwise:
            screen_elementwise(packed, points, minima, metric=self.plan.metric, group=self.plan.group, rows=everything)
        else:
            screen(packed, points, everything, self.plan.group, minima)
        return minima

    def _thresholds(self, packed: PackedQueries, precision: str, sample: Sample) -> Any:
        """Return each row's threshold: the rank-th smallest group minimum of the sample."""
        count = -(-len(self.prepared.points) // sample.stride)
        minima = self._minima(packed, precision, sample.stride, group_count(count, self.plan.group))
        return k_smallest(minima, sample.rank).values[:, -1].contiguous()
