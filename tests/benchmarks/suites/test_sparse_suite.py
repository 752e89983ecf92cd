"""Searches among sparse rows beside their peers on small data: measured, proved, and a wrong answer is not timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy.sparse", reason="matrices")

import tonari
from benchmarks.suites import sparse
from tests.helpers.bench_checks import a_run, done, notes

SMALL = {case.name: case.scaled(0.01).resized(d=case.d // 20, peers=()) for case in sparse.SUITE.cases}


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_proved_and_timed(name: str) -> None:
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari"]
    assert ran.rows[0]["proved"] == sparse.PROVED_ROWS
    assert ran.rows[0]["extras"]["products_per_pair"] > 0


@pytest.mark.parametrize("name", ["texts", "cells"])
def test_a_peer_finds_the_same_and_is_scaled(name: str) -> None:
    pytest.importorskip("sklearn")
    ran = done(a_run(peer_seconds=1e-9), SMALL[name].resized(peers=("sklearn",)))
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari", "sklearn"]
    assert ran.rows[1]["rows_timed"] == 256
    assert ran.rows[1]["recall"] > sparse.AGREEING


def spoilt_search(*given: Any, **options: Any) -> Any:
    found = tonari.search(*given, **options)
    return found._replace(distances=np.nextafter(found.distances, np.float32(2)))


def spoilt_radius(*given: Any, **options: Any) -> Any:
    found = tonari.radius_search(*given, **options)
    return found._replace(indices=np.roll(found.indices, 1))


@pytest.mark.parametrize("name", ["no-stop-words", "texts-alike", "cells"])
def test_no_timing_of_a_wrong_answer(name: str) -> None:
    ran = done(a_run(SimpleNamespace(search=spoilt_search, radius_search=spoilt_radius)), SMALL[name])
    assert ran.wrong == 1
    assert "WRONG" in notes(ran)
    assert "seconds_median" not in ran.rows[0]
