"""Whether the rows are contracted: decided by a pilot of the points, where the plan leaves it open.

The pilot compares some points with a sample of all. How many of the sample a contracted score leaves as candidates,
within the distance of the k-th neighbour, tells what the screen and the candidates will cost. Answers do not depend on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.costs.rates import BRUTE, MULTIPLY, PRODUCTS, SURVIVOR, SURVIVOR_VALUE
from tonari.exact.plan import CONTRACTED, ExactPlan
from tonari.exact.precisions import usual_precisions

Floats = npt.NDArray[np.float64]

SAMPLE_ROWS = 2_048  # of which a contracted form takes its directions
_FEW_ROWS, _FEW_COLUMNS = 512, 32  # to find out quickly that rows spread evenly
_EVEN = 0.8  # share of the squared norm outside of those few columns from which on it is not worth to look closer
_QUERIES = 64
_LEAST_SECONDS = 2.0  # of one thread: less work does not pay for a pilot
_BETTER = 0.8  # the share of the time with all columns that a contraction may take at most
_SPARE = 1.5  # candidates per candidate of the pilot: thresholds fall while points are screened


def contracted(points: npt.NDArray[Any], form: _native.Form, columns: int) -> _native.Form:
    """Return the form, contracted by the principal directions of a sample of the points."""
    return form.contracted(points, -(-len(points) // SAMPLE_ROWS), columns)


def choose_form(points: npt.NDArray[Any], form: _native.Form, plan: ExactPlan, asked: int) -> tuple[_native.Form, int]:
    """Return the form to screen in, and how many columns it has.

    Parameters
    ----------
    points : array of shape (n, d)
    form : Form
        Of all columns.
    plan : ExactPlan
    asked : int
        Queries to expect.
    """
    n, d = points.shape
    if not plan.may_contract or _whole_seconds(plan, asked) < _LEAST_SECONDS:
        return form, d
    step = -(-n // _FEW_ROWS)
    few = _rows(form.contracted(points, step, _FEW_COLUMNS), points[step // 2 :], step, _FEW_COLUMNS)
    if not np.mean(few[:, -1] ** 2) < _EVEN * np.mean(np.einsum("ij,ij->i", few, few)):
        return form, d
    made = contracted(points, form, CONTRACTED)
    candidates = _candidates(points, form, made, plan)
    chosen = _contracted_seconds(plan, asked, candidates) < _BETTER * _whole_seconds(plan, asked)
    return (made, CONTRACTED) if chosen else (form, d)


def _rows(form: _native.Form, points: npt.NDArray[Any], step: int, columns: int) -> Floats:
    """Return every step-th row as the screen sees it, without those beyond its range."""
    rows = np.empty((-(-len(points) // step), columns))
    form.screened_rows(points, step, rows)
    return rows[np.isfinite(rows[:, 0])]


def _candidates(points: npt.NDArray[Any], form: _native.Form, made: _native.Form, plan: ExactPlan) -> float:
    """Return about how many candidates a row will have once its k-th distance is known."""
    n, d = points.shape
    step = -(-n // SAMPLE_ROWS)
    whole, few = (
        _rows(seen, points, step, columns).astype(np.float32) for seen, columns in ((form, d), (made, CONTRACTED))
    )
    rank = -(-plan.k * len(whole) // n)
    if len(whole) <= rank:
        return float(n)
    squares, pilot = np.einsum("ij,ij->i", whole, whole), slice(0, None, -(-len(whole) // _QUERIES))
    scores = squares - 2 * whole[pilot] @ whole.T
    lowest = squares - 2 * few[pilot] @ few.T
    own = np.arange(len(whole))[pilot]
    scores[np.arange(len(own)), own] = lowest[np.arange(len(own)), own] = np.inf
    kth = np.partition(scores, rank - 1, axis=1)[:, rank - 1]
    beside = np.count_nonzero(lowest <= kth[:, None], axis=1).mean() - rank
    return float(plan.k + beside * n / len(whole))


def _whole_seconds(plan: ExactPlan, asked: int) -> float:
    """Return the seconds of one thread for so many queries with all columns."""
    return BRUTE[plan.isa, "gemm"].answering(plan.n, asked, plan.d, plan.k)


def _contracted_seconds(plan: ExactPlan, asked: int, candidates: float) -> float:
    """Return the seconds of one thread for so many queries, and for contracting all rows."""
    precision = usual_precisions(plan.metric, plan.isa, plan.dtype, plan.d, contracted=True)[0]
    pair = BRUTE[plan.isa, "gemm"].pair + 2.0 * CONTRACTED / PRODUCTS[plan.isa, precision]
    refining = _SPARE * candidates * (SURVIVOR + SURVIVOR_VALUE * plan.d)
    return asked * (plan.n * pair + refining) + (plan.n + asked) * plan.d * CONTRACTED * MULTIPLY
