"""Boxes around small runs of coded points: a search of few queries reads only the codes in boxes within reach.

The points are packed in an order in which near points are adjacent: the rows of a window of the file are halved again
and again, each time along the column in which they spread most, down to cells of 24 or 32 points. The box of a cell
has two bytes per column, the ends of the range of its points' contracted rows. The distance of a query from a box is a
lower bound of its distance from every point of the cell (docs/exactness.md, "Boxes around codes").
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.exact import tuning
from tonari.exact.memory import METADATA_BYTES
from tonari.metrics import get_metric

Rows = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Squares = npt.NDArray[np.int32]

PARTS = 16  # kBoxParts of native/exact/boxes.hpp: squares of gaps are in sixteenths of a step
_STEPS = 255  # kBoxSteps


class BoxForm(NamedTuple):
    """The contracted form of boxes, and the steps of their ends.

    Attributes
    ----------
    form : Form
    directions : float64 array of shape (d, columns - 1), optional
        The directions of the form; None if rows have so few columns that all are compared.
    least, step : float
        The ends of boxes are least + i * step, for i from 0 to 255.
    """

    form: _native.Form
    directions: Floats | None
    least: float
    step: float

    @property
    def error(self) -> float:
        """A bound on the error of the computed row, in float32, relative to its length (native/exact/pack_tile.hpp)."""
        unit, count = 2.0**-53, 0 if self.directions is None else self.directions.shape[1]
        d = 0 if self.directions is None else len(self.directions)
        sums, root = d + 16, math.sqrt(count)
        last = math.sqrt(4 * unit * sums * (root + 2)) if count else 0.0
        return 2 * (2.0**-23 + 2 * unit * sums * (root + 2) + last)

    @classmethod
    def of(
        cls, metric: str, centre: list[float], scale: float, directions: Floats | None, steps: tuple[float, float]
    ) -> BoxForm:
        """Return the form of boxes with this centre, scale, directions and steps (least, step)."""
        return cls(_native.Form(metric, centre, scale, directions), directions, *steps)

    @classmethod
    def chosen(cls, sample: Rows, metric: str, centre: list[float], scale: float) -> BoxForm | None:
        """Choose the form of boxes by a sample of the points; None for inner products, which are no distances."""
        if get_metric(metric).products:
            return None
        d, form, directions = sample.shape[1], _native.Form(metric, centre, scale), None
        if d > tuning.BOXED_COLUMNS:
            directions = np.empty((d, tuning.BOXED_COLUMNS - 1))
            form.contracted(sample, 1, tuning.BOXED_COLUMNS).directions(directions)
            form = _native.Form(metric, centre, scale, directions)
        rows = np.empty((len(sample), form.columns))
        form.screened_rows(sample, 1, rows)
        rows = rows[np.isfinite(rows[:, 0])]
        least, most = (float(rows.min()), float(rows.max())) if len(rows) else (0.0, 0.0)
        return cls(form, directions, least, (most - least) / _STEPS if most > least else 1.0)


class Boxes:
    """The order of coded points, and the boxes of their cells.

    Parameters
    ----------
    made : BoxForm
    n : int
        The number of points.
    group : int
        The number of points in a group of the kernel. A cell is one group or several.

    Attributes
    ----------
    cell : int
        The number of points in a cell.
    order : int64 array of shape (n,)
        The row number of the point at each packed position.
    ends : uint8 array of shape (2, columns, cells)
        The lower ends of all boxes, and their upper ends.
    """

    def __init__(self, made: BoxForm, n: int, group: int) -> None:
        self.made, self.group = made, group
        self.cell = cell_of(group)
        self.order: Numbers = np.empty(n, np.int64)
        self.ends = np.zeros((2, made.form.columns, -(-n // self.cell)), np.uint8)

    @property
    def nbytes(self) -> int:
        """The bytes of the order and the boxes."""
        return self.order.nbytes + self.ends.nbytes

    def arrange(self, points: Rows, begin: int, end: int, workers: Workers) -> None:
        """Set the order of points [begin, end), and write their boxes; `begin` is a multiple of the cell."""
        made, columns = self.made, self.made.form.columns
        sketch = np.empty((end - begin, columns), np.float32)

        def work(part: slice) -> None:
            workers.check()
            rows = np.empty((part.stop - part.start, columns))
            made.form.screened_rows(np.ascontiguousarray(points[begin + part.start : begin + part.stop]), 1, rows)
            sketch[part] = rows

        workers.map(work, cut(end - begin, tuning.CENTRE_TASK))
        order = self.order[begin:end]
        _native.order_cells(sketch, self.cell, order)
        steps = (made.least, made.step, made.error)
        _native.write_boxes(sketch, order, self.cell, *steps, self.ends, begin // self.cell)
        order += begin

    def sketched(self, query: Rows) -> Floats | None:
        """Return the row of a query, of shape (1, d), in the form of the boxes; None if it is beyond their range."""
        row = np.empty((1, self.made.form.columns))
        self.made.form.screened_rows(query, 1, row)
        return row[0] if np.isfinite(row).all() else None

    def squares(self, query: Floats, isa: str, workers: Workers) -> Squares:
        """Return the squared distance of a query from each box, rounded down, in units of (step / 16)²."""
        made, cells = self.made, self.ends.shape[2]
        squares: Squares = np.empty(cells, np.int32)
        size = max(-(-cells // workers.threads), tuning.BOXED_SHARED // self.cell)

        def work(part: slice) -> None:
            steps = (made.least, made.step, made.error)
            _native.box_squares(self.ends, query, *steps, isa, part.start, part.stop, squares)

        workers.map(work, cut(cells, size))
        return squares

    def within(self, squares: Squares, reach: float) -> npt.NDArray[np.bool_]:
        """Return, for each box, whether it may contain a point whose squared distance is at most `reach`."""
        most = reach * (PARTS / self.made.step) ** 2 * (1 + 2.0**-20)
        return squares <= (math.ceil(most) if most < 2**31 - 1 else 2**31 - 1)

    def groups(self, boxes: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Return the marks of the groups of the kernel, in the order of the packed points, from marks of boxes."""
        each = self.cell // self.group
        return (np.repeat(boxes, each) if each > 1 else boxes).view(np.uint8)


