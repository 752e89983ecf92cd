"""The nearest of the points listed for each query: the bits of the reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.bit_rows import MAKERS, noise
from tests.helpers.filter_checks import assert_equal, nearest_allowed
from tests.helpers.kernels import ISAS
from tonari.bits.cpu.listed import search_listed
from tonari.core.rows.listed import Listed
from tonari.metrics import BIT_METRICS

M, N = 12, 70


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != "amx"])
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("d", [1, 7, 8, 9, 128])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_bits_of_the_reference(
    isa: str, metric: str, maker: str, d: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    monkeypatch.setattr("tonari.core.tuning.LISTED_SECONDS", 1e-6)  # many blocks
    points, queries = MAKERS[maker](N, d), MAKERS[maker](M, d, 1)
    rng, allowed = np.random.default_rng(0), np.zeros((M, N), bool)
    for row in range(M):
        allowed[row, rng.choice(N, (0, 1, N, 3, 20)[row % 5], replace=False)] = True
    numbers, ends = np.nonzero(allowed)[1].copy(), allowed.sum(axis=1).cumsum()
    own = np.where(np.arange(M) % 3 == 0, -1, np.arange(M))
    for k in (1, 3, N):
        lists = Listed(numbers, ends - allowed.sum(axis=1), ends, own)
        found = search_listed(queries, points, k, metric, lists, threads=threads)
        truth = nearest_allowed(queries, points, k, allowed & (np.arange(N) != own[:, None]), metric)
        assert_equal(found, truth)


def test_lists_that_are_shared_and_longer_than_a_batch() -> None:
    """Far points come first, so every point is nearer than those before it, and lists are condensed often."""
    points = np.packbits(np.tri(2100, 2104, dtype=bool)[::-1], axis=1)
    queries = np.zeros((2, points.shape[1]), np.uint8)
    begins, stops = np.array([0, 1000]), np.array([2100, 2100])
    allowed = np.arange(2100) >= begins[:, None]
    found = search_listed(queries, points, 3, "hamming", Listed(np.arange(2100), begins, stops))
    assert_equal(found, nearest_allowed(queries, points, 3, allowed, "hamming"))


def test_results_are_written_where_the_caller_wants_them() -> None:
    points, none = noise(5, 3), np.zeros(2, np.int64)
    found = search_listed(points[:2], points, 2, "hamming", Listed(none[:0], none, none))
    again = search_listed(points[:2], points, 2, "hamming", Listed(np.arange(5), none, none + 5), found=found)
    assert again is found
    assert found.indices[:, 0].tolist() == [0, 1]
