"""method="kdtree" in public functions: the same bits as brute force, and every argument used or refused."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari import io
from tonari.cli import main
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.kdtree.plan import TREE_METRICS, TreePlan
from tonari.metrics.reference import brute

POINTS = checks.gaussian(700, 4)
QUERIES = checks.gaussian(41, 4, seed=1)


@pytest.mark.parametrize("d", [1_025, 1_500])
def test_many_dimensions(d: int) -> None:
    points = checks.gaussian(300, d)
    truth = brute(points[:3], points, 2)
    assert_same_neighbors(tonari.search(points[:3], points, 2, method="kdtree"), truth)
    assert_same_neighbors(tonari.Index(points, method="kdtree").search(points[:3], 2), truth)
    graph = tonari.knn_graph(points, 2, method="kdtree")
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), brute(points, points, 2, self_ids=np.arange(300)))
    assert tonari.plan(10**6, 3, d, 10, method="kdtree").seconds > 0


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("data", ["gaussian", "duplicates", "all_equal", "offset_float64", "huge", "zero_rows"])
def test_every_verb_gives_the_bits_of_brute_force(metric: str, data: str) -> None:
    points, queries = (checks.in_range(checks.HOSTILE[data](n, 4, s), metric) for n, s in ((300, 0), (17, 1)))
    truth = brute(queries, points, 7, metric)
    assert_same_neighbors(tonari.search(queries, points, 7, metric=metric, method="kdtree"), truth)
    index = tonari.Index(points, metric=metric, method="kdtree")
    assert index.method == "kdtree"
    assert "method='kdtree'" in repr(index)
    assert_same_neighbors(index.search(queries, 7), truth)
    graph = tonari.knn_graph(points, 7, metric=metric, method="kdtree")
    wanted = tonari.knn_graph(points, 7, metric=metric, method="exact")
    assert (graph.method, wanted.method) == ("kdtree", "exact")
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), Neighbors(wanted.distances, wanted.indices))


@pytest.mark.parametrize("points_dtype", checks.DTYPES)
@pytest.mark.parametrize("queries_dtype", ["float32", "bfloat16", "float64", "uint8"])
def test_dtypes(points_dtype: str, queries_dtype: str) -> None:
    rng = np.random.default_rng(5)
    points = rng.integers(0, 5, (200, 3)).astype(points_dtype)
    queries = rng.integers(0, 5, (19, 3)).astype(queries_dtype)
    truth = brute(queries, points, 9)
    assert_same_neighbors(tonari.search(queries, points, 9, method="kdtree"), truth)
    assert_same_neighbors(tonari.Index(points, method="kdtree").search(queries, 9), truth)


def test_an_index_answers_float64_queries_in_float64_and_others_as_before() -> None:
    index = tonari.Index(POINTS, method="kdtree")
    wide = QUERIES.astype(np.float64) + 1e-12
    for _ in range(2):
        for queries in (QUERIES, wide, QUERIES.astype(np.float16), QUERIES.astype("bfloat16")):
            assert_same_neighbors(index.search(queries, 5), brute(queries, POINTS, 5))


@pytest.mark.parametrize("include_self", [False, True])
def test_a_graph_leaves_self_out_by_row(include_self: bool) -> None:
    points = checks.duplicates(200, 3)
    for k in (1, 6, 199):
        made, wanted = (
            tonari.knn_graph(points, k, method=method, include_self=include_self) for method in ("kdtree", "exact")
        )
        assert np.array_equal(made.indices, wanted.indices)
        assert np.array_equal(made.distances, wanted.distances)
        assert made.method == "kdtree"


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (7, 7), (65, 65), (700, 700)])
def test_all_points_are_found(n: int, k: int) -> None:
    points = checks.gaussian(n, 2)
    assert_same_neighbors(tonari.search(QUERIES[:, :2], points, k, method="kdtree"), brute(QUERIES[:, :2], points, k))


def test_the_plan_decides() -> None:
    truth = brute(QUERIES, POINTS, 5)
    choices: list[dict[str, Any]] = [{"height": 0}, {"height": 9}, {"leaf": 3}, {"sort": False}, {"query_block": 1}]
    choices += [{"isa": "generic"}, {"traversal": "buffered"}, {"traversal": "buffered", "buffer": 2, "sort": False}]
    for given in choices:
        plan = tonari.plan(700, 41, 4, 5, method="kdtree", threads=2, **given)
        for method in ("auto", "kdtree"):
            assert_same_neighbors(tonari.search(QUERIES, POINTS, 5, method=method, plan=plan), truth)
        wide = QUERIES.astype(np.float64)
        if plan.traversal == "buffered":
            with pytest.raises(Unsupported, match="a tree of float64, expected euclidean or sqeuclidean and float32"):
                tonari.search(wide, POINTS, 5, plan=plan)
        else:
            assert_same_neighbors(tonari.search(wide, POINTS, 5, plan=plan), brute(wide, POINTS, 5))
    for traversal in ("walk", "buffered"):
        plan = tonari.plan(700, 700, 4, 5, method="kdtree", self_join=True, traversal=traversal)
        graph = tonari.knn_graph(POINTS, 5, plan=plan)
        assert graph.method == "kdtree"
        assert np.array_equal(graph.indices, brute(POINTS, POINTS, 5, self_ids=np.arange(700)).indices)


def test_plans_for_something_else_are_refused() -> None:
    tree = tonari.plan(700, 41, 4, 5, method="kdtree")
    exact = tonari.plan(700, 41, 4, 5, method="exact")
    elsewhere = dataclasses.replace(tree, device="cuda", devices=("cuda:1",), threads=0, isa="")
    for given, message in (
        ({"plan": tree, "method": "exact"}, r"the plan's method is 'kdtree', but this search has method='exact'"),
        ({"plan": exact, "method": "kdtree"}, r"the plan's method is 'exact', but this search has method='kdtree'"),
        ({"plan": tree, "threads": 2}, r"a plan has its own threads"),
        ({"plan": tree, "memory": 10**9}, r"a plan has its own threads and memory"),
        ({"plan": tree, "metric": "l1"}, r"made for metric='euclidean', but this search has metric='l1'"),
        ({"plan": elsewhere}, r"the plan was made for cuda:1: pass device='cuda:1' with it"),
    ):
        with pytest.raises(ValueError, match=message):
            tonari.search(QUERIES, POINTS, 5, **given)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"k": 0}, ValueError, "k=0: the smallest k is 1"),
        ({"k": 701}, ValueError, "k=701: the largest k is 700"),
        ({"threads": 0}, ValueError, "threads=0: expected at least 1"),
        ({"memory": "1MB"}, ValueError, "budget of 1000000 bytes cannot hold a tree"),
        ({"metric": "cosine"}, ValueError, "supports euclidean, sqeuclidean, l1, linf, .*, not cosine"),
        ({"metric": "euclid"}, ValueError, "unknown metric 'euclid'"),
    ],
    ids=str,
)
def test_bad_arguments(given: dict[str, Any], error: type[Exception], message: str) -> None:
    for call in (
        lambda k=5, **given: tonari.search(QUERIES, POINTS, k, method="kdtree", **given),
        lambda k=5, **given: tonari.Index(POINTS, method="kdtree", **given).search(QUERIES, k),
    ):
        with pytest.raises(error, match=message):
            call(**given)


def test_values_and_widths_are_checked() -> None:
    bad = QUERIES.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="queries: row 3"):
        tonari.search(bad, POINTS, 5, method="kdtree")
    with pytest.raises(ValueError, match="same number of columns"):
        tonari.search(QUERIES[:, :3], POINTS, 5, method="kdtree")


def test_progress_counts_queries_and_a_log_tells_visits(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[int, int]] = []
    with caplog.at_level(logging.INFO, logger="tonari"):
        tonari.search(QUERIES, POINTS, 5, method="kdtree", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (41, 41)
    assert "41 rows" in caplog.text
    assert "leaves" in caplog.text


def test_the_command_line_has_the_method(tmp_path: Any) -> None:
    points, out = tmp_path / "points.npy", tmp_path / "graph.npz"
    io.write(points, POINTS)
    run = CliRunner().invoke
    assert run(main, ["graph", str(points), "-k", "3", "-o", str(out), "--method", "kdtree"]).exit_code == 0
    assert tonari.KNNGraph.load(out).method == "kdtree"
    shown = run(
        main, ["plan", str(points), "-k", "3", "--method", "kdtree", "--set", "leaf=7", "--set", "sort=no"]
    ).output
    assert {"kdtree", "7", "False"} <= set(shown.split())
    refused = run(main, ["graph", str(points), "-k", "3", "-o", str(out), "--force", "--method", "tree"])
    assert refused.exit_code == 2
    assert isinstance(tonari.plan(10, 10, 2, 1, method="kdtree"), TreePlan)
