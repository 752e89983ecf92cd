"""Choose the columns that the screen and a look compare, by a pilot unless the plan determines them.

    contracted   the screen compares contracted rows; its candidates are refined
    a look       comparing contracted rows rules out groups of points for tiles of queries; the screen compares the
                 remaining groups in all columns (native/exact/look.hpp)
    both         a look at contracted rows of few columns, then a screen of contracted rows of more columns

The pilot compares some points with a sample of all points, and counts the candidates that each screen leaves within the
distance of the k-th neighbour. The cost of the screens and of the candidates follows from these counts. The choice does
not affect any answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.trail import decided
from tonari.costs.rates import BRUTE, MULTIPLY, PRODUCTS, SURVIVOR, SURVIVOR_VALUE
from tonari.exact import tuning
from tonari.exact.cpu.rows.clusters import Clusters
from tonari.exact.memory import CLUSTER_COLUMNS, SAMPLE_ROWS
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.blocks import LOOKED, LOOKED_FIRST, contracted_widths
from tonari.exact.precisions import usual_precisions

Floats = npt.NDArray[np.float64]

# The error of rounding a row, relative to its norm, if its elements have similar magnitudes. (The error in int8
# depends on the largest element.)
_ROUNDING = {"bfloat16": 2.0**-9.8, "float32": 0.0}


class Arrangement(NamedTuple):
    """How points are packed: their form, the number of compared columns, a look before the screen, and their order.

    Attributes
    ----------
    form : Form
        The form that the screen compares.
    columns : int
        The number of columns of the form.
    look : Form, optional
        The form of a look, which compares contracted rows before the screen.
    clusters : Clusters, optional
        The order of the points. Default: their own order.
    """

    form: _native.Form
    columns: int
    look: _native.Form | None = None
    clusters: Clusters | None = None


def arrange_points(
    points: npt.NDArray[Any],
    form: _native.Form,
    plan: ExactPlan,
    asked: int,
    kept: npt.NDArray[np.int64] | None = None,
) -> Arrangement:
    """Choose how points are packed: their form and number of columns, a look before the screen, and their order.

    Parameters
    ----------
    points : array of shape (n, d)
    form : Form
        The form of all columns.
    plan : ExactPlan
    asked : int
        The expected number of queries.
    kept : int64 array, optional
        Row numbers of the points that are searched. Default: all points.
    """
    # All samples of the pilot are taken from these rows.
    some = points if kept is None else points[kept[:: -(-len(kept) // SAMPLE_ROWS)]]
    n, d = some.shape
    if plan.form_dim < d or plan.look_dim:
        screened = _contracted(some, form, plan.form_dim) if plan.form_dim < d else form
        if not plan.look_dim:
            return Arrangement(screened, plan.form_dim)
        looked = _contracted(some, form, plan.look_dim) if screened is form else screened.narrowed(plan.look_dim)
        contracted = looked if screened is form else screened
        if contracted.columns < CLUSTER_COLUMNS <= d:
            contracted = _contracted(some, form, CLUSTER_COLUMNS)
        return Arrangement(screened, plan.form_dim, looked, _clusters(points, contracted, plan, kept))
    if not plan.may_contract or _whole_seconds(plan, asked) < tuning.PILOT_FROM_SECONDS:
        return Arrangement(form, d)
    step = -(-n // tuning.EVEN_ROWS)
    few = _rows(form.contracted(some, step, tuning.EVEN_COLUMNS), some[step // 2 :], step, tuning.EVEN_COLUMNS)
    rest, norms = np.mean(few[:, -1] ** 2), np.mean(np.einsum("ij,ij->i", few, few))
    if not rest < tuning.EVEN * norms:
        decided(
            "columns", f"all {d}: the first {tuning.EVEN_COLUMNS - 1} directions of the rows hold too little of them"
        )
        return Arrangement(form, d)
    widths = contracted_widths(d)
    contracted, whole = _contracted_and_whole(some, form, widths[-1], plan)
    seen = _pilot(some, contracted, whole, plan)
    choices = [(columns, look) for columns in widths for look in (0, LOOKED_FIRST)]
    alone = {choice: _contracted_seconds(plan, asked, seen, *choice) for choice in choices}
    columns, look = min(alone, key=alone.__getitem__)
    first, usual = _look_seconds(plan, asked, seen), _whole_seconds(plan, asked, seen)
    best = min(alone[columns, look], first)
    costs = f"a pilot expects {best:.3g} s of one thread, {usual:.3g} s with all {d} columns alone"
    if best >= tuning.CONTRACTED_SHARE * usual:
        decided("columns", f"all {d}: of fewer, {costs}")
        return Arrangement(form, d)
    if first < alone[columns, look]:
        decided("columns", f"all {d}, after a look at {LOOKED}: {costs}")
        return Arrangement(form, d, contracted.narrowed(LOOKED), _clusters(points, contracted, plan, kept))
    decided("columns", f"{columns}{f', after a look at {look}' if look else ''}: {costs}")
    # An order by clusters lets a first comparison in few columns (a look) rule out whole groups of points. Without one,
    # every point is screened anyway, and the order would only delay single queries.
    clusters = _clusters(points, contracted, plan, kept) if look or plan.active_rows else None
    return Arrangement(contracted.narrowed(columns), columns, contracted.narrowed(look) if look else None, clusters)


def look_pays(plan: ExactPlan, precision: str, look_dim: int, looked: tuple[int, int, int]) -> bool:
    """Return whether a look, a comparison of contracted rows before the screen, saves more time than it takes.

    `looked` holds three counts of pairs of a query tile and a point group: of all pairs, of the pairs that the look
    compared, and of the pairs that it left for the screen.
    """
    pairs, seen, marked = looked
    screen = _pair_seconds(plan, precision, plan.form_dim)
    look = (seen + pairs * tuning.BALLS_SHARE) * _pair_seconds(plan, _look_precision(plan, precision), look_dim)
    return marked * screen + look < pairs * screen


def _contracted(points: npt.NDArray[Any], form: _native.Form, columns: int) -> _native.Form:
    """Return the form contracted to `columns` columns, by the principal directions of a sample of the points."""
    return form.contracted(points, -(-len(points) // SAMPLE_ROWS), columns)


def _clusters(
    points: npt.NDArray[Any], made: _native.Form, plan: ExactPlan, kept: npt.NDArray[np.int64] | None
) -> Clusters:
    """Return clusters of the points, computed from the first columns of the contracted form `made`."""
    narrow = made.narrowed(min(CLUSTER_COLUMNS, made.columns))
    return Clusters(points, narrow, plan.kernels["float32"], Workers(plan.threads), kept)


class Seen(NamedTuple):
    """The measurements of a pilot, which compares some rows with a sample of all points. All are means over these rows.

    Attributes
    ----------
    whole : float
        Number of candidates of the first screen of all columns.
    few : dict of float
        Number of candidates of contracted screens, by their number of columns.
    retried : float
        Share of rows with too many candidates in the first screen of all columns.
    left : dict of float
        Share of all points that are candidates of contracted screens, by their columns.
    alone : dict of float
        By the number of columns, the share of these candidates whose own nearest point is not a candidate. If the
        points form separate clusters, the share is small, because the nearest point of a candidate is usually another
        candidate.
    """

    whole: float
    few: dict[int, float]
    retried: float
    left: dict[int, float]
    alone: dict[int, float]

    def marked(self, columns: int) -> float:
        """Return the share of pairs (query tile, point group) left after comparing `columns` contracted columns."""
        left = self.left[columns]
        single = tuning.MARKED_SINGLE * min(1.0, tuning.MARKED_PAIRS * left * self.alone[columns])
        return min(1.0, tuning.MARKED_COMMON * left + single)


def _rows(form: _native.Form, points: npt.NDArray[Any], step: int, columns: int) -> Floats:
    """Return every step-th row in the form of the screen, but not the rows beyond its range."""
    rows = np.empty((-(-len(points) // step), columns))
    form.screened_rows(points, step, rows)
    return rows[np.isfinite(rows[:, 0])]


class InWhole(NamedTuple):
    """The results of comparing some rows of a sample, in all columns, with all rows of the sample.

    Attributes
    ----------
    squares : float64 array of shape (size,)
        Squared norms of the sample.
    own : int64 array of shape (rows,)
        Position in the sample of each compared row.
    kth : float64 array of shape (rows, 1)
        Estimated score of each row's k-th neighbour among all points.
    candidates : float64 array of shape (rows,)
        Number of candidates of each row after the first screen of all columns.
    rank : int
        The rank in the sample that corresponds to rank k among all points.
    """

    squares: Floats
    own: npt.NDArray[np.intp]
    kth: Floats
    candidates: Floats
    rank: int


def _in_whole(points: npt.NDArray[Any], form: _native.Form, plan: ExactPlan) -> InWhole | None:
    """Compare some rows of a sample, in all columns, with all rows of the sample; None if the sample is too small."""
    rows = _rows(form, points, -(-len(points) // SAMPLE_ROWS), plan.d)
    size = len(rows)
    rank = -(-plan.k * size // plan.n)
    if size <= rank:
        return None
    squares = np.einsum("ij,ij->i", rows, rows)
    own = np.arange(0, size, -(-size // tuning.PILOT_QUERIES))
    scores = sample_scores(rows, own, squares)
    kth = np.partition(scores, rank - 1, axis=1)[:, rank - 1 : rank]
    norms, rounding = np.sqrt(squares), _rounding(rows, squares, plan)
    errors = 2 * (norms[own, None] * rounding + rounding[own, None] * norms)
    candidates = np.count_nonzero(scores <= kth + 2 * errors, axis=1) * (plan.n / size)
    return InWhole(squares, own, kth, candidates, rank)


def _contracted_and_whole(
    points: npt.NDArray[Any], form: _native.Form, columns: int, plan: ExactPlan
) -> tuple[_native.Form, InWhole | None]:
    """Contract the form on one thread, and compare a sample in all columns on another; return both results."""

    def work(contracts: bool) -> tuple[_native.Form, None] | tuple[None, InWhole | None]:
        return (_contracted(points, form, columns), None) if contracts else (None, _in_whole(points, form, plan))

    (made, _), (_, whole) = Workers(plan.threads).map(work, (True, False))
    assert made is not None
    return made, whole


def _pilot(points: npt.NDArray[Any], made: _native.Form, whole: InWhole | None, plan: ExactPlan) -> Seen:
    """Estimate, from a sample, the number of candidates after a screen of all columns, and after contracted screens."""
    n, widths = plan.n, [LOOKED_FIRST, *contracted_widths(plan.d)]
    if whole is None:
        every = dict.fromkeys(widths, 1.0)
        return Seen(n, dict.fromkeys(widths, n), 1.0, every, every)
    squares, own, kth, candidates, rank = whole
    wide = _rows(made, points, -(-len(points) // SAMPLE_ROWS), widths[-1])
    some, nearest = _nearest(narrowed_rows(wide, min(CLUSTER_COLUMNS, widths[0])), squares)
    left, alone = {}, {}
    for columns in widths:
        near = sample_scores(narrowed_rows(wide, columns), own, squares) <= kth
        left[columns] = float(np.mean(near))
        beside_them = near[:, nearest][near[:, some]]
        alone[columns] = 1 - float(np.mean(beside_them)) if beside_them.size else 1.0
    beside = plan.k - rank * (n / len(squares))
    return Seen(
        float(np.minimum(candidates, plan.capacity).mean() + max(0.0, beside)),
        {columns: n * share + beside for columns, share in left.items()},
        float(np.mean(candidates > plan.capacity)),
        left,
        alone,
    )


def sample_scores(rows: Floats, asked: npt.NDArray[np.intp], squares: Floats) -> Floats:
    """Return scores between the rows at positions `asked` and all rows; infinity between a row and itself."""
    found = np.empty((len(rows), len(asked)))
    _native.products(rows, rows[asked], found)
    found *= -2
    found += squares[:, None]
    found[asked, np.arange(len(asked))] = np.inf
    return np.ascontiguousarray(found.T)


def _nearest(rows: Floats, squares: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Choose some rows of a sample; return their positions, and the position of the nearest other row of each."""
    some = np.arange(0, len(rows), tuning.ASKED_ONE_OF)
    return some, sample_scores(rows, some, squares).argmin(axis=1)


