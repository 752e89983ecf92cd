"""Exact values on a GPU, of gathered or of all points, and the order of lists: the bits of the NumPy reference.

Without a CUDA device the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import DTYPES, HOSTILE, Array, angles, assert_same_neighbors, duplicates, gaussian
from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import numpy_of, tensor_of
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine import groups
from tonari.exact.cuda.refine.groups import refine_all, refine_groups
from tonari.exact.cuda.rows.groups import GROUP_SIZES, group_count, members
from tonari.metrics import METRICS, reference
from tonari.select.cuda.ordering.order import merge_lists
from tonari.select.merge import merge_neighbors

if HAS_TORCH:
    import torch

pytestmark = needs_torch

SCRATCH = 1 << 20


def rows_of(m: int, d: int, dtype: str, metric: str = "euclidean", seed: int = 0) -> Array:
    """Make random rows of a dtype that a metric accepts; some are equal, some have one repeated value, some are
    zero."""
    rows = duplicates(m, d, seed) if m > 8 else gaussian(m, d, seed)
    rows[2::7] = rows[2::7, :1]
    rows[5::11] = 0.0
    rows[5::22] = -0.0
    if METRICS[metric].nonnegative:
        rows = np.abs(rows)
    if dtype == "uint8":
        rows = np.clip(rows * 40 + 100, 0, 255)
    elif dtype == "int8":
        rows = np.clip(rows * 40, -128, 127)
    return rows.astype(dtype)


def some_groups(m: int, n: int, group: int, width: int, seed: int = 0) -> Array:
    """Make lists of distinct groups per row in any order, with -1 for missing groups."""
    rng = np.random.default_rng(seed)
    count = group_count(n, group)
    groups = np.full((m, width), -1)
    for row in groups:
        row[: min(width, count)] = rng.permutation(count)[:width]
    groups[rng.random(groups.shape) < 0.1] = -1
    return groups.astype(np.int32)


def best_of(
    queries: Array, points: Array, ids: Array, k: int, metric: str, dtype: str, own: Array | None = None
) -> Neighbors:
    """Return the k best of the points listed for each query (-1 for none), by NumPy's values and order."""
    descending = METRICS[metric].descending
    if own is not None:
        ids = np.where(ids == own[:, None], -1, ids)
    ids = np.pad(ids, ((0, 0), (0, k)), constant_values=-1)  # missing entries, if there are fewer than k points
    values = reference.returned(reference.values_at(queries, points, ids, metric), dtype)
    order = np.lexsort((ids, -values if descending else values, ids < 0))[:, :k]
    return Neighbors(np.take_along_axis(values, order, axis=1), np.take_along_axis(ids, order, axis=1).astype(np.int32))


def on(device: str, array: Array | None) -> Any:
    return None if array is None else tensor_of(array).to(device)


def from_device(found: tuple[Any, Any]) -> Neighbors:
    return Neighbors(*(part.cpu().numpy() for part in found))


def check_groups(
    device: str,
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    group: int = 8,
    width: int = 3,
    own: Array | None = None,
    double: bool = False,
) -> None:
    """Compare refine_groups with the reference, for arrays, or for tensors if strides matter."""
    q, x = map(numpy_of, (queries, points))
    groups = some_groups(len(q), len(x), group, width)
    ids = np.where(groups[..., None] < 0, -1, members(groups.astype(np.int64), group)).reshape(len(q), -1)
    truth = best_of(q, x, np.where(ids < len(x), ids, -1), k, metric, "float64" if double else "float32", own)
    found = refine_groups(
        *(on(device, part) if isinstance(part, np.ndarray) else part for part in (queries, points)),
        on(device, groups),
        k,
        metric=metric,
        group=group,
        own=on(device, own),
        double=double,
    )
    assert_same_neighbors(from_device(found), truth, metric=metric)


