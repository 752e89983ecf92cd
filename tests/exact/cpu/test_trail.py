"""Decisions of exact search on the CPU while it runs are recorded, and its attempts prove every row once."""

from __future__ import annotations

import dataclasses
import sys
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tonari.core import _native, trail
from tonari.core.trail import Record, recording
from tonari.exact import plan as planning
from tonari.exact import tuning
from tonari.exact.cpu import passes
from tonari.exact.cpu.rows import contraction

Array = npt.NDArray[Any]
USUAL = "avx2" if "avx2" in _native.supported_isas() else "neon"  # has int8
INT8 = {"isa": USUAL, "precisions": ("int8", "float32")}
D = 256


def ran(points: Array, queries: Array | None = None, k: int = 10, **choices: Any) -> Record:
    """Search by a plan or without one, or build the graph, and return the record."""
    n, d = points.shape
    asked = points if queries is None else queries
    plan = tonari.plan(n, len(asked), d, k, self_join=queries is None, method="exact", **choices)
    if queries is None:
        record = tonari.knn_graph(points, k, plan=plan).record
        assert record is not None
    else:
        with recording("search", len(queries)) as record:
            tonari.search(queries, points, k, plan=plan)
    assert record.proved == record.rows == len(asked)
    assert record.plan.method == record.method == "exact"
    assert all(attempt.seconds is not None for attempt in record.attempts)
    return record


def why(record: Record, what: str) -> list[str]:
    return [choice.why for choice in record.choices if choice.what == what]


def names(record: Record) -> list[str]:
    return [attempt.name for attempt in record.attempts]


def few_directions(n: int, noise: float = 0.05) -> Array:
    """Make rows of 12 directions and noise."""
    rng = np.random.default_rng(0)
    inside = rng.standard_normal((n, 12)) @ rng.standard_normal((12, D))
    return (inside + noise * rng.standard_normal((n, D))).astype(np.float32)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"query_block": 7, "threads": 3, "point_chunk": 96},
        {"resident": False, "sample_stride": 3, "sample_rank": 2, "point_chunk": 96},
        {"point_splits": 2, "threads": 2, "point_chunk": 96, "capacity": 1},
        INT8 | {"capacity": 1, "threads": 2},
        {"form_dim": 4, "threads": 2},
    ],
    ids=["usual", "blocks", "streamed", "split", "tiny", "contracted"],
)
def test_attempts_prove_every_row_once(graph: bool, choices: dict[str, Any]) -> None:
    if graph and "point_splits" in choices:
        choices = choices | {"active_rows": 0}
    points = checks.tight_far_clusters(700, 20)
    ran(points, None if graph else points[:60], **choices)


def test_levels_are_attempts_with_the_rows_that_each_proves() -> None:
    points = checks.tight_far_clusters(3000, 40)
    record = ran(points, points[:90], **INT8, capacity=1, adaptive=False)
    first, second = record.attempts
    assert (first.name, second.name) == ("int8", "float32")
    assert first.rows == 90
    assert first.proved is not None
    assert second.rows == second.proved == 90 - first.proved > 45


def test_exact_values_alone_are_an_attempt() -> None:
    points = checks.gaussian(50, 4)
    assert names(ran(points, points[:5])) == ["exact values"]


def test_thresholds_of_a_sample_that_are_too_low() -> None:
    points = checks.gaussian(3000, 40)
    record = ran(points, points[:90], sample_stride=2, sample_rank=1, precisions=("float32",))
    first, second = record.attempts
    assert (first.name, second.name) == ("float32", "float32 without a sample")
    assert second.rows > 45


def test_a_finer_precision_after_the_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(600, 40)
    choices = INT8 | {"adaptive": True, "query_block": 32, "threads": 1}
    monkeypatch.setattr(planning.ExactPlan, "prefers_finer", lambda *_: True)
    record = ran(points, points[:90], **choices)
    assert len(why(record, "precision")) == 1
    assert "float32 after int8 took" in why(record, "precision")[0]
    assert [(attempt.name, attempt.rows) for attempt in record.attempts] == [("int8", 32), ("float32", 58)]
    monkeypatch.setattr(planning.ExactPlan, "prefers_finer", lambda *_: False)
    assert not ran(points, points[:90], **choices).choices