def narrowed_rows(rows: Floats, columns: int) -> Floats:
    """Contract rows to their first `columns` columns; the length of the omitted part is added to the residual."""
    rest = np.linalg.norm(rows[:, columns - 1 :], axis=1)
    return np.column_stack([rows[:, : columns - 1], rest])


def _rounding(rows: Floats, squares: Floats, plan: ExactPlan) -> Any:
    """Estimate the rounding error of rows in the first screen: their distance from their rounded copies."""
    first = plan.precisions[0]
    if first == "int8":
        return np.abs(rows).max(axis=1) / 127 * np.sqrt(rows.shape[1] / 12)
    return np.sqrt(squares) * _ROUNDING[first]


def _refining(plan: ExactPlan, candidates: float) -> float:
    return candidates * (SURVIVOR + SURVIVOR_VALUE * plan.d)


def _whole_seconds(plan: ExactPlan, asked: int, seen: Seen | None = None) -> float:
    """Estimate the seconds that one thread needs to search `asked` queries in all columns."""
    usual = BRUTE[plan.isa, "gemm"].answering(plan.n, asked, plan.d, plan.k)
    if seen is None:
        return usual
    finer = plan.precisions[min(1, len(plan.precisions) - 1)]
    again = 2.0 * plan.n * plan.d / PRODUCTS[plan.isa, finer]
    return usual + asked * (seen.retried * again + (1 - seen.retried) * _refining(plan, seen.whole))


