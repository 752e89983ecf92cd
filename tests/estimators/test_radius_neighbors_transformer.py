"""Graphs of the transformer, compared with scikit-learn's and with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors
from sklearn.cluster import DBSCAN
from sklearn.pipeline import make_pipeline

from tests.helpers import checks
from tests.helpers.radius_estimators import EXACT, lists_of, radius_on_a_value
from tonari import estimators
from tonari.estimators import RadiusNeighborsTransformer


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_graphs_are_the_reference_s(mode: str, dtype: Any) -> None:
    points = checks.duplicates(60, 3).astype(dtype)
    radius = radius_on_a_value(points, "euclidean")
    graph = RadiusNeighborsTransformer(mode=mode, radius=radius).fit_transform(points)
    truth = lists_of(points, points, radius, "euclidean")
    np.testing.assert_array_equal(graph.indptr, truth.indptr)
    np.testing.assert_array_equal(graph.indices, truth.indices)
    np.testing.assert_array_equal(graph.data, truth.distances if mode == "distance" else np.ones(graph.nnz))
    assert graph.dtype == (dtype if mode == "distance" else np.float64)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("kind", EXACT)
def test_graphs_are_scikit_learns(mode: str, kind: str) -> None:
    points, new = (EXACT[kind](m, 4, seed).astype(np.float64) for m, seed in ((60, 0), (9, 1)))
    ours = RadiusNeighborsTransformer(mode=mode, radius=2.0).fit(points)
    theirs = neighbors.RadiusNeighborsTransformer(mode=mode, radius=2.0).fit(points)
    for x in (points, new):
        one, other = ours.transform(x), theirs.transform(x)
        assert one.nnz == other.nnz
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    assert ours.get_feature_names_out().shape == (60,)


def test_dbscan_takes_the_graph_and_finds_the_clusters_of_the_rows() -> None:
    points = checks.gaussian(200, 2, dtype=np.float64)
    pipeline = make_pipeline(RadiusNeighborsTransformer(radius=0.3), DBSCAN(eps=0.25, metric="precomputed"))
    np.testing.assert_array_equal(pipeline.fit_predict(points), estimators.DBSCAN(eps=0.25).fit_predict(points))


def test_a_mode_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="mode='both'"):
        RadiusNeighborsTransformer(mode="both").fit(np.eye(3))
