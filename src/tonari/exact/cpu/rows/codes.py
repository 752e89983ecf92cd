"""Points that are in memory only as codes: contracted rows in int8, with their measured errors.

The original rows are not copied; they are usually in a mapped file. A search compares codes, and reads only the rows
that the codes cannot rule out (docs/exactness.md, "Codes"). All codes are made in one pass over the rows: a slice is
checked, its checksum is computed, and it is packed while its pages are in memory.

A pilot chooses the number of columns. Fewer columns take less memory and time per point, but leave more rows to be
read. The pilot compares some rows with a sample. The k-th neighbour among all points is nearer than the nearest point
of the sample. Its distance is therefore extrapolated: the number of points within a distance is assumed to grow as a
power of the distance.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core import _native
from tonari.core._native import PackedPoints
from tonari.core.errors import BudgetExceeded
from tonari.core.problem import Problem
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.rows.draws import Purpose, generator
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.costs.rates import READ_RATE
from tonari.exact import tuning
from tonari.exact.cpu.rows.contraction import Arrangement, narrowed_rows, sample_scores
from tonari.exact.cpu.rows.prepared import PreparedPoints, centre_and_scale
from tonari.exact.memory import packed_row_bytes
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.io.stored import forget_pages
from tonari.metrics import get_metric

Rows = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

PRECISION = "int8"


class CodeForm(NamedTuple):
    """The form of codes, and the values that determine it: centre, scale and directions.

    Attributes
    ----------
    form : Form
    centre : list of float
    scale : float
    directions : float64 array of shape (d, columns - 1), optional
        The directions of a contracted form.
    """

    form: _native.Form
    centre: list[float]
    scale: float
    directions: Floats | None

    @property
    def columns(self) -> int | None:
        """The number of columns of a contracted form; None if all columns are compared."""
        return None if self.directions is None else self.form.columns

    @classmethod
    def of(cls, metric: str, centre: list[float], scale: float, directions: Floats | None) -> CodeForm:
        """Return the form of codes with this centre, scale and directions."""
        return cls(_native.Form(metric, centre, scale, directions), centre, scale, directions)


class WrittenCodes(NamedTuple):
    """The codes of the points [begin, end), as bytes in the layout of a kernel.

    Attributes
    ----------
    begin, end : int
    packed : uint8 array
    """

    begin: int
    end: int
    packed: Bytes


class CodedPoints(PreparedPoints):
    """Points with codes in memory; see :class:`PreparedPoints`.

    Parameters
    ----------
    points : array of shape (n, d)
        Rows whose values are not checked yet; there may be gaps between them.
    plan : ExactPlan
        A plan with the fields that :func:`overrides_of` returns for the form.
    made : CodeForm
    progress : None, bool or callable(done, total)
        As for :class:`PreparedPoints`.
    written : sequence of WrittenCodes, optional
        Codes that :meth:`written` returned, for the first kernel of the plan. Default: make them from the rows.

    Attributes
    ----------
    checksums : list of (int, int, int)
        Begin, end and CRC-32 of the rows of each slice; empty if the codes were not made from the rows.
    """

    def __init__(
        self,
        points: Rows,
        plan: ExactPlan,
        made: CodeForm,
        progress: ProgressLike = None,
        written: Sequence[WrittenCodes] | None = None,
    ) -> None:
        self.checksums: list[tuple[int, int, int]] = []
        kernel = plan.kernels[PRECISION]
        self._restored = [_native.restored_points(kernel, made.form, *part) for part in written or ()]
        bounds = [(part.begin, part.end) for part in written or ()]
        arrangement = Arrangement(made.form, made.form.columns)
        super().__init__(points, plan, progress, made=arrangement, slices=bounds or None)

    def pack(
        self,
        kernel: str,
        slices: list[tuple[int, int]],
        workers: Workers,
        bar: Progress | None = None,
        *,
        looks: bool = True,
    ) -> list[PackedPoints]:
        """Check and pack slices of the points in one pass over the rows, or return codes restored from a file."""
        if self._restored:
            restored, self._restored = self._restored, []
            return restored

        def work(bounds: tuple[int, int]) -> tuple[PackedPoints, int]:
            workers.check()
            begin, end = bounds
            rows = np.ascontiguousarray(self.points[begin:end])
            if _is_refused(rows):
                _refuse(self.points)
            checksum = checksum_of(rows)
            del rows
            packed = PackedPoints(kernel, self.form, self.points, begin, end)
            forget_pages(self.points[begin:end])
            if bar is not None:
                bar.add(packed.count)
            return packed, checksum

        found = workers.map(work, slices)
        self.checksums = [(*bounds, checksum) for bounds, (_, checksum) in zip(slices, found, strict=True)]
        return [packed for packed, _ in found]

    def release(self) -> None:
        """Do nothing, although this is called to free memory: making the codes again would take long."""

    @property
    def kernel(self) -> str:
        """The kernel that the codes are packed for."""
        return self._held[0]

    def written(self) -> list[WrittenCodes]:
        """Return the codes as bytes."""
        parts = []
        for (begin, end), packed in zip(self.slices, self._held[1], strict=True):
            to = np.empty(packed.nbytes, np.uint8)
            packed.write(to)
            parts.append(WrittenCodes(begin, end, to))
        return parts


def checksum_of(rows: Rows) -> int:
    """Return the CRC-32 of C-contiguous rows."""
    return zlib.crc32(rows.view(np.uint8).data)


def _is_refused(rows: Rows) -> bool:
    try:
        inputs.check_held_values(rows, "points", first=0, nonnegative=False)
    except ValueError:
        return True
    return False


def _refuse(points: Rows) -> None:
    """Raise the error for the first row with a refused value, which may precede the row that a thread has found."""
    for part in cut(len(points), tuning.COPIES_TASK):
        inputs.check_held_values(np.ascontiguousarray(points[part]), "points", first=part.start, nonnegative=False)


def overrides_of(columns: int | None) -> dict[str, Any]:
    """Return the plan's fields for codes of `columns` columns (None: all columns), all of which stay in memory."""
    return {"precisions": (PRECISION,), "resident": True} | ({} if columns is None else {"form_dim": columns})


