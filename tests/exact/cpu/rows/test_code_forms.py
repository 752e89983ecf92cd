"""The number of columns of codes: a pilot chooses it, and memory limits it."""

from __future__ import annotations

import pytest

from tests.exact.cpu.rows.test_codes import D, rows_of_few_directions
from tests.helpers import checks
from tonari.core.errors import BudgetExceeded
from tonari.core.process.isa import chosen_isa
from tonari.exact.cpu.rows.boxes import boxes_bytes
from tonari.exact.cpu.rows.code_forms import choose_form, overrides_of
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import make_problem


def test_the_pilot_extrapolates_the_distance_of_neighbours() -> None:
    points = rows_of_few_directions(100_000, power=2)
    few, many = (
        choose_form(points[:n], make_problem(n, 1, D, 10, dtype="float32", metric="euclidean", threads=1))
        for n in (10_000, 100_000)
    )
    assert many.form.columns <= few.form.columns
    assert many.form.columns < D


def test_codes_and_boxes_fit_into_the_memory() -> None:
    points, d = checks.gaussian(20_000, 64, 1), 64
    isa = "avx512" if chosen_isa() == "amx" else None  # codes for AMX always take 64 bytes
    problem = make_problem(len(points), 64, d, 10, dtype="float32", metric="euclidean", threads=1)
    needed = plan_on_cpu(problem, **overrides_of(40, isa)).total_bytes + boxes_bytes(len(points), d)
    for memory, columns in ((needed, 40), (needed - 1, 36), (None, None)):
        problem = make_problem(len(points), 64, d, 10, dtype="float32", metric="euclidean", threads=1, memory=memory)
        form = choose_form(points, problem)
        assert (form.columns, form.isa) == (columns, isa if memory else None)
    problem = make_problem(len(points), 64, d, 10, dtype="float32", metric="euclidean", threads=1, memory=10**6)
    with pytest.raises(BudgetExceeded, match=r"boxes do not fit into memory=1000000: allow at least \d{7}"):
        choose_form(points, problem)
