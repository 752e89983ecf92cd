"""Repeated searches on the CPU: no second plan, and the answers and messages of a first search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.core.trail import recording
from tonari.methods import repeated, tuning
from tonari.methods.call import Call
from tonari.methods.places import points as searched
from tonari.metrics.reference import brute

N, D = 300, 5


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the decisions that searches request."""
    made: list[Any] = []
    decide = searched.decide

    def noted(*given: Any) -> Any:
        made.append(decide(*given))
        return made[-1]

    monkeypatch.setattr(searched, "decide", noted)
    return made


def pair(m: int = 2, n: int = N, d: int = D, dtype: str = "float32", seed: int = 0) -> tuple[Any, Any]:
    made = checks.gaussian(m, d, seed + 1) * 20, checks.gaussian(n, d, seed) * 20
    queries, points = (part.astype(dtype) for part in made)
    return queries, points


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int8"])
@pytest.mark.parametrize(
    "metric", ["euclidean", "sqeuclidean", "inner_product", "cosine", "linf", "haversine", "minkowski:3", "jaccard"]
)
@pytest.mark.parametrize("m", [1, 40])
def test_the_answers_of_a_first_search(dtype: str, metric: str, m: int, decided: list[Any]) -> None:
    if metric == "jaccard" and dtype != "uint8":
        pytest.skip("rows of bits are bytes")
    d = 2 if metric == "haversine" else D
    for seed in range(3):
        queries, points = pair(m, d=d, dtype=dtype, seed=seed)
        if metric == "haversine":
            queries, points = (part % 1 for part in (queries, points))
        points[7:9] = queries[0]
        first = tonari.Index(points, metric=metric, method="bits" if metric == "jaccard" else "exact")
        assert_same_neighbors(tonari.search(queries, points, 5, metric=metric), first.search(queries, 5), metric=metric)
    assert len(decided) == 1


@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
@pytest.mark.parametrize(
    ("m", "n", "d", "k"), [(1, 1, 1, 1), (3, 9, 4, 9), (1, 2000, 3, 5), (60, 2000, 3, 5), (7, 50, 70, 50)]
)
def test_shapes(method: str, m: int, n: int, d: int, k: int, decided: list[Any]) -> None:
    for maker in checks.HOSTILE.values():
        points = maker(n, d, 0)
        queries = np.ascontiguousarray(np.resize(points, (m, d)))
        for _ in range(2):
            assert_same_neighbors(tonari.search(queries, points, k, method=method), brute(queries, points, k))
    assert len(decided) <= 3  # one for each dtype of hostile rows


def test_other_arguments_are_other_searches(decided: list[Any]) -> None:
    queries, points = pair()
    double = queries.astype("f8"), points.astype("f8")
    wide = np.hstack([queries, queries]), np.hstack([points, points])
    for ours, theirs in (
        (queries, points),
        double,
        (double[0], points),
        wide,
        (queries[:1], points),
        (queries, points[1:]),
    ):
        for k in (2, 3):
            for given in ({}, {"metric": "l1"}, {"method": "exact"}, {"device": "cpu"}):
                for _ in range(2):
                    found = tonari.search(ours, theirs, k, **given)
                    metric = given.get("metric", "euclidean")
                    assert_same_neighbors(found, brute(ours, theirs, k, metric), metric=metric)
    assert len(decided) == 6 * 2 * 4


