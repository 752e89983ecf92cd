"""tonari.explain: the cost of each method, why a method is refused, and which one auto uses."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import on_gpu
from tonari.exact.planning import planner as exact_plan
from tonari.methods.registry import NAMES
from tonari.nn_descent import driver
from tonari.nn_descent.planning import planner


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The faster method depends on the number of threads."""
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")


def told(explanation: tonari.Explanation) -> dict[str, Any]:
    return {made.method: made for made in explanation.candidates}


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("graph", [False, True])
def test_every_method_has_its_plan_or_a_reason(metric: str, graph: bool) -> None:
    made = tonari.explain(None if graph else (100, 8), (5000, 8), 10, metric=metric)
    assert [one.method for one in made.candidates] == list(NAMES)
    for one in made.candidates:
        if one.plan is None:
            assert (one.seconds, one.nbytes) == (None, None)
            assert one.why_not
            continue
        recall = {"recall": None} if one.method == "nn-descent" else {}
        m = 5000 if graph else 100
        assert one.plan == tonari.plan(5000, m, 8, 10, metric=metric, method=one.method, self_join=graph, **recall)
        assert (one.seconds, one.nbytes, one.why_not) == (one.plan.seconds, one.plan.total_bytes, "")
    can = {name for name, one in told(made).items() if one.plan is not None}
    assert can == {"exact"} | ({"kdtree"} if metric == "euclidean" else set()) | ({"nn-descent"} if graph else set())


@pytest.mark.parametrize(
    ("n", "m", "d", "k", "metric"),
    [
        (20_000, 20_000, 3, 5, "euclidean"),
        (20_000, 100, 40, 5, "l1"),
        (100, 50, 3, 5, "linf"),
        (9000, 9000, 12, 3, "chi2"),
    ],
)
def test_with_arrays_it_takes_what_auto_takes(n: int, m: int, d: int, k: int, metric: str) -> None:
    points, queries = np.abs(checks.gaussian(n, d)), np.abs(checks.gaussian(m, d, 1))
    made = tonari.explain(queries, points, k, metric=metric)
    assert made.method == ("kdtree" if d == 3 and n > 100 else "exact")
    assert tonari.Index(points, metric=metric, method="auto").method == ("kdtree" if d == 3 and n > 100 else "exact")
    assert made.reason


def test_a_graph_with_a_recall_may_be_approximate() -> None:
    points = checks.gaussian(3000, 4) @ checks.gaussian(4, 40, 1)
    for recall in (None, 0.9):
        made = tonari.explain(None, points, 8, recall=recall)
        assert made.method == tonari.knn_graph(points, 8, recall=recall).method
    shapes = tonari.explain(None, (10**6, 100), 10, recall=0.9)
    assert shapes.method is None
    assert "depends on the data" in shapes.reason
    plan = told(shapes)["nn-descent"].plan
    assert plan is not None
    assert getattr(plan, "recall") == 0.9  # noqa: B009


def test_from_shapes_alone_it_says_where_the_data_decide() -> None:
    made = tonari.explain((10**6, 3), (10**6, 3), 5)
    assert (made.method, "depends on the data" in made.reason) == (None, True)
    assert tonari.explain((10, 3), (100, 3), 5).method == "exact"
    wide = tonari.explain((10**5, 100), (10**6, 100), 5)
    assert (wide.method, wide.reason) == ("exact", "beyond 30 dimensions the boxes of a tree exclude nothing")
    assert told(tonari.explain((10, 3), (1000, 3), 5, dtype="float64"))["kdtree"].plan.held == "float64"


def test_too_little_memory_is_a_reason() -> None:
    least = tonari.plan(100_000, 1000, 8, 10, method="kdtree").total_bytes
    made = tonari.explain((1000, 8), (100_000, 8), 10, memory=least - 1)
    assert f"allow at least {least}" in told(made)["kdtree"].why_not
    assert made.method in ("exact", None)
    tiny = tonari.explain((1000, 8), (100_000, 8), 10, memory="5MB")
    assert (tiny.method, tiny.reason) == (None, told(tiny)["exact"].why_not)
    assert "allow at least" in tiny.reason
    none = tonari.explain((1000, 8), (100_000, 8), 10, memory=None)
    assert told(none)["kdtree"].why_not == ""


