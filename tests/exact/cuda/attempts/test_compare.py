"""Few rows are compared with all points by exact values: the bits of the NumPy reference, for any parts and blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, all_equal, assert_same_neighbors, duplicates, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import numpy_of, tensor_of
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts import compare as module
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.exact.cuda.attempts.compare import compare_few


def check(
    device: str,
    queries: Array,
    points: Array,
    k: int,
    metric: str = "euclidean",
    *,
    own: Array | None = None,
    **shape: Any,
) -> None:
    """Compare with the reference, whose bits do not depend on the shape."""
    if METRICS[metric].nonnegative:
        queries, points = np.abs(queries), np.abs(points)
    double = queries.dtype == np.float64
    q, p = (tensor_of(rows).to(device) for rows in (queries, points))
    ids = None if own is None else tensor_of(own).to(device)
    found = compare_few(q, p, k, metric=metric, own=ids, double=double, **shape)
    assert_same_neighbors(
        Neighbors(*map(numpy_of, found)), brute(queries, points, k, metric, self_ids=own), metric=metric
    )


@on_device
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric(device: str, metric: str, double: bool) -> None:
    """With duplicates in different parts and in the same part; they are ordered by index."""
    points = duplicates(300, 7).astype(np.float64 if double else np.float32)
    check(device, points[[0, 5, 299]], points, 40, metric, group=8, columns=3)


@on_device
@pytest.mark.parametrize(
    ("n", "group", "columns"),
    [(1, 8, 7), (7, 32, 2), (127, 8, 1), (128, 8, 7), (129, 32, 2), (260, 8, 7)],
)
def test_every_part(device: str, n: int, group: int, columns: int) -> None:
    """All points, each once, also if a part has fewer than k points, and if the last part has padding."""
    points = gaussian(n, 5)
    for k in {1, n // 2 + 1, n}:
        check(device, points[: min(n, 3)] + np.float32(0.25), points, k, group=group, columns=columns)


@on_gpu
@pytest.mark.parametrize("n", [1, 7, 127, 128, 129, 260])
@pytest.mark.parametrize(("group", "columns"), [(8, 1), (8, 7), (32, 2), (32, 500)])
def test_every_part_of_every_size(n: int, group: int, columns: int) -> None:
    """Sizes for which the interpreter takes long."""
    test_every_part("cuda", n, group, columns)


@on_device
def test_points_that_are_all_equal_are_in_the_order_of_their_numbers(device: str) -> None:
    check(device, gaussian(2, 4), all_equal(300, 4, 1), 290, group=8, columns=5)


@on_device
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_what_is_missing_comes_after_what_is_infinitely_far(device: str) -> None:
    """Squares overflow float32. The query is the first point and excluded, so its list has one missing entry."""
    points = gaussian(140, 6) * np.float32(1e25)
    own = np.array([3])
    q, p, ids = (tensor_of(array).to(device) for array in (points[own], points, own))
    found = compare_few(q, p, 140, metric="sqeuclidean", own=ids, double=False, group=8, columns=4)
    assert np.isinf(numpy_of(found[0])).all()
    assert numpy_of(found[1]).tolist() == [[number for number in range(140) if number != 3] + [-1]]


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_rows_leave_themselves_out(device: str, metric: str) -> None:
    points = gaussian(140, 6)
    own = np.array([139, 0, 70])
    check(device, points[own], points, 9, metric, own=own, group=8, columns=4)
    check(device, points[own], points, 139, metric, own=own, group=8, columns=4)


@on_device
@pytest.mark.parametrize("rows", [1, 5])
def test_rows_some_at_a_time(device: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "COMPARED_ENTRIES", 2 * 4 * 3)  # two rows of four parts with three entries
    points = gaussian(128, 6)
    sizes: list[int] = []
    refine = module.refine_groups

    def counting(queries: Any, *given: Any, **facts: Any) -> Any:
        sizes.append(len(queries))
        return refine(queries, *given, **facts)

    monkeypatch.setattr(module, "refine_groups", counting)
    own = np.arange(rows)
    check(device, points[:rows], points, 3, own=own, group=32, columns=1)
    assert sizes == {1: [4], 5: [8, 8, 4]}[rows]