def check_all(
    device: str,
    queries: Array,
    points: Array,
    k: int,
    *,
    metric: str = "euclidean",
    own: Array | None = None,
    double: bool = False,
    scratch_bytes: int = SCRATCH,
) -> None:
    """Compare refine_all with the reference."""
    ids = np.broadcast_to(np.arange(len(points)), (len(queries), len(points)))
    truth = best_of(queries, points, ids, k, metric, "float64" if double else "float32", own)
    found = refine_all(
        on(device, queries),
        on(device, points),
        k,
        metric=metric,
        own=on(device, own),
        double=double,
        scratch_bytes=scratch_bytes,
    )
    assert_same_neighbors(from_device(found), truth, metric=metric)


@on_device
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_members_of_groups(device: str, metric: str, dtype: str) -> None:
    """Every metric with every dtype; shapes alternate."""
    at = list(METRICS).index(metric) + 3 * DTYPES.index(dtype)
    d = (17, 100, 3, 35, 16, 15, 1, 80)[at % 8]
    group = GROUP_SIZES[at % 3]
    queries, points = rows_of(2, d, dtype, metric, 1), rows_of(197, d, dtype, metric, 2)
    k = (1, 3 * group, 9)[at % 3]
    check_groups(device, queries, points, k, metric=metric, group=group, width=3, double=dtype == "float64")


@on_device
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_all_points(device: str, metric: str, double: bool) -> None:
    """Every metric, with queries and points of two dtypes, in one slice."""
    at = list(METRICS).index(metric) + 4 * double
    d = (15, 1, 17, 3, 16, 33, 100, 20)[at % 8]
    dtypes = DTYPES[at % 6], DTYPES[(at + 1 + double) % 6]
    queries, points = (rows_of(m, d, dtype, metric, m) for m, dtype in zip((3, 70), dtypes, strict=True))
    check_all(device, queries, points, 9, metric=metric, double=double)


@on_device
@pytest.mark.parametrize("d", [1, 4, 15, 63, 64, 131])
def test_ends_of_rows(device: str, d: int) -> None:
    """Lengths below one step, of several steps, and with every remainder."""
    queries, points = rows_of(2, d, "float32", seed=1), rows_of(140, d, "float32", seed=2)
    for metric in ("sqeuclidean", "correlation"):
        check_groups(device, queries, points, 12, metric=metric, group=32, width=2)
        check_all(device, queries, points[:70], 12, metric=metric)


@on_device
def test_rows_of_one_value_have_no_direction(device: str) -> None:
    """Their rounded mean is not exactly the repeated value, and the remainder must not decide.

    The remainder is nearly at right angles to rows minus their means, except to rows whose own mean is rounded
    coarsely.
    """
    points = rows_of(60, 19, "float64")
    points[3] += 1e8
    points[::4] = 0.1
    points[1::4] = 0.7
    assert points[0].mean() != points[0, 0]
    for queries in (points[:2], points[2:4]):
        check_groups(device, queries, points, 50, metric="correlation", width=16, double=True)
        check_all(device, queries, points, 60, metric="correlation", double=True)


@on_device
@pytest.mark.parametrize("d", [2, 17, 80])
@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_rows_at_every_angle(device: str, metric: str, d: int) -> None:
    """Chunks in which all, some or no points are near enough for a chord; copies are at distance 0."""
    for dtype in ("float32", "float64"):
        points = angles(150, d, 3, dtype)
        check_groups(device, points[:2], points, 40, metric=metric, width=9, double=dtype == "float64")
        check_all(device, points[3:8], points, 150, metric=metric, double=dtype == "float64")
    x = on(device, points)
    found = from_device(refine_all(x, x, 1, metric=metric, double=True, scratch_bytes=SCRATCH))
    assert not found.distances.any()


