"""The page about a graph: its contents, no dependence on other files, and pages of unusual graphs."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers
from tests.helpers.html_checks import check_page
from tonari.core.units import duration
from tonari.graph import tuning
from tonari.graph.page import charts
from tonari.graph.page.contents import contents
from tonari.graph.statistics import Histogram, histogram


def _approximate(n: int = 400) -> tuple[Any, tonari.KNNGraph]:
    points = checks.gaussian(n, 12)
    return points, tonari.knn_graph(points, 8, method="nn-descent", recall=0.5, seed=1)


def test_the_page_says_what_the_graph_is() -> None:
    points, graph = _approximate()
    said = check_page(graph.to_html(points, title="<b> & all"))
    recall = graph.recall(points)
    assert "<b> & all" in said
    assert "8 nearest neighbours of 400 points by euclidean, built by nn-descent: neighbours may be missing" in said
    assert f"{recall.by_distance:.4f} {recall.low:.4f} to {recall.high:.4f}, 95 %" in said
    assert "Measured now, against the exact answer of 400 random points" in said
    made = graph.report
    assert made is not None
    assert f"Target 0.5, reached; built in {made.seconds:.3g} s, from clusters." in said
    for at, step in enumerate(made.rounds):
        assert f"{at + 1} {step.phi:.5g} {step.changed:,}" in said
    hubs = np.argsort(-graph.occurrence(), kind="stable")[:10]
    assert " ".join(f"{hub} {graph.occurrence()[hub]}" for hub in hubs) in said


def test_the_page_says_what_ran() -> None:
    graph = _approximate()[1]
    record = graph.record
    assert record is not None
    said = check_page(graph.to_html())
    assert "The run" in said
    for attempt in record.attempts:
        assert f"{attempt.name} 400 - {duration(attempt.seconds or 0)} {attempt.note}" in said
    assert [choice.what for choice in record.choices] == ["clusters", "rounds"]
    for choice in record.choices:
        assert f"{choice.what} {choice.why}" in said
    [sample] = [part for part in record.parts if part.title == "true neighbours of a sample"]
    assert f"For it, true neighbours of a sample: 400 rows in {duration(sample.seconds)}" in said
    assert f"{sample.attempts[0].name} 400 400" in said
    assert f"Built in {duration(record.seconds)} by nn-descent." in said
    assert f"list_size {record.plan.list_size}" in said
    assert "The run" not in check_page(graph.trim(3).to_html())


def test_an_exact_graph_says_that_nothing_is_missing() -> None:
    points, _ = consumers.clusters(copies=4)
    graph = tonari.knn_graph(points, 9, include_self=True)
    found = contents(graph.lists)
    said = check_page(graph.to_html())
    assert "8 nearest neighbours of 400 points by euclidean, built by" in said
    assert "no neighbour can be missing, each list begins with the point itself" in said
    assert "recall" not in said.lower()
    assert (found.zero, found.duplicates) == (12, 4)
    assert "zero distances 12 4 points have a duplicate" in said
    sizes = np.sort(np.bincount(graph.connected_components()))[::-1]
    assert found.components == sizes.tolist()
    assert f"components {len(sizes)}" in said


def test_the_numbers_are_those_of_the_functions() -> None:
    points, graph = _approximate()
    facts = contents(graph.lists, points, plan={"route": "exact", "host_bytes": 1 << 20}).as_dict()
    first = graph.distances[:, 0].astype(np.float64)
    assert facts["first"] == {"min": first.min(), "median": np.median(first), "max": first.max()}
    assert facts["hubs"][0] == (int(graph.occurrence().argmax()), int(graph.occurrence().max()))
    assert facts["recall"] == vars(graph.recall(points))
    assert contents(graph.lists).as_dict()["recall"] == vars(graph.report.estimate)  # type: ignore[union-attr]


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    _, graph = _approximate()
    whole = graph.to_html()
    monkeypatch.setattr(tuning, "READ_AT_ONCE", 100)
    assert graph.to_html() == whole


@pytest.mark.parametrize("metric", ["inner_product", "cosine", "sqeuclidean"])
def test_every_kind_of_metric_has_a_page(metric: str) -> None:
    said = check_page(tonari.knn_graph(checks.gaussian(60, 5), 5, metric=metric).to_html())
    if metric == "inner_product":
        assert "Similarity of the k-th neighbour" in said
        assert "These distances do not determine it." in said
        assert "zero distances" not in said
    else:
        assert "Distance of the k-th neighbour" in said


def test_tensors_have_the_page_of_arrays() -> None:
    torch = pytest.importorskip("torch", reason="what has tensors")
    graph = dataclasses.replace(tonari.knn_graph(checks.gaussian(60, 5), 5), record=None)  # this record has durations
    tensors = tonari.KNNGraph(torch.tensor(graph.indices), torch.tensor(graph.distances), graph.metric, graph.method)
    assert tensors.to_html() == graph.to_html()
    assert check_page(tensors._repr_html_()) == check_page(graph._repr_html_())
    np.testing.assert_array_equal(tensors.to_weights("umap").toarray(), graph.to_weights("umap").toarray())


def _by_hand(indices: Any, distances: Any, **facts: Any) -> tonari.KNNGraph:
    return tonari.KNNGraph(np.array(indices, np.int32), np.array(distances, np.float32), "euclidean", "hand", **facts)


@pytest.mark.parametrize(
    "graph",
    [
        _by_hand([[1], [0]], [[1], [1]]),
        _by_hand([[0], [1]], [[0], [0]], include_self=True),
        _by_hand([[-1], [-1], [-1]], [[np.inf]] * 3),
        _by_hand([[1, -1], [2, 0], [1, 0]], [[1, np.inf], [1, 1], [1, 1]]),
        _by_hand([[1], [2], [0]], [[np.inf]] * 3),
        tonari.knn_graph(checks.all_equal(70, 3), 6),
        tonari.knn_graph(checks.tight_far_clusters(70, 3), 69),
        tonari.knn_graph(checks.huge(70, 3), 6),
        tonari.knn_graph(checks.subnormal(70, 3), 6),
        consumers.with_missing(tonari.knn_graph(checks.gaussian(70, 3), 6)),
    ],
    ids=["pair", "only self", "no neighbours", "missing", "infinite", "equal", "far", "huge", "subnormal", "short"],
)
def test_odd_graphs_have_a_page(graph: tonari.KNNGraph) -> None:
    check_page(graph.to_html())


def test_missing_neighbours_are_counted() -> None:
    graph = tonari.knn_graph(checks.gaussian(70, 3), 6)
    assert "missing neighbours 2" in check_page(consumers.with_missing(graph).to_html())
    assert "missing neighbours" not in check_page(graph.to_html())


def test_the_page_says_which_neighbours_may_be_missing() -> None:
    points = checks.gaussian(70, 3)
    graph = tonari.knn_graph(points, 6)
    part = check_page(graph.subset(np.arange(30)).to_html())
    assert "built by" in part
    assert "neighbours may be missing" in part
    filtered = tonari.knn_graph(points, 6, batch=np.arange(70) // 5)
    assert "no neighbour can be missing among the points that are allowed by batch" in check_page(filtered.to_html())


def test_other_points_are_refused() -> None:
    points, graph = _approximate()
    with pytest.raises(ValueError, match="they must be the same points"):
        graph.to_html(points[1:])


# ---------------------------------------------------------------- charts


def test_bars_are_as_high_as_their_counts() -> None:
    drawn = charts.bars(Histogram(np.arange(4.0), np.array([2, 0, 4]), 0), label="a < b", unit="points")
    assert ">a &lt; b<" in drawn
    assert '"Histogram: a &lt; b"' in drawn
    heights = [float(height) for height in re.findall(r'<rect[^>]* height="([\d.]+)"', drawn)]
    assert heights == [pytest.approx(73), pytest.approx(146)]
    assert "2 to 3: 4 points" in drawn


def test_bars_of_whole_numbers_have_their_names() -> None:
    counts = histogram(np.array([0, 0, 3]), whole=True)
    assert counts is not None
    drawn = charts.bars(counts, label="lists", unit="points", whole=True)
    assert "0 to 0: 2 points" in drawn
    assert "3 to 3: 1 points" in drawn
    assert re.findall(r'text-anchor="(?:start|end)">([^<]*)</text>', drawn)[:2] == ["0", "3"]


def test_shades_have_equal_shares() -> None:
    shade, limits = charts.shades(np.random.default_rng(0).permutation(100))
    assert np.bincount(shade).tolist() == [20] * 5
    assert len(limits) == 4


@pytest.mark.parametrize(("value", "told"), [(0, "0"), (12345, "12,345"), (0.5, "0.5"), (1e9, "1e+09"), (-0.5, "-0.5")])
def test_numbers_are_short(value: float, told: str) -> None:
    assert charts.short(value) == told
