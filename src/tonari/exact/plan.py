"""The plan of brute force on the CPU: one frozen record of every choice, made from the problem and the machine.

A search follows the plan. Choices that depend on values are made during the search: the number of columns of a
contraction (``form_dim="pilot"``), and the rows that are retried at a later precision. The command line prints the
plan. Callers can override its fields; an override that cannot work is refused with a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tonari import inputs
from tonari.core.plan import Override, Plan
from tonari.core.process.workers import worth_sharing
from tonari.costs.rates import DIRECT, PRODUCTS, READ_RATE, SURVIVOR, SURVIVOR_VALUE
from tonari.exact import tuning
from tonari.exact.memory import ELEMENT_BYTES, BlockSizes, Needs, padded, resident_choices
from tonari.exact.planning.blocks import query_block
from tonari.exact.precisions import kernel_name, usual_precisions

_PAIR_BYTES = 48  # bytes per pair (query, point) of a radius search that computes all exact values


@dataclass(frozen=True, kw_only=True)
class ExactPlan(Plan):
    """Every choice of one exact search.

    Attributes
    ----------
    n, m, d, k : int
        Numbers of points, queries, dimensions and neighbours.
    dtype, metric, method, device : str
        Names: the dtype of the points, the metric, "exact" and "cpu".
    isa : str
        Instruction set: generic, avx2, avx512, amx or neon.
    precisions : tuple of str
        Precisions of the screen, in the order of their use. Rows that cannot be certified at one precision are retried
        at the next. The last one certifies every row, because it computes the exact values of doubtful rows.
    form_dim : int
        Columns that the screen compares. If there are fewer than d, they are contracted rows: coordinates along the
        principal directions, and the length of the residual (docs/exactness.md, "Contracted forms").
    look_dim : int
        Columns of a look, which compares contracted rows and rules out points before the screen compares the remaining
        points in form_dim columns; 0 for no look.
    may_contract : bool
        Whether a pilot decides, when the points are prepared, on a contraction to 64 or 96 columns, on a look, or on
        both. A pilot requires at least 256 columns and enough work. For a look, points are packed in the order of
        clusters.
    direct : bool
        Whether exact values of all pairs are computed without a screen, which is faster for the smallest searches, and
        for few queries among unpacked points. (For float32 rows and squared differences, estimates rule out most points
        first.) The other fields then apply only to later searches of the same points.
    threads : int
        Threads of the search.
    query_block : int
        Queries that share one pass over the points.
    point_chunk : int
        Points per slice, the unit that a thread packs and screens.
    capacity : int
        Largest number of survivors of a row; a row with more is retried, or resolved with exact values.
    sample_stride, sample_rank : int
        Every sample_stride-th group is screened first, and the sample_rank-th smallest bound there becomes the
        threshold for the rest (matsumoto2015); 0 means no sample, as for small k.
    active_rows : int
        For a graph: the number of rows whose survivors are in memory at once, so that the product of two of these rows
        is used for both; 0 if every product is used only for its query.
    point_splits : int
        Parts of the points that are searched in parallel if there are fewer blocks of queries than threads.
    adaptive : bool
        Whether the remaining rows may start at the next precision, if the first blocks leave so many survivors that
        this is faster.
    resident_points : int
        Points that stay packed in memory: all, or as many as the memory budget allows. The others are packed slice by
        slice, again for each pass over them.
    finer_resident : bool
        Whether points may stay packed at a finer precision than the first.
    stream_blocks, stream_chunk : int
        For points that are packed slice by slice: the number of blocks of queries per thread that share a pass, and the
        number of points per slice. These numbers also apply to rows retried at the next precision.
    packed_bytes, working_bytes, output_bytes : int
        Peak memory in addition to the input: for points that stay packed, for work, and for results.
    prepare_seconds : float
        Rough estimate of the time for checking all points and packing the resident ones, if the rows are in memory or
        in the page cache.
    seconds : float
        Rough estimate of the whole search, including prepare_seconds, which an :class:`tonari.Index` spends only once.
    """

    precisions: tuple[str, ...]
    form_dim: int
    look_dim: int
    may_contract: bool
    direct: bool
    query_block: int
    point_chunk: int
    capacity: int
    sample_stride: int
    sample_rank: int
    active_rows: int
    point_splits: int
    adaptive: bool
    resident_points: int
    finer_resident: bool
    stream_blocks: int
    stream_chunk: int
    prepare_seconds: float

    @property
    def resident(self) -> bool:
        """Whether all packed points stay in memory."""
        return self.resident_points == self.n

    @property
    def blocks_at_once(self) -> int:
        """The number of blocks of queries that are processed at once while points are packed slice by slice."""
        return max(1, self.stream_blocks * self.threads // self.point_splits)

    @property
    def resident_memory(self) -> int:
        """The smallest budget with which all packed points stay in memory, unless fields are overridden."""
        chunk, block = self.point_chunk, query_block(self.m, self.k, self.threads)
        needs = Needs(
            *(self.n, self.m, self.d, self.k, inputs.dtype_of(self.dtype)),
            *(self.isa, self.precisions, self.threads, chunk),
            *(self.capacity, self.point_splits, self.form_dim, self.look_dim),
        )
        wish = BlockSizes(block, self.n, 0, tuning.STREAM_BLOCKS, chunk)
        return min(map(needs.total_bytes, resident_choices(needs, wish, ())))

    @property
    def packs_anew(self) -> str:
        """A sentence for reports: the number of packed points, and the budget for packing all; "" if all are packed."""
        if self.resident:
            return ""
        return (
            f"{self.resident_points} of {self.n} packed points during a search of {self.m} queries with "
            f"k={self.k}: every such search packs the others again; memory={self.resident_memory} keeps all packed"
        )

    def prefers_finer(self, level: int, survivors: float) -> bool:
        """Whether the next precision is expected to be faster than precision `level` with `survivors` per row."""
        if level + 1 >= len(self.precisions):
            return False
        finer = self._row_seconds(level + 1, 1.1 * self.k)
        return finer < 0.9 * self._row_seconds(level, survivors)

    def prefers(self, other: ExactPlan, level: int, survivors: float) -> bool:
        """Whether another plan is expected to be faster than this one at precision `level` with `survivors` per row."""
        return other._row_seconds(0, 1.1 * self.k) < 0.9 * self._row_seconds(level, survivors)

    def _row_seconds(self, level: int, survivors: float) -> float:
        precision = self.precisions[level]
        screen = 2.0 * self.n * padded(self.form_dim, precision, self.isa) / PRODUCTS[self.isa, precision]
        return screen + survivors * (SURVIVOR + SURVIVOR_VALUE * self.d)

    def contracted_to(self, form_dim: int, look_dim: int = 0) -> ExactPlan:
        """Return this plan with a screen of `form_dim` columns, after a look at `look_dim` columns (0: no look)."""
        plan = self
        if form_dim < self.form_dim:
            levels = usual_precisions(self.metric, self.isa, self.dtype, self.d, contracted=True)
            adaptive = self.adaptive and len(levels) > 1
            plan = replace(
                self, form_dim=form_dim, precisions=levels, adaptive=adaptive, sample_stride=0, sample_rank=0
            )
        if plan.may_contract and plan.point_splits > 1 and (look_dim or form_dim < self.form_dim):
            # With few queries, the time is that of reading the points: contracted rows may be too short to divide among
            # threads. A look counts twice, because the groups that it leaves take about as long as the look itself.
            row = 2 * look_dim if look_dim else form_dim * ELEMENT_BYTES[plan.precisions[0]]
            if not worth_sharing(self.n * row / READ_RATE):
                plan = replace(plan, point_splits=1)
        return plan

    @cached_property
    def direct_within(self) -> float:
        """Expected seconds of a radius search that computes all exact values; inf if memory is too small for it."""
        if not self.direct or _PAIR_BYTES * self.m * self.n > self.packed_bytes + self.working_bytes:
            return math.inf
        searched: float = DIRECT[self.isa].seconds(self.n, self.m, self.d, 1)
        return tuning.WITHIN_SHARE * searched

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The name of the screening kernel for each precision."""
        return {precision: kernel_name(self.metric, precision, self.isa) for precision in ELEMENT_BYTES}

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return super().as_dict() | {"resident": self.resident}


