"""Search in int8 if all elements of the rows are integers of one byte (rows/bytes.py).

Matrix units multiply int8 twice as fast as float16, and add the products without an error (docs/exactness.md, "Bytes").
Sums of float16 products are rounded, which can leave thousands of rows unproved (not certified as exact). A search in
int8 leaves only rows with ties.

    look    tests a few rows, then a sample of all queries and points, for 8-bit integers, and finds the shift that
            brings them into the range of int8
    pack    packs all rows; the attempt ends if rounding changes a row or an element is out of range

A long search of unprepared points tests for 8-bit integers before it starts. Every other search does so only after
float16 has left unproved rows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tonari.cuda.compiling.rehearsal import without_data
from tonari.cuda.devices import over
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.first import DevicePoints, Search
from tonari.exact.cuda.attempts.retries.attempt import Attempt, Unproved
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.bytes import shifts_of
from tonari.exact.cuda.rows.form import DeviceForm, shifted_form
from tonari.exact.cuda.screens.widths import usual_width


class BytePoints(DevicePoints):
    """Prepared points on one GPU with packed copies in int8; :class:`DevicePoints` explains the other parameters.

    Parameters
    ----------
    form : DeviceForm
        The form that subtracts `shift`, one of ``SHIFTS``, from every element.
    shift : int
    asked : tensor or array, optional
        Queries that are known to consist of 8-bit integers after subtraction of the shift.
    """

    def __init__(self, points: Any, metric: str, form: DeviceForm, shift: int, asked: Any = None) -> None:
        super().__init__(points, metric, "int8", form)
        self.shift, self._asked = shift, asked

    def is_usable(self) -> bool:
        """Whether int8 represents every point exactly (docs/exactness.md, "Bytes"); waits for the device."""
        import torch

        packed = self.copies.packed("int8")
        worst, lowest = torch.stack([packed.e1.amax(), packed.low.amin()]).tolist()
        return bool(worst == 0 and lowest > -1e29)

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        """Return a search for these queries: in int8 if they are 8-bit integers, too. May wait for the device."""
        if self._holds(queries):
            return ByteSearch(queries, self, in_int8(plan))
        self.copies.forget("int8")  # the plan has no memory for an int8 copy in addition to the usual copies
        return Search(queries, self, plan)

    def without_data(self) -> BytePoints:
        return BytePoints(without_data(self.points), self.metric, self.form.without_data(), self.shift)

    def _holds(self, queries: Any) -> bool:
        known = queries is self.points or queries is self._asked or queries.device.type == "meta"
        return known or self.shift in shifts_of(queries)


class ByteSearch(Search):
    """The state of a search in int8, for queries and points that are 8-bit integers; all its batches share it."""

    prepared: BytePoints

    def refined_rows(self, queries: Any, first: int | None) -> tuple[Any, Any]:
        """Return the rows to compute exact values from: for a graph, the packed int8 rows, the fastest to read.

        Differences of int8 rows equal differences of the original rows.
        """
        if first is None or not self.is_graph:
            return super().refined_rows(queries, first)
        rows = self.prepared.copies.packed("int8").values[: len(self.prepared.points), : self.plan.d]
        return rows[first : first + len(queries)], rows


def byte_points(queries: Any, points: Any, plan: CudaPlan) -> BytePoints | None:
    """Prepare points for a search of these queries in int8; None if an element is not an 8-bit integer.

    Queries are checked before any point is packed. If a query with other values were found after that, the work would
    be lost: a million points would have to be packed again in float16, which takes half as long as the search. Waits
    for the device.

    Parameters
    ----------
    queries : tensor, or array in host memory
    points : tensor
    plan : CudaPlan
    """
    shift = shift_of_both(queries, points)
    shifted = None if shift is None else shifted_points(points, plan, shift, queries)
    return shifted if shifted is not None and shifted.is_usable() else None


def shift_of_both(queries: Any, points: Any) -> int | None:
    """Return an integer whose subtraction brings all elements into the range of int8; None if there is none.

    Waits for the device, and launches no kernel that has to be compiled.
    """
    shifts = shifts_of(over(queries) if isinstance(queries, np.ndarray) else queries)
    if shifts and queries is not points:
        both = shifts_of(over(points) if isinstance(points, np.ndarray) else points)
        shifts = [shift for shift in shifts if shift in both]
    return shifts[0] if shifts else None


def shifted_points(points: Any, plan: CudaPlan, shift: int, asked: Any = None) -> BytePoints:
    """Prepare points for a search in int8 with a shift from :func:`shifts_of`; the caller must check ``is_usable``."""
    return BytePoints(points, plan.metric, shifted_form(plan.metric, plan.d, shift, points.device), shift, asked)


def in_int8(plan: CudaPlan) -> CudaPlan:
    """Return this plan with int8 as the first precision.

    Queries beyond the range of int8 are retried in float16, which is also exact for integers of one byte. The plan
    refines fewer groups than usual, because bounds in int8 are so close that few of them overlap.
    """
    if plan.precisions[0] == "int8":
        return plan
    rest = [precision for precision in plan.precisions if precision != "split"]
    rest = rest if "split" in plan.precisions else rest[-1:]
    width = min(plan.width, plan.k + tuning.AS_BYTES_BESIDE) if plan.width <= usual_width(plan.k + 1) else plan.width
    return dataclasses.replace(plan, precisions=("int8", *rest), width=width)


class AsBytes(Attempt):
    """Search all unproved rows in int8, where nearly all answers can be certified as exact."""

    name = "as bytes"
    when = f"if all elements are integers of one byte, and at least {tuning.AS_BYTES_PRODUCTS} products are left"

    def worth(self, left: Unproved) -> tuple[Any, Any, int] | None:
        """Return row numbers of the unproved rows, their queries, and the integer shift that makes all rows fit int8.

        None if the attempt is not worth its time."""
        if not left.plan.bytes_later or left.plan.precisions[0] == "int8":
            return None
        rows = left.look()
        if len(rows) * left.points.numel() < tuning.AS_BYTES_PRODUCTS or not (shifts := shifts_of(left.points)):
            return None
        queries = left.search.queries[rows]
        return (rows, queries, shifts[0]) if shifts[0] in shifts_of(queries) else None

    def run(self, left: Unproved, given: tuple[Any, Any, int]) -> None:
        rows, queries, shift = given
        plan = left.part(len(left.points), len(rows))

        def rehearse(search: Search, own: Any) -> None:
            left.rehearse(shifted_points(search.prepared.points, plan, shift), plan, search.queries, own, len(rows))

        with left.expecting(rehearse, len(rows)):
            shifted = shifted_points(left.points, plan, shift, queries)
            if shifted.is_usable():
                left.among_all(rows, queries, shifted, plan)
