"""Approximate graphs by public functions, files and the command line: every argument is used or refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors, assert_valid_neighbors
from tonari import io
from tonari.cli import main
from tonari.core.results.neighbors import Neighbors
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import reference
from tonari.nn_descent.plan import DescentPlan

POINTS = checks.gaussian(900, 6)


def lists(graph: KNNGraph) -> Neighbors:
    return Neighbors(graph.distances, graph.indices)


def descended(points: Any = POINTS, k: int = 8, **given: Any) -> KNNGraph:
    return tonari.knn_graph(points, k, **{"method": "nn-descent", "recall": 0.95} | given)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product", "chi2"])
def test_a_graph_up_to_a_recall(metric: str) -> None:
    points = np.abs(POINTS)
    graph = descended(points, metric=metric, seed=5)
    assert (graph.method, graph.seed, graph.metric, graph.include_self) == ("nn-descent", 5, metric, False)
    assert graph.report is not None
    assert (graph.report.target, graph.report.reached, graph.report.start) == (0.95, True, "clusters")
    assert graph.report.estimate.low >= 0.95
    assert_valid_neighbors(lists(graph), m=900, n=900, k=8, metric=metric, self_ids=np.arange(900))
    values = reference.values_at(points, points, graph.indices, metric)
    np.testing.assert_array_equal(graph.distances, reference.returned(values, np.float32))
    assert graph.recall(points, sample=900).by_index >= 0.95
    assert "method='nn-descent', seed=5" in repr(graph)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "uint8", "int8"])
def test_dtypes(dtype: str) -> None:
    points = np.random.default_rng(0).integers(0, 100, (400, 5)).astype(dtype)
    graph, exact = descended(points, 5), tonari.knn_graph(points, 5)
    assert graph.distances.dtype == exact.distances.dtype
    assert graph.recall(points).by_distance >= 0.95


def test_defaults() -> None:
    graph = tonari.knn_graph(POINTS, 8, method="nn-descent")
    assert graph.seed == 0
    assert graph.report is not None
    assert graph.report.target == 0.99


@pytest.mark.parametrize("n", [2, 3, 17, 50])
@pytest.mark.parametrize("include_self", [False, True])
def test_lists_of_few_points_hold_all_of_them(n: int, include_self: bool) -> None:
    points = checks.duplicates(n, 2)
    k = n - 1 + include_self
    exact = tonari.knn_graph(points, k, include_self=include_self)
    graph = descended(points, k, include_self=include_self)
    assert graph.include_self is include_self
    np.testing.assert_array_equal(graph.indices, exact.indices)
    np.testing.assert_array_equal(graph.distances, exact.distances)


def test_one_point_has_only_itself() -> None:
    graph = descended(POINTS[:1], 1, include_self=True)
    assert (graph.indices.tolist(), graph.report) == ([[0]], None)
    with pytest.raises(ValueError, match="k"):
        descended(POINTS[:1], 1)


def test_self_comes_first_where_it_is_asked_for() -> None:
    for metric in ("euclidean", "inner_product"):
        graph = descended(k=9, metric=metric, include_self=True)
        without = descended(k=8, metric=metric)
        np.testing.assert_array_equal(graph.indices[:, 0], np.arange(900))
        own = reference.values_at(POINTS, POINTS, np.arange(900)[:, None], metric)
        np.testing.assert_array_equal(graph.distances[:, :1], reference.returned(own, np.float32))
        np.testing.assert_array_equal(graph.indices[:, 1:], without.indices)


def test_the_same_seed_gives_the_same_graph_for_any_number_of_threads() -> None:
    points = checks.gaussian(1500, 14)
    made = [descended(points, 6, recall=0.5, seed=seed, threads=threads) for seed, threads in ((1, 1), (1, 2), (1, 5))]
    for graph in made[1:]:
        assert_same_neighbors(lists(graph), lists(made[0]))
    other = descended(points, 6, recall=0.5, seed=2, start="random")
    assert (other.indices != made[0].indices).any()


def test_a_graph_of_the_same_points_is_a_start() -> None:
    exact = tonari.knn_graph(POINTS, 8, include_self=True)
    begun = descended(k=7, start=exact)
    assert begun.report is not None
    assert (begun.report.start, begun.report.rounds[0].changed) == ("graph", 0)
    assert_same_neighbors(lists(begun), Neighbors(exact.distances[:, 1:].copy(), exact.indices[:, 1:].copy()))
    wider = descended(k=12, start=tonari.knn_graph(POINTS, 3, metric="l1"))
    assert wider.report is not None
    assert wider.report.reached
    from_anywhere = descended(start="random").report
    assert from_anywhere is not None
    assert from_anywhere.start == "random"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "exact", "recall": 0.9}, "recall is for method='nn-descent', got method='exact': change that or"),
        ({"method": "kdtree", "recall": None, "seed": 1}, "seed is for method='nn-descent', got method='kdtree'"),
        (
            {"method": "exact", "recall": None, "start": "random"},
            "start is for method='nn-descent', got method='exact'",
        ),
        ({"method": "auto", "recall": None, "seed": 1}, "seed is for method='nn-descent', got method='auto'"),
        ({"method": "auto", "recall": None, "start": "random"}, "start is for method='nn-descent'"),
        ({"recall": 1}, "recall=1: expected a number between 0 and 1, both excluded; .* method='exact'"),
        ({"method": "auto", "recall": 1.5}, "recall=1.5"),
        ({"seed": "x"}, "seed='x': expected a whole number"),
        ({"start": "clustered"}, 'start=\'clustered\': expected "clusters", "random" or a KNNGraph of the same points'),
        ({"start": "graph"}, "start='graph': expected"),
        ({"start": tonari.knn_graph(POINTS[:50], 3)}, "start is a graph of 50 points, but there are 900"),
        ({"memory": "100kB"}, "memory budget of 100000 bytes cannot hold a graph by NN-Descent"),
        ({"k": 900}, "k=900"),
        ({"metric": "mahalanobis"}, "pass VI=, the inverse of the covariance"),
        ({"method": "nndescent"}, "unknown method 'nndescent'; expected one of .*'nn-descent'"),
    ],
)
def test_what_cannot_be_used_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        descended(**given)


def test_searches_have_no_use_for_it() -> None:
    with pytest.raises(ValueError, match=r"method='nn-descent' builds graphs: use tonari\.knn_graph"):
        tonari.search(POINTS, POINTS, 3, method="nn-descent")
    with pytest.raises(ValueError, match="builds graphs"):
        tonari.Index(POINTS, method="nn-descent")


def made_plan(**given: Any) -> DescentPlan:
    usual: dict[str, Any] = {"method": "nn-descent", "recall": 0.9, "seed": 4, "self_join": True}
    plan = tonari.plan(900, 900, 6, 8, **usual | given)
    assert isinstance(plan, DescentPlan)
    return plan


def test_a_plan_is_followed() -> None:
    plan = made_plan(start="random", list_size=24, rounds=9)
    graph = tonari.knn_graph(POINTS, 8, plan=plan)
    assert (graph.method, graph.seed) == ("nn-descent", 4)
    assert graph.report is not None
    assert (graph.report.target, graph.report.start) == (0.9, "random")
    same = tonari.knn_graph(POINTS, 8, method="nn-descent", plan=plan)
    assert_same_neighbors(lists(same), lists(graph))
    exact = tonari.knn_graph(POINTS, 8)
    begun = tonari.knn_graph(POINTS, 8, plan=made_plan(start="graph"), start=exact)
    assert_same_neighbors(lists(begun), lists(exact))


@pytest.mark.parametrize(
    ("plan", "given", "message"),
    [
        ({}, {"recall": 0.9}, r"recall=0\.9: a plan has its own recall; pass it to tonari\.plan"),
        ({}, {"seed": 0}, "a plan has its own seed"),
        ({}, {"threads": 2}, "a plan has its own threads and memory"),
        ({}, {"method": "exact"}, "the plan's method is 'nn-descent', but this search has method='exact'"),
        ({}, {"k": 7}, "the plan was made for k=8, but this search has k=7"),
        ({}, {"metric": "l1"}, "the plan was made for metric='euclidean'"),
        ({}, {"start": "random"}, "the plan has start='clusters', this call start='random': they must agree"),
        ({"start": "graph"}, {}, "the plan has start='graph', this call start='clusters'"),
        ({"start": "random"}, {"start": tonari.knn_graph(POINTS, 3)}, "start='random', this call start='graph'"),
    ],
)
def test_a_plan_for_something_else_is_refused(plan: Any, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.knn_graph(POINTS, **{"k": 8, "plan": made_plan(**plan)} | given)


def test_a_target_out_of_reach_is_told() -> None:
    points = checks.gaussian(2500, 24)
    plan = tonari.plan(
        2500, 2500, 24, 8, method="nn-descent", list_size=8, n_hubs=2, reverse=2, rounds=2, start="random"
    )
    with pytest.warns(UserWarning, match=r"of 0\.99 not reached in 2 rounds") as told:
        graph = tonari.knn_graph(points, 8, plan=plan)
    assert [warning.filename for warning in told] == [__file__]
    assert graph.report is not None
    assert not graph.report.reached
    assert graph.report.estimate.low < 0.99


def test_progress_counts_rows() -> None:
    calls: list[tuple[int, int]] = []
    descended(progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 900


def test_a_file_keeps_the_report(tmp_path: Path) -> None:
    graph = descended(start="random")
    graph.save(tmp_path / "g.npz")
    again = KNNGraph.load(tmp_path / "g.npz")
    assert again.report == graph.report
    assert (again.method, again.seed) == ("nn-descent", 0)
    again.save(tmp_path / "h.npz")
    assert (tmp_path / "g.npz").read_bytes() == (tmp_path / "h.npz").read_bytes()
    with np.load(tmp_path / "g.npz") as archive:
        about = json.loads(str(archive["about"]))
    assert about["version"] == 1
    assert about["report"]["target"] == 0.95


def test_files_without_a_report_are_read(tmp_path: Path) -> None:
    exact = tonari.knn_graph(POINTS, 3)
    exact.save(tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as archive:
        about = json.loads(str(archive["about"]))
    assert sorted(about) == ["format", "include_self", "method", "metric", "seed", "version"]
    assert KNNGraph.load(tmp_path / "g.npz").report is None
    about["report"] = {"target": 0.5}
    np.savez(tmp_path / "bad.npz", about=np.array(json.dumps(about)), indices=exact.indices, distances=exact.distances)
    with pytest.raises(ValueError, match="not a whole KNNGraph file"):
        KNNGraph.load(tmp_path / "bad.npz")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    io.write(tmp_path / "points.fbin", POINTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
    return result


GRAPH = ("graph", "points.fbin", "-k", "8", "-o", "g.npz", "--force")


def test_command_graph(folder: Path) -> None:
    told = json.loads(run(*GRAPH, "--method", "nn-descent", "--recall", "0.95", "--seed", "3", "--json").stdout)
    graph = KNNGraph.load("g.npz")
    assert_same_neighbors(lists(graph), lists(descended(seed=3)))
    assert (told["method"], told["report"]["target"], told["report"]["reached"]) == ("nn-descent", 0.95, True)
    assert graph.report is not None
    assert told["report"] == json.loads(json.dumps(graph.report.as_dict()))
    shown = run(*GRAPH, "--method", "nn-descent").stdout.splitlines()
    assert shown[0] == "read points.fbin, 900 x 6"
    assert "nn-descent, in " in shown[1]
    assert shown[2].startswith("recall ")
    assert "report" not in json.loads(run(*GRAPH, "--recall", "0.9", "--json").stdout)  # auto: there are few points


def test_command_graph_warns_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.nn_descent.tuning.START_MISSES", 1e9)  # a start from which rounds do not get far
    io.write("points.fbin", checks.gaussian(15_000, 48))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = run("graph", "points.fbin", "-k", "1", "-o", "w.npz", "--method", "nn-descent", "--recall", "0.9999")
    assert told.stderr.startswith("tonari: warning: recall ")
    assert told.stderr.count("\n") == 1
    assert "not reached" in told.stdout


def test_command_graph_refuses(folder: Path) -> None:
    assert "recall is for method='nn-descent'" in run(*GRAPH, "--method", "exact", "--recall", "0.9", code=1).stderr
    assert "'--recall'" in run(*GRAPH, "--method", "nn-descent", "--recall", "1", code=2).stderr
    assert "'--seed'" in run(*GRAPH, "--method", "nn-descent", "--seed", "-1", code=2).stderr
    search = ("search", "points.fbin", "points.fbin", "-k", "1", "-o", "s.npz", "--method", "nn-descent")
    assert "builds graphs" in run(*search, code=2).stderr


def test_command_plan(folder: Path) -> None:
    command = ("plan", "points.fbin", "-k", "8", "--method", "nn-descent", "--recall", "0.95", "--seed", "2")
    settings = (part for one in ("list_size=24", "width=50", "start=random") for part in ("--set", one))
    told = json.loads(run(*command, *settings, "--json").stdout)
    assert told.pop("auto")["method"] == "kdtree"
    wanted = made_plan(recall=0.95, seed=2, list_size=24, width=50, start="random").as_dict()
    assert told == json.loads(json.dumps(wanted))
    assert "list_size  32" in run(*command).stdout
    assert "as many queries as points" in run(*command, "--queries", "5", code=1).stderr
    assert "recall is for" in run("plan", "points.fbin", "-k", "8", "--recall", "0.9", code=1).stderr


def test_command_info(folder: Path) -> None:
    run(*GRAPH, "--method", "nn-descent", "--recall", "0.95")
    extra = json.loads(run("info", "g.npz", "--json").stdout)["extra"]
    report = KNNGraph.load("g.npz").report
    assert report is not None
    assert (extra["target"], extra["recall"]) == (0.95, report.estimate.by_distance)
    assert (extra["low"], extra["high"]) == (report.estimate.low, report.estimate.high)
    run(*GRAPH)
    assert "target" not in json.loads(run("info", "g.npz", "--json").stdout)["extra"]
