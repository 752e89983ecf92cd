"""Copies of a point are found by cosine and correlation: at a similarity of 1, and within a radius of 0."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.compat.sentence_transformers import community_detection, paraphrase_mining_embeddings

METRICS = ["cosine", "correlation"]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_all_copies_are_found(metric: str, dtype: str) -> None:
    rows = checks.gaussian(1000, 64).astype(dtype)
    found = tonari.pairs(np.concatenate([rows, rows]), min_similarity=1.0, metric=metric)
    np.testing.assert_array_equal(np.sort(found.left), np.arange(1000))
    np.testing.assert_array_equal(found.right[np.argsort(found.left)], np.arange(1000, 2000))
    assert (tonari.radius_count(rows, rows, 0, metric=metric) == 1).all()
    itself = tonari.search(rows, rows, 1, metric=metric)
    assert not itself.distances.any()
    np.testing.assert_array_equal(itself.indices[:, 0], np.arange(1000))


def test_copies_are_communities_and_paraphrases() -> None:
    rows = np.repeat(checks.gaussian(100, 48), 3, axis=0)
    groups = community_detection(rows, threshold=1.0, min_community_size=3)
    assert sorted(sorted(group) for group in groups) == np.arange(300).reshape(-1, 3).tolist()
    scores = [score for score, *_ in paraphrase_mining_embeddings(rows, top_k=2)][:300]
    assert scores == [1.0] * 300


@pytest.mark.parametrize("metric", METRICS)
def test_umap_takes_the_first_distance_above_0_of_another_row(metric: str) -> None:
    rows = np.repeat(checks.gaussian(200, 50), 3, axis=0)
    distances = tonari.knn_graph(rows, 14, metric=metric).to_umap()[1]
    assert not distances[:, :3].any()
    assert distances[:, 3].min() > 0.1


@pytest.mark.parametrize("metric", METRICS)
def test_copies_are_joined_at_0(metric: str) -> None:
    rows = np.repeat(checks.gaussian(50, 20), 4, axis=0)
    tree = tonari.mutual_reachability_tree(rows, 1, metric=metric)
    assert (tree.weights == 0).sum() == 150