def test_rows_that_are_not_read_as_they_are(decided: list[Any]) -> None:
    queries, points = pair()
    truth = brute(queries, points, 4)
    strided = np.repeat(points, 2, axis=1)[:, ::2]
    turned = np.asfortranarray(points)
    swapped = points.astype(points.dtype.newbyteorder())
    off = np.frombuffer(b"\0" + points.tobytes(), np.uint8)[1:].view(np.float32).reshape(points.shape)
    frozen = points.copy()
    frozen.setflags(write=False)
    for base in (points, strided, turned, swapped, off, frozen, points.tolist()):
        rows = queries if isinstance(base, np.ndarray) else queries.tolist()
        for _ in range(2):
            found = tonari.search(rows, base, 4)
            assert np.array_equal(found.indices, truth.indices)
    assert len(decided) == 1 + 2 * 4 + 2  # `frozen` is like `points`


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "linf", "canberra"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_values_are_checked_each_time(bad: float, metric: str, dtype: str) -> None:
    queries, points = pair(dtype=dtype)
    tonari.search(queries, points, 3, metric=metric)
    spoiled, asked = points.copy(), queries.copy()
    spoiled[N - 1, D - 1] = spoiled[4, 2] = bad
    asked[1, 0] = bad
    for ours, theirs, message in (
        (queries, spoiled, "points: row 4 has a value that is not finite"),
        (asked, points, "queries: row 1 has a value that is not finite"),
        (asked, spoiled, "points: row 4 has a value that is not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            tonari.search(ours, theirs, 3, metric=metric)


def test_values_whose_squares_overflow() -> None:
    queries, points = pair(dtype="float64")
    tonari.search(queries, points, 3)
    points[5, 1] = 1e200
    with pytest.raises(ValueError, match="points: row 5 has a value whose square overflows float64"):
        tonari.search(queries, points, 3)
    queries, points = pair()
    tonari.search(queries, points, 3)
    points[5, 1] = 3e38  # its square overflows float32, which is no error
    assert_same_neighbors(tonari.search(queries, points, 3), brute(queries, points, 3))


def test_negative_values_are_refused_each_time() -> None:
    queries, points = (np.abs(part) for part in pair())
    tonari.search(queries, points, 3, metric="chi2")
    points[3, 1] = -1
    with pytest.raises(ValueError, match="points: row 3 has a negative value"):
        tonari.search(queries, points, 3, metric="chi2")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"k": True}, TypeError, "k=True"),
        ({"k": 1.0}, TypeError, "k=1.0"),
        ({"progress": "yes"}, TypeError, "progress='yes'"),
        ({"method": "none"}, ValueError, "unknown method 'none'"),
        ({"method": "none", "progress": "yes"}, ValueError, "unknown method 'none'"),
        ({"metric": "none"}, ValueError, "unknown metric"),
        ({"device": "gpu"}, ValueError, "device='gpu'"),
        ({"differentiable": 0}, TypeError, "differentiable=0"),
        ({"differentiable": True}, TypeError, "expected torch tensors"),
        ({"threads": 0}, ValueError, "threads=0"),
        ({"memory": 0}, ValueError, "memory=0"),
        ({"plan": 1}, TypeError, "plan"),
        ({"weights": [2.0]}, ValueError, "weights"),
        ({"where": [True]}, ValueError, "where"),
    ],
    ids=str,
)
def test_arguments_are_refused_as_ever(given: dict[str, Any], error: type[Exception], message: str) -> None:
    queries, points = pair()
    tonari.search(queries, points, k=1)
    with pytest.raises(error, match=message):
        tonari.search(queries, points, **({"k": 1} | given))


def test_rules_and_weights_are_heard(decided: list[Any]) -> None:
    queries, points = pair()
    tonari.search(queries, points, 1)
    nearest = tonari.search(queries, points, 1).indices[:, 0]
    mask = np.ones(N, bool)
    mask[nearest] = False
    assert not np.isin(tonari.search(queries, points, 1, where=mask).indices, nearest).any()
    weights = np.linspace(0, 3, D)
    found = tonari.search(queries, points, 2, weights=weights)
    root = np.sqrt(weights)
    assert_same_neighbors(found, brute(queries * root, points * root, 2))


def test_the_environment_is_looked_at_each_time(decided: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    queries, points = pair()
    for isa in _native.supported_isas():
        monkeypatch.setenv("TONARI_ISA", isa)
        tonari.search(queries, points, 2)
        assert decided[-1].plan.isa == isa
    monkeypatch.setenv("TONARI_NUM_THREADS", "3")
    tonari.search(queries, points, 2)
    assert decided[-1].plan.threads == 3
    monkeypatch.setenv("TONARI_NUM_THREADS", "none")
    with pytest.raises(ValueError, match="TONARI_NUM_THREADS='none'"):
        tonari.search(queries, points, 2)


def test_what_depends_on_data_or_processors_is_not_kept(decided: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "1")
    queries, points = pair(20_000, 20_000, 3)
    for times in (1, 2):
        tonari.search(queries, points, 2)
        assert len(decided) == times
    assert decided[0].by_data
    assert not any(repeated._kept)
    monkeypatch.delenv("TONARI_NUM_THREADS")
    queries, points = pair(2_000, 2_000, 40)
    for processors, times in ((2, 3), (2, 3), (1, 4), (3, 5), (3, 5)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, those=range(processors): those)
        monkeypatch.setattr("tonari.core.process.workers._cgroup_processors", lambda: None)
        tonari.search(queries, points, 2)
        assert len(decided) == times
        assert decided[-1].plan.threads == processors


def test_few_decisions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "KEPT_SEARCHES", 4)
    for k in range(1, 11):
        tonari.search(*pair(), k)
        assert 1 <= len(repeated._kept) <= 4


def test_progress_is_reported_each_time() -> None:
    queries, points = pair()
    seen: list[Any] = []
    for times in (1, 2):
        tonari.search(queries, points, 2, progress=lambda *done: seen.append(done))
        assert seen == times * [(2 * N, 2 * N)]