def _pair_seconds(plan: ExactPlan, precision: str, columns: int) -> float:
    """Estimate the seconds that one thread needs to compare one query and one point in `columns` columns."""
    return BRUTE[plan.isa, "gemm"].pair + 2.0 * columns / PRODUCTS[plan.isa, precision]


def _look_precision(plan: ExactPlan, precision: str) -> str:
    return _native.look_kernel(plan.kernels[precision]).split("/")[1]


def _contracted_seconds(plan: ExactPlan, asked: int, seen: Seen, columns: int, look: int = 0) -> float:
    """Estimate the seconds that one thread needs to contract all rows and to search `asked` contracted queries."""
    precision = usual_precisions(plan.metric, plan.isa, plan.dtype, plan.d, contracted=True)[0]
    pair = _pair_seconds(plan, precision, columns)
    if look:
        pair = _pair_seconds(plan, _look_precision(plan, precision), look) + seen.marked(look) * pair
    refining = tuning.SCATTERED * _refining(plan, seen.few[columns])
    return _preparing(plan, asked, columns + look) + asked * (plan.n * pair + refining)


def _look_seconds(plan: ExactPlan, asked: int, seen: Seen) -> float:
    """Estimate the seconds of one thread for a search of `asked` queries with looks, and for preparing its rows."""
    if seen.left[LOOKED] > tuning.MOST_LEFT:
        return float("inf")
    part = (LOOKED + tuning.EPILOGUE_COLUMNS) / plan.d + seen.marked(LOOKED)
    # After a look, the screen compares fewer pairs, each of which takes as long as in a screen of all pairs.
    products = asked * plan.n * plan.d * BRUTE[plan.isa, "gemm"].pair_value
    return _preparing(plan, asked, LOOKED) + _whole_seconds(plan, asked, seen) - (1 - min(1.0, part)) * products


def _preparing(plan: ExactPlan, asked: int, columns: int) -> float:
    return (plan.n + asked) * plan.d * (columns + CLUSTER_COLUMNS) * MULTIPLY
