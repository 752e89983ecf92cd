"""Choose the columns that a search compares: the fields `form_dim`, `look_dim` and `may_contract` of a plan."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.core.problem import Problem
from tonari.exact import tuning
from tonari.metrics import get_metric

# Numbers of columns among which a pilot chooses: LOOKED for a look before a screen of all columns, LOOKED_FIRST for a
# look before a screen of contracted rows, and _CONTRACTED for a screen of contracted rows.
LOOKED, LOOKED_FIRST = 64, 32
_CONTRACTED = (LOOKED, 96)


def form_dim_of(problem: Problem, given: dict[str, Any]) -> int:
    d = problem.d
    form_dim = int(given.get("form_dim", d))
    if form_dim > d:
        raise ValueError(f"form_dim={form_dim}: rows have {d} columns; expected at most that")
    if form_dim < d and get_metric(problem.metric).elementwise:
        raise ValueError(f"form_dim={form_dim}: metric={problem.metric!r} compares all {d} columns; leave form_dim out")
    return form_dim


def look_dim_of(problem: Problem, given: dict[str, Any]) -> int:
    look_dim, form_dim = int(given.get("look_dim", 0)), int(given.get("form_dim", problem.d))
    if look_dim == 0:
        return 0
    if get_metric(problem.metric).elementwise:
        raise ValueError(f"look_dim={look_dim}: metric={problem.metric!r} compares all columns; leave look_dim out")
    if not 2 <= look_dim < form_dim:
        of = "of rows" if form_dim == problem.d else "of form_dim"
        raise ValueError(f"look_dim={look_dim}: expected 0, or 2 or more columns, fewer than the {form_dim} {of}")
    if problem.memory is not None or not given.get("resident", True):
        raise ValueError(f"look_dim={look_dim}: a look needs all points in memory; leave out memory and resident")
    return look_dim


def contracted_widths(d: int) -> list[int]:
    """Return the possible numbers of contracted columns for rows of d columns, ascending; a pilot chooses one."""
    return [columns for columns in _CONTRACTED if tuning.CONTRACT_FROM * columns <= d]


def pilot_decides(problem: Problem, given: dict[str, Any]) -> bool:
    """Whether a pilot chooses the number of compared columns when the points are prepared."""
    # A pilot decides only without overrides and without a budget: with a budget, the number of points that stay packed
    # has been computed for all columns. Rows of 8-bit integers have no pilot, because they are exact in int8, but not
    # as contracted rows.
    floats = inputs.dtype_of(problem.dtype).kind not in "iu"
    products = not get_metric(problem.metric).elementwise
    return not given and problem.memory is None and floats and products and problem.d >= tuning.CONTRACT_FROM * LOOKED
