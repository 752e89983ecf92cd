"""Counts by rules beside plain counts on small data: measured, proved, and a wrong count is not timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import tonari
from benchmarks.suites import radius_rules
from tests.helpers.bench_checks import a_run, done, notes

SMALL = {case.name: case.resized(n=600, m=40) for case in radius_rules.SUITE.cases}


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_proved_and_timed(name: str) -> None:
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari", "tonari-plain", "tonari-by hand"]
    bar = ("plain and mask", 0.5) if "-masks" in name else ("plain", 1.0)
    assert (ran.rows[0]["bar_on"], ran.rows[0]["value"], ran.rows[0]["proved"]) == (*bar, 24)


def test_no_timing_of_a_wrong_count() -> None:
    def one_more(*given: Any, **options: Any) -> Any:
        return tonari.radius_count(*given, **options) + 1

    library = SimpleNamespace(radius_count=one_more, radius_search=tonari.radius_search)
    ran = done(a_run(library), SMALL["once-exclude"])
    assert ran.wrong == 1
    assert "counts differ from the reference" in notes(ran)
    assert "seconds_median" not in ran.rows[0]
