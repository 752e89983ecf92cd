"""Graphs of the transformer, compared with scikit-learn's and with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors

from tests.helpers import checks
from tests.helpers.sparse_rows import words
from tonari.estimators import KNeighborsTransformer
from tonari.metrics.reference import brute


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


def test_sparse_rows_have_the_graph_of_dense_rows() -> None:
    from scipy.sparse import csr_array

    points, queries = words(60, 20), words(7, 20, 1)
    ours = KNeighborsTransformer(n_neighbors=4, metric="cosine")
    others = KNeighborsTransformer(n_neighbors=4, metric="cosine")
    for a, b in (
        (ours.fit_transform(csr_array(points)), others.fit_transform(points)),
        (ours.transform(csr_array(queries)), others.transform(queries)),
    ):
        assert (a.indices.tolist(), a.data.tolist()) == (b.indices.tolist(), b.data.tolist())
