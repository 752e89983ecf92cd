"""The nearest of the points that are listed for each query, on a GPU, or in Triton's interpreter without one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.checks import duplicates
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.filter_checks import assert_equal, nearest_allowed
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.listed import Listed
from tonari.exact.cuda import tuning
from tonari.metrics import METRICS

if HAS_TORCH:
    import torch

    from tonari.exact.cuda.refine import listed

pytestmark = needs_torch


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "linf"])
@pytest.mark.parametrize("entries", [1 << 26, 4])
def test_the_bits_of_the_reference(device: str, metric: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LISTED_ENTRIES", entries)
    points = np.abs(duplicates(30, 5)) if METRICS[metric].nonnegative else duplicates(30, 5)
    allowed = np.zeros((5, 30), bool)
    for row, count in enumerate((0, 1, 30, 3, 20)):
        allowed[row, np.random.default_rng(row).choice(30, count, replace=False)] = True
    numbers = np.nonzero(allowed)[1]
    ends = allowed.sum(axis=1).cumsum()
    own = np.array([0, -1, 2, -1, 4])
    tensors = (torch.from_numpy(part).to(device) for part in (points[:5], points))
    found = listed.search_listed(*tensors, 4, metric, Listed(numbers, ends - allowed.sum(axis=1), ends, own))
    truth = nearest_allowed(points[:5], points, 4, allowed & (np.arange(30) != own[:, None]), metric)
    assert_equal(Neighbors(*(part.cpu().numpy() for part in found)), truth)


@on_device
def test_empty_lists(device: str) -> None:
    points, none = torch.zeros((3, 2), device=device), np.zeros(3, np.int64)
    found = listed.search_listed(points, points, 2, "euclidean", Listed(none[:0], none, none))
    assert found.indices.tolist() == [[-1, -1]] * 3
