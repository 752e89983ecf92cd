"""Fitted rows, which are prepared once, or searched as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")


from tests.helpers import checks
from tonari.api.index.index import Index
from tonari.estimators.predictions.blocks import GivenRows, Rows

POINTS = checks.gaussian(30, 3)
HOW: dict[str, Any] = {"metric": "euclidean", "threads": 1}


def test_an_index_is_made_once() -> None:
    rows = Rows(POINTS)
    index = rows.prepared(HOW)
    assert isinstance(index, Index)
    assert rows.prepared(HOW) is index


def test_rows_for_a_function_are_searched_as_they_are() -> None:
    array = POINTS
    rows = Rows(array).prepared(HOW | {"metric": lambda a, B: np.sqrt(np.square(B - a).sum(axis=1))})
    assert isinstance(rows, GivenRows)
    assert len(rows) == len(POINTS)
    index = Index(POINTS)
    assert rows.search(array[:4], 3, threads=1).indices.tolist() == index.search(POINTS[:4], 3).indices.tolist()
    found = rows.radius_search(array[:4], 1.5, threads=1)
    assert found.indices.tolist() == index.radius_search(POINTS[:4], 1.5).indices.tolist()
    if array is POINTS:
        assert rows.radius_count(array[:4], 1.5, threads=1).tolist() == np.diff(found.indptr).tolist()
