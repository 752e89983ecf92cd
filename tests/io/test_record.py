"""Records in files are read as written, and invalid records are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.io.record import read_record


def written(**change: Any) -> Any:
    """Return the JSON of a record with steps of all kinds, with some fields replaced."""
    graph = tonari.knn_graph(checks.gaussian(400, 12), 8, method="nn-descent", recall=0.5, seed=1)
    assert graph.record is not None
    return json.loads(json.dumps(graph.record.as_dict())) | change


@pytest.mark.parametrize(
    ("method", "given"),
    [("exact", {}), ("kdtree", {}), ("bits", {"metric": "hamming"}), ("nn-descent", {"recall": 0.5})],
)
def test_a_record_is_read_as_it_was_written(method: str, given: dict[str, Any]) -> None:
    points: Any = checks.gaussian(600, 3)
    points = (points > 0).astype(np.uint8) * np.uint8(255) if method == "bits" else points
    record = tonari.knn_graph(points, 4, method=method, **given).record
    assert record is not None
    assert record.plan is not None
    read = read_record(json.loads(json.dumps(record.as_dict())))
    assert str(read) == str(record)
    assert json.dumps(read.as_dict()) == json.dumps(record.as_dict())
    assert read.choices == record.choices
    assert read.attempts == record.attempts
    assert str(read.plan) == str(record.plan)


def inside(at: int, **change: Any) -> Any:
    """Return a record with another value in one of its steps: 0 is a record, and the last two are an attempt and a
    choice.
    """
    facts = written()
    facts["steps"][at] |= change
    return facts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ([1], r"its record is \[1\]"),
        ({"rows": -1}, "its record rows is -1"),
        ({"rows": True}, "its record rows is True"),
        ({"seconds": float("inf")}, "its record seconds is inf"),
        ({"title": None}, "its record title is None"),
        ({"more": 1}, "it has an unknown record 'more'"),
        ({"plan": [1]}, "its record plan is"),
        ({"plan": {"n": {"n": 1}}}, "its record plan is"),
        ({"plan": {"levels": [["int8"]]}}, "its record plan is"),
        ({"plan": {"packed_bytes": "many"}}, "its record plan is"),
        ({"plan": {"seconds": None}}, "its record plan is"),
        ({"steps": {}}, "its record steps is"),
        ({"steps": [3]}, "its record steps is"),
        ({"steps": [{}]}, "it has no attempt name"),
        ({"steps": [{"what": "columns"}]}, "it has no choice why"),
        ({"steps": [{"title": "a"}]}, "it has no record"),
    ],
    ids=str,
)
def test_what_is_no_record_is_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_record(written(**change) if isinstance(change, dict) else change)


@pytest.mark.parametrize(
    ("at", "change", "message"),
    [
        (0, {"rows": "9"}, "its record rows is '9'"),
        (-2, {"proved": -1}, "its attempt proved is -1"),
        (-2, {"seconds": "long"}, "its attempt seconds is 'long'"),
        (-2, {"name": ["round 1"]}, "its attempt name is"),
        (-1, {"why": 3}, "its choice why is 3"),
        (-1, {"name": "round"}, "it has an unknown choice 'name'"),
    ],
)
def test_steps_that_are_none_are_refused(at: int, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_record(inside(at, **change))
