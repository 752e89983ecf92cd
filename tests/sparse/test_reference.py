"""The value of sparse rows, compared with SciPy's formulas."""

from __future__ import annotations

import numpy as np
import pytest

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from scipy.spatial.distance import cdist  # noqa: E402

from tests.helpers.sparse_rows import METRICS, signed  # noqa: E402
from tonari.sparse.reference import search  # noqa: E402


@pytest.mark.parametrize("metric", [*METRICS, "jaccard"])
def test_values_are_those_of_scipy(metric: str) -> None:
    queries, points = signed(7, 30, 1), signed(40, 30)
    sets = (queries != 0, points != 0) if metric == "jaccard" else (queries, points)
    every = queries @ points.T if metric == "inner_product" else cdist(*sets, metric)
    every = every.astype(np.float32) if metric == "jaccard" else every
    order = np.argsort(-every if metric == "inner_product" else every, axis=1, kind="stable")[:, :5]
    found = search(sparse.csr_array(queries), sparse.csr_matrix(points), 5, metric)
    assert np.array_equal(found.indices, order)
    assert np.allclose(found.distances, np.take_along_axis(every, order, axis=1), rtol=1e-12, atol=1e-14)


def test_a_self_join_leaves_out_the_row_itself() -> None:
    points = sparse.csr_array(np.array([[1.0], [1.0], [3.0]]))
    assert search(points, points, 1, "euclidean", self_join=True).indices.ravel().tolist() == [1, 0, 0]