_COMPILED = """
import json
import torch
from triton.runtime import driver
from tests.helpers.target_alone import TargetAlone
from tonari.cuda.compiling.compile import compile_call
from tonari.cuda.compiling.rehearsal import Card, rehearsing
from tonari.exact.cuda.refine.groups import refine_all, refine_groups

driver.set_active(TargetAlone())
found = {}
for metric in ("cosine", "correlation"):
    q, x = (torch.empty((m, 100), device="meta") for m in (5, 3000))
    groups = torch.empty((5, 4), dtype=torch.int32, device="meta")
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        refine_all(q, x, 3, metric=metric, double=False, scratch_bytes=1 << 28)
        refine_groups(q, x, groups, 3, metric=metric, group=8, double=False)
    for call in rehearsal.calls.values():
        if call.name in ("refine_kernel", "dense_kernel"):
            found[f"{metric} {call.name}"] = compile_call(call).asm["ptx"]
print(json.dumps(found))
"""


@pytest.mark.process
def test_no_operations_are_fused_where_kernels_are_compiled(tmp_path: Path) -> None:
    """This includes chords, whose products and differences could be fused; divisions are rounded correctly."""
    found = json.loads("".join(compiled(_COMPILED, tmp_path)))
    assert len(found) == 4
    for text in found.values():
        assert "fma.rn.f64" not in text
        assert "div.rn.f64" in text
        assert "div.full" not in text
        assert "div.approx" not in text


@on_device
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("maker", HOSTILE)
def test_values_made_to_hurt(device: str, maker: str) -> None:
    """Float32 values that are subnormal, overflow to inf, or tie; equal values are ordered by id."""
    rows = HOSTILE[maker](150, 18, 3)
    for metric, double in (("sqeuclidean", False), ("inner_product", True), ("cosine", False), ("chi2", True)):
        data = np.abs(rows) if METRICS[metric].nonnegative else rows
        check_groups(device, data[:2], data, 15, metric=metric, group=16, width=2, double=double)
    own = np.array([77])
    check_all(device, rows[own], rows, 10, metric="l1", own=own, double=maker == "offset_float64")


@on_device
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_float32_values_beyond_its_range(device: str) -> None:
    """Some neighbours are at distance inf but are not missing; others underflow to zero."""
    points = np.array([[1e-30], [-1e-30], [3e38], [-3e38], [2.0], [-3e38]], np.float32)
    for metric in ("sqeuclidean", "inner_product"):
        check_groups(device, points[[2, 1]], points, 8, metric=metric, group=8, width=16)
        check_all(device, points[[2, 1]], points, 6, metric=metric)
        check_all(device, points[[2, 1]], points, 6, metric=metric, own=np.array([2, 1]), scratch_bytes=1)


@on_device
@pytest.mark.parametrize("double", [False, True])
def test_a_point_left_out(device: str, double: bool) -> None:
    """It is excluded by its number, not by its distance, whether or not its group is listed."""
    points = rows_of(90, 5, "float32")
    points[40:50] = points[7]
    own = np.array([7, 41, 89])
    check_groups(device, points[own], points, 30, width=5, own=own, double=double)
    check_all(device, points[own], points, 90, own=own, double=double)


@on_device
@pytest.mark.parametrize("double", [False, True])
def test_fewer_candidates_than_k(device: str, double: bool) -> None:
    """A row without groups, k larger than the number of members, and no rows at all."""
    points = rows_of(20, 6, "float32")
    q, x = on(device, points[:2]), on(device, points)
    groups = torch.tensor([[-1, -1], [-1, 1]], dtype=torch.int32, device=device)
    for metric, worst in (("euclidean", np.inf), ("inner_product", -np.inf)):
        found = from_device(refine_groups(q, x, groups, 20, metric=metric, group=8, double=double))
        ids = np.full((2, 20), -1)
        ids[1, :6] = [2, 3, 10, 11, 18, 19]  # rows 26 and 27 do not exist
        assert (found.indices[0] == -1).all()
        assert (found.distances[0] == worst).all()
        truth = best_of(points[:2], points, ids, 20, metric, "float64" if double else "float32")
        assert_same_neighbors(found, truth, metric=metric)
        empty = refine_groups(q[:0], x, groups[:0], 3, metric=metric, group=8, double=double)
        assert [part.shape for part in empty] == [(0, 3), (0, 3)]
        empty = refine_all(q[:0], x, 3, metric=metric, double=double, scratch_bytes=SCRATCH)
        assert [part.shape for part in empty] == [(0, 3), (0, 3)]


