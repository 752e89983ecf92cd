"""The record of a call: checks when it is made, and cached calls are only used for equal requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari import inputs
from tonari.core.problem import Problem
from tonari.methods import call as calls
from tonari.methods import tuning
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem

if HAS_TORCH:
    import torch

ROWS = checks.gaussian(30, 4)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_calls", {})


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"metric": "none"}, ValueError, "unknown metric 'none'"),
        ({"method": "none"}, ValueError, "unknown method 'none'"),
        ({"method": "nn-descent"}, ValueError, "builds graphs"),
        ({"device": "gpu"}, ValueError, "device='gpu'"),
        ({"threads": 0}, ValueError, "threads=0"),
        ({"threads": True}, TypeError, "threads"),
        ({"memory": "2"}, ValueError, "memory"),
        ({"progress": "yes"}, TypeError, "progress='yes'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kept", [False, True])
def test_arguments_are_checked(asked: dict[str, Any], error: type[Exception], message: str, kept: bool) -> None:
    if kept:
        Call.of({"points": ROWS}, Options())
    with pytest.raises(error, match=message):
        Call.of({"points": ROWS}, Options(**asked))


def test_what_was_asked_for_is_in_the_record() -> None:
    def shown(done: int, total: int) -> None:
        pass

    made = Call.of({"points": ROWS}, Options(metric="L2", method="kdtree", threads=3, memory="2kB", progress=shown))
    assert (made.metric, made.method, made.threads, made.memory) == (get_metric("euclidean"), "kdtree", 3, 2_000)
    assert made.progress is shown
    assert made.place.device == "cpu"
    assert Call.of({"points": ROWS}, Options(method="nn-descent"), graph=True).method == "nn-descent"


def test_a_kept_call_is_the_one_that_was_asked_for() -> None:
    for _ in range(2):
        for metric in ("euclidean", "l1", "manhattan"):
            for method in ("auto", "exact"):
                for progress in (None, False, print):
                    made = Call.of(
                        {"queries": ROWS, "points": ROWS}, Options(metric=metric, method=method, progress=progress)
                    )
                    assert (made.metric, made.method) == (get_metric(metric), method)
                    assert made.progress is progress
    assert len(calls._calls) == 6
    for _ in range(2):
        assert Call.of({"points": ROWS}, Options(method="nn-descent"), graph=True).method == "nn-descent"
        with pytest.raises(ValueError, match="builds graphs"):
            Call.of({"points": ROWS}, Options(method="nn-descent"))
    assert Call.of({"points": ROWS}, Options(threads=1)).threads == 1
    assert Call.of({"points": ROWS}, Options(memory=10**6)).memory == 10**6


def test_few_calls_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "KEPT_CALLS", 3)
    for metric in ("euclidean", "l1", "linf", "cosine", "canberra"):
        Call.of({"points": ROWS}, Options(metric=metric))
        assert 1 <= len(calls._calls) <= 3


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_places_are_not_mixed_up() -> None:
    """Tensors stand for rows on a device; lists and arrays of other libraries are checked each time."""
    tensor = torch.from_numpy(ROWS)
    for _ in range(2):
        assert Call.of({"points": ROWS}, Options()).place.device == "cpu"
        assert Call.of({"points": tensor}, Options()).place.device == "cuda"
        assert Call.of({"points": ROWS.tolist()}, Options()).place.device == "cpu"
        assert Call.of({"queries": ROWS, "points": tensor}, Options()).place.device == "cuda"
    assert len(calls._calls) == 1


def test_limits_are_as_wide_as_returned_distances() -> None:
    cases: list[Any] = [("float32", "float64"), ("float64", "float32"), ("float16", "uint8")]
    for queries, points in cases:
        rows = [np.abs(ROWS).astype(dtype) for dtype in (points, queries)]
        within = {"radius": 0.1, "min_similarity": None, "closed": True}
        limits = Call.of({"points": rows[0]}, Options()).limits(*rows, **within)
        wide = "float64" in (queries, points)
        assert limits.dtype == ("float64" if wide else "float32")
        assert (limits <= 0.1).all()
        assert (limits == 0.1).all() == wide


@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize(("dtype", "other"), [("float32", "float64"), ("uint8", "uint8")])
def test_a_problem_is_that_of_its_sizes(dtype: str, other: str, self_join: bool) -> None:
    points = ROWS.astype(dtype)
    queries = points if self_join else points[:7].astype(other)
    made = Call.of({"points": points}, Options(metric="l1", threads=2, memory="5MB")).problem(
        points, queries, 3, self_join=self_join
    )
    facts: dict[str, Any] = {
        "dtype": points.dtype,
        "query_dtype": queries.dtype,
        "metric": "l1",
        "self_join": self_join,
    }
    assert made == make_problem(30, len(queries), 4, 3, **facts, threads=2, memory=5_000_000)
    assert isinstance(made, Problem)


@pytest.mark.parametrize(("k", "error"), [(0, ValueError), (31, ValueError), (2.0, TypeError), (True, TypeError)])
def test_k_is_checked(k: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="k="):
        Call.of({"points": ROWS}, Options()).problem(ROWS, ROWS, k)


def test_rows_are_checked_once_if_they_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    call, seen = Call.of({"points": ROWS}, Options()), list[str]()
    as_rows = inputs.as_rows
    monkeypatch.setattr(inputs, "as_rows", lambda x, name, **given: seen.append(name) or as_rows(x, name, **given))
    call.both(ROWS, ROWS)
    assert seen == ["points"]
    call.both(ROWS[:3], ROWS)
    assert seen == ["points", "points", "queries"]
    with pytest.raises(ValueError, match="must have the same number of columns"):
        call.both(ROWS[:, :3].copy(), ROWS)
