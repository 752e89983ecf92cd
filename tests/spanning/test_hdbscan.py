"""Clusters from the tree, as fast_hdbscan and scikit-learn select them, against those of scikit-learn's HDBSCAN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import consumers

MIN_SAMPLES, MIN_CLUSTER_SIZE = 6, 20


def blobs() -> Any:
    """Points whose distances are all different."""
    return consumers.clusters(n=600, d=2, apart=4.0, copies=1)[0].astype(np.float64)


def sklearn_labels(points: Any) -> Any:
    cluster = consumers.consumer("sklearn.cluster")
    own = cluster.HDBSCAN(min_samples=MIN_SAMPLES, min_cluster_size=MIN_CLUSTER_SIZE, copy=True).fit(points)
    assert own.labels_.max() >= 2
    assert (own.labels_ < 0).any()
    return own.labels_


@pytest.mark.interop
def test_labels_by_fast_hdbscan() -> None:
    library = consumers.consumer("fast_hdbscan.hdbscan")
    metrics = consumers.consumer("sklearn.metrics")
    points = blobs()
    tree = tonari.mutual_reachability_tree(points, MIN_SAMPLES)
    edges = np.column_stack([tree.edges, tree.weights])
    labels = library.clusters_from_spanning_tree(edges, min_cluster_size=MIN_CLUSTER_SIZE)[0]
    assert metrics.adjusted_rand_score(labels, sklearn_labels(points)) == 1


@pytest.mark.interop
def test_labels_by_scikit_learn() -> None:
    hierarchy = consumers.consumer("sklearn.cluster._hdbscan._tree")
    metrics = consumers.consumer("sklearn.metrics")
    points = blobs()
    linkage = tonari.mutual_reachability_tree(points, MIN_SAMPLES).to_linkage()
    theirs = np.empty(len(linkage), hierarchy.HIERARCHY_dtype)
    for name, column in zip(theirs.dtype.names, linkage.T, strict=True):
        theirs[name] = column
    labels = hierarchy.tree_to_labels(theirs, min_cluster_size=MIN_CLUSTER_SIZE)[0]
    assert metrics.adjusted_rand_score(labels, sklearn_labels(points)) == 1


@pytest.mark.interop
def test_the_weights_of_fast_hdbscan_count_one_sample_less() -> None:
    library = consumers.consumer("fast_hdbscan.hdbscan")
    points = blobs()
    theirs = library.compute_minimum_spanning_tree(points, min_samples=MIN_SAMPLES - 1)[0]
    ours = tonari.mutual_reachability_tree(points, MIN_SAMPLES).weights
    np.testing.assert_allclose(np.sort(theirs[:, 2]), ours, rtol=1e-5)