def test_it_reads_as_a_table_and_survives_json() -> None:
    made = tonari.explain((100, 8), (5000, 8), 10)
    lines = str(made).splitlines()
    assert [line.split()[0] for line in lines] == ["auto", *NAMES]
    assert made.reason in lines[0]
    assert f"{told(made)['exact'].seconds:.3g} s" in lines[1]
    assert told(made)["nn-descent"].why_not in lines[3]
    facts = json.loads(json.dumps(made.as_dict()))
    assert facts["method"] == made.method
    assert [set(one) for one in facts["candidates"]] == [{"method", "seconds", "nbytes", "why_not"}] * len(NAMES)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((10, 3), np.ones((20, 3), np.float32), 2), TypeError, "two arrays, or two shapes"),
        ((np.ones((20, 3), np.float32), (10, 3), 2), TypeError, "two arrays, or two shapes"),
        (((10, 3), (20, 4), 2), ValueError, "queries have 3 columns, points 4"),
        (((10, 3), (20, 3), 21), ValueError, "k=21: the largest k is 20"),
        ((None, (20, 3), 20), ValueError, "k=20: the largest k is 19"),
        (((0, 3), (20, 3), 2), ValueError, "m must be at least 1, got 0"),
    ],
)
def test_bad_shapes(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tonari.explain(*arguments)


def test_what_is_for_others_is_refused() -> None:
    rows = np.ones((20, 3), np.float32)
    with pytest.raises(ValueError, match="dtype is for shapes"):
        tonari.explain(rows, rows, 2, dtype="float32")
    with pytest.raises(ValueError, match="recall is for graphs"):
        tonari.explain(rows, rows, 2, recall=0.9)
    with pytest.raises(ValueError, match="recall=1"):
        tonari.explain(None, rows, 2, recall=1)
    with pytest.raises(ValueError, match="run=True searches, but shapes were given: pass the arrays"):
        tonari.explain((10, 3), (20, 3), 2, run=True)


def test_it_runs_what_it_explains() -> None:
    points = checks.gaussian(3000, 40)
    made = tonari.explain(points[:90], points, 10, run=True)
    record = made.record
    assert record is not None
    assert (record.method, record.reason) == (made.method, made.reason)
    assert record.plan.m == record.rows == record.proved == 90
    assert record.timed
    assert str(made).endswith(f"\n\n{record}")
    assert json.loads(json.dumps(made.as_dict()))["record"]["steps"][0]["proved"] == 90
    assert tonari.explain(points[:90], points, 10).record is None


@pytest.mark.parametrize(
    ("method", "metric", "d"), [("kdtree", "euclidean", 2), ("bits", "hamming", 8), ("exact", "cosine", 40)]
)
@pytest.mark.parametrize("graph", [False, True])
def test_every_method_proves_each_row_once(method: str, metric: str, d: int, graph: bool) -> None:
    points = checks.gaussian(6000, d)
    points = (points > 0).astype(np.uint8) * np.uint8(255) if metric == "hamming" else points
    record = tonari.explain(None if graph else points[:2000], points, 5, metric=metric, run=True).record
    assert record is not None
    assert record.method == method
    assert record.proved == record.rows == (6000 if graph else 2000)
    if method == "kdtree":
        assert "leaves and" in record.attempts[0].note


def test_rounds_that_lead_nowhere_are_recorded_with_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(3000, 40)  # no points are near each other
    monkeypatch.setattr(exact_plan, "brute_seconds", lambda *_, **__: 1e3)
    monkeypatch.setattr(planner, "descent_seconds", lambda _: 1.0)
    record = tonari.knn_graph(points, 8, recall=0.999, start="random").record
    assert record is not None
    assert (record.method, record.plan.recall) == ("nn-descent", 0.999)
    assert "1e+03 s expected by 'exact'" in record.reason
    rounds = [attempt for attempt in record.attempts if attempt.name.startswith("round ")]
    assert [(one.rows, one.proved) for one in rounds] == [(3000, None)] * len(rounds)
    assert all("recall 0." in one.note for one in rounds)
    ends = {choice.what: choice.why for choice in record.choices}
    assert ends["rounds"].startswith(f"{len(rounds)}: given up, as the recall nears 0.")
    assert ends["method"].startswith("auto gives up nn-descent: recall 0.")
    assert record.proved == record.rows == 3000
    assert [part.title for part in record.parts] == [
        "neighbours of a few rows, for how hard they are for NN-Descent",
        "true neighbours of a sample",
    ]
    assert all(part.proved == part.rows > 0 for part in record.parts)
    monkeypatch.setattr(driver, "expected_work", lambda _: 1e-3)
    again = tonari.knn_graph(points, 8, recall=0.999, start="random").record
    assert "comparisons of each point, of at most" in str(again)


@pytest.mark.parametrize(
    ("recall", "rounds", "why"),
    [(0.5, 20, "a recall of 0.5 is reached"), (0.9999, 2, "as many as"), (0.9999, 99, "the last ones changed fewer")],
)
@pytest.mark.filterwarnings("ignore:recall")
def test_why_rounds_end(recall: float, rounds: int, why: str) -> None:
    points = checks.gaussian(2000, 24)
    how: dict[str, Any] = {"recall": recall, "seed": 0, "start": "random", "rounds": rounds, "n_hubs": 2}
    plan = tonari.plan(2000, 2000, 24, 8, method="nn-descent", self_join=True, **how)
    record = tonari.knn_graph(points, 8, plan=plan, start="random").record
    assert record is not None
    (choice,) = record.choices
    assert why in choice.why
    assert choice.why.startswith(f"{len(record.attempts)}: ")


def test_explanations_at_once_have_a_record_each() -> None:
    points = {d: checks.gaussian(4000, d) for d in (3, 40)}

    def of(d: int) -> Any:
        return tonari.explain(None, points[d], 10, run=True, threads=2).record

    with ThreadPoolExecutor(2) as pool:
        tree, exact = pool.map(of, (3, 40))
    assert [attempt.name.split()[0] for attempt in tree.attempts] == ["k-d"]
    assert "k-d" not in str([attempt.name for attempt in exact.attempts])
    assert tree.proved == exact.proved == 4000


@on_gpu
def test_on_cuda_sizes_alone_may_settle_it() -> None:
    """A single search uses a tree without a probe if uniform points would, since this depends only on shapes."""
    made = tonari.explain((100_000, 3), (2_000_000, 3), 10, device="cuda")
    assert made.method == "kdtree"
    assert "by a k-d tree of uniform points" in made.reason
    assert tonari.explain((1_000_000, 20), (2_000_000, 20), 10, device="cuda").method is None
