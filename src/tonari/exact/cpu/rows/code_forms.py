"""The form of codes: the number of columns, their directions, and the form of the boxes around codes.

A pilot chooses the number of columns. Fewer columns take less memory and time per point, but leave more rows to be
read. The pilot compares some rows with a sample. The k-th neighbour among all points is nearer than the nearest point
of the sample. Its distance is therefore extrapolated: the number of points within a distance is assumed to grow as a
power of the distance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core import _native
from tonari.core.errors import BudgetExceeded
from tonari.core.problem import Problem
from tonari.core.process.isa import chosen_isa
from tonari.core.rows.draws import Purpose, generator
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.costs.rates import READ_RATE
from tonari.exact import tuning
from tonari.exact.cpu.rows.boxes import BoxForm, boxes_bytes
from tonari.exact.cpu.rows.contraction import narrowed_rows, sample_scores
from tonari.exact.cpu.rows.prepared import centre_and_scale
from tonari.exact.memory import packed_row_bytes
from tonari.exact.planning.planner import plan_on_cpu
from tonari.io.stored import forget_pages
from tonari.metrics import get_metric

Rows = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

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
    boxes : BoxForm, optional
        The form of boxes around codes, for a search of few queries; None for inner products.
    isa : str, optional
        The instruction set of the kernel, unless it is the default.
    """

    form: _native.Form
    centre: list[float]
    scale: float
    directions: Floats | None
    boxes: BoxForm | None
    isa: str | None = None

    @property
    def columns(self) -> int | None:
        """The number of columns of a contracted form; None if all columns are compared."""
        return None if self.directions is None else self.form.columns

    @classmethod
    def of(
        cls, metric: str, centre: list[float], scale: float, directions: Floats | None, boxes: BoxForm | None
    ) -> CodeForm:
        """Return the form of codes with this centre, scale, directions, and form of boxes."""
        return cls(_native.Form(metric, centre, scale, directions), centre, scale, directions, boxes)


def overrides_of(columns: int | None, isa: str | None = None) -> dict[str, Any]:
    """Return the plan's fields for codes of `columns` columns (None: all columns); all codes stay in memory.

    `isa` is the instruction set of the kernel; None for the default.
    """
    chosen = {"form_dim": columns, "isa": isa}
    return {"precisions": (PRECISION,), "resident": True, "active_rows": 0} | {
        name: value for name, value in chosen.items() if value is not None
    }


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
    if is_refused(sample):
        refuse(points)
    centre, scale = centre_and_scale(sample, problem.metric)
    boxes = BoxForm.chosen(sample, problem.metric, centre, scale)
    form = CodeForm.of(problem.metric, centre, scale, None, boxes)
    if boxes is None or problem.memory is None:
        return _chosen(sample, form, problem, asked)
    beside = boxes_bytes(n, d)
    try:
        return _chosen(sample, form, replace(problem, memory=max(1, problem.memory - beside)), asked)
    except BudgetExceeded as error:
        least = beside + (error.least or 0)
        why = f"codes with their order and boxes do not fit into memory={problem.memory}: allow at least {least}"
        raise BudgetExceeded(why, least=least) from error


def _chosen(sample: Rows, form: CodeForm, problem: Problem, asked: int | None) -> CodeForm:
    """Contract a form of all columns to the requested number of columns, or to the one that a pilot chooses."""
    n, d = problem.n, problem.d
    if asked is not None:
        plan_on_cpu(problem, **overrides_of(asked))  # refuses invalid numbers
        return _contracted(sample, form, asked, problem.metric)
    step = tuning.CODED_STEP
    widths = [*range(step, min(tuning.CODED_COLUMNS, d - 1) + 1, step)]
    if n < tuning.CODED_FROM or not widths:
        columns, seconds = d, {}
    else:
        seconds = _seconds(sample, form.form, form.form.contracted(sample, 1, widths[-1]), widths, problem)
        columns = min(seconds, key=seconds.__getitem__)
    fitting, isa = _fitting(problem, columns)
    if seconds:
        why = "" if fitting == columns else f", and memory={problem.memory} holds {fitting}"
        decided("columns", f"{fitting} of {d}: a pilot prefers {columns} ({seconds[columns]:.3g} s a query){why}")
    return _contracted(sample, form, fitting, problem.metric)._replace(isa=isa)


def _sample(points: Rows, step: int) -> Rows:
    """Copy every step-th row, a few rows at once: with each row of a mapped file, the system reads pages around it."""
    rows = points[::step]
    sample = np.empty(rows.shape, rows.dtype)
    for part in cut(len(rows), tuning.CODED_READ):
        sample[part] = rows[part]
        forget_pages(rows[part])
    return sample


def _contracted(sample: Rows, whole: CodeForm, columns: int, metric: str) -> CodeForm:
    """Return the form of all columns, contracted to some columns by the directions of a sample."""
    d = sample.shape[1]
    if columns >= d:
        return whole
    directions = np.empty((d, columns - 1))
    whole.form.contracted(sample, 1, columns).directions(directions)
    if directions.any(axis=0).all():  # the sample spans all directions that the contraction needs
        directions = np.ascontiguousarray(directions @ _turn(columns - 1))
    return CodeForm.of(metric, whole.centre, whole.scale, directions, whole.boxes)


def _turn(size: int) -> Floats:
    """Return a random rotation, which evens out the coordinates of a row: the largest one determines the int8 step."""
    draws = generator(0, Purpose.CODES).standard_normal((size, size))
    return np.linalg.qr(draws)[0]


def _fitting(problem: Problem, columns: int) -> tuple[int, str | None]:
    """Return the largest number of columns, at most `columns`, for which the codes and a search fit into the memory.

    The second value is the instruction set of the kernel, None for the default. AMX reads 64 columns of every code; if
    these do not fit, the codes are for AVX-512.
    """
    refused = None
    for isa in (None, "avx512") if chosen_isa() == "amx" else (None,):
        # The int8 kernels multiply runs of 4 columns.
        for tried in (columns, *range((columns - 1) // 4 * 4, tuning.CODED_STEP - 1, -4)):
            try:
                plan_on_cpu(problem, **overrides_of(tried if tried < problem.d else None, isa))
            except BudgetExceeded as error:
                refused = error
            else:
                return tried, isa
    assert refused is not None
    raise refused


def _seconds(
    sample: Rows, form: _native.Form, wide: _native.Form, widths: list[int], problem: Problem
) -> dict[int, float]:
    """Return the expected seconds per query for codes of all columns, and for each number of columns in `widths`."""
    rows, contracted = _screened(sample, form, problem.d), _screened(sample, wide, widths[-1])
    inside = np.isfinite(rows[:, 0])
    rows, contracted = rows[inside], contracted[inside]
    if len(rows) < 2:
        return {problem.d: 0.0}
    n, isa, own = problem.n, chosen_isa(), np.arange(0, len(rows), -(-len(rows) // tuning.PILOT_QUERIES))
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
        read = n * packed_row_bytes(columns, PRECISION, isa) / READ_RATE
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


def is_refused(rows: Rows) -> bool:
    try:
        inputs.check_held_values(rows, "points", first=0, nonnegative=False)
    except ValueError:
        return True
    return False


def refuse(points: Rows) -> None:
    """Raise the error for the first row with a refused value, which may precede the row that a thread has found."""
    for part in cut(len(points), tuning.COPIES_TASK):
        inputs.check_held_values(np.ascontiguousarray(points[part]), "points", first=part.start, nonnegative=False)
