"""Streams on a GPU, or in Triton's interpreter: chunks in host memory and on the device, with the bits of one
search.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.device_rows import DEVICE, D, K, N, here, rows, there
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.streaming import joined
from tonari import io
from tonari.metrics.reference import brute
from tonari.streams import output, tuning

pytestmark = [needs_torch, pytest.mark.usefixtures("cpu_for_cuda")]
if HAS_TORCH:
    import torch

M = 7


def test_chunks_in_host_memory_go_there_and_results_come_back() -> None:
    points, queries = rows(N), rows(M, seed=1)
    index = tonari.Index(points, method="exact", device="cuda")
    parts = [queries[:3], queries[3:3], queries[3:]]
    found = list(index.search_chunks(iter(parts), K))
    assert all(isinstance(each.indices, np.ndarray) for each in found)
    assert_same_neighbors(joined(found), brute(queries, points, K))


def test_chunks_on_the_device_stay_there() -> None:
    points, queries = rows(N), rows(M, seed=1)
    index = tonari.Index(there(points), method="exact")
    buffer = torch.empty((1, D), device=DEVICE)

    def same_buffer() -> Iterator[object]:
        for row in queries:
            buffer.copy_(there(row))
            yield buffer
            buffer.fill_(torch.nan)

    assert_same_neighbors(joined(map(here, index.search_chunks(same_buffer(), K))), brute(queries, points, K))
    whole = index.search_chunks(there(queries), K, chunk_rows=4)
    assert_same_neighbors(joined(map(here, whole)), brute(queries, points, K))
    empty = next(iter(index.search_chunks([there(queries[:0])], K)))
    assert here(empty).indices.shape == (0, K)


@pytest.mark.parametrize("on_device", [False, True])
def test_files(tmp_path: Path, on_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SYNC_SECONDS", 0.0)
    points, queries = rows(N), rows(M, seed=1)
    bad = queries.copy()
    bad[5, 2] = np.nan
    index = tonari.Index(there(points) if on_device else points, method="exact", device="cuda")
    out = tmp_path / "t.ibin"
    with pytest.raises(ValueError, match="queries: row 5 has a value that is not finite"):
        tonari.search_to_file(there(bad) if on_device else bad, index, K, out, chunk_rows=3)
    journal = output.kept(out)[1]
    assert journal is not None
    assert journal.rows == 3
    tonari.search_to_file(there(queries) if on_device else queries, index, K, out, chunk_rows=3)
    found, truth = io.read_ground_truth(out), brute(queries, points, K)
    np.testing.assert_array_equal(found.indices, truth.indices)
    np.testing.assert_array_equal(found.distances, truth.distances)
