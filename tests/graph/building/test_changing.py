"""Points are removed, replaced and added: exact graphs stay exact, bit for bit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.graph import tuning
from tonari.graph.building import changing
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute

N, K = 240, 5
RNG = np.random.default_rng(0)
DATA = {
    "gaussian": checks.gaussian(N, 6),
    "duplicates": checks.duplicates(N, 2),
    "equal": np.ones((N, 3), np.float32),
    "line": np.arange(N, dtype=np.float64)[:, None] % 60,
    "offset": checks.offset_float64(N, 4),
}
SOME = {"none": [], "one": [N // 2], "7": [7, 0, N - 1, 5, 6, 100, 3], "half": RNG.choice(N, N // 2, replace=False)}


def lists(graph: KNNGraph) -> tonari.Neighbors:
    return tonari.Neighbors(graph.to_numpy().distances, graph.to_numpy().indices)


def truth(points: Any, metric: str = "euclidean", k: int = K) -> tonari.Neighbors:
    return brute(points, points, k, metric, self_ids=np.arange(len(points)))


@pytest.fixture(autouse=True)
def _no_new_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Avoid the new graph that would be fastest for so few points."""
    for name in ("CHANGED_ENTRY", "SEARCHED_AGAIN"):
        monkeypatch.setattr(tuning, name, 0.0)


