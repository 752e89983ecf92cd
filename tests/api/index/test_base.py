"""Plan fields that are set when an Index is made apply to every search, segment and copy of the Index."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import needs_torch
from tonari.metrics.reference import brute

N, D, M, K = 140, 19, 4, 3
POINTS, QUERIES = gaussian(N, D), gaussian(M, D, 1)


def segments(index: tonari.Index) -> list[Any]:
    return [part.segment for part in index._state.parts]


def plans(index: tonari.Index) -> list[Any]:
    """Return the plans of the points of each segment, and of the last search of each segment."""
    return [plan for one in segments(index) for plan in (one.first.plan, *(made.plan for made in one.planned.values()))]


def copies(index: tonari.Index, folder: Path) -> list[tonari.Index]:
    index.save(folder / "points.index")
    loaded = tonari.Index.load(folder / "points.index")
    return [copy.copy(index), copy.deepcopy(index), pickle.loads(pickle.dumps(index)), loaded]


@pytest.mark.parametrize(
    ("method", "overrides"),
    [("exact", {"isa": "generic", "point_chunk": 96}), ("auto", {"direct": True}), ("kdtree", {"leaf": 16})],
)
def test_every_search_has_them(method: str, overrides: dict[str, Any], tmp_path: Path) -> None:
    index = tonari.Index(POINTS, method=method, **overrides)
    assert index.method == ("kdtree" if method == "kdtree" else "exact")
    for each in (index, *copies(index, tmp_path)):
        each.add(gaussian(30, D, 2))
        assert_same_neighbors(each.search(QUERIES, K), brute(QUERIES, np.vstack([POINTS, gaussian(30, D, 2)]), K))
        for plan in plans(each):
            for name, value in overrides.items():
                assert getattr(plan, name) == value


def test_another_device_has_its_own_plans(tmp_path: Path) -> None:
    tonari.Index(POINTS, method="exact", isa="generic").save(tmp_path / "points.index")
    usual = tonari.plan(N, 1, D, 1).isa
    index = tonari.Index.load(tmp_path / "points.index", device="cpu")
    assert segments(index)[0].first.plan.isa == usual


def test_what_cannot_be_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^cannot override metrc; these can be: "):
        tonari.Index(POINTS, metrc="l1")
    with pytest.raises(ValueError, match=r"^cannot override leaf; these can be: "):
        tonari.Index(POINTS, leaf=3)


@pytest.mark.full  # takes ten seconds and more in the interpreter
@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_points_in_host_memory_of_which_a_device_has_few_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All searches share one preparation, with the route and the coordinates that the caller named."""
    index = tonari.Index(POINTS, device="cuda", method="exact", route="host_refine", form_dim=5)
    prepared = segments(index)[0].first.prepared
    assert type(prepared).__name__ == "HostContractedPoints"
    for each in (index, copies(index, tmp_path)[-1]):
        for k in (1, K):
            with caplog.at_level("INFO", logger="tonari"):
                assert_same_neighbors(each.search(QUERIES, k), brute(QUERIES, POINTS, k))
            assert "in 5 dimensions" in caplog.text
            caplog.clear()
    assert [made.prepared for made in segments(index)[0].ready.values()] == [prepared]
    limit = float(brute(QUERIES, POINTS, 20).distances[0, -1])
    counts = [int((brute(QUERIES, POINTS, N).distances[row] <= limit).sum()) for row in range(M)]
    assert index.radius_count(QUERIES, limit).tolist() == counts
    given = {"dtype": "float32", "device": "cuda", "method": "exact", "route": "host_refine", "form_dim": 5}
    graph = tonari.knn_graph(POINTS[:40], K, device="cuda", plan=tonari.plan(40, 40, D, K, self_join=True, **given))
    assert_same_neighbors(
        tonari.core.results.neighbors.Neighbors(graph.distances, graph.indices),
        brute(POINTS[:40], POINTS[:40], K, self_ids=np.arange(40)),
    )
