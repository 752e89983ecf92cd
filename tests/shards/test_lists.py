"""Lists of tasks: ids of the source in lists of parts of it, and merged lists."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.shards import lists, tuning

if HAS_TORCH:
    import torch


@pytest.mark.parametrize("there", [False, pytest.param(True, marks=needs_torch)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("first", "size", "second"), [(0, 1, 1), (30, 4, 7), (7, 4, 30), (0, 9, 9), (2**31 - 12, 4, 0)]
)
def test_numbers_of_two_ranges(
    first: int, size: int, second: int, dtype: Any, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "RENUMBERED_AT_ONCE", 2)
    rng = np.random.default_rng(0)
    places = rng.integers(-1, 10, (5, 4)).astype(np.int32)
    distances = rng.random((5, 4), np.float32)
    given = Neighbors(*map(torch.from_numpy, (distances, places))) if there else Neighbors(distances, places)
    source, plan = SimpleNamespace(n=2**31 if dtype is np.int64 else 99), SimpleNamespace(staged_bytes=0)
    worker: Any = SimpleNamespace(job=SimpleNamespace(source=source, plan=plan))
    found = lists.shifted(worker, given, slice(first, first + size), slice(second, second + 10 - size))
    expected = [
        [-1 if at < 0 else first + at if at < size else second + at - size for at in row] for row in places.tolist()
    ]
    assert isinstance(found.indices, np.ndarray)
    assert found.indices.dtype == dtype
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_new_lists_are_merged_as_empty_ones_are(
    threads: int, descending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes rows without a list; several threads clear and merge blocks of rows."""
    monkeypatch.setattr(tuning, "MERGED_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    source = SimpleNamespace(n=99, dtype="float32")
    job = SimpleNamespace(k=3, source=source, record=SimpleNamespace(descending=descending))
    worker: Any = SimpleNamespace(job=job, threads=threads)
    parts = []
    for rows in ([0, 1, 4, 9, 21], [1, 2, 3, 4, 5, 6, 7, 8], []):
        distances = np.sort(rng.random((len(rows), 3), np.float32), axis=1)[:, :: -1 if descending else 1]
        ids = np.argsort(rng.random((len(rows), 99)), axis=1)[:, :3].astype(np.int32)
        parts.append((np.array(rows, np.int64), Neighbors(distances, ids)))
    expected = lists.empty_lists(worker, 22)
    for rows, found in parts:
        lists.merge_into(worker, expected, rows, found)
    made = lists.merged_parts(worker, 22, parts)
    assert made.distances.dtype == np.float32
    assert made.indices.dtype == np.int32
    np.testing.assert_array_equal(made.distances, expected.distances)
    np.testing.assert_array_equal(made.indices, expected.indices)
    assert (made.indices[10:21] == -1).all()
    assert (made.distances[10:21] == (-np.inf if descending else np.inf)).all()