@pytest.fixture(params=["bounded", "crowded", "blocks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Search within bounds, without bounds, and within bounds block by block."""
    if request.param == "crowded":
        monkeypatch.setattr(tuning, "CROWDED", 0)
    if request.param == "blocks":
        for name in ("WITHIN_ENTRIES", "READ_AT_ONCE"):
            monkeypatch.setattr(tuning, name, 3 * N)
        monkeypatch.setattr(tuning, "CROWDED", N)
        monkeypatch.setattr(tuning, "BOUNDING_NEIGHBOURS", 1)
    return str(request.param)


@pytest.mark.parametrize("some", SOME)
@pytest.mark.parametrize("data", DATA)
def test_an_exact_graph_without_points_has_the_bits_of_a_new_one(data: str, some: str, way: str) -> None:
    points, ids = DATA[data], SOME[some]
    graph = tonari.knn_graph(points, K)
    made = graph.remove(points, ids)
    assert_same_neighbors(lists(made), truth(np.delete(points, np.asarray(ids, int), axis=0)))
    assert (made.method, made.report) == (graph.method, None)


@pytest.mark.parametrize("moved", ["near", "far", "copies", "swapped"])
@pytest.mark.parametrize("some", SOME)
@pytest.mark.parametrize("data", DATA)
def test_an_exact_graph_of_replaced_rows_has_the_bits_of_a_new_one(data: str, some: str, moved: str, way: str) -> None:
    points, ids = DATA[data], np.asarray(SOME[some], np.int64)
    rows = {
        "near": points[ids] + points.dtype.type(1e-3),
        "far": points[ids] + points.dtype.type(100),
        "copies": points[np.full(len(ids), 11)],
        "swapped": points[ids[::-1]],
    }[moved]
    before = points.copy()
    made = tonari.knn_graph(points, K).replace(points, ids, rows)
    assert np.array_equal(points, before)
    after = points.copy()
    after[ids] = rows
    assert_same_neighbors(lists(made), truth(after))


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("metric", ["inner_product", "cosine", "l1", "sqeuclidean", "canberra"])
def test_metrics_and_self(metric: str, include_self: bool) -> None:
    points, ids = DATA["gaussian"], SOME["7"]
    options: dict[str, Any] = {"metric": metric, "include_self": include_self}
    graph = tonari.knn_graph(points, K, **options)
    rest, moved = np.delete(points, ids, axis=0), points.copy()
    moved[ids] = points[:7] * 2
    for made, after in ((graph.remove(points, ids), rest), (graph.replace(points, ids, points[:7] * 2), moved)):
        for part, whole in zip(lists(made), lists(tonari.knn_graph(after, K, **options)), strict=True):
            np.testing.assert_array_equal(part, whole)
        assert (made.metric, made.include_self) == (metric, include_self)


def test_down_to_the_fewest_points_that_lists_need() -> None:
    points = DATA["gaussian"]
    graph = tonari.knn_graph(points, K)
    assert_same_neighbors(lists(graph.remove(points, np.arange(N - K - 1))), truth(points[-K - 1 :]))
    with pytest.raises(ValueError, match=r"ids: 5 points would be left, but lists of k=5 need 6; .*graph.trim\(4\)"):
        graph.remove(points, np.arange(N - K))
    with pytest.raises(ValueError, match="ids: 0 points would be left, but lists of k=5 need 6; keep more points"):
        graph.remove(points, np.arange(N))
    alone = tonari.knn_graph(points[:3], 1, include_self=True)
    assert alone.remove(points[:3], [0, 1]).indices.tolist() == [[0]]
    assert alone.replace(points[:3], 1, points[:1]).indices.tolist() == [[0], [1], [2]]
    assert tonari.knn_graph(points[:2], 1).replace(points[:2], [0, 1], points[2:4]).indices.tolist() == [[1], [0]]


def test_one_change_after_another_and_batches_of_new_points() -> None:
    points, here = DATA["duplicates"], DATA["duplicates"][:60]
    graph = tonari.knn_graph(here, K)
    for begin, stop in itertools.pairwise((60, 61, 68, 160, N)):
        graph, here = graph.add(here, points[begin:stop]), np.concatenate([here, points[begin:stop]])
        assert graph.method == "exact"
        graph, here = graph.remove(here, [3, 9]), np.delete(here, [3, 9], axis=0)
        graph, here = graph.replace(here, [0], here[-1:]), np.concatenate([here[-1:], here[1:]])
        assert_same_neighbors(lists(graph), truth(here))


def test_many_new_points_of_an_exact_graph_stay_exact_unless_a_recall_is_given() -> None:
    points = checks.gaussian(1400, 6)
    graph = tonari.knn_graph(points[:700], 8)
    made = graph.add(points[:700], points[700:])
    assert_same_neighbors(lists(made), truth(points, k=8))
    assert made.report is None


def test_only_lists_with_a_removed_point_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    points, seen = DATA["gaussian"], list[int]()
    graph, search = tonari.knn_graph(points, K), changing.search_again
    monkeypatch.setattr(
        changing,
        "search_again",
        lambda those, found, short, bar: (seen.append(len(short)), search(those, found, short, bar)),
    )
    graph.remove(points, [17])
    assert seen == [int(graph.occurrence()[17])]
    record = graph.remove(points, [17]).record
    assert record is not None
    assert (record.title, record.rows, record.proved) == ("remove", N - 1, N - 1)
    # A point that moves slightly stays in most lists.
    graph.replace(points, [17], points[17:18] + np.float32(1e-4))
    assert seen[-1] < seen[0]


@pytest.mark.parametrize("include_self", [False, True])
def test_an_approximate_graph_reports_its_recall(include_self: bool) -> None:
    points = checks.gaussian(1200, 6)
    graph = tonari.knn_graph(points, 8, method="nn-descent", recall=0.95, include_self=include_self)
    ids = np.arange(0, 1200, 50)
    rest, moved = np.delete(points, ids, axis=0), points.copy()
    moved[ids] = points[ids] * 3
    for made, after in (
        (graph.remove(points, ids, recall=0.95, seed=3), rest),
        (graph.replace(points, ids, moved[ids], recall=0.95, seed=3), moved),
    ):
        assert (made.n, made.method, made.seed, made.include_self) == (len(after), "nn-descent", 3, include_self)
        assert made.report is not None
        assert made.report.reached
        assert made.report.estimate.low >= 0.95
        assert made.recall(after, sample=1200).by_distance >= 0.95
        assert made.record is not None
    alone = tonari.knn_graph(points[:30], 1, method="nn-descent", include_self=True)
    assert alone.remove(points[:30], [4]).indices.ravel().tolist() == list(range(29))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([N], ValueError, f"ids: {N} is not a row of the graph, expected 0 to {N - 1}"),
        ([-1], ValueError, "ids: -1 is not a row"),
        ([4, 2, 4], ValueError, "ids: 4 is given twice; name each point once"),
        ([1.5], TypeError, "ids: expected row numbers"),
        (np.ones(N, bool), TypeError, "ids: expected row numbers"),
        ([[1, 2]], TypeError, "ids: expected row numbers"),
    ],
)
def test_ids_that_are_no_rows_are_refused(ids: Any, error: type[Exception], message: str) -> None:
    graph = tonari.knn_graph(DATA["gaussian"], K)
    for call in (graph.remove, lambda points, ids: graph.replace(points, ids, points[: np.size(ids)])):
        with pytest.raises(error, match=message):
            call(DATA["gaussian"], ids)