class WrittenBoxes(NamedTuple):
    """Boxes as plain values: the fields of a :class:`BoxForm`, the group of the kernel, the order and the ends."""

    directions: Floats | None
    least: float
    step: float
    group: int
    order: Numbers
    ends: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, boxes: Boxes | None) -> WrittenBoxes | None:
        """Return the values of boxes; None without boxes."""
        return None if boxes is None else cls(*boxes.made[1:], boxes.group, boxes.order, boxes.ends)

    def restored(self, metric: str, centre: list[float], scale: float) -> Boxes:
        """Return the boxes with these values."""
        made = BoxForm.of(metric, centre, scale, self.directions, (self.least, self.step))
        boxes = Boxes(made, 0, self.group)
        boxes.order, boxes.ends = self.order, self.ends
        return boxes


def cell_of(group: int) -> int:
    """Return the number of points in a cell, for a kernel whose groups have `group` points."""
    return tuning.BOXED_CELL if tuning.BOXED_CELL % group == 0 else group


def boxes_bytes(n: int, d: int) -> int:
    """Return the bytes of the order and the boxes of n points, and of the memory for making and comparing them."""
    columns, cells = min(d, tuning.BOXED_COLUMNS), -(-n // tuning.BOXED_CELL)
    # While a window is put in order, its points have no codes yet.
    making = min(n, window_of(n)) * max(0, 4 * columns + 16 - METADATA_BYTES)
    return 8 * n + 2 * columns * cells + max(making, 8 * cells + n)


def window_of(n: int) -> int:
    """Return the number of points that are put in order together."""
    return min(tuning.BOXED_WINDOW, max(tuning.LEAST_WINDOW, n // 16))
