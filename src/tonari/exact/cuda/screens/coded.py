"""The screen of codes (rows/codes.py): the two steps of screens/contracted.py, by products of int8.

Each query has two forms. Products compare its code with the codes of points. The members of the remaining groups are
then compared with its contracted row in float32; the limit of this comparison is smaller by the error of the query's
code.
"""

from __future__ import annotations

from typing import Any

from tonari.exact.cuda.rows.codes import CodedQueries, Coding, code_queries
from tonari.exact.cuda.screens.contracted import ContractedScreen, Look
from tonari.exact.cuda.screens.sampling import Sample

PRECISION = "int8"


class CodedScreen(ContractedScreen):
    """Screen codes in two steps; see :class:`tonari.exact.cuda.screens.contracted.ContractedScreen`."""

    def code(self, queries: Any, coding: Coding, first: int) -> CodedQueries:
        """Return the codes of a batch; `first` is the number of its first query, for flags."""
        return code_queries(queries, coding, self.flags, first=first)

    def coded_look(self, coded: CodedQueries, own: Any, width: int, sample: Sample | None) -> Look:
        """Screen a batch, and find the nearest points by the distances from their codes."""
        screened = self.chooser.screened(coded.packed, PRECISION, sample)
        look = self.nearest(coded.rows, coded.packed.shift, screened, own, width)
        return look._replace(apart=coded.apart)

    def limits(self, look: Look, kth: Any) -> tuple[Any, Any]:
        """Return the largest square of a distance from a code, and the largest score of codes, float32 (rows,)."""
        squares, _ = self.limits_with(look.rows.errors, look.shift, kth)
        _, scores = self.limits_with(look.apart, look.shift, kth)
        return squares, scores

    def level(self, precision: str) -> str:
        """Return the name of the codes in reports."""
        return f"codes in {self.prepared.by.p} dimensions"
