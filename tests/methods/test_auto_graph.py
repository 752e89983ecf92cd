"""method="auto" for approximate graphs uses NN-Descent if it is clearly faster, and exact search otherwise."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

import tonari
from tests.api.test_nn_descent import POINTS, lists
from tests.helpers import checks, plans
from tests.helpers.checks import assert_same_neighbors
from tonari.core.process.caches import empty_caches
from tonari.exact.planning import planner as exact_plan
from tonari.methods.auto_graph import choose_graph
from tonari.nn_descent.planning import planner as planning_descent


def test_auto_is_exact_unless_a_recall_is_given_and_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = tonari.knn_graph(POINTS, 8)
    assert (exact.method, exact.report, exact.seed) == ("kdtree", None, None)
    few = tonari.knn_graph(POINTS, 8, recall=0.9, seed=1, start="random")
    assert (few.method, few.report, few.seed) == ("kdtree", None, None)
    assert_same_neighbors(lists(few), lists(exact))
    flat = checks.gaussian(900, 4) @ checks.gaussian(4, 40, 1)  # a tree does not support such wide rows
    for share, method in ((1.49, "exact"), (1.51, "nn-descent")):
        monkeypatch.setattr(exact_plan, "brute_seconds", lambda *_, share=share, **__: share)
        monkeypatch.setattr(exact_plan, "direct_seconds", lambda *_: 1e9)  # a screen is faster
        empty_caches()
        monkeypatch.setattr(planning_descent, "descent_seconds", lambda _: 1.0)
        made = tonari.knn_graph(flat, 8, recall=0.5, seed=1, start="random")
        assert made.method == method
        assert (made.report is None) is (method == "exact")
        assert made.seed == (None if method == "exact" else 1)
    assert tonari.knn_graph(checks.gaussian(900, 40), 8).method == "exact"


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "chi2"])
def test_auto_is_exact_where_points_have_many_dimensions(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_plan, "brute_seconds", lambda *_, **__: 2.0)
    monkeypatch.setattr(planning_descent, "descent_seconds", lambda _: 1.0)
    hard = np.abs(checks.gaussian(2000, 60))
    easy = np.abs(checks.gaussian(2000, 4) @ checks.gaussian(4, 60, 1)) + 0.1
    assert tonari.knn_graph(hard, 8, metric=metric, recall=0.5).method == "exact"
    assert tonari.knn_graph(easy, 8, metric=metric, recall=0.5).method == "nn-descent"


def test_auto_gives_the_exact_graph_where_rounds_lead_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    points = checks.gaussian(3000, 40)  # no points are near each other
    monkeypatch.setattr(exact_plan, "brute_seconds", lambda *_, **__: 1e3)
    monkeypatch.setattr(planning_descent, "descent_seconds", lambda _: 1.0)
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, logger="tonari"):
        warnings.simplefilter("error")
        graph = tonari.knn_graph(points, 8, recall=0.999, start="random", include_self=True)
    assert (graph.method, graph.report, graph.seed) == ("exact", None, None)
    assert "auto gives up nn-descent: recall 0." in caplog.text
    assert_same_neighbors(lists(graph), lists(tonari.knn_graph(points, 8, method="exact", include_self=True)))


def test_auto_keeps_to_what_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning_descent, "descent_seconds", lambda _: 0.0)
    points = checks.gaussian(900, 40)
    assert tonari.knn_graph(points, 8, recall=0.5).method == "nn-descent"
    needed = tonari.plan(900, 900, 40, 8, method="nn-descent", recall=0.5).total_bytes
    assert tonari.knn_graph(points, 8, recall=0.5, memory=needed).method == "nn-descent"
    assert tonari.knn_graph(points, 8, recall=0.5, memory=needed - 1).method == "exact"


def test_nn_descent_is_slower_where_wide_rows_do_not_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected time of wide rows is for rows that contract, which only rows near a plane of few dimensions do."""
    monkeypatch.setattr(exact_plan, "brute_seconds", lambda *_, **__: 1.2)
    monkeypatch.setattr(planning_descent, "descent_seconds", lambda plan: plan.d / 600)
    problem = plans.problem(1000, 1000, 600, 8, self_join=True, threads=1)
    flat = checks.gaussian(1000, 4) @ checks.gaussian(4, 600, 1)
    angles = checks.gaussian(1000, 1) * np.arange(1, 301)
    curve = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)  # of one dimension, but in no plane
    for points, method in ((flat, "nn-descent"), (curve, "exact")):
        rows = points.astype(np.float32)
        assert choose_graph(problem, rows, recall=0.9, seed=1, start="clusters").plan.method == method
