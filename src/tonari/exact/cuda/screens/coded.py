"""The screen of codes (rows/codes.py): the two steps of screens/contracted.py, by products of int8.

A query is compared in two forms. First, products compare its code with the codes of all points, which leaves some
groups. Then the members of these groups are compared with the contracted query in float32. The limit of this comparison
is lower, because it does not include the error of the query's code. Products of int8 contain the
squared lengths; their interface and the division of work among programs are those of screens/all_minima.py.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.group_lists import AllMinima, Listed
from tonari.exact.cuda.rows.codes import CodedQueries, FoldedCodes
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, POINT_TILE, group_count
from tonari.exact.cuda.rows.tiles import Lists, Split, blocks_of, fewest_parts, is_hopper, lists_for, room_of
from tonari.exact.cuda.screens.all_minima import launch_on_hopper, output_of, split_for_hopper
from tonari.exact.cuda.screens.contracted import ContractedScreen, Look
from tonari.exact.cuda.screens.sampling import Sample, sample_for_codes
from tonari.select.cuda.dispatch import k_smallest


def screen_folded(queries: Any, points: FoldedCodes, group: int, minima: Any) -> None:
    """Write, for each query, the lowest score of every group of points.

    Parameters
    ----------
    queries : int8 tensor of shape (m, width)
    points : FoldedCodes
    group : int
        Points per group, one of ``groups.GROUP_SIZES``.
    minima : float32 (m, group_count(n, group))
        Output; groups of padding have scores above all others.
    """
    _launch(queries, points, _split_of(len(queries), points), group, minima=minima)


def screen_folded_below(queries: Any, points: FoldedCodes, thresholds: Any, capacity: int, least_slots: int) -> Lists:
    """List, for each query, the groups whose lowest score is at or below the query's threshold.

    Parameters
    ----------
    queries, points : as for :func:`screen_folded`
    thresholds : float32 (m,)
    capacity, least_slots : as for :func:`tonari.exact.cuda.screens.all_minima.screen_below`
    """
    m, device = len(queries), queries.device
    on_hopper = tuning.FOLDED_HOPPER and m > tuning.HOPPER_ROWS and is_hopper(device)
    split = split_for_hopper(m, points.n, device) if on_hopper else _split_of(m, points)
    room = max(room_of(split, points.n, capacity), -(-least_slots // (4 * split.parts)))
    lists = lists_for(m, split, room, device)
    if on_hopper:
        _launch_on_hopper(queries, points, split, thresholds, lists)
    else:
        _launch(queries, points, split, LEAST_GROUP, thresholds=thresholds, lists=lists)
    return lists


def _split_of(m: int, points: FoldedCodes) -> Split:
    rows = tuning.FOLDED_ROWS if m > 64 else 64 if m > 16 else 16
    tiles = -(-points.n // POINT_TILE)
    device, programs = points.values.device, tuning.FOLDED_PROGRAMS
    return fewest_parts(rows, POINT_TILE, -(-m // rows), tiles, device, programs=programs)


def _launch(
    queries: Any,
    points: FoldedCodes,
    split: Split,
    group: int,
    *,
    minima: Any = None,
    thresholds: Any = None,
    lists: Lists | None = None,
) -> None:
    from tonari.exact.cuda.kernels.screens.folded import screen_folded_kernel

    m, width = queries.shape
    if m == 0:
        return
    launch(
        screen_folded_kernel,
        split.row_tiles * split.parts,
        {
            "queries": blocks_of(queries, split.rows, width),
            "points": blocks_of(points.values, split.columns, width),
            "thresholds_ptr": thresholds,
            **output_of(lists, minima, points.n, group),
            "m": m,
            "tiles": split.blocks,
            "row_tiles": split.row_tiles,
            "tiles_per_program": split.each,
            "offset": points.offset,
        },
        constants={
            "ROWS": split.rows,
            "COLUMNS": split.columns,
            "GROUP": group,
            "LISTED": LISTED,
            "DENSE": lists is None,
            "STAGES": 2 if width > 192 else tuning.FOLDED_STAGES,
        },
        warps=8 if split.rows == 128 and width > 192 else tuning.FOLDED_WARPS,
    )


def _launch_on_hopper(queries: Any, points: FoldedCodes, split: Split, thresholds: Any, lists: Lists) -> None:
    terms = dict.fromkeys(("low_ptr", "e1_ptr", "e2_ptr", "norm_ptr", "rest_ptr"))
    terms |= {**lists.output, "thresholds_ptr": thresholds, "offset": points.offset}
    launch_on_hopper(queries, points.values, split, terms, folded=True)


class CodedScreen(ContractedScreen):
    """Screen codes in two steps; see :class:`tonari.exact.cuda.screens.contracted.ContractedScreen`.

    The prepared points are :class:`tonari.exact.cuda.routes.codes.points.CodedPoints`.

    Groups are ruled out by products of codes, whose limit allows for the rounding of both codes. Points are ruled out
    by the distance of one code from the query, so a row has several times as many near groups as near points.
    """

    groups_per_point: ClassVar[int] = tuning.CODED_GROUPS

    def sample(self, width: int) -> Sample | None:
        """Return the sample whose thresholds keep the groups of about `width` points per row; None without a sample."""
        return sample_for_codes(len(self.prepared.points), self.plan.m, width, self.plan.group)

    def coded_look(self, coded: CodedQueries, own: Any, width: int, sample: Sample | None) -> Look:
        """Screen a batch of queries, and find the points whose codes are nearest to the contracted queries."""
        if sample is None:
            screened: AllMinima | Listed = AllMinima(self._minima(coded, 1), self.plan.group)
        else:
            thresholds = k_smallest(self._minima(coded, sample.stride), sample.rank).values[:, -1].contiguous()
            codes: Any = self.prepared.copies.packed("int8")
            lists = screen_folded_below(coded.values, codes, thresholds, sample.capacity, sample.least_slots)
            screened = Listed(lists, thresholds)
        look = self.nearest(coded.rows, coded.squares, screened, own, width)
        return look._replace(apart=coded.apart)

    def limits(self, look: Look, kth: Any) -> tuple[Any, Any]:
        """Return bounds for each query, both float32 (rows,).

        The first is the largest squared distance from the contracted query to the code of a point in its answer. The
        second is the largest screen score of such a code."""
        squares, _ = self.limits_with(look.rows.errors, look.shift, kth)
        _, scores = self.limits_with(look.apart, look.shift, kth)
        return squares, scores

    def level(self, precision: str) -> str:
        """Return the name of this screen in reports, which does not depend on `precision`."""
        return f"codes in {self.prepared.by.p} dimensions"

    def _minima(self, coded: CodedQueries, stride: int) -> Any:
        """Screen every stride-th point, and return the lowest score of each group of these points."""
        import torch

        codes: Any = self.prepared.copies.packed("int8", stride)
        shape = len(coded.values), group_count(codes.n, self.plan.group)
        minima = torch.empty(shape, dtype=torch.float32, device=coded.values.device)
        screen_folded(coded.values, codes, self.plan.group, minima)
        return minima
