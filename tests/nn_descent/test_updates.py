"""The update of a plan: its numbers, refusals with reasons, its memory, and the reports that name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tonari.core.errors import Unsupported
from tonari.inputs.overrides import read_override
from tonari.methods.registry import overrides_of
from tonari.metrics import METRICS
from tonari.metrics.recall import Recall
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.report import DescentReport, RoundReport

GIB = 1 << 30


def made(n: int = 10**6, d: int = 128, k: int = 10, **given: Any) -> DescentPlan:
    usual = {"devices": ("cuda:0",), "free_bytes": 70 * GIB, "update": "gnnd"}
    return plans.descent(n, d, k, **usual | given)


def test_the_papers_numbers() -> None:
    plan = made()
    assert (plan.update, plan.start, plan.list_size, plan.samples, plan.rounds) == ("gnnd", "random", 64, 32, 24)
    assert (plan.n_hubs, plan.reverse, plan.neighbors_per_hub, plan.width, plan.light_rounds) == (0, 0, 0, 0, 0)
    assert [made(k=k).list_size for k in (1, 43, 44, 128)] == [64, 64, 128, 128]
    assert (made(list_size=16).samples, made(list_size=8, k=8).samples) == (16, 8)
    assert made(start="clusters", n_probe=3).n_probe == 3
    assert json.loads(json.dumps(plan.as_dict()))["update"] == "gnnd"


def test_pull_is_the_default_everywhere() -> None:
    assert made(update="pull") == plans.descent(10**6, 128, 10, devices=("cuda:0",), free_bytes=70 * GIB)
    assert (made(update="pull").update, made(update="pull").samples) == ("pull", 0)
    assert plans.descent(1000, 8, 5, threads=1).update == "pull"
    assert read_override("update=gnnd", overrides_of("nn-descent", "cuda")) == ("update", "gnnd")
    assert "update" not in overrides_of("nn-descent", "cpu")


def test_lists_may_be_longer_than_there_are_points() -> None:
    assert (made(n=5, k=4).list_size, made(n=2, k=1).samples) == (64, 32)


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics_of_the_product_form(metric: str) -> None:
    if METRICS[metric].form == "gemm":
        assert made(metric=metric).metric == metric
    else:
        with pytest.raises(
            Unsupported, match=f"metric='{metric}' with update='gnnd', .* expected 'euclidean', .*update='pull'"
        ):
            made(metric=metric)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"update": "push"}, "update='push': expected one of 'pull', 'gnnd'"),
        ({"update": 3}, "update=3: expected one of"),
        ({"devices": ()}, "update='gnnd' with device='cpu': expected none, .*; leave update out, or use device='cuda'"),
        ({"n_hubs": 16}, "n_hubs=16: update='gnnd' does not use it; leave n_hubs out, or set update='pull'"),
        ({"reverse": 0}, "reverse=0: update='gnnd'"),
        ({"neighbors_per_hub": 3}, "neighbors_per_hub=3"),
        ({"width": 3}, "width=3"),
        ({"light_rounds": 0}, "light_rounds=0"),
        ({"update": "pull", "samples": 32}, "samples=32: update='pull' does not use it; .* set update='gnnd'"),
        ({"n_clusters": 9}, "n_clusters=9: start='random' makes no clusters; .*or set start='clusters'"),
        ({"start": "graph", "samples": 4}, "samples=4: update='gnnd' needs a power of two from 8 to 32"),
        ({"samples": 24}, "samples=24"),
        ({"samples": 64}, "samples=64"),
        ({"list_size": 16, "samples": 32}, "samples=32: .* from 8 to 16, as many as tiles and lists of 16 have room"),
        ({"samples": 0}, "samples must be a whole number of at least 1, got 0"),
        ({"list_size": 48}, "list_size=48: update='gnnd' needs a power of two of at least k=10 and 8, and at most 128"),
        ({"list_size": 8}, "list_size=8"),
        ({"list_size": 256}, "list_size=256"),
        ({"k": 1, "list_size": 4}, "list_size=4"),
        ({"k": 129}, "k=129: lists of update='gnnd' hold at most 128 neighbours; use update='pull'"),
        ({"free_bytes": GIB}, "cannot hold a graph by NN-Descent"),
    ],
)
def test_what_cannot_work_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**given)


def test_a_metric_of_ones_own_is_refused() -> None:
    pytest.importorskip("triton")
    with pytest.raises(Unsupported, match="'triton:mine' with update='gnnd'"):
        made(metric="triton:mine")


def test_memory_counts_lists_locks_samples_and_proposals() -> None:
    n = 10**6
    plan = made(host_points=False)
    assert plan.packed_bytes == n * (128 * 2 + 8)  # the rows that rounds compare
    lists, locks = n * 64 * (8 + 4), n * 2 * 4
    samples = n * 4 * (2 * 32 + 3 * 2 * 32)
    assert plan.working_bytes > lists + locks + samples
    assert plan.working_bytes < 1.25 * (lists + locks + samples)
    fewer = made(host_points=False, samples=8)
    assert plan.working_bytes - fewer.working_bytes > n * 4 * 4 * 24
    wide = made(n=10_000, host_points=False, samples=8, d=4096)
    narrow = made(n=10_000, host_points=False, samples=8, d=16)
    assert wide.working_bytes - narrow.working_bytes >= 16 * 10_000 * 4080 - (192 << 20)
    assert made(start="clusters").working_bytes >= made().working_bytes


def test_expected_seconds() -> None:
    assert made(host_points=False).seconds == pytest.approx(0.57, rel=0.1)
    assert made().seconds > made(update="pull").seconds


POINTS = checks.gaussian(60, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "nn-descent"}, "update='gnnd' with device='cpu': expected none"),
        ({"method": "exact"}, "update is for method='nn-descent', got method='exact'"),
        ({"method": "auto", "recall": 0.9}, "update is for method='nn-descent', got method='auto'"),
        ({"plan": tonari.plan(60, 60, 4, 3, method="nn-descent")}, "update='gnnd': a plan has its own update"),
    ],
)
def test_the_verb_uses_or_refuses_it(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.knn_graph(POINTS, 3, update="gnnd", **given)


def test_a_name_is_checked_even_where_nothing_is_built() -> None:
    with pytest.raises(ValueError, match="update='push': expected one of 'pull', 'gnnd'"):
        tonari.knn_graph(POINTS, 1, method="nn-descent", include_self=True, update="push")
    halves = POINTS[:30], POINTS[30:]
    graphs = [tonari.knn_graph(half, 1, include_self=True) for half in halves]
    with pytest.raises(ValueError, match="update='push'"):
        tonari.merge(*graphs, *halves, update="push")


def test_a_merge_refuses_it_on_the_cpu() -> None:
    halves = POINTS[:30], POINTS[30:]
    graphs = [tonari.knn_graph(half, 3) for half in halves]
    with pytest.raises(ValueError, match="update='gnnd' with device='cpu'"):
        tonari.merge(*graphs, *halves, update="gnnd")


def test_reports_name_it_and_files_without_it_load(tmp_path: Path) -> None:
    graph = tonari.knn_graph(POINTS, 3, method="nn-descent", recall=0.9)
    assert graph.report is not None
    assert graph.report.update == "pull"
    facts = graph.report.as_dict()
    assert facts["update"] == "pull"
    assert DescentReport.from_dict(facts) == graph.report
    earlier = {name: value for name, value in facts.items() if name != "update"}
    assert DescentReport.from_dict(earlier) == graph.report
    estimate = Recall(0.9, 0.91, 0.89, 0.93, 50, 3)
    pushed = DescentReport(0.9, estimate, False, "random", (RoundReport(1.0, 2),), 0.5, "gnnd")
    kept = tonari.KNNGraph(
        np.array([[1], [0]], np.int32), np.ones((2, 1), "f4"), "euclidean", "nn-descent", report=pushed
    )
    kept.save(tmp_path / "graph.npz")
    assert tonari.KNNGraph.load(tmp_path / "graph.npz").report == pushed
