"""The screen of codes (rows/codes.py): the two steps of screens/contracted.py, by products of int8 (folded.py).

A query is compared in two forms. First, products compare its code with the codes of all points, which leaves some
groups. Then the members of these groups are compared with the contracted query in float32. The limit of this comparison
is lower, because it does not include the error of the query's code.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.group_lists import AllMinima, Listed
from tonari.exact.cuda.rows.codes import CodedQueries
from tonari.exact.cuda.rows.groups import group_count
from tonari.exact.cuda.screens.contracted import ContractedScreen, Look
from tonari.exact.cuda.screens.folded import screen_folded, screen_folded_below
from tonari.exact.cuda.screens.sampling import Sample, sample_for_codes
from tonari.select.cuda.dispatch import k_smallest


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
