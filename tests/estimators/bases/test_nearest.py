"""Too large and too small numbers of neighbours, and matrices of lists."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from tests.helpers import checks
from tonari.core.results.neighbors import Neighbors
from tonari.estimators import KNeighborsTransformer, NearestNeighbors
from tonari.estimators.bases.nearest import matrix_of


def test_numbers_of_neighbours_are_refused_with_what_is_possible() -> None:
    points = checks.gaussian(5, 3)
    nearest = NearestNeighbors().fit(points)
    with pytest.raises(
        ValueError, match="n_neighbors=5: at most 4 are there, as n_samples = 5 and a row is not its own"
    ):
        nearest.kneighbors()
    with pytest.raises(ValueError, match="n_neighbors=6: at most 5 are there, as n_samples = 5"):
        nearest.kneighbors(points, 6)
    with pytest.raises(ValueError, match="n_neighbors=6: at most 5"):
        KNeighborsTransformer().fit_transform(points)
    with pytest.raises(ValueError, match="n_neighbors=0: expected a whole number of at least 1"):
        NearestNeighbors(n_neighbors=0).fit(points)


def test_a_matrix_keeps_the_order_of_its_lists() -> None:
    lists = Neighbors(np.array([[0.0, 2.0]]), np.array([[2, 0]]))
    assert matrix_of(lists, 4, "distance").indices.tolist() == [2, 0]
    assert matrix_of(lists, 4, "distance").data.tolist() == [0.0, 2.0]
    assert matrix_of(lists, 4, "connectivity").toarray().tolist() == [[1.0, 0.0, 1.0, 0.0]]