VERBS: dict[str, Any] = {
    "search": lambda queries, points, **given: tonari.radius_search(queries, points, **{"radius": 9.0} | given),
    "count": lambda queries, points, **given: (tonari.radius_count(queries, points, **{"radius": 9.0} | given),),
    "graph": lambda _, points, **given: tonari.radius_graph(points, **{"radius": 9.0} | given),
    "pairs": lambda _, points, **given: tonari.pairs(points, **{"radius": 9.0} | given),
    "neighbours": lambda _, points, **given: (tonari.knn_graph(points, 3, **given).indices,),
    "values": lambda _, points, **given: (tonari.kth_distance(points, 3, **given),),
}


@pytest.fixture
def checked_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the calls whose arguments are checked again."""
    made: list[Any] = []
    of = Call.of

    def noted(*given: Any, **named: Any) -> Any:
        made.append(named)
        return of(*given, **named)

    monkeypatch.setattr(Call, "of", noted)
    return made


@pytest.mark.parametrize("verb", list(VERBS))
@pytest.mark.parametrize("n", [40, 700])
def test_verbs_answer_again_as_at_first(verb: str, n: int, checked_calls: list[Any]) -> None:
    for seed in range(3):
        queries, points = pair(n=n, seed=seed)
        points[7:9] = queries[0]
        first = VERBS[verb](queries, points, threads=1)  # which is not cached
        for ours, theirs in zip(VERBS[verb](queries, points), first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert len(checked_calls) == 3 + 1


@pytest.mark.parametrize("verb", list(VERBS))
def test_verbs_check_values_and_arguments_each_time(verb: str) -> None:
    queries, points = pair(n=40)
    seen: list[Any] = []
    for times in (1, 2):
        VERBS[verb](queries, points, progress=lambda *counted: seen.append(counted))
        assert len(seen) >= times
        before = len(seen)
        VERBS[verb](queries, points)
        assert len(seen) == before
    points[5, 1] = np.nan
    with pytest.raises(ValueError, match="points: row 5 has a value that is not finite"):
        VERBS[verb](queries, points)
    points[5, 1] = 0
    with pytest.raises(TypeError, match="progress='yes'"):
        VERBS[verb](queries, points, progress="yes")
    if verb in ("neighbours", "values"):
        return
    for given, error in (
        ({"radius": True}, TypeError),
        ({"radius": -1.0}, ValueError),
        ({"min_similarity": 0.5}, ValueError),
        ({"closed": 1}, TypeError),
    ):
        with pytest.raises(error):
            VERBS[verb](queries, points, **given)


def test_other_radii_are_other_searches() -> None:
    queries, points = pair(n=40)
    points[3] = queries[0] + np.float32([3, 4, 0, 0, 0])
    on = float(tonari.search(queries[:1], points[3:4], 1).distances[0, 0])
    for _ in range(2):
        assert tonari.radius_count(queries[:1], points[3:4], on).tolist() == [1]
        assert tonari.radius_count(queries[:1], points[3:4], on, closed=False).tolist() == [0]
        assert tonari.radius_count(queries[:1], points[3:4], 0).tolist() == [0]
        assert tonari.radius_count(queries[:1], points[3:4], np.array([on])).tolist() == [1]
        assert tonari.radius_count(queries[:1], points[3:4], on, where=np.array([False])).tolist() == [0]


def test_graphs_with_other_options_are_other_graphs() -> None:
    points = pair(n=40)[1]
    for _ in range(2):
        assert tonari.knn_graph(points, 3).indices.shape == (40, 3)
        assert (tonari.knn_graph(points, 3, include_self=True).indices[:, 0] == np.arange(40)).all()
        grouped = tonari.knn_graph(points, 3, batch=np.arange(40) % 2).indices
        assert (grouped % 2 == np.arange(40)[:, None] % 2).all()
        assert tonari.knn_graph(points, 3, method="nn-descent", seed=1).method == "nn-descent"


@pytest.mark.parametrize("n", [N, 3000])
def test_records_are_those_of_a_first_search(n: int, decided: list[Any]) -> None:
    queries, points = pair(n=n, d=40)
    searches, graphs = [], []
    for _ in range(2):
        with recording("search", len(queries)) as record:
            tonari.search(queries, points, 5, method="exact")
        searches.append(record)
        graphs.append(tonari.knn_graph(points, 5, method="exact").record)
    assert len(decided) == 2  # no search is decided twice
    for first, second in (searches, graphs):
        assert second is not None
        assert first is not second
        assert second.method == "exact"
        assert second.plan == first.plan
        assert [attempt.name for attempt in second.attempts] == [attempt.name for attempt in first.attempts]
        assert second.proved == second.rows == first.rows


def test_functions_of_one_name_do_not_answer_for_each_other() -> None:
    def key_of() -> Any:
        def verb(x: Any) -> Any:
            asked = repeated._asked.get()
            assert asked is not None
            return asked.key

        return repeated.repeating(verb)

    one, other, rows = key_of(), key_of(), np.zeros((2, 3))
    assert one.__name__ == other.__name__
    assert one(rows) == one(rows) != other(rows)
