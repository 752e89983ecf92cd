"""New points in a UMAP embedding."""

from __future__ import annotations

import importlib.util
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import consumers


def test_without_pynndescent_new_points_cannot_be_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    points, graph = consumers.hostile(5)
    with pytest.raises(ImportError, match="pip install umap-learn"):
        graph.to_umap(tonari.Index(points))


@pytest.mark.interop
def test_weights_and_transforms_are_umaps_own() -> None:
    umap = consumers.consumer("umap")
    points, _ = consumers.clusters(300, copies=1)  # which of several copies is listed is undefined
    given: dict[str, Any] = {"n_neighbors": 10, "random_state": 0, "n_epochs": 5, "init": "random"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = umap.UMAP(**given).fit(points)  # so few points are compared with each other by UMAP itself
    graph = tonari.knn_graph(points, 9)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        ours = umap.UMAP(**given, precomputed_knn=graph.to_umap(tonari.Index(points))).fit(points)
    assert not [each for each in heard if "precomputed_knn" in str(each.message)]
    # Sigma has a tolerance of 1e-5, and UMAP's own distances are rounded to float32.
    assert abs(ours.graph_ - own.graph_).max() < 1e-3
    assert abs(ours.graph_.sum() - own.graph_.sum()) < 1e-3 * own.graph_.sum()

    new = points[:20] + np.float32(0.01)
    ours.transform_mode = own.transform_mode = "graph"
    assert abs((ours.transform(new) - own.transform(new)).tocsr()).max() < 1e-3
    ours.transform_mode = "embedding"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).transform(new), ours.transform(new))
    with pytest.raises(NotImplementedError, match=r"graph\.add"):
        ours.update(new)