def test_graphs_and_rows_that_do_not_fit_are_refused() -> None:
    points = DATA["gaussian"]
    graph = tonari.knn_graph(points, K)
    with pytest.raises(ValueError, match="the graph has 240 rows, points 239"):
        graph.remove(points[1:], [3])
    with pytest.raises(ValueError, match=r"the graph: row .* pass the points from which the graph was built"):
        graph.remove(points[::-1], [3])
    with pytest.raises(ValueError, match=r"recall=0\.9: the graph is exact, and stays so; leave recall out"):
        graph.remove(points, [3], recall=0.9)
    for rows in (points[:2], points[:1, :3], points[:1].astype(np.float64)):
        with pytest.raises(
            ValueError, match=r"rows: float\d\d of shape .* expected float32 of shape \(1, 6\): one for each"
        ):
            graph.replace(points, [3], rows)
    with pytest.raises(ValueError, match=r"not finite|infinit|NaN"):
        graph.replace(points, [3], np.full((1, 6), np.nan, np.float32))
    with pytest.raises(ValueError, match=r"the graph: row \d has [0-3] neighbours, expected 5: an exact"):
        graph.subset(np.arange(9)).remove(points[:9], [3])
    for new in (points[:2], points):  # all pairs, or a merge
        with pytest.raises(ValueError, match=r"the graph: row \d has [0-3] neighbours, expected 5: an exact"):
            graph.subset(np.arange(9)).add(points[:9], new)
    with pytest.raises(TypeError, match=r"got bool of shape \(\d+,\); the row numbers of a mask are numpy.flatnonzero"):
        graph.remove(points, np.zeros(len(points), bool))
    bits = RNG.integers(0, 256, (50, 4)).astype(np.uint8)
    of_bits = tonari.knn_graph(bits, 3, metric="hamming")
    with pytest.raises(ValueError, match=r"hamming' cannot be merged or changed: use tonari\.knn_graph"):
        of_bits.replace(bits, [1], bits[:1])


@pytest.mark.parametrize(("entry", "again"), [(1.0, 0.0), (0.0, 1e9), (0.0, 0.0)])
@pytest.mark.parametrize("include_self", [False, True])
def test_a_new_graph_is_built_if_it_is_faster(
    include_self: bool, entry: float, again: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "CHANGED_ENTRY", entry)
    monkeypatch.setattr(tuning, "SEARCHED_AGAIN", again)
    points, ids = DATA["duplicates"], SOME["7"]
    graph = tonari.knn_graph(points, K, include_self=include_self)
    moved = points.copy()
    moved[ids] = points[:7] + 1
    for made, after in (
        (graph.remove(points, ids), np.delete(points, ids, axis=0)),
        (graph.replace(points, ids, moved[ids]), moved),
    ):
        whole = tonari.knn_graph(after, K, include_self=include_self)
        np.testing.assert_array_equal(made.indices, whole.indices)
        np.testing.assert_array_equal(made.distances, whole.distances)
        assert made.record is not None
        assert any("a new graph is built" in choice.why for choice in made.record.choices) == (entry + again > 0)
        assert (made.record.rows, made.record.proved) == (len(after), len(after))
