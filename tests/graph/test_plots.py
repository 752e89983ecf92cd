"""Plots with matplotlib, and the tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.html_checks import check_page
from tonari.graph.spectral import spectral_map

GRAPH = tonari.knn_graph(checks.gaussian(300, 6), 8)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib", reason="what draws")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.mark.usefixtures("figures")
def test_distances_are_those_of_the_first_and_the_last_column() -> None:
    ax = GRAPH.plot.distances()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["nearest", "k-th"]
    for patch, column in zip(ax.patches, (0, -1), strict=True):
        values, edges, _ = patch.get_data()
        inside = GRAPH.distances[:, column].astype(np.float64)
        inside = inside[(inside >= edges[0]) & (inside <= edges[-1])]
        np.testing.assert_array_equal(values, np.histogram(inside, edges)[0])
    assert ax.get_xlabel() == "euclidean distance"
    similar = tonari.knn_graph(checks.gaussian(50, 4), 3, metric="inner_product")
    assert similar.plot.distances(ax).get_xlabel() == "inner_product similarity"


@pytest.mark.usefixtures("figures")
def test_hubness_is_drawn_into_given_axes() -> None:
    from matplotlib import pyplot

    ax = pyplot.subplots()[1]
    assert GRAPH.plot.hubness(ax) is ax
    assert ax.patches[0].get_data()[0].sum() == 300


@pytest.mark.usefixtures("figures")
def test_the_map_has_the_colors_of_its_points() -> None:
    found = spectral_map(GRAPH.lists, most=100, seed=3)
    assert found is not None
    drawn = GRAPH.plot.map(most=100, seed=3).collections[0]
    np.testing.assert_array_equal(drawn.get_offsets(), found.positions)
    np.testing.assert_array_equal(drawn.get_array(), GRAPH.distances[found.points, -1])
    colored = GRAPH.plot.map(most=100, seed=3, colors=np.arange(300)).collections[0]
    np.testing.assert_array_equal(colored.get_array(), found.points)
    with pytest.raises(ValueError, match=r"colors of shape \(7,\): expected a number for each of the 300 points"):
        GRAPH.plot.map(colors=np.arange(7))
    with pytest.raises(ValueError, match="nothing to draw"):
        tonari.knn_graph(checks.gaussian(2, 2), 1).plot.map()


def test_a_graph_is_a_table_in_notebooks() -> None:
    graph = tonari.knn_graph(checks.gaussian(300, 6), 9, method="nn-descent", recall=0.5, seed=7, include_self=True)
    said = check_page(graph._repr_html_())
    assert said.startswith("points 300 columns 9 with self metric euclidean method nn-descent seed 7 dtypes int32 and")
    assert f"report {graph.report}" in said
    assert "report" not in check_page(GRAPH._repr_html_())


def test_a_plan_is_a_table_in_notebooks() -> None:
    plan = tonari.plan(1000, 1000, 8, 5)
    said = check_page(plan._repr_html_())
    for line in str(plan).splitlines():
        assert " ".join(line.split()) in said
