"""New points in an openTSNE embedding."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tonari
from tests.helpers import consumers

pytestmark = pytest.mark.interop


def test_new_points_are_embedded_by_their_exact_neighbours() -> None:
    library = consumers.consumer("openTSNE")
    points, _ = consumers.clusters(120)
    index = tonari.Index(points)
    knn_index = tonari.knn_graph(points, 30).to_opentsne(10, index)
    new = points[:7] + np.float32(0.01)
    truth = tonari.search(new, points, 30)
    for kept in (knn_index, pickle.loads(pickle.dumps(knn_index))):
        found = kept.query(new, 30)
        np.testing.assert_array_equal(found[0], truth.indices)
        np.testing.assert_array_equal(found[1], truth.distances)
    affinities = library.affinity.PerplexityBasedNN(knn_index=knn_index, perplexity=10)
    own = library.affinity.PerplexityBasedNN(points, perplexity=10, method="exact")
    assert abs(affinities.to_new(new) - own.to_new(new)).max() < 1e-5
    start = library.initialization.random(len(points), random_state=0)
    embedding = library.TSNEEmbedding(start, affinities, n_jobs=1).optimize(5)
    assert np.isfinite(embedding.transform(new)).all()
    index.add(points[:1])
    with pytest.raises(ValueError, match="index has 121 points"):
        tonari.knn_graph(points, 30).to_opentsne(10, index)
    with pytest.raises(RuntimeError, match="cannot be queried"):
        tonari.knn_graph(points, 30).to_opentsne(10).query(new, 30)
