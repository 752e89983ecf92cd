"""Radius searches that are answered again, on other rows: the bits and the refusals of a first search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.methods.call import Call

Ask = Callable[..., Any]

VERBS: dict[str, Ask] = {
    "radius_search": lambda queries, points, **given: tonari.radius_search(queries, points, **given),
    "radius_count": lambda queries, points, **given: (tonari.radius_count(queries, points, **given),),
    "radius_graph": lambda _, points, **given: tonari.radius_graph(points, **given),
    "pairs": lambda _, points, **given: tonari.pairs(points, **given),
}


@pytest.mark.parametrize("verb", VERBS)
def test_hurtful_rows_are_answered_again_as_at_first(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = VERBS[verb]
    for m, n, d in ((1, 1, 1), (3, 40, 3), (1, 60, 17)):
        for given in ({"radius": 0}, {"radius": 1.5, "metric": "l1"}, {"min_similarity": 0.5, "metric": "cosine"}):
            ask(*(checks.gaussian(rows, d, rows) for rows in (m, n)), **given)
            for maker in ("gaussian", "one_hot", "zero_rows", "huge"):
                points = checks.HOSTILE[maker](n, d, 1) if maker in checks.HOSTILE else checks.gaussian(n, d, 1)
                queries = np.ascontiguousarray(np.resize(points[::-1], (m, d)))
                first = outcome(ask, queries, points, threads=1, **given)
                with monkeypatch.context() as patch:
                    if points.dtype == np.float32:
                        patch.setattr(Call, "of", None)  # no argument is checked again
                    assert outcome(ask, queries, points, **given) == first


def outcome(ask: Ask, *rows: Any, **given: Any) -> Any:
    """Return an answer as bytes, or the message of its refusal."""
    try:
        return [(part.dtype, part.tobytes()) for part in ask(*rows, **given)]
    except ValueError as error:
        return str(error)


def test_an_index_that_is_asked_again() -> None:
    points, queries = checks.gaussian(60, 3), checks.gaussian(2, 3, 1)
    index = tonari.Index(points)
    for number in range(3):
        queries += number
        truth = tonari.radius_search(queries, points, 2.0, threads=1)
        for ours, theirs in zip(index.radius_search(queries, 2.0), truth, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert index.radius_count(queries, 2.0).tolist() == np.diff(truth.indptr).tolist()
    index.add(queries)
    assert 60 in index.radius_search(queries, 2.0).indices
    index.remove([60])
    assert 60 not in index.radius_search(queries, 2.0).indices
    kept = tonari.Index(points)
    kept.radius_search(queries, 2.0)
    kept.search(queries, 2)
    points[:] = 0
    with pytest.raises(RuntimeError, match="has changed"):
        kept.search(queries, 2)
    with pytest.raises(RuntimeError, match="has changed"):
        kept.radius_search(queries, 2.0)


def test_calls_with_other_arguments_are_not_mixed_up() -> None:
    points, others = checks.gaussian(40, 3), checks.gaussian(40, 3, 5)
    swapped = tonari.search(points, others, 1)
    for queries, among, truth in ((others, others, np.arange(40)), (points, others, swapped.indices[:, 0])):
        assert tonari.search(points=among, queries=queries, k=1).indices[:, 0].tolist() == truth.tolist()
        assert tonari.search(queries, points=among, k=1).indices[:, 0].tolist() == truth.tolist()
    index = tonari.Index(points)
    assert index.search(others, 2).indices.shape == (40, 2)
    assert len(index.radius_search(others, 2)) == 3  # not the search with the same arguments
    before = tonari.radius_count(points, points, 1.0).tolist()
    assert tonari.radius_count(points, points, 1.0, weights=[1.0, 0.0, 0.0]).tolist() != before
    assert tonari.radius_count(points, points, 1.0).tolist() == before
