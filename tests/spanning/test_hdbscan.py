"""Clusters of the tree equal those of HDBSCAN in scikit-learn, hdbscan and fast_hdbscan."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import consumers

MIN_SAMPLES, MIN_CLUSTER_SIZE = 6, 20
Array = npt.NDArray[np.float64]


def blobs() -> Array:
    """Make four clusters of points with distinct distances."""
    return np.asarray(consumers.clusters(n=600, d=2, apart=4.0, copies=1)[0], np.float64)


def _moons() -> Array:
    """Make two half circles, and points between and around them."""
    rng = np.random.default_rng(0)
    angles = np.pi * rng.random(500)
    moon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    moon[250:] = [1.0, 0.5] - moon[250:]
    return np.concatenate([moon + 0.06 * rng.standard_normal((500, 2)), rng.uniform(-2, 3, (60, 2))])


def _rings() -> Array:
    """Make a ring within a ring."""
    rng = np.random.default_rng(1)
    angles, radii = 2 * np.pi * rng.random(700), np.repeat([1.0, 0.4], 350)[:, None]
    return radii * np.stack([np.cos(angles), np.sin(angles)], axis=1) + 0.03 * rng.standard_normal((700, 2))


def _densities() -> Array:
    """Make three clusters of different densities."""
    rng = np.random.default_rng(2)
    centres, spread = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 14.0]]), np.array([0.3, 1.0, 2.5])
    of = rng.integers(3, size=600)
    return centres[of] + spread[of, None] * rng.standard_normal((600, 2))


def _wide() -> Array:
    """Make clusters in twelve dimensions."""
    rng = np.random.default_rng(3)
    return 6 * rng.standard_normal((5, 12))[rng.integers(5, size=500)] + rng.standard_normal((500, 12))


SETS: dict[str, Callable[[], Array]] = {
    "blobs": blobs,
    "moons": _moons,
    "rings": _rings,
    "densities": _densities,
    "wide": _wide,
}


def on_the_border(tree: tonari.SpanningTree) -> npt.NDArray[np.bool_]:
    """Return the points with an edge whose weight other edges share; another tree has other edges at these points."""
    _, of, counts = np.unique(tree.weights, return_inverse=True, return_counts=True)
    tied = np.zeros(tree.n, bool)
    tied[tree.edges[counts[of] > 1]] = True
    return tied


def assert_same_clusters(ours: Any, theirs: Any, border: npt.NDArray[np.bool_]) -> None:
    """Check that labels are the same, except for the numbers of clusters and for some border points."""
    assert ours.max() >= 1
    number = {label: np.bincount(theirs[ours == label] + 1).argmax() - 1 for label in set(ours.tolist())}
    assert number.get(-1, -1) == -1
    assert len(set(number.values())) == len(number) == len(set(theirs.tolist()))
    differing = np.array([number[label] for label in ours.tolist()]) != theirs
    assert differing.sum() <= 2
    assert border[differing].all()
    assert ((ours < 0) | (theirs < 0))[differing].all()


def fitted(library: str, points: Array, counted: bool, **options: Any) -> Any:
    """Fit HDBSCAN of a library, which may count the point itself in min_samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries warn of
        module = consumers.consumer(library)
        return module.HDBSCAN(
            min_samples=MIN_SAMPLES - (not counted), min_cluster_size=MIN_CLUSTER_SIZE, **options
        ).fit(points)


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore")  # of numba
@pytest.mark.parametrize("name", SETS)
def test_labels_are_those_of_three_libraries(name: str) -> None:
    consumers.consumer("fast_hdbscan")
    points = SETS[name]()
    tree = tonari.mutual_reachability_tree(points, MIN_SAMPLES)
    labels, probabilities = tree.clusters(MIN_CLUSTER_SIZE)
    border = on_the_border(tree)
    assert_same_clusters(labels, fitted("sklearn.cluster", points, True, copy=True).labels_, border)
    assert_same_clusters(labels, fitted("hdbscan", points, False, approx_min_span_tree=False).labels_, border)
    theirs = fitted("fast_hdbscan", points, False, reproducible=True)
    assert_same_clusters(labels, theirs.labels_, border)
    np.testing.assert_allclose(probabilities, theirs.probabilities_, atol=1e-5)


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        {"cluster_selection_method": "leaf"},
        {"cluster_selection_epsilon": 1.0},
        {"max_cluster_size": 100},
        {"allow_single_cluster": True},
    ],
    ids=str,
)
def test_options_have_the_effect_that_they_have_there(options: dict[str, Any]) -> None:
    consumers.consumer("fast_hdbscan")
    points = SETS["densities"]()
    labels = tonari.mutual_reachability_tree(points, MIN_SAMPLES).clusters(MIN_CLUSTER_SIZE, **options).labels
    theirs = fitted("fast_hdbscan", points, False, reproducible=True, **options).labels_
    np.testing.assert_array_equal(labels < 0, theirs < 0)
    assert len(set(zip(labels.tolist(), theirs.tolist(), strict=True))) == len(set(theirs.tolist()))


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore")
def test_copies_form_clusters() -> None:
    consumers.consumer("fast_hdbscan")
    points = np.repeat(np.random.default_rng(0).random((5, 2)), 20, axis=0)
    labels, probabilities = tonari.mutual_reachability_tree(points, 3).clusters(5)
    assert len(set(labels.reshape(5, 20)[:, 0].tolist())) == 5
    assert (labels.reshape(5, 20) == labels.reshape(5, 20)[:, :1]).all()
    assert (probabilities == 1).all()


@pytest.mark.interop
def test_the_weights_of_fast_hdbscan_count_one_sample_less() -> None:
    library = consumers.consumer("fast_hdbscan.hdbscan")
    points = blobs()
    theirs = library.compute_minimum_spanning_tree(points, min_samples=MIN_SAMPLES - 1)[0]
    ours = tonari.mutual_reachability_tree(points, MIN_SAMPLES).weights
    np.testing.assert_allclose(np.sort(theirs[:, 2]), ours, rtol=1e-5)
