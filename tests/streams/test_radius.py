"""A stream of queries with a radius."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.radius_checks import assert_same_within
from tonari.core.results.radius_neighbors import RadiusNeighbors

POINTS = np.concatenate([checks.gaussian(150, 6), checks.gaussian(50, 6)])


@pytest.mark.parametrize("rows", [1, 7, 300])
@pytest.mark.parametrize("chunked", [True, False])
def test_chunks_are_one_search(rows: int, chunked: bool) -> None:
    index = tonari.Index(POINTS)
    chunks = [POINTS[at : at + rows] for at in range(0, 200, rows)]
    if chunked:
        parts = list(index.radius_chunks(iter([*chunks, POINTS[:0]]), 2.0))
        assert parts.pop().indptr.tolist() == [0]
    else:
        parts = list(index.radius_chunks(POINTS, 2.0, chunk_rows=rows))
    assert len(parts) == len(chunks)
    for part, chunk in zip(parts, chunks, strict=True):
        assert_same_within(part, index.radius_search(chunk, 2.0))
    assert sum(len(part.indices) for part in index.radius_chunks(POINTS, 2.0)) == parts_total(parts)


def parts_total(parts: list[RadiusNeighbors]) -> int:
    return sum(len(part.indices) for part in parts)


def test_chunks_refuse_at_once_and_name_rows_of_the_stream() -> None:
    index = tonari.Index(POINTS)
    with pytest.raises(ValueError, match="radius must not be negative"):
        index.radius_chunks(POINTS, -1.0)
    bad = POINTS.copy()
    bad[120, 2] = np.nan
    with pytest.raises(ValueError, match="row 120"):
        list(index.radius_chunks(bad, 1.0, chunk_rows=50))
