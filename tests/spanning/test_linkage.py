"""Single linkage from a tree: SciPy's matrix, and joins by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.spanning.tree import linkage_of


def test_linkage_is_that_of_scipy() -> None:
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    points = checks.gaussian(50, 3).astype(np.float64)
    found = tonari.mutual_reachability_tree(points, 1).to_linkage()
    expected = hierarchy.linkage(points, "single")
    np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])
    np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-15)


@pytest.mark.parametrize("data", [checks.duplicates, checks.all_equal])
def test_linkage_of_ties_is_valid(data: object) -> None:
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    found = tonari.mutual_reachability_tree(data(60, 3), 4).to_linkage()  # type: ignore[operator]
    assert hierarchy.is_valid_linkage(found)
    assert found[-1, 3] == 60


def test_joins_by_hand() -> None:
    edges = np.array([[1, 2], [3, 4], [0, 2], [0, 4]])
    assert linkage_of(edges, np.array([1.0, 2.0, 2.0, 5.0])).tolist() == [
        [1, 2, 1, 2],
        [3, 4, 2, 2],
        [0, 5, 2, 3],
        [6, 7, 5, 5],
    ]
