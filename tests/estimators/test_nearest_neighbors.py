"""Lists and graphs of the estimator, compared with scikit-learn's and with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors

from tests.helpers import checks
from tests.helpers.sparse_rows import words
from tonari.estimators import NearestNeighbors
from tonari.metrics.reference import brute

KINDS = {"gaussian": checks.gaussian, "duplicates": checks.duplicates, "far clusters": checks.tight_far_clusters}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", ["minkowski", "cityblock", "chebyshev", "cosine", "sqeuclidean"])
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_the_reference_s(kind: str, metric: str, algorithm: str, dtype: Any) -> None:
    if metric == "cosine" and algorithm == "kd_tree":
        pytest.skip("trees do not bound angles")
    points, queries = KINDS[kind](63, 3).astype(dtype), KINDS[kind](7, 3, seed=1).astype(dtype)
    name = {"minkowski": "euclidean", "cityblock": "l1", "chebyshev": "linf"}.get(metric, metric)
    nearest = NearestNeighbors(n_neighbors=4, metric=metric, algorithm=algorithm).fit(points)
    assert nearest.effective_metric_ == name
    for x, own in ((queries, None), (None, np.arange(63))):
        distances, indices = nearest.kneighbors(x)
        truth = brute(points if x is None else x, points, 4, name, self_ids=own)
        assert indices.dtype == np.int64
        assert distances.dtype == dtype
        np.testing.assert_array_equal(indices, truth.indices)
        np.testing.assert_array_equal(distances, truth.distances)


@pytest.mark.filterwarnings("ignore:Mind that for 0 < p < 1")
@pytest.mark.parametrize("p", [0.5, 1, 1.5, 3, 4])
def test_minkowski_distances_are_scikit_learns(p: float) -> None:
    points = checks.gaussian(63, 6, dtype=np.float64)
    ours = NearestNeighbors(n_neighbors=5, p=p).fit(points).kneighbors()
    theirs = neighbors.NearestNeighbors(n_neighbors=5, p=p, algorithm="brute").fit(points).kneighbors()
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-13)
    np.testing.assert_array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("n_neighbors", [1, 62, 63])
@pytest.mark.parametrize("strided", [False, True])
def test_distances_and_graphs_are_scikit_learns(n_neighbors: int, strided: bool) -> None:
    points = (
        checks.gaussian(126, 12, dtype=np.float64)[::2, ::2] if strided else checks.gaussian(63, 6, dtype=np.float64)
    )
    points.flags.writeable = False
    ours = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
    # A tree computes distances from differences; brute force may compute 4e-8 between a point and itself.
    theirs = neighbors.NearestNeighbors(n_neighbors=n_neighbors, algorithm="kd_tree").fit(points)
    for x in (points[:9], None):
        if x is None and n_neighbors == 63:
            continue
        np.testing.assert_allclose(ours.kneighbors(x)[0], theirs.kneighbors(x)[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(
            ours.kneighbors(x, return_distance=False), theirs.kneighbors(x, return_distance=False)
        )
        for mode in ("connectivity", "distance"):
            one, other = ours.kneighbors_graph(x, mode=mode), theirs.kneighbors_graph(x, mode=mode)
            assert one.nnz == other.nnz
            np.testing.assert_allclose(one.toarray(), other.toarray(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array"])
def test_sparse_rows_have_the_lists_of_dense_rows(metric: str, kind: str) -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    points, queries = words(80, 20), words(9, 20, 1)
    make = getattr(sparse, kind)
    ours = NearestNeighbors(n_neighbors=4, metric=metric).fit(make(points))
    others = NearestNeighbors(n_neighbors=4, metric=metric).fit(points)
    assert ours.n_samples_fit_ == 80
    for x in (queries, None):
        for a, b in zip(ours.kneighbors(None if x is None else make(x)), others.kneighbors(x), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(ours.radius_neighbors(None if x is None else make(x)), others.radius_neighbors(x), strict=True):
            assert all(np.array_equal(one, other) for one, other in zip(a, b, strict=True))


def test_queries_may_have_another_layout_than_the_fitted_rows() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    points, queries = words(80, 20), words(9, 20, 1)
    for metric in ("cosine", "l1"):
        expected = NearestNeighbors(metric=metric).fit(points).kneighbors(queries)
        mixed = [NearestNeighbors(metric=metric).fit(points).kneighbors(sparse.csr_array(queries))]
        if metric == "cosine":
            mixed.append(NearestNeighbors(metric=metric).fit(sparse.csr_array(points)).kneighbors(queries))
        for found in mixed:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
