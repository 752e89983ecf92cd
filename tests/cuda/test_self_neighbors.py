"""On the device, each point is put before its neighbours, or removed from its list."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.device_rows import here, there
from tests.helpers.devices import needs_torch
from tonari.core.results.neighbors import Neighbors

pytestmark = [needs_torch, pytest.mark.usefixtures("cpu_for_cuda")]


@pytest.mark.parametrize("d", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "uint8"])
def test_each_point_s_value_with_itself_has_the_reference_s_bits(d: int, dtype: str) -> None:
    from tonari.cuda import self_neighbors as own

    points = (checks.gaussian(30, d) * 100).astype(dtype)
    value = np.float64 if dtype == "float64" else np.float32
    empty = Neighbors(there(np.empty((30, 0), value)), there(np.empty((30, 0), np.int32)))
    found = here(own.with_self(empty, there(points), "inner_product"))
    expected = tonari.knn_graph(points, 1, metric="inner_product", include_self=True)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found.indices.tobytes() == expected.indices.tobytes()


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_lists_without_the_query_itself(kind: str) -> None:
    from tonari.cuda import self_neighbors as own

    # the point itself first, between others, last, missing
    ids = np.array([[0, 4, 5], [6, 1, 7], [8, 9, 2], [4, 5, 6]], np.int32)
    found = Neighbors(np.arange(12, dtype=np.float32).reshape(4, 3), ids)
    left = own.without_own(found if kind == "array" else Neighbors(*map(there, found)), np.arange(4), 2)
    assert isinstance(left.indices, np.ndarray) == (kind == "array")
    left = left if kind == "array" else here(left)
    assert left.indices.tolist() == [[4, 5], [6, 7], [8, 9], [4, 5]]
    assert left.distances.tolist() == [[1, 2], [3, 5], [6, 7], [9, 10]]
    every = Neighbors(found.distances[:2, :2], np.array([[0, 1], [1, 0]], np.int32))  # among all points one is missing
    left = own.without_own(every, np.arange(2), 2)
    assert left.indices.tolist() == [[1, -1], [0, -1]]
    assert left.distances.tolist() == [[1, np.inf], [4, np.inf]]
