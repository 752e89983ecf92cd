"""The returned tree, and trees with other weights."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tonari
from tonari.spanning.tree import SpanningTree, with_weights


def test_one_point_has_no_edges() -> None:
    tree = tonari.mutual_reachability_tree(np.zeros((1, 3), np.float32), 1)
    assert (tree.n, tree.edges.shape, tree.weights.shape) == (1, (0, 2), (0,))
    assert (tree.edges.dtype, tree.weights.dtype) == (np.int32, np.float32)
    assert tree.to_linkage().shape == (0, 4)


def test_weights_that_become_equal_leave_edges_in_order() -> None:
    edges = np.array([[2, 3], [0, 4], [0, 1], [1, 2]], np.int32)
    tree = SpanningTree(edges, np.array([1.0, 2.0, 3.0, 4.0], np.float32))
    made = with_weights(tree, np.array([5.0, 5.0, 5.0, 0.0], np.float32))
    assert made.weights.tolist() == [0.0, 5.0, 5.0, 5.0]
    assert made.edges.tolist() == [[1, 2], [0, 1], [0, 4], [2, 3]]
    assert tree.edges.tolist() == edges.tolist()


def test_is_frozen_and_says_what_it_is() -> None:
    tree = tonari.mutual_reachability_tree(np.zeros((3, 2)), 1)
    assert isinstance(tree, tonari.SpanningTree)
    assert repr(tree) == "SpanningTree(n=3, dtype=float64)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.weights = tree.edges  # type: ignore[misc]