@on_device
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("stride", "begin", "d"), [(37, 0, 17), (40, 1, 16), (40, 4, 20), (41, 0, 32), (36, 2, 34)])
def test_rows_at_any_distance(device: str, stride: int, begin: int, d: int, dtype: str) -> None:
    """Rows with any stride: aligned with wide loads always, sometimes or never, and with other data between them."""
    wide = on(device, rows_of(2 * 136, stride, dtype))
    points, queries = wide[::2, begin : begin + d], wide[1:2, begin : begin + d]
    assert points.stride() == (2 * stride, 1)
    check_groups(device, queries, points, 5, group=8, width=3)
    if dtype == "float32":
        found = refine_all(queries, points, 10, metric="cosine", double=False, scratch_bytes=SCRATCH)
        truth = reference.brute(queries.cpu().numpy(), points.cpu().numpy(), 10, "cosine")
        assert_same_neighbors(from_device(found), truth)


@on_device
def test_groups_that_are_columns_of_something_else(device: str) -> None:
    points = rows_of(300, 9, "float32")
    more = some_groups(7, 300, 8, 6)
    found = refine_groups(
        on(device, points[:7]), on(device, points), on(device, more)[:, :5], 6, metric="l1", group=8, double=False
    )
    ids = np.where(more[:, :5, None] < 0, -1, members(more[:, :5].astype(np.int64), 8)).reshape(7, -1)
    truth = best_of(points[:7], points, np.where(ids < 300, ids, -1), 6, "l1", "float32")
    assert_same_neighbors(from_device(found), truth)


