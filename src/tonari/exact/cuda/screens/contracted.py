"""The screen of contracted rows, in two steps; the caller refines original rows after each step.

    look       screen, and find the members of the lowest groups that are nearest in p coordinates
               -> the caller refines them by their original rows, which gives the k-th value
    within     bound the distance in p coordinates by the k-th value; find all groups at or below this limit,
               and their members within it        -> points to refine, and a mark for each complete row

The limit is known before the points are refined, as in a search within a radius. A row is proved if all groups and
members at or below its limit are listed. The stored output of the screen must therefore contain these groups, and the
lists must be long enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from tonari.cuda.compiling.rehearsal import both_of
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.group_lists import Screened, parts_of
from tonari.exact.cuda.refine.limit_members import Near, near_members
from tonari.exact.cuda.refine.lowest import refine_lowest
from tonari.exact.cuda.rows.contraction import ContractedRows, contract
from tonari.exact.cuda.rows.pack import PackedQueries, new_flags, pack_queries
from tonari.exact.cuda.rows.prepared import Contracted
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.screener import Screener
from tonari.exact.cuda.screens.widths import NEAR_BYTES
from tonari.metrics import get_metric


class Look(NamedTuple):
    """The output of the first step of a screen of contracted rows, for a batch of queries.

    Attributes
    ----------
    rows : ContractedRows
        The contracted queries.
    shift : float64 tensor of shape (rows,)
        The term of a squared distance that depends on the query alone, which scores leave out.
    screened : Screened
    nearest : int32 tensor of shape (rows, any)
        Row numbers of points in the order of their distances in p coordinates, padded with -1.
    apart : float64 tensor of shape (rows,), optional
        For codes: for each query, a bound on the distance between its code and its contracted row.
    """

    rows: ContractedRows
    shift: Any
    screened: Screened
    nearest: Any
    apart: Any = None


class ContractedScreen:
    """Screen contracted rows (rows projected to fewer coordinates) in two steps.

    Parameters
    ----------
    prepared : Contracted
    plan : CudaPlan
    flags : int64 tensor of shape (3,)
        Output: flags of the queries, as for :func:`tonari.exact.cuda.rows.contraction.contract`.
    double : bool
        Whether values are returned as float64.

    Attributes
    ----------
    groups_per_point : int
        The number of a row's slots for near groups, divided by the number of its slots for near points.
    """

    groups_per_point: ClassVar[int] = 1

    def __init__(self, prepared: Contracted, plan: CudaPlan, flags: Any, *, double: bool) -> None:
        self.prepared, self.plan, self.flags, self.double = prepared, plan, flags, double
        self.screener = Screener(prepared, plan)
        self._unread = new_flags(flags.device)  # never read: contracted rows have no refused values

    def look(
        self,
        queries: Any,
        own: Any,
        precision: str,
        width: int,
        sample: Sample | None,
        *,
        first: int | None = None,
        known: ContractedRows | None = None,
        keep: bool = False,
    ) -> Look:
        """Screen a batch, and find the nearest points by the distances of contracted rows.

        `first` is the row number of the first query, for flags and for the screen of a graph. `known` has the
        contracted queries if they were contracted as points. With `keep`, the batch takes less memory until its second
        step.
        """
        prepared = self.prepared
        rows = contract(queries, prepared.by, self.flags, first=first or 0) if known is None else known
        packed = self.packed(rows, precision)
        found = self.screener.screened_in_turn(packed, precision, sample, first)
        screened: Screened = found.kept(tuning.NEAR_KEPT * width) if keep else found
        del found  # free the minima of all groups, of which `screened` keeps the lowest
        return self.nearest(rows, packed.shift, screened, own, width)

    def nearest(self, rows: ContractedRows, shift: Any, screened: Screened, own: Any, width: int) -> Look:
        """Find the nearest points of a batch's queries within the groups that have the lowest minima in its screen."""
        prepared = self.prepared
        count = min(self.plan.k + max(self.plan.k, tuning.NEAREST), len(prepared.points))
        facts: dict[str, Any] = {"metric": "sqeuclidean", "own": own, "double": False}
        nearest, _ = refine_lowest(rows.values, prepared.rows.values, screened, min(width, count), count, **facts)
        return Look(rows, shift, screened, nearest.indices)

    def packed(self, rows: ContractedRows, precision: str) -> PackedQueries:
        """Pack contracted rows as queries."""
        return pack_queries(rows.values, self.prepared.by.screened, precision, self._unread)

    def within(self, look: Look, kth: Any, own: Any, width: int) -> tuple[Near, Any]:
        """Return lists of points that may be as near as a row's k-th value, and a mask of the rows with complete lists.

        `kth`, float32 or float64 (rows,), is each row's exact k-th known value, or the worst possible value if fewer
        than k points are known.
        """
        squares, scores = self.limits(look, kth)
        room, values = tuning.NEAR_KEPT * width, self.prepared.rows.values
        members: Near | None = None
        whole: Any = None
        for part in parts_of(look.screened):
            groups = part.near(scores, self.groups_per_point * room)
            members = near_members(
                look.rows.values, values, squares, groups, room, group=part.group, own=own, beside=members
            )
            here = both_of(groups.whole, members.whole)
            whole = here if whole is None else both_of(here, whole)
        assert members is not None
        return members, whole

    def level(self, precision: str) -> str:
        """Return the name of a precision in reports, such as "float16 in 64 dimensions"."""
        return f"{precision} in {self.prepared.by.p} dimensions"

    def limits(self, look: Look, kth: Any) -> tuple[Any, Any]:
        """Return two upper limits for each query, both float32 (rows,).

        For every point in the query's answer, the first limits the squared distance between the contracted rows of
        query and point, and the second limits the point's screen score. Both include an allowance for the rounding of
        float32 sums of p squares.
        """
        return self.limits_with(look.rows.errors, look.shift, kth)

    def limits_with(self, errors: Any, shift: Any, kth: Any) -> tuple[Any, Any]:
        """Return :meth:`limits` for contracted queries; `errors` are bounds on their errors, float64 (rows,)."""
        import torch

        from tonari.exact.cuda.kernels.screens.contracted_limits import contracted_limits_kernel

        prepared, rows = self.prepared, len(kth)
        squares, scores = (torch.empty(rows, dtype=torch.float32, device=kth.device) for _ in range(2))
        launch(
            contracted_limits_kernel,
            -(-rows // tuning.LIMIT_ROWS),
            {
                "shift_ptr": shift,
                "kth_ptr": kth,
                "error_ptr": errors,
                "farthest_ptr": prepared.farthest,
                "stretch_ptr": prepared.by.stretch,
                "scale_ptr": prepared.form.scale,
                "squares_ptr": squares,
                "scores_ptr": scores,
                "rows": rows,
                "d": prepared.form.d,
                "p": prepared.by.p,
                "kth_stride": kth.stride(0),
            },
            constants={"METRIC": get_metric(self.plan.metric), "DOUBLE": self.double, "ROWS": tuning.LIMIT_ROWS},
            warps=4,
            fused=False,
        )
        return squares, scores


def retries(plan: CudaPlan, unproved: float) -> Iterator[tuple[str, int]]:
    """Yield the precision of each retry of unproved rows, and the factor by which it multiplies the groups per row.

    `unproved` is the share of the first rows that were not certified as exact with the fitted number of groups per row.
    """
    first, last = plan.precisions[0], plan.precisions[-2]
    if first != last and unproved <= tuning.FEW_UNPROVED:  # packing points again takes too long for few rows
        yield first, tuning.WIDER
    for times in (tuning.WIDER, tuning.ROOMY):
        yield last, times


def retried_at_once(width: int, each: int = NEAR_BYTES) -> int:
    """Return the number of rows that are retried at once, so that their near points fit into the scratch memory.

    `each` is the number of bytes per near point; `width` is the number of groups per row.
    """
    return max(1, tuning.REFINE_SCRATCH_BYTES // (each * tuning.NEAR_KEPT * width))
