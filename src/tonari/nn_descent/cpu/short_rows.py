"""Contracted copies of wide rows, for a start and for rounds that compare fewer columns (docs/contraction.md).

A start only ranks points, so it needs no bound. Contracted rows are used if, for a sample of points, they rank the true
neighbours near the beginning of the lists. The rounds rule out points by a bound on the distances of contracted rows,
and compare the other points themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.exact.cpu.rows.prepared import centre_and_scale
from tonari.exact.memory import SAMPLE_ROWS
from tonari.metrics import get_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]

# A contracted row in float32 differs from the exact one by at most ROUNDING sqrt(d + 16) times its norm. The square of
# its last column is off by at most 4 u (d + 16) (sqrt(columns) + 2) times the squared norm, with u = 2^-53
# (native/exact/pack_tile.hpp). For up to 128 columns, the root of that is below 2^-23.6 sqrt(d + 16) times the norm.
# The errors of the other columns and of rounding are far smaller.
ROUNDING = 2.0**-23
TINY = 2.0**-140  # error of rows that contain subnormal numbers


class ShortRows(NamedTuple):
    """Contracted rows of points.

    Attributes
    ----------
    rows : float32 of shape (n, columns)
        Their squared L2 distances rank neighbours nearly like the metric.
    form : Form
        The contracted form.
    scale, error : float
        For metrics of squared differences: the distance of two rows is at most that of the points times `scale`, plus
        `error`. If a point is beyond the range of the form, `error` is infinity.
    bounds : bool
        Whether the rows bound distances of the metric.
    """

    rows: npt.NDArray[np.float32]
    form: _native.Form
    scale: float
    error: float
    bounds: bool


def short_rows(points: Rows, plan: DescentPlan, known: Known, workers: Workers) -> ShortRows | None:
    """Contract the points to the smallest number of columns that still ranks true neighbours well enough.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan
    known : Known
        The true neighbours of some points.

    Returns
    -------
    ShortRows or None
        None if ranking neighbours nearly like the metric takes too many columns.
    """
    found = _narrowed(points, plan, known)
    if found is None:
        return None
    form, scale, share = found
    decided("start", f"compares {form.columns} of {plan.d} columns, which rank {share:.3g} of some true neighbours")
    rows, largest = _contracted(points, form, workers)
    error = 2 * (largest * ROUNDING * math.sqrt(plan.d + 16) + TINY)
    return ShortRows(rows, form, scale, error, get_metric(plan.metric).squares and math.isfinite(error))


def contract(points: Rows, plan: DescentPlan, known: Known) -> bool:
    """Return whether a start would compare contracted rows of these points; see :func:`short_rows`."""
    return _narrowed(points, plan, known) is not None


def _narrowed(points: Rows, plan: DescentPlan, known: Known) -> tuple[_native.Form, float, float] | None:
    """Find the contracted form of the fewest columns that rank true neighbours well enough.

    Returns
    -------
    (form, scale, share) or None
        `scale` is as in :class:`ShortRows`; `share` of the true neighbours are ranked well enough.
    """
    record = get_metric(plan.metric)
    # The contracted rows and a packed copy, both float32, must fit into the memory that is planned for packed points.
    most = min(plan.d // tuning.SHORT_SHARE, plan.packed_bytes // plan.n // 8)
    widths = [columns for columns in tuning.SHORT_COLUMNS if columns <= most]
    if not widths or not (record.angular or record.squares):
        return None
    centre, scale = centre_and_scale(points, plan.metric)
    form = _native.Form(plan.metric, centre, scale)
    form = form.contracted(points, -(-plan.n // SAMPLE_ROWS), widths[-1])
    goal = 1 - (1 - plan.recall) * tuning.SHORT_MISSES
    for columns, share in zip(widths, _shares(points, form, plan, known, widths), strict=False):
        if share >= goal:
            return form.narrowed(columns), scale, share
    return None


def _shares(points: Rows, form: _native.Form, plan: DescentPlan, known: Known, widths: list[int]) -> Iterator[float]:
    """Estimate, for each contracted width, the share of true neighbours that rank high enough to enter a list."""
    step = -(-plan.n // tuning.SHORT_ROWS)
    rows, sample = _wide(points[known.rows], form), _wide(points, form, step)
    true = _wide(points[known.indices.ravel()], form)
    of_row = np.repeat(np.arange(len(rows)), known.indices.shape[1])
    # The rank that is high enough: that of the last list entry, counted in sampled rows, plus one for the row itself.
    place = min(math.ceil(plan.list_size / step), len(sample) - 1)
    squares, of_true = (np.einsum("ij,ij->i", part, part) for part in (sample, true))
    scores, found = np.repeat(squares[:, None], len(rows), axis=1), np.empty((len(sample), len(rows)))
    begin = 0
    for columns in widths:
        q, x, t = (np.ascontiguousarray(part[:, begin : columns - 1]) for part in (rows, sample, true))
        _native.products(x, q, found)
        scores -= 2 * found
        of_true -= 2 * np.einsum("ij,ij->i", q[of_row], t)
        q, x, t = (np.linalg.norm(part[:, columns - 1 :], axis=1) for part in (rows, sample, true))
        last = np.partition(scores - 2 * x[:, None] * q, place, axis=0)[place]
        yield float(np.mean(of_true - 2 * q[of_row] * t <= last[of_row]))
        begin = columns - 1


def _wide(points: Rows, form: _native.Form, step: int = 1) -> npt.NDArray[np.float64]:
    """Return every step-th row in the form that is contracted; a row beyond the form's range becomes zeros."""
    rows = np.empty((-(-len(points) // step), form.columns))
    form.screened_rows(points, step, rows)
    return np.nan_to_num(rows)


def _contracted(points: Rows, form: _native.Form, workers: Workers) -> tuple[npt.NDArray[np.float32], float]:
    """Return the contracted rows and their largest norm, which is infinite if a row is beyond the form's range."""
    out = np.empty((len(points), form.columns), np.float32)

    def work(part: slice) -> float:
        workers.check()
        rows = np.empty((len(points[part]), form.columns))
        form.screened_rows(points[part], 1, rows)
        square = float(np.einsum("ij,ij->i", rows, rows).max())
        out[part] = rows if math.isfinite(square) else np.nan_to_num(rows)
        return math.sqrt(square) if math.isfinite(square) else math.inf

    return out, max(workers.map(work, cut(len(points), tuning.SHORT_TASK)))
