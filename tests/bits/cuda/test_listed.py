"""The nearest of the rows of bits listed for each query, on a GPU, or in Triton's interpreter without one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.helpers.bit_rows import MAKERS, noise
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.filter_checks import assert_equal, nearest_allowed
from tonari.bits import tuning
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.listed import Listed
from tonari.metrics import BIT_METRICS

if HAS_TORCH:
    import torch

    from tonari.bits.cuda import listed

pytestmark = needs_torch


@on_device
@pytest.mark.parametrize(("entries", "d"), [(1 << 26, 33), (4, 5)])
def test_the_bits_of_the_reference(device: str, entries: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LISTED_ENTRIES", entries)
    allowed = np.zeros((5, 40), bool)
    for row, count in enumerate((0, 1, 40, 3, 20)):
        allowed[row, np.random.default_rng(row).choice(40, count, replace=False)] = True
    numbers = np.nonzero(allowed)[1]
    ends = allowed.sum(axis=1).cumsum()
    own = np.array([0, -1, 2, -1, 4])
    for (metric, maker), k in zip(itertools.product(BIT_METRICS, MAKERS), (4, 40, 1, 4, 40, 4, 1, 40), strict=True):
        points, queries = MAKERS[maker](40, d), MAKERS[maker](5, d, 1)
        tensors = (torch.from_numpy(part).to(device) for part in (queries, points))
        found = listed.search_listed(*tensors, k, metric, Listed(numbers, ends - allowed.sum(axis=1), ends, own))
        truth = nearest_allowed(queries, points, k, allowed & (np.arange(40) != own[:, None]), metric)
        assert_equal(Neighbors(*(part.cpu().numpy() for part in found)), truth)


@on_device
def test_empty_lists(device: str) -> None:
    points, none = torch.from_numpy(noise(3, 2)).to(device), np.zeros(3, np.int64)
    found = listed.search_listed(points, points, 2, "hamming", Listed(none[:0], none, none))
    assert found.indices.tolist() == [[-1, -1]] * 3
    assert bool(found.distances.isinf().all())
