"""Public functions warn once if rows require gradients that results do not carry, and name the way to get gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda

if HAS_TORCH:
    import torch

pytestmark = needs_torch
# Functions for sources larger than memory, which accept rows only in host memory.
FROM_HOST = ("farthest", "build_graph", "build_neighbors")
everywhere = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])


def _rows(n: int = 30, d: int = 5, *, device: str = "cpu") -> Any:
    return torch.from_numpy(np.random.default_rng(0).random((n, d)) + 0.1).to(device).requires_grad_()


def _rows_of(verb: str, device: str) -> Any:
    return _rows(device="cpu" if verb in FROM_HOST else device)


def _index(rows: Any) -> tonari.Index:
    return tonari.Index(rows.detach())


def _graph(rows: Any, k: int = 2) -> tonari.KNNGraph:
    return tonari.knn_graph(rows.detach(), k)


Verb = Callable[[Any, Path], Any]
WITH = "differentiable=True"

# For each function and argument, the name in the warning.
DROPPING: dict[str, tuple[Verb, str, str]] = {
    "search": (lambda x, _: tonari.search(x, x.detach(), 2), "queries", WITH),
    "search points": (lambda x, _: tonari.search(x.detach(), x, 2), "points", WITH),
    "search weights": (lambda x, _: tonari.search(x, x, 2, weights=[1, 2, 3, 4, 5]), "queries", "change the rows"),
    "search_to_file": (lambda x, out: tonari.search_to_file(x, x, 2, out / "f.ibin"), "queries", f"search with {WITH}"),
    "knn_graph": (lambda x, _: tonari.knn_graph(x, 2), "queries", WITH),
    "knn_graph batch": (lambda x, _: tonari.knn_graph(x, 2, batch=np.arange(len(x)) % 2), "queries", WITH),
    "radius_search": (lambda x, _: tonari.radius_search(x, x, 0.3), "queries", WITH),
    "radius_graph": (lambda x, _: tonari.radius_graph(x, 0.3), "queries", WITH),
    "kth_distance": (lambda x, _: tonari.kth_distance(x, 2), "points", f"knn_graph.*{WITH}"),
    "kth_distance by name": (lambda x, _: tonari.kth_distance(points=x, k=2), "points", f"knn_graph.*{WITH}"),
    "kth_distance weights": (lambda x, _: tonari.kth_distance(x, 2, weights=np.ones(5)), "points", "knn_graph"),
    "pairs": (lambda x, _: tonari.pairs(x, 0.3), "points", f"radius_graph with {WITH}"),
    "pairs weights": (lambda x, _: tonari.pairs(x, 0.3, weights=np.ones(5)), "points", f"radius_graph with {WITH}"),
    "mutual_reachability_tree": (lambda x, _: tonari.mutual_reachability_tree(x, 3), "points", "edges in torch"),
    "tree weights": (
        lambda x, _: tonari.mutual_reachability_tree(x, 3, weights=np.ones(5)),
        "points",
        "edges in torch",
    ),
    "farthest": (lambda x, _: tonari.farthest(x, x.detach(), 2), "queries", "compute the distances"),
    "mutual_neighbors": (
        lambda x, _: tonari.mutual_neighbors(x.detach(), x, 2),
        "points_b",
        f"search in both directions with {WITH}",
    ),
    "merge": (
        lambda x, _: tonari.merge(_graph(x), _graph(x), x.detach(), x),
        "points_b",
        f"knn_graph of all points with {WITH}",
    ),
    "verify": (lambda x, _: tonari.verify(x, x.detach(), np.zeros((len(x), 1), np.int64)), "queries", "rows.detach()"),
    "build_graph": (lambda x, out: tonari.build_graph(x, 2, out / "graph"), "source", f"knn_graph with {WITH}"),
    "build_neighbors": (lambda x, out: tonari.build_neighbors(x, x, 2, out / "near"), "source", f"search with {WITH}"),
    "select_k": (lambda x, _: tonari.select_k(x, 2), "values", "gather"),
    "Index": (lambda x, _: tonari.Index(x).search(x.detach(), 2), "points", f"search with {WITH}"),
    "Index.add": (lambda x, _: _index(x).add(x), "points", f"search with {WITH}"),
    "Index.search": (lambda x, _: _index(x).search(x, 2), "queries", f"search with {WITH}"),
    "Index.search_chunks": (lambda x, _: list(_index(x).search_chunks(x, 2)), "queries", f"search with {WITH}"),
    "Index.search_chunks of a list": (lambda x, _: list(_index(x).search_chunks([x, x], 2)), "queries", "search with"),
    "Index.radius_search": (lambda x, _: _index(x).radius_search(x, 0.3), "queries", f"radius_search with {WITH}"),
    "Index.radius_chunks": (
        lambda x, _: list(_index(x).radius_chunks(x, 0.3)),
        "queries",
        f"radius_search with {WITH}",
    ),
    "KNNGraph.remove": (
        lambda x, _: _graph(x).remove(x, [1]),
        "points",
        f"knn_graph of the remaining points with {WITH}",
    ),
    "KNNGraph.replace": (
        lambda x, _: _graph(x).replace(x.detach(), [1], x[:1]),
        "rows",
        f"knn_graph of the changed points with {WITH}",
    ),
    "KNNGraph.add": (lambda x, _: _graph(x).add(x.detach(), x), "new_points", f"knn_graph of all points with {WITH}"),
}

# Whole numbers, a measured share, plans and pictures, which have no gradients.
WITHOUT_VALUES: dict[str, Verb] = {
    "radius_count": lambda x, _: tonari.radius_count(x, x, 0.3),
    "radius_count weights": lambda x, _: tonari.radius_count(x, x, 0.3, weights=np.ones(5)),
    "Index.radius_count": lambda x, _: _index(x).radius_count(x, 0.3),
    "KNNGraph.recall": lambda x, _: _graph(x).recall(x),
    "KNNGraph.to_html": lambda x, out: _graph(x, 4).to_html(x, title="none"),
    "explain": lambda x, _: tonari.explain(x, x, 2),
}

TAKES_ROWS = {"queries", "points", "source", "values", "points_a", "points_b", "new_points"}


def test_every_verb_that_takes_rows_is_tested() -> None:
    verbs = {name: getattr(tonari, name) for name in tonari.__all__}
    for kind in (tonari.Index, tonari.KNNGraph):
        verbs |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    takes = {
        name for name, verb in verbs.items() if callable(verb) and TAKES_ROWS & set(inspect.signature(verb).parameters)
    }
    known = {name.split(" ")[0] for name in (*DROPPING, *WITHOUT_VALUES)}
    assert takes - known - {"Selection"} == set()


@everywhere
@pytest.mark.parametrize("verb", DROPPING)
def test_a_gradient_that_is_dropped_is_told_once(verb: str, device: str, tmp_path: Path) -> None:
    call, name, cure = DROPPING[verb]
    with pytest.warns(UserWarning, match=rf"{name}: requires gradients, but .*{cure}.*, or pass {name}.detach") as told:
        call(_rows_of(verb, device), tmp_path)
    assert [each.filename for each in told] == [__file__]


@everywhere
@pytest.mark.parametrize("verb", DROPPING)
def test_nothing_is_told_where_no_gradient_is_recorded(verb: str, device: str, tmp_path: Path) -> None:
    with torch.no_grad():
        DROPPING[verb][0](_rows_of(verb, device), tmp_path)
    (other := tmp_path / "other").mkdir()
    DROPPING[verb][0](_rows_of(verb, device).detach(), other)


@everywhere
@pytest.mark.parametrize("verb", WITHOUT_VALUES)
def test_nothing_is_told_of_results_without_values(verb: str, device: str, tmp_path: Path) -> None:
    WITHOUT_VALUES[verb](_rows(device=device), tmp_path)


@everywhere
def test_lookalikes_that_return_edges_say_nothing(device: str) -> None:
    from tonari.compat import pyg, pytorch3d

    rows = _rows(d=3, device=device)
    pyg.knn_graph(rows, 2)
    pyg.radius_graph(rows, 0.3)
    assert pytorch3d.knn_points(rows[None], rows[None], K=2).dists.requires_grad
