"""The arguments passed to fast_hdbscan; tests/spanning/test_hdbscan.py compares the labels with those of three
libraries.
"""

from __future__ import annotations

import math
import sys
import types
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.refusals import assert_refused_by_name

TREE = tonari.mutual_reachability_tree(checks.gaussian(12, 3), 3)
DEFAULTS = {
    "cluster_selection_method": "eom",
    "cluster_selection_epsilon": 0.0,
    "max_cluster_size": math.inf,
    "allow_single_cluster": False,
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """Record the calls of fast_hdbscan, which is not installed."""
    found: list[tuple[Any, dict[str, Any]]] = []

    def answer(tree: Any, **options: Any) -> Any:
        found.append((tree, options))
        return np.arange(len(tree) + 1, dtype=np.int32), np.ones(len(tree) + 1, np.float32), None, None, None

    module: Any = types.ModuleType("fast_hdbscan.hdbscan")
    module.clusters_from_spanning_tree = answer
    monkeypatch.setitem(sys.modules, "fast_hdbscan", types.ModuleType("fast_hdbscan"))
    monkeypatch.setitem(sys.modules, "fast_hdbscan.hdbscan", module)
    return found


def test_edges_and_weights_are_passed_on_in_float64(calls: list[tuple[Any, dict[str, Any]]]) -> None:
    labels, probabilities = TREE.clusters(4)
    ((tree, options),) = calls
    assert (tree.dtype, labels.dtype, probabilities.dtype) == (np.float64, np.int64, np.float64)
    np.testing.assert_array_equal(tree[:, :2], TREE.edges)
    np.testing.assert_array_equal(tree[:, 2], TREE.weights)
    assert options == DEFAULTS | {"min_cluster_size": 4}
    assert labels.tolist() == list(range(12))


def test_options_are_passed_on(calls: list[tuple[Any, dict[str, Any]]]) -> None:
    wanted = {
        "cluster_selection_method": "leaf",
        "cluster_selection_epsilon": 1,
        "max_cluster_size": 9,
        "allow_single_cluster": True,
    }
    TREE.clusters(2, **wanted)
    assert calls[0][1] == wanted | {"min_cluster_size": 2}


def test_fewer_points_than_a_cluster_are_noise(calls: list[tuple[Any, dict[str, Any]]]) -> None:
    one = tonari.mutual_reachability_tree(checks.gaussian(1, 3), 1)
    for tree, size in ((one, 2), (TREE, 13)):
        labels, probabilities = tree.clusters(size)
        assert labels.tolist() == [-1] * tree.n
        assert probabilities.tolist() == [0.0] * tree.n
    assert calls == []
    TREE.clusters(12)
    assert len(calls) == 1


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("min_cluster_size", (1, 0, 2.5, None, True)),
        ("cluster_selection_method", ("dbscan", None)),
        ("cluster_selection_epsilon", (-1.0, math.nan, math.inf, None, True, "1")),
        ("max_cluster_size", (0, 2.5, True)),
        ("allow_single_cluster", (1, None)),
    ],
)
def test_no_argument_is_ignored_or_fails_in_raw_words(name: str, values: tuple[Any, ...]) -> None:
    assert_refused_by_name(TREE.clusters, {"min_cluster_size": 4}, name, values)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fast_hdbscan", None)
    monkeypatch.setitem(sys.modules, "fast_hdbscan.hdbscan", None)
    with pytest.raises(ImportError, match=r"pip install 'tonari\[hdbscan\]'"):
        TREE.clusters(4)
