"""Contracted copies of wide rows, for a start and for rounds that compare fewer columns (docs/contraction.md).

A start only ranks points, so it needs no bound: contracted rows are used if they rank the true neighbours of some
points near the beginning of their lists. The rounds rule out points by a bound on the distances of contracted rows, and
compare the others themselves.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.slices import cut
from tonari.core.trail import decided
from tonari.exact.cpu.rows.prepared import centre_and_scale
from tonari.metrics import get_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]

# A contracted row in float32 differs from the exact one by at most ROUNDING sqrt(d + 16) times its norm: the error of the
# square of its last column is at most 4 u (d + 16) (sqrt(columns) + 2) times the squared norm, with u = 2^-53
# (native/exact/pack_tile.hpp). For up to 128 columns, the root of that is below 2^-23.6 sqrt(d + 16) times the norm. The
# errors of the other columns and of rounding are far smaller.
ROUNDING = 2.0**-23
TINY = 2.0**-140  # of rows of subnormal numbers


class ShortRows(NamedTuple):
    """Contracted rows of points.

    Attributes
    ----------
    rows : float32 of shape (n, columns)
        Their squared L2 distances rank neighbours nearly like the metric.
    scale, error : float
        For metrics of squared differences: the distance of two rows is at most that of the points times `scale`, plus
        `error`. If a point is beyond the range of the form, `error` is infinity.
    bounds : bool
        Whether the rows bound distances of the metric.
    """

    rows: npt.NDArray[np.float32]
    scale: float
    error: float
    bounds: bool


def short_rows(points: Rows, plan: DescentPlan, known: Known, workers: Workers) -> ShortRows | None:
    """Contract the points to the fewest columns that rank true neighbours well enough.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan
    known : Known
        The true neighbours of some points.

    Returns
    -------
    ShortRows or None
        None if no small number of columns ranks neighbours nearly like the metric.
    """
    record = get_metric(plan.metric)
    # Two float32 copies of the contracted rows, one of them packed, must fit into the memory planned for packed points.
    most = min(plan.d // tuning.SHORT_SHARE, plan.packed_bytes // plan.n // 8)
    widths = [columns for columns in tuning.SHORT_COLUMNS if columns <= most]
    if not widths or not (record.angular or record.squares):
        return None
    centre, scale = centre_and_scale(points, plan.metric)
    form = _native.Form(plan.metric, centre, scale)
    form = form.contracted(points, -(-plan.n // tuning.SHORT_ROWS), widths[-1])
    goal = 1 - (1 - plan.recall) * tuning.SHORT_MISSES
    for columns, share in zip(widths, _shares(points, form, plan, known, widths), strict=True):
        if share >= goal:
            decided("start", f"compares {columns} of {plan.d} columns, which rank {share:.3g} of some true neighbours")
            rows, largest = _contracted(points, form.narrowed(columns), workers)
            error = 2 * (largest * ROUNDING * math.sqrt(plan.d + 16) + TINY)
            return ShortRows(rows, scale, error, record.squares and math.isfinite(error))
    return None


def _shares(points: Rows, form: _native.Form, plan: DescentPlan, known: Known, widths: list[int]) -> list[float]:
    """Estimate, for each number of columns, the share of true neighbours that contracted rows rank within a list."""
    step = -(-plan.n // tuning.SHORT_ROWS)
    rows, sample = _wide(points[known.rows], form), _wide(points, form, step)
    true = _wide(points[known.indices.ravel()], form).reshape(len(rows), plan.k, -1)
    rank = plan.list_size / step  # rank of the last list entry among the sampled rows
    shares = []
    for columns in widths:
        q, x, t = (_narrowed(part, columns) for part in (rows, sample, true))
        scores = np.einsum("ij,ij->i", x, x) - 2 * q @ x.T
        of_true = np.einsum("ijc,ijc->ij", t, t) - 2 * np.einsum("ic,ijc->ij", q, t)
        nearer = (scores[:, None, :] < of_true[:, :, None]).sum(axis=2) - 1  # without the row itself, if sampled
        shares.append(float(np.mean(nearer < rank)))
    return shares


def _wide(points: Rows, form: _native.Form, step: int = 1) -> npt.NDArray[np.float64]:
    """Return every step-th row, transformed to the contracted form; a row beyond the form's range becomes zeros."""
    rows = np.empty((-(-len(points) // step), form.columns))
    form.screened_rows(points, step, rows)
    return np.nan_to_num(rows)


def _narrowed(rows: npt.NDArray[np.float64], columns: int) -> npt.NDArray[np.float64]:
    rest = np.linalg.norm(rows[..., columns - 1 :], axis=-1, keepdims=True)
    return np.concatenate([rows[..., : columns - 1], rest], axis=-1)


def _contracted(points: Rows, form: _native.Form, workers: Workers) -> tuple[npt.NDArray[np.float32], float]:
    """Return contracted rows and the largest of their norms; infinity if a row is beyond the form's range."""
    out = np.empty((len(points), form.columns), np.float32)

    def work(part: slice) -> float:
        workers.check()
        rows = np.empty((len(points[part]), form.columns))
        form.screened_rows(points[part], 1, rows)
        square = float(np.einsum("ij,ij->i", rows, rows).max())
        out[part] = rows if math.isfinite(square) else np.nan_to_num(rows)
        return math.sqrt(square) if math.isfinite(square) else math.inf

    return out, max(workers.map(work, cut(len(points), tuning.SHORT_TASK)))
