"""Radius searches and their peers on small data are measured and proved, and a wrong answer is not timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari
from benchmarks.suites import radius
from tests.helpers.bench_checks import a_run, done, notes

SMALL = {case.name: case.scaled(0.01).resized(peers=("ckdtree", "nobody")[:1]) for case in radius.SUITE.cases}
LIBRARY = {name: getattr(tonari, name) for name in ("search", "radius_search", "radius_count", "pairs")}


def without_peers(name: str) -> Any:
    return SMALL[name].resized(peers=())


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_proved_and_timed(name: str) -> None:
    ran = done(a_run(), without_peers(name))
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari"]
    assert ran.rows[0]["proved"] == min(radius.PROVED_ROWS, SMALL[name].m)
    mean = SMALL[name].parameters.get("mean")
    assert mean is None or 0.7 < ran.rows[0]["extras"]["mean"] / mean < 1.4


def test_a_peer_counts_the_same_and_is_scaled() -> None:
    ran = done(a_run(peer_seconds=1e-9), SMALL["cloud-200k"])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari", "ckdtree"]
    assert ran.rows[0]["bar_on"] == "ckdtree"
    assert ran.rows[1]["rows_timed"] == 256
    assert ran.rows[1]["recall"] > radius.AGREEING


def spoilt_pairs(*given: Any, **options: Any) -> Any:
    left, right, distances = tonari.pairs(*given, **options)
    return tonari.Pairs(left, np.where(right == right[0], right + 1, right), distances)


def spoilt_search(*given: Any, **options: Any) -> Any:
    found = tonari.radius_search(*given, **options)
    return found._replace(distances=np.nextafter(found.distances, np.float32(0)))


SPOILT: dict[str, tuple[str, Any]] = {
    "search-20k": ("radius_search", spoilt_search),
    "cloud-200k": ("radius_count", lambda *given, **options: tonari.radius_count(*given, **options) + 1),
    "pairs-200k": ("pairs", spoilt_pairs),
}


@pytest.mark.parametrize("name", SPOILT)
def test_no_timing_of_a_wrong_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verb, spoilt = SPOILT[name]
    monkeypatch.setattr(radius, "PROVED_ROWS", 10_000)
    ran = done(a_run(SimpleNamespace(**LIBRARY | {verb: spoilt})), without_peers(name).resized(n=400, m=400))
    assert ran.wrong == 1
    assert "WRONG" in notes(ran)
    assert "seconds_median" not in ran.rows[0]
