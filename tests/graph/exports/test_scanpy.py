"""scanpy gets the same entries as from its own pp.neighbors, made from our graph."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tonari
from tests.helpers import consumers

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def scanpy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return consumers.consumer("scanpy")


def _data(points: Any) -> Any:
    import anndata

    return anndata.AnnData(points.copy())


def _apart() -> Any:
    return consumers.clusters(300, copies=1)[0]


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("n_neighbors", [None, 8])
def test_neighbours_are_scanpys_own(scanpy: Any, include_self: bool, n_neighbors: int | None) -> None:
    points = _apart()
    own, ours = _data(points), _data(points)
    scanpy.pp.neighbors(own, n_neighbors=n_neighbors or 12, use_rep="X")
    tonari.knn_graph(points, 11 + include_self, include_self=include_self).to_scanpy(
        ours, n_neighbors=n_neighbors, use_rep="X"
    )
    assert ours.uns["neighbors"] == own.uns["neighbors"]
    for name, scale in (("connectivities", 1e-3), ("distances", 1e-3)):
        assert ours.obsp[name].nnz == own.obsp[name].nnz
        assert abs(ours.obsp[name] - own.obsp[name]).max() < scale


def test_the_transformer_gives_the_same_connectivities(scanpy: Any) -> None:
    from tonari.estimators import KNeighborsTransformer

    points = _apart()
    ours, other = _data(points), _data(points)
    tonari.knn_graph(points, 11).to_scanpy(ours, key_added="ours")
    scanpy.pp.neighbors(other, transformer=KNeighborsTransformer(n_neighbors=12), use_rep="X")
    assert ours.uns["ours"]["params"]["n_neighbors"] == other.uns["neighbors"]["params"]["n_neighbors"] == 12
    assert abs(ours.obsp["ours_connectivities"] - other.obsp["connectivities"]).max() < 1e-6


def test_refuses_other_points_and_too_few_columns(scanpy: Any) -> None:
    points = _apart()
    graph = tonari.knn_graph(points, 11)
    with pytest.raises(ValueError, match="adata has 299 observations, the graph 300"):
        graph.to_scanpy(_data(points[:-1]))
    with pytest.raises(ValueError, match=r"observations 0 and \d+ have euclidean .* use_rep='X_pca'"):
        graph.to_scanpy(_data(points[::-1]))
    with pytest.raises(ValueError, match=r"n_neighbors=13: .* build it with k=12 or more"):
        graph.to_scanpy(_data(points), n_neighbors=13)
    with pytest.raises(ValueError, match="row 7 has 2 of its 11 neighbours missing"):
        consumers.with_missing(graph).to_scanpy(_data(points))
    consumers.with_missing(graph).to_scanpy(_data(points), n_neighbors=10)
