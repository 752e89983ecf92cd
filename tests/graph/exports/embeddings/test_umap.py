"""UMAP: the point itself first, the requested columns, and writable arrays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("n_neighbors", [None, 2, 6])
def test_self_is_in_front_and_the_columns_are_those_asked_for(include_self: bool, n_neighbors: int | None) -> None:
    points, graph = consumers.hostile(5 + include_self, include_self)
    indices, distances = graph.to_umap(n_neighbors=n_neighbors)
    columns = n_neighbors or 6
    whole = tonari.knn_graph(points, 6, include_self=True)
    assert indices.dtype == np.int32
    assert distances.dtype == np.float32
    np.testing.assert_array_equal(indices, whole.indices[:, :columns])
    np.testing.assert_array_equal(distances, whole.distances[:, :columns])
    assert not distances[:, 0].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_copies_that_may_be_written_into(dtype: Any) -> None:
    graph = tonari.knn_graph(consumers.clusters()[0].astype(dtype), 5, include_self=True)
    kept = graph.indices.copy(), graph.distances.copy()
    for part in graph.to_umap():
        assert part.flags.c_contiguous
        assert part.flags.writeable
        part[:] = -1
    np.testing.assert_array_equal(graph.indices, kept[0])
    np.testing.assert_array_equal(graph.distances, kept[1])


def test_refuses_what_umap_would_compute_anew_or_misread() -> None:
    points, graph = consumers.hostile(5)
    with pytest.raises(ValueError, match=r"n_neighbors=7: .* has 6 columns with it; build it with k=6 or more"):
        graph.to_umap(n_neighbors=7)
    with pytest.raises(ValueError, match="n_neighbors=1: expected a whole number of at least 2"):
        graph.to_umap(n_neighbors=1)
    with pytest.raises(ValueError, match="not squared; build the graph with metric='euclidean'"):
        tonari.knn_graph(points, 5, metric="sqeuclidean").to_umap()
    with pytest.raises(ValueError, match=r"similarities .inner_product.*build it with metric='cosine'"):
        tonari.knn_graph(points, 5, metric="inner_product", include_self=True).to_umap()
    for other in (tonari.Index(points[:-1]), tonari.Index(points, metric="l1")):
        with pytest.raises(ValueError, match=r"pass tonari.Index\(points, metric='euclidean'\)"):
            graph.to_umap(other)
    changed = tonari.Index(points)
    changed.add(points[:1])
    changed.remove([0])
    with pytest.raises(ValueError, match=r"its ids are no rows of the graph; pass tonari.Index\(index.points\)"):
        graph.to_umap(changed)


def test_missing_neighbours_stay_missing() -> None:
    indices, distances = consumers.with_missing(consumers.hostile(5)[1]).to_umap()
    assert indices[7, -2:].tolist() == [-1, -1]
    assert np.isinf(distances[7, -2:]).all()


def test_the_call_of_the_page_refuses_fewer_columns() -> None:
    """docs/interop.md shows this call, and says that it refuses fewer columns."""
    page = Path(__file__).parents[4] / "docs" / "interop.md"
    call = re.search(r"UMAP\(n_neighbors=15, precomputed_knn=(graph\.to_umap\(.*?\))\)`", page.read_text())
    assert call is not None
    points = checks.gaussian(60, 4)
    names = {"index": None}  # its additions are for transform
    assert eval(call[1], {"graph": tonari.knn_graph(points, 14), **names})[0].shape == (60, 15)
    with pytest.raises(ValueError, match=r"n_neighbors=15: .* has 10 columns with it; build it with k=14 or more"):
        eval(call[1], {"graph": tonari.knn_graph(points, 9), **names})
