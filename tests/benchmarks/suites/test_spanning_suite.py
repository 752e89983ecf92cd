"""Trees of small data are measured and proved, and a wrong tree is not timed."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari
from benchmarks.suites import spanning
from tests.helpers.bench_checks import a_run, done, notes

SMALL = {case.name: case.scaled(0.005).resized(peers=()) for case in spanning.SUITE.cases}


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_proved_and_timed(name: str) -> None:
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    assert ran.rows[0]["proved"] == spanning.PROVED_ROWS


def _other_edge(tree: Any) -> Any:
    """Return the tree with its last edge moved to other points."""
    edges = tree.edges.copy()
    edges[-1] = edges[-1][0], next(point for point in range(tree.n) if point not in edges[-1])
    return dataclasses.replace(tree, edges=edges)


def _lighter(tree: Any) -> Any:
    return dataclasses.replace(tree, weights=np.nextafter(tree.weights, np.float32(0)))


@pytest.mark.parametrize("spoil", [_other_edge, _lighter])
def test_a_wrong_tree_is_found(spoil: Any) -> None:
    library = SimpleNamespace(
        mutual_reachability_tree=lambda *given, **options: spoil(tonari.mutual_reachability_tree(*given, **options))
    )
    ran = done(a_run(library), SMALL["blobs"].resized(n=60))
    assert ran.wrong == 1
    assert "point" in notes(ran)
