"""Whether the rows are contracted: decided by a pilot of the points, where the plan leaves it open.

The pilot compares some points with a sample of all. How many of the sample each screen leaves as candidates, within the
distance of the k-th neighbour, tells what the screens and the candidates will cost. Answers do not depend on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.costs.rates import BRUTE, MULTIPLY, PRODUCTS, SURVIVOR, SURVIVOR_VALUE
from tonari.exact.memory import SAMPLE_ROWS
from tonari.exact.plan import CONTRACTED, ExactPlan
from tonari.exact.precisions import usual_precisions

Floats = npt.NDArray[np.float64]

_FEW_ROWS, _FEW_COLUMNS = 512, 32  # to find out quickly that rows spread evenly
_EVEN = 0.8  # share of the squared norm outside of those few columns from which on it is not worth to look closer
_QUERIES = 64
_LEAST_SECONDS = 2.5  # of one thread: a pilot takes 0.1 to 0.2 seconds, and 0.01 where rows spread evenly
_BETTER = 0.8  # the share of the time with all columns that a contraction may take at most
_SCATTERED = 1.8  # times as long as usual for a candidate: long rows far apart in memory
# Rounding as a share of the norm, for elements that are even; that of int8 depends on the largest.
_ROUNDING = {"bfloat16": 2.0**-9.8, "float32": 0.0}


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
    seen = _pilot(points, form, made, plan)
    chosen = _contracted_seconds(plan, asked, seen) < _BETTER * _whole_seconds(plan, asked, seen)
    return (made, CONTRACTED) if chosen else (form, d)


class Seen(NamedTuple):
    """What a pilot saw, on average over its rows.

    Attributes
    ----------
    whole, few : float
        Candidates of the first screen of all columns, and of the contracted one.
    retried : float
        Share of rows with too many candidates in the first screen of all columns.
    """

    whole: float
    few: float
    retried: float


def _rows(form: _native.Form, points: npt.NDArray[Any], step: int, columns: int) -> Floats:
    """Return every step-th row as the screen sees it, without those beyond its range."""
    rows = np.empty((-(-len(points) // step), columns))
    form.screened_rows(points, step, rows)
    return rows[np.isfinite(rows[:, 0])]


def _pilot(points: npt.NDArray[Any], form: _native.Form, made: _native.Form, plan: ExactPlan) -> Seen:
    """Return about how many candidates a row will have once its k-th distance is known."""
    n, d = points.shape
    step = -(-n // SAMPLE_ROWS)
    whole, few = (
        _rows(seen, points, step, columns).astype(np.float32) for seen, columns in ((form, d), (made, CONTRACTED))
    )
    size = len(whole)
    rank = -(-plan.k * size // n)
    if size <= rank:
        return Seen(n, n, 1.0)
    squares, pilot = np.einsum("ij,ij->i", whole, whole), slice(0, None, -(-size // _QUERIES))
    scores = squares - 2 * whole[pilot] @ whole.T
    lowest = squares - 2 * few[pilot] @ few.T
    own = np.arange(size)[pilot]
    scores[np.arange(len(own)), own] = lowest[np.arange(len(own)), own] = np.inf
    kth = np.partition(scores, rank - 1, axis=1)[:, rank - 1 : rank]
    norms, rounding = np.sqrt(squares), _rounding(whole, squares, plan)
    errors = 2 * (norms[pilot, None] * rounding + rounding[pilot, None] * norms)
    in_whole = np.count_nonzero(scores <= kth + 2 * errors, axis=1) * (n / size)
    in_few = np.count_nonzero(lowest <= kth, axis=1) * (n / size)
    beside = plan.k - rank * (n / size)
    return Seen(
        float(np.minimum(in_whole, plan.capacity).mean() + max(0.0, beside)),
        float(in_few.mean() + beside),
        float(np.mean(in_whole > plan.capacity)),
    )


def _rounding(rows: npt.NDArray[np.float32], squares: npt.NDArray[np.float32], plan: ExactPlan) -> Any:
    """Return about how far the rows are from the rounded ones of the first screen."""
    first = plan.precisions[0]
    if first == "int8":
        return np.abs(rows).max(axis=1) / 127 * np.sqrt(rows.shape[1] / 12)
    return np.sqrt(squares) * _ROUNDING[first]


def _refining(plan: ExactPlan, candidates: float) -> float:
    return candidates * (SURVIVOR + SURVIVOR_VALUE * plan.d)


def _whole_seconds(plan: ExactPlan, asked: int, seen: Seen | None = None) -> float:
    """Return the seconds of one thread for so many queries with all columns."""
    usual = BRUTE[plan.isa, "gemm"].answering(plan.n, asked, plan.d, plan.k)
    if seen is None:
        return usual
    finer = plan.precisions[min(1, len(plan.precisions) - 1)]
    again = 2.0 * plan.n * plan.d / PRODUCTS[plan.isa, finer]
    return usual + asked * (seen.retried * again + (1 - seen.retried) * _refining(plan, seen.whole))


def _contracted_seconds(plan: ExactPlan, asked: int, seen: Seen) -> float:
    """Return the seconds of one thread for so many queries, and for contracting all rows."""
    precision = usual_precisions(plan.metric, plan.isa, plan.dtype, plan.d, contracted=True)[0]
    pair = BRUTE[plan.isa, "gemm"].pair + 2.0 * CONTRACTED / PRODUCTS[plan.isa, precision]
    contracting = (plan.n + asked) * plan.d * CONTRACTED * MULTIPLY
    return contracting + asked * (plan.n * pair + _SCATTERED * _refining(plan, seen.few))
