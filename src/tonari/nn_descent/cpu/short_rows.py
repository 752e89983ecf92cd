"""Contracted copies of wide rows, for a start that compares fewer columns (docs/contraction.md).

A start only ranks points, so it needs no bound. Contracted rows are used if, for a sample of points, they rank the true
neighbours near the beginning of the lists. The rounds compare the points themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.exact.cpu.rows.prepared import centre_and_scale
from tonari.metrics import get_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]


def short_rows(points: Rows, plan: DescentPlan, known: Known, workers: Workers) -> npt.NDArray[np.float32] | None:
    """Contract the points to the fewest columns that rank true neighbours well enough.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan
    known : Known
        The true neighbours of some points.

    Returns
    -------
    float32 of shape (n, columns), or None
        Rows whose squared L2 distances rank neighbours nearly like the metric. None if that takes too many columns.
    """
    record = get_metric(plan.metric)
    # The contracted rows and a packed copy, both float32, must fit into the memory that is planned for packed points.
    most = min(plan.d // tuning.SHORT_SHARE, plan.packed_bytes // plan.n // 8)
    widths = [columns for columns in tuning.SHORT_COLUMNS if columns <= most]
    if not widths or not (record.angular or record.squares):
        return None
    form = _native.Form(plan.metric, *centre_and_scale(points, plan.metric))
    form = form.contracted(points, -(-plan.n // tuning.SHORT_ROWS), widths[-1])
    goal = 1 - (1 - plan.recall) * tuning.SHORT_MISSES
    for columns, share in zip(widths, _shares(points, form, plan, known, widths), strict=True):
        if share >= goal:
            decided("start", f"compares {columns} of {plan.d} columns, which rank {share:.3g} of some true neighbours")
            return _contracted(points, form.narrowed(columns), workers)
    return None


def _shares(points: Rows, form: _native.Form, plan: DescentPlan, known: Known, widths: list[int]) -> list[float]:
    """Estimate, for each width, the share of true neighbours that contracted rows rank high enough to be listed."""
    step = -(-plan.n // tuning.SHORT_ROWS)
    rows, sample = _wide(points[known.rows], form), _wide(points, form, step)
    true = _wide(points[known.indices.ravel()], form).reshape(len(rows), plan.k, -1)
    rank = plan.list_size / step  # expected rank, among the sampled rows, of the last entry of a list
    shares = []
    for columns in widths:
        q, x, t = (_narrowed(part, columns) for part in (rows, sample, true))
        scores = np.einsum("ij,ij->i", x, x) - 2 * q @ x.T
        of_true = np.einsum("ijc,ijc->ij", t, t) - 2 * np.einsum("ic,ijc->ij", q, t)
        nearer = (scores[:, None, :] < of_true[:, :, None]).sum(axis=2) - 1  # the row itself does not count
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


def _contracted(points: Rows, form: _native.Form, workers: Workers) -> npt.NDArray[np.float32]:
    out = np.empty((len(points), form.columns), np.float32)

    def work(part: slice) -> None:
        workers.check()
        out[part] = _wide(points[part], form)

    workers.map(work, cut(len(points), tuning.SHORT_TASK))
    return out