def test_the_columns_that_a_pilot_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PILOT_FROM_SECONDS", 0.0)
    points = few_directions(700)
    monkeypatch.setattr(tuning, "CONTRACTED_SHARE", np.inf)
    record = ran(points, threads=2)
    assert "a pilot expects" in why(record, "columns")[0]
    assert names(record)[0].endswith(" in 64 columns")
    monkeypatch.setattr(tuning, "CONTRACTED_SHARE", 0.0)
    assert why(ran(points, threads=2), "columns")[0].startswith("all 256: of fewer, a pilot expects")
    even = ran(checks.gaussian(700, D), threads=2)
    assert why(even, "columns") == ["all 256: the first 31 directions of the rows hold too little of them"]


def test_a_look_that_a_pilot_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PILOT_FROM_SECONDS", 0.0)
    monkeypatch.setattr(contraction, "_look_seconds", lambda *_: 0.0)
    (text,) = why(ran(few_directions(700), threads=2), "columns")
    assert text.startswith("all 256, after a look at 64: a pilot expects 0 s of one thread")


def test_all_columns_for_rows_that_a_contraction_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PILOT_FROM_SECONDS", 0.0)
    monkeypatch.setattr(tuning, "CONTRACTED_SHARE", np.inf)
    # To these queries all points are equally far in the kept directions, so the contraction excludes nothing.
    points = np.vstack([few_directions(4_000, noise=0.5), few_directions(4_000, noise=0.5)])
    queries = checks.gaussian(40, D) * 30
    index = tonari.Index(points, method="exact", threads=2)  # with more queries expected
    with recording("search", 40) as few:
        index.search(queries, 10)
    assert "again for a few rows, by exact values" in why(few, "precision")[0]
    assert names(few)[-1].endswith(", then exact values")
    monkeypatch.setattr(tuning, "FEW_LEFT", 0)
    with recording("search", 40) as many:
        index.search(queries, 10)
    assert many.proved == few.proved == 40
    assert "all 256 for rows that have too many candidates in 64" in why(many, "columns")
    assert "columns" not in names(many)[-1]


def test_a_look_that_does_not_pay_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(900, 40)
    for pays in (True, False):
        monkeypatch.setattr(passes, "look_pays", lambda *_, pays=pays: pays)
        record = ran(points, points[:90], look_dim=4, threads=1)
        assert [text[:26] for text in why(record, "look")] == ([] if pays else ["left out from here on: 4 c"])


def test_copies_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.look_for_copies_always(monkeypatch)
    points = checks.gaussian(600, 9)
    points[300:] = points[0]
    record = ran(points, points[:40], query_block=8)
    assert why(record, "copies") == ["310 of 600 points are searched: no answer holds a later copy of a row"]
    assert not ran(checks.gaussian(600, 9), points[:40], query_block=8).choices


@pytest.mark.parametrize(("method", "d"), [("exact", 24), ("kdtree", 3)])
def test_radii_and_counts_have_records(method: str, d: int) -> None:
    points = checks.gaussian(900, d)
    for verb in (tonari.radius_search, tonari.radius_count):
        with recording("radius", 900) as record:
            verb(points, points, 0.5, method=method)
        assert record.proved == 900
        assert (method == "kdtree") == ("leaves and" in record.attempts[0].note)


def test_counts_that_choose_a_method_are_apart() -> None:
    points = checks.gaussian(20_000, 6)
    with recording("radius_count", 20_000) as record:
        tonari.radius_count(points, points, 0.1, threads=2)
    assert [part.title for part in record.parts] == ["counts of a few rows"]
    assert record.parts[0].proved == record.parts[0].rows > 0
    assert record.proved == 20_000


@pytest.mark.parametrize("n", [1000, 20_000])
def test_a_search_that_nobody_asks_about_calls_nothing_for_its_record(n: int) -> None:
    points, entered = checks.gaussian(n, 64), list[str]()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == trail.__file__:
            entered.append(frame.f_code.co_name)

    index = tonari.Index(points)
    for search in (lambda: tonari.search(points[:500], points, 10), lambda: index.search(points[:500], 10)):
        search()
        sys.setprofile(look)
        try:
            search()
        finally:
            sys.setprofile(None)
    assert not entered


def test_durations_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    points = checks.gaussian(900, 24)
    plan = dataclasses.replace(tonari.plan(900, 40, 24, 5, method="exact", query_block=8), precisions=("float32",))
    with caplog.at_level("INFO", "tonari"):
        tonari.search(points[:40], points, 5, plan=plan)
    (line,) = caplog.messages
    assert "40 at float32 (" in line
    assert "ms)" in line
