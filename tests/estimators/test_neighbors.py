"""Lists and graphs of the estimators, beside scikit-learn's and the reference."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors
from sklearn.exceptions import NotFittedError

from tests.helpers import checks
from tonari.estimators import KNeighborsTransformer, NearestNeighbors
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
    # A tree's distances are of differences; those of brute force may leave 4e-8 between a point and itself.
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


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_transformer_puts_each_row_first_in_its_own_list(mode: str, dtype: Any) -> None:
    points = checks.duplicates(60, 3).astype(dtype)
    graph = KNeighborsTransformer(mode=mode, n_neighbors=6).fit_transform(points)
    entries = 7 if mode == "distance" else 6
    assert graph.nnz == 60 * entries
    np.testing.assert_array_equal(graph.indices[::entries], np.arange(60))
    others = brute(points, points, entries - 1, self_ids=np.arange(60))
    np.testing.assert_array_equal(graph.indices.reshape(60, -1)[:, 1:], others.indices)
    if mode == "distance":
        assert graph.dtype == dtype
        assert not graph.data[::7].any()
        np.testing.assert_array_equal(graph.data.reshape(60, -1)[:, 1:], others.distances)
    else:
        assert (graph.data == 1).all()


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_the_transformer_s_graphs_are_scikit_learns(mode: str) -> None:
    points, new = checks.gaussian(60, 5, dtype=np.float64), checks.gaussian(9, 5, 1, np.float64)
    ours = KNeighborsTransformer(mode=mode, n_neighbors=4).fit(points)
    theirs = neighbors.KNeighborsTransformer(mode=mode, n_neighbors=4).fit(points)
    for x in (points, new):
        np.testing.assert_allclose(ours.transform(x).toarray(), theirs.transform(x).toarray(), rtol=1e-12, atol=1e-7)
    assert ours.get_feature_names_out().shape == (60,)


def test_a_fitted_estimator_can_be_pickled() -> None:
    points = checks.gaussian(60, 5)
    nearest = NearestNeighbors().fit(points)
    for a, b in zip(nearest.kneighbors(points), pickle.loads(pickle.dumps(nearest)).kneighbors(points), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_new_fit_forgets_the_old_rows() -> None:
    nearest = NearestNeighbors(n_neighbors=1).fit(checks.gaussian(60, 5))
    other = checks.gaussian(10, 3, 1)
    assert nearest.fit(other).kneighbors(other)[1].ravel().tolist() == list(range(10))


def test_refuses_what_it_cannot_answer() -> None:
    points = checks.gaussian(5, 3)
    with pytest.raises(NotFittedError):
        NearestNeighbors().kneighbors(points)
    nearest = NearestNeighbors().fit(points)
    with pytest.raises(
        ValueError, match="n_neighbors=5: at most 4 are there, as n_samples = 5 and a row is not its own"
    ):
        nearest.kneighbors()
    with pytest.raises(ValueError, match="n_neighbors=6: at most 5 are there, as n_samples = 5"):
        nearest.kneighbors(points, 6)
    with pytest.raises(ValueError, match="mode='both': expected 'connectivity' or 'distance'"):
        nearest.kneighbors_graph(points, mode="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mode='both'"):
        KNeighborsTransformer(mode="both").fit(points)
    with pytest.raises(ValueError, match="n_neighbors=6: at most 5"):
        KNeighborsTransformer().fit_transform(points)
    with pytest.raises(ValueError, match="n_neighbors=0: expected a whole number of at least 1"):
        NearestNeighbors(n_neighbors=0).fit(points)