@on_device
@pytest.mark.parametrize("double", [False, True])
def test_queries_some_at_a_time(device: str, double: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch memory for one query, or for a few; the last part is shorter."""
    points = rows_of(140, 7, "float32")
    own = np.arange(5)
    for bytes_ in (1, 5000):
        monkeypatch.setattr(tuning, "REFINE_SCRATCH_BYTES", bytes_)
        check_groups(device, points[:5], points, 4, width=5, own=own, double=double)


@on_device
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "correlation"])
def test_slices(device: str, metric: str, double: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several slices and several blocks of queries, with ties across their borders."""
    points = rows_of(160, 5, "float32", seed=4)
    own = np.arange(5) * 30
    item, scratch = (8, 13_000) if metric == "correlation" else (4, 10_000)
    monkeypatch.setattr(tuning, "LEAST_SLICE", 60)
    block, length = groups._shape_of_slices(5, 160, 6, 5, item, scratch)
    assert (block, -(-160 // length)) == (3, 3)
    check_all(device, points[own], points, 6, metric=metric, own=own, double=double, scratch_bytes=scratch)
    check_all(device, points[own[:1]], points, 70, metric=metric, double=double, scratch_bytes=1)


@needs_torch
def test_slices_stay_within_scratch() -> None:
    """Sizes that follow from the shapes alone; a slice never ends too early, and is never empty."""
    for rows, n, k, d, item in ((1000, 10**6, 10, 128, 4), (8192, 10**7, 100, 960, 8), (3, 50, 50, 1, 4)):
        for scratch in (1 << 24, 1 << 28, 1 << 32):
            block, length = groups._shape_of_slices(rows, n, k, d, item, scratch)
            assert 1 <= block <= rows
            assert k <= length <= n
            whole = -(-d // 16) * 16
            held = block * (8 * whole + 8 * (k + length)) + length * (item * whole + 8)
            assert held <= scratch or (block, length) == (1, k)


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "correlation"])
@pytest.mark.parametrize("double", [False, True])
def test_scratch_is_kept(metric: str, double: bool) -> None:
    """Memory that the device actually allocates in addition to input and output."""
    points = torch.randn(1 << 20, 24, device="cuda")
    for k in (10, 300):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        found = refine_all(points[:100], points, k, metric=metric, double=double, scratch_bytes=1 << 28)
        output = sum(part.nbytes for part in found)
        assert torch.cuda.max_memory_allocated() - before - output <= 1 << 28
        del found


def random_list(rng: np.random.Generator, m: int, k: int, first: int, dtype: str, ids: str, metric: str) -> Neighbors:
    """Make sorted neighbours with missing ones, infinitely far ones and many ties; ids start at `first`."""
    indices = np.stack([first + rng.permutation(3 * k)[:k] for _ in range(m)])
    values = rng.choice(np.array([-2.5, -1e-40, 0.0, 1e-40, 1.0, 3.0, np.inf, -np.inf], dtype), (m, k))
    if not METRICS[metric].descending:
        values = np.abs(values)
    indices[rng.random((m, k)) < 0.2] = -1
    values[indices < 0] = -np.inf if METRICS[metric].descending else np.inf
    order = np.lexsort((indices, -values if METRICS[metric].descending else values, indices < 0))
    return Neighbors(np.take_along_axis(values, order, axis=1), np.take_along_axis(indices, order, axis=1).astype(ids))


@on_device
@pytest.mark.parametrize("ids", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_lists_merge_as_on_the_cpu(device: str, metric: str, dtype: str, ids: str) -> None:
    rng = np.random.default_rng(5)
    for left, right, k in ((4, 6, 5), (1, 1, 2), (7, 3, 1), (3, 3, 9)):
        first = 2**40 if ids == "int64" else 2**31 - 1 - 3 * left
        a = random_list(rng, 6, left, first, dtype, ids, metric)
        b = random_list(rng, 6, right, 0, dtype, "int32", metric)
        if ids == "int64":
            a, b = b, a
        truth = merge_neighbors([a, b], [0, 0], metric=metric, k=min(k, left + right))
        missing = ((0, 0), (0, k - truth.indices.shape[1]))
        worst = -np.inf if METRICS[metric].descending else np.inf
        distances = np.pad(truth.distances, missing, constant_values=worst)
        truth = Neighbors(distances, np.pad(truth.indices, missing, constant_values=-1))
        wide = [torch.cat([on(device, part)] * 2, 1)[:, : part.shape[1]] for part in a]  # rows with a stride
        found = from_device(merge_lists(tuple(wide), tuple(on(device, part) for part in b), k, metric=metric))
        assert found.indices.dtype == truth.indices.dtype == np.dtype(ids)
        for ours, theirs in zip(found, truth, strict=True):
            np.testing.assert_array_equal(ours.view(f"u{ours.itemsize}"), theirs.view(f"u{theirs.itemsize}"))


@on_device
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_rows_that_are_refused_later_do_no_harm(device: str) -> None:
    """NaN and inf are never used as an index, and the other rows are right."""
    points = rows_of(40, 6, "float32")
    bad = points.copy()
    bad[3, 2], bad[9, 0], bad[20, 5] = np.nan, np.inf, -np.inf
    groups = on(device, np.arange(16, dtype=np.int32)[None])
    for metric, row in (("euclidean", 9), ("correlation", 1), ("chi2", 3)):
        q, x = on(device, np.abs(bad[[row]])), on(device, np.abs(bad))
        for double in (False, True):
            for found in (
                refine_groups(q, x, groups, 12, metric=metric, group=8, double=double),
                refine_all(q, x, 12, metric=metric, double=double, scratch_bytes=SCRATCH),
            ):
                assert ((found[1] >= -1) & (found[1] < 40)).all()
    near = bad[[5]]
    found = from_device(
        refine_groups(on(device, near), on(device, bad), groups, 40, metric="euclidean", group=8, double=False)
    )
    finite = np.setdiff1d(np.arange(40), [3, 9, 20])[None]
    truth = best_of(near, points, finite, 37, "euclidean", "float32")
    assert_same_neighbors(Neighbors(*(np.ascontiguousarray(part[:, :37]) for part in found)), truth)
    assert found.indices[0, 37:].tolist() == [9, 20, -1]  # infinitely far, and missing