ON_CPU = {
    "isa": Override("instruction set: generic, avx2, avx512, amx or neon", "word"),
    "precisions": Override("precisions of the screen, first to last: int8, bfloat16, float32", "words"),
    "form_dim": Override("columns that the screen compares; if fewer than d, rows are contracted to them", least=2),
    "look_dim": Override("columns of a look at contracted rows before form_dim columns are compared; 0: none", least=0),
    "direct": Override("whether exact values alone decide, without a screen", "flag"),
    "query_block": Override("queries that share one pass over the points"),
    "point_chunk": Override("points per slice of work, a multiple of 96"),
    "capacity": Override("survivors that a row can hold"),
    "sample_stride": Override(
        "interval of the groups of points that are screened first, for a threshold; 0: none", least=0
    ),
    "sample_rank": Override("rank in that sample that gives the threshold", least=0),
    "active_rows": Override("rows of a graph that share products; 0: none", least=0),
    "point_splits": Override("parts of the points that are searched in parallel"),
    "adaptive": Override("whether the first blocks may change the precision of the rest", "flag"),
    "resident": Override("whether packed points stay in memory", "flag"),
}
ON_CUDA = {
    "route": Override("resident, host_refine, codes or streamed", "word"),
    "shard": Override("what several devices divide: points or queries", "word"),
    "precisions": Override("precisions of the screen: float16, split, values; elementwise float32, values", "words"),
    "form_dim": Override(
        "columns that the screen compares: a number below d, full, or pilot: a sample decides (resident)",
        "word",
    ),
    "group": Override("points that share a lower bound: 8, 16 or 32"),
    "width": Override("groups of a row that are refined first"),
    "query_batch": Override("queries whose bounds are in memory at the same time"),
    "query_slab": Override("queries on a device at the same time"),
    "point_slab": Override("points on a device at the same time"),
}
