"""Bytes of searches among sparse rows."""

from __future__ import annotations

import numpy as np
import pytest

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import METRICS, words  # noqa: E402
from tonari.sparse.cpu.search import PreparedSparse  # noqa: E402
from tonari.sparse.memory import packed_bytes  # noqa: E402
from tonari.sparse.rows import Ranking, as_sparse_rows  # noqa: E402


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [1, 40, 5000])
def test_prepared_points_take_no_more_than_planned(metric: str, n: int) -> None:
    rows = as_sparse_rows(sparse.csr_array(words(n, 80).astype(np.float32)), "points")
    prepared = PreparedSparse(rows, Ranking(rows), metric)
    held = prepared.native.bytes() + prepared.ranking.points.nbytes
    planned = packed_bytes(n, prepared.ranking.counts, metric)
    assert held <= planned <= 1.3 * held + 64
