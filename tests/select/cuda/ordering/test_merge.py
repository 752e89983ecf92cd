"""Lists of parts are merged on the device that has them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.device_rows import here, there
from tests.helpers.devices import HAS_CUDA, needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute
from tonari.select.merge import merge_neighbors

pytestmark = [needs_torch, pytest.mark.usefixtures("cpu_for_cuda")]


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lists_are_merged_there(metric: str, dtype: str) -> None:
    points = checks.duplicates(90, 4).astype(dtype)
    queries, cuts = points[:: 7 if HAS_CUDA else 30], [0, 13, 50, 90]
    parts = [brute(queries, points[a:b], 12, metric) for a, b in itertools.pairwise(cuts)]
    parts[0].indices[2, 9:], parts[0].distances[2, 9:] = -1, 0.0  # missing, at any distance
    expected = merge_neighbors(parts, cuts[:3], k=15, metric=metric)
    on_device = [Neighbors(*map(there, part)) for part in parts]
    assert_same_neighbors(here(merge_neighbors(on_device, cuts[:3], k=15, metric=metric)), expected, metric=metric)
    single = here(merge_neighbors(on_device[1:2], [2**31], k=5, metric=metric))
    assert single.indices.dtype == np.int64
    assert single.indices.tolist() == (parts[1].indices[:, :5] + np.int64(2**31)).tolist()