def choose_form(points: Rows, problem: Problem, asked: int | None = None) -> CodeForm:
    """Choose the form of codes: a pilot chooses the number of columns, and a sample determines their directions.

    Parameters
    ----------
    points : array of shape (n, d)
    problem : Problem
        Its m and k describe an expected search. Its memory is the budget for the codes and that search.
    asked : int, optional
        The number of columns that the caller requests.

    Raises
    ------
    BudgetExceeded
        No number of columns fits into the memory.
    """
    n, d = points.shape
    most = min(tuning.CODED_ROWS, max(1, tuning.CENTRED_VALUES // d))
    sample = _sample(points, -(-n // min(n, most)))
    if _is_refused(sample):
        _refuse(points)
    centre, scale = centre_and_scale(sample, problem.metric)
    form = _native.Form(problem.metric, centre, scale)
    if asked is not None:
        plan_on_cpu(problem, **overrides_of(asked))  # refuses invalid numbers
        return _contracted(sample, form, centre, scale, asked, problem.metric)
    step = tuning.CODED_STEP
    widths = [*range(step, min(tuning.CODED_COLUMNS, d - 1) + 1, step)]
    if n < tuning.CODED_FROM or not widths:
        columns, seconds = d, {}
    else:
        seconds = _seconds(sample, form, form.contracted(sample, 1, widths[-1]), widths, problem)
        columns = min(seconds, key=seconds.__getitem__)
    fitting = _fitting(problem, columns)
    if seconds:
        why = "" if fitting == columns else f", and memory={problem.memory} holds {fitting}"
        decided("columns", f"{fitting} of {d}: a pilot prefers {columns} ({seconds[columns]:.3g} s a query){why}")
    return _contracted(sample, form, centre, scale, fitting, problem.metric)


def _sample(points: Rows, step: int) -> Rows:
    """Copy every step-th row, a few rows at once: with each row of a mapped file, the system reads pages around it."""
    rows = points[::step]
    sample = np.empty(rows.shape, rows.dtype)
    for part in cut(len(rows), tuning.CODED_READ):
        sample[part] = rows[part]
        forget_pages(rows[part])
    return sample


def _contracted(
    sample: Rows, form: _native.Form, centre: list[float], scale: float, columns: int, metric: str
) -> CodeForm:
    d = sample.shape[1]
    if columns >= d:
        return CodeForm(form, centre, scale, None)
    directions = np.empty((d, columns - 1))
    form.contracted(sample, 1, columns).directions(directions)
    if directions.any(axis=0).all():  # the sample spans all directions that the contraction needs
        directions = np.ascontiguousarray(directions @ _turn(columns - 1))
    return CodeForm.of(metric, centre, scale, directions)


def _turn(size: int) -> Floats:
    """Return a random rotation, which evens out the coordinates of a row: the largest one determines the int8 step."""
    draws = generator(0, Purpose.CODES).standard_normal((size, size))
    return np.linalg.qr(draws)[0]


def _fitting(problem: Problem, columns: int) -> int:
    """Return the largest number of columns, at most `columns`, for which the codes and a search fit into the memory."""
    tried = columns
    while True:
        try:
            plan_on_cpu(problem, **overrides_of(tried if tried < problem.d else None))
        except BudgetExceeded:
            fewer = (tried - 1) // 4 * 4  # the int8 kernels multiply runs of 4 columns
            if fewer < tuning.CODED_STEP:
                raise
            tried = fewer
        else:
            return tried


def _seconds(
    sample: Rows, form: _native.Form, wide: _native.Form, widths: list[int], problem: Problem
) -> dict[int, float]:
    """Return the expected seconds per query for codes of all columns, and for each number of columns in `widths`."""
    rows, contracted = _screened(sample, form, problem.d), _screened(sample, wide, widths[-1])
    inside = np.isfinite(rows[:, 0])
    rows, contracted = rows[inside], contracted[inside]
    if len(rows) < 2:
        return {problem.d: 0.0}
    n, own = problem.n, np.arange(0, len(rows), -(-len(rows) // tuning.PILOT_QUERIES))
    norms = np.linalg.norm(rows, axis=1)
    # The part of a score that depends only on the point; for angular metrics it is a constant.
    terms = np.zeros(len(rows)) if get_metric(problem.metric).products else norms**2
    farthest = _farthest(sample_scores(rows, own, terms), terms[own], problem)
    found = {}
    for columns in [*widths, problem.d]:
        narrowed = rows if columns == problem.d else narrowed_rows(contracted, columns)
        packed = (
            rows if columns == problem.d else np.column_stack([narrowed[:, :-1] @ _turn(columns - 1), narrowed[:, -1]])
        )
        apart = np.abs(packed).max(axis=1) / 127 * np.sqrt(columns / 12)  # estimated error from rounding each row
        errors = 2 * (norms[own, None] * apart + apart[own, None] * norms)
        left = float(np.mean(sample_scores(narrowed, own, terms) <= farthest[:, None] + errors)) * n + problem.k
        read = n * packed_row_bytes(columns, PRECISION) / READ_RATE
        found[columns] = read + left * tuning.CODED_ROW_SECONDS
    return found


def _farthest(scores: Floats, own: Floats, problem: Problem) -> Floats:
    """Estimate the score of each row's k-th neighbour among all points from its scores with the points of a sample.

    `own` is, for each row, the part of a squared distance that depends only on this row.
    """
    size, far = scores.shape[1], tuning.CODED_FAR
    rank = problem.k * size / problem.n
    if rank >= 1 or size <= far or get_metric(problem.metric).products:
        at = min(size - 1, max(1, math.ceil(rank))) - 1
        return np.asarray(np.partition(scores, at, axis=1)[:, at])
    first, last = np.maximum(np.partition(scores, (0, far - 1), axis=1)[:, [0, far - 1]].T + own, 0)
    growth = np.zeros(len(own))
    np.log(np.divide(last, first, out=np.ones_like(last), where=first > 0), out=growth)
    # The squared distance to the r-th neighbour grows like this power of r.
    return np.asarray(first * rank ** (growth / math.log(far)) - own)


def _screened(sample: Rows, form: _native.Form, columns: int) -> Floats:
    rows = np.empty((len(sample), columns))
    form.screened_rows(sample, 1, rows)
    return rows
