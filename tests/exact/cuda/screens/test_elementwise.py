"""The screen of elementwise metrics on a GPU: minima of groups, compared with float64 and with exact values.

Without a GPU, the kernel runs in Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import ELEMENTWISE
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.exact.cuda.rows.form import make_form
from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE, group_count, members
from tonari.exact.cuda.rows.pack import PackedPoints, PackedQueries, new_flags, pack_points, pack_queries
from tonari.exact.cuda.screens.elementwise import screen_elementwise
from tonari.metrics import METRICS
from tonari.metrics.reference import pairwise

if HAS_TORCH:
    import torch

pytestmark = needs_torch

UNIT = 2.0**-24
# Batches within a tile of rows and across several, points that fill tiles or do not, and rows of every d % 4.
SHAPES = [
    (1, 300, 100),
    (7, 1, 3),
    (7, 129, 16),
    (17, 127, 1),
    (17, 300, 3),
    (70, 300, 16),
    (129, 128, 6),
    (129, 129, 1),
    (129, 127, 100),
]
# Whole numbers up to these have whole terms whose sums float32 represents exactly.
LARGEST_WHOLE = {"l1": 20, "linf": 20, "power:3": 9, "power:4": 3}
shapes = pytest.mark.parametrize(("m", "n", "d"), SHAPES)


def packed(q: Any, x: Any, device: str, *, bounds: bool) -> tuple[PackedQueries, PackedPoints]:
    """Return rows as they are in float32, with bounds of small integers and quarters, or without bounds."""
    rng = np.random.default_rng(len(q) + len(x))
    m, n, tiles = len(q), len(x), -(-len(x) // POINT_TILE)
    values = np.zeros((tiles * POINT_TILE, x.shape[1]))
    values[:n] = x
    low = np.full(tiles * POINT_TILE, np.inf)
    low[:n] = -rng.integers(0, 9, n) / 4 if bounds else 0
    sizes = [rng.integers(0, 9, size) / 4 if bounds else np.zeros(size) for size in (tiles, tiles, m, m)]

    def put(array: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(device)

    e1, e2, norm, rest = map(put, sizes)
    shift = torch.zeros(m, dtype=torch.float64, device=device)
    return PackedQueries(put(q), norm, rest, shift), PackedPoints(put(values), put(low), e1, e2, n)


def screened(queries: Any, points: Any, metric: str, group: int, rows: slice = slice(None)) -> Any:
    """Return the minima, which start as NaN inside a larger array whose margin must stay NaN."""
    m, count = len(queries.values[rows]), group_count(points.n, group)
    around = torch.full((m + 2, count + 3), float("nan"), device=queries.values.device)
    screen_elementwise(queries, points, around[1:-1, :count], metric=metric, group=group, rows=rows)
    found = around.cpu().numpy()
    assert np.isnan(found[[0, -1]]).all()
    assert np.isnan(found[:, count:]).all()
    return found[1:-1, :count]


def over_groups(scores: Any, group: int, padding: float) -> Any:
    """Return the scores (m, n) of each group's members as (m, groups, group)."""
    m, n = scores.shape
    count = group_count(n, group)
    padded = np.full((m, count * group), padding)
    padded[:, :n] = scores
    return padded[:, members(np.arange(count), group)]


def array(tensor: Any) -> Any:
    return tensor.double().cpu().numpy()


@on_device
@pytest.mark.parametrize("group", GROUP_SIZES)
@pytest.mark.parametrize("metric", LARGEST_WHOLE)
@shapes
def test_small_integers_are_exact(device: str, m: int, n: int, d: int, metric: str, group: int) -> None:
    """Scores, bounds and groups are right bit for bit; groups of padding are infinite."""
    rng = np.random.default_rng(d)
    most = LARGEST_WHOLE[metric]
    q, x = rng.integers(-most, most + 1, (m, d)), rng.integers(-most, most + 1, (n, d))
    queries, points = packed(q, x, device, bounds=True)
    scores = pairwise(q, x, metric) + array(points.low)[:n]
    bounds = np.outer(array(queries.norm), array(points.e1)) + np.outer(array(queries.rest), array(points.e2))
    lowest = over_groups(scores, group, np.inf).min(axis=2)
    expected = lowest - np.repeat(bounds, POINT_TILE // group, axis=1)
    np.testing.assert_array_equal(screened(queries, points, metric, group), expected)


@on_device
@pytest.mark.parametrize("metric", ELEMENTWISE)
def test_slices_of_rows(device: str, metric: str) -> None:
    """Values and bounds of a slice are those of its rows; a slice may be empty."""
    rng = np.random.default_rng(3)
    queries, points = packed(rng.integers(0, 9, (70, 5)), rng.integers(0, 9, (130, 5)), device, bounds=True)
    everything = screened(queries, points, metric, 32)
    for rows in (slice(0, 1), slice(3, 20), slice(20, 60), slice(66, 100), slice(8, 8)):
        found = screened(queries, points, metric, 32, rows)
        # Rows may be in tiles of another size, for which rounded products and sums may be fused differently.
        rounded = METRICS[metric].divides or METRICS[metric].degree % 1
        contracted = 2 * 20 * UNIT * 80 if rounded else 0
        np.testing.assert_allclose(found, everything[rows], rtol=0, atol=contracted)


def sizes_of(q: Any, x: Any, metric: str) -> Any:
    """Return the largest possible score for the sizes of the elements."""
    q, x = (checks.sizes(rows, metric) for rows in (q, x))
    return np.add.outer(q.sum(axis=1, dtype=np.float64), x.sum(axis=1, dtype=np.float64))


@on_device
@pytest.mark.parametrize("metric", ELEMENTWISE)
@shapes
def test_roundings(device: str, m: int, n: int, d: int, metric: str) -> None:
    """The loss that the file of the terms states; distances, which are only added, lose less."""
    rng = np.random.default_rng(d)
    q, x = rng.random((m, d), np.float32) ** 4, rng.random((n, d), np.float32) ** 4
    queries, points = packed(q, x, device, bounds=False)
    scores = pairwise(q, x, metric)
    record = METRICS[metric]
    units = d + 15 if record.divides else 1 if record.maximum else d + 1
    units += 7 if metric in checks.POWERS else 0
    error = (sizes_of(q, x, metric) if record.divides else scores) * UNIT * units
    below = (d + 3) * 2.0**-58 if record.divides else 0
    found = screened(queries, points, metric, 8)
    assert (found <= over_groups(scores + error, 8, np.inf).min(axis=2)).all()
    assert (found >= over_groups(scores - error - below, 8, np.inf).min(axis=2)).all()


@on_device
@pytest.mark.parametrize("metric", [metric for metric in ELEMENTWISE if METRICS[metric].divides])
def test_quotients_of_zeros_and_of_far_apart_values(device: str, metric: str) -> None:
    """0 / 0 is 0, a single 0 leaves the other value, and the test covers the whole range of packed values."""
    rng = np.random.default_rng(0)
    marks = np.array([0, 0, 2.0**-60, 3 * 2.0**-60, 1e-9, 1, 3, 100, 1e12], np.float32)
    q, x = rng.choice(marks, (20, 3)), rng.choice(marks, (200, 3))
    q[0] = x[0] = 0
    x[1] = q[1]
    if not METRICS[metric].nonnegative:
        q, x = (rows * rng.choice(np.array([-1, 1], np.float32), rows.shape) for rows in (q, x))
        x[1] = q[1]
    queries, points = packed(q, x, device, bounds=False)
    found = screened(queries, points, metric, 8)
    scores = pairwise(q, x, metric)
    error = sizes_of(q, x, metric) * UNIT * 18
    assert (found <= over_groups(scores + error, 8, np.inf).min(axis=2)).all()
    assert (found >= over_groups(scores - error - 6 * 2.0**-58, 8, np.inf).min(axis=2)).all()
    assert -6 * 2.0**-58 <= found[0, 0] <= 0


@on_device
@pytest.mark.parametrize("metric", ELEMENTWISE)
def test_points_and_queries_beyond_range(device: str, metric: str) -> None:
    """The group of such a point is below every threshold; the values of such a query are zeros, and its scores are
    numbers.
    """
    queries, points = packed(np.ones((3, 4)), np.ones((130, 4)), device, bounds=False)
    points.low[129] = -1e30
    points.values[129] = 0
    queries.values[1] = 0
    found = screened(queries, points, metric, 16)
    last = np.zeros(found.shape[1], bool)
    last[8] = True  # among columns 128 and 129
    assert (found[:, last] == np.float32(-1e30)).all()
    assert not (found[:, ~last] < -1).any()
    assert not np.isnan(found).any()


@on_device
@pytest.mark.parametrize("group", GROUP_SIZES)
@pytest.mark.parametrize("metric", ELEMENTWISE)
def test_minima_are_lower_bounds(device: str, metric: str, group: int) -> None:
    """Minima are below every member's real score, by at most twice its bounds; rows and bounds are those of packing."""
    rng = np.random.default_rng(group)
    q, x = (rng.random((rows, 21)) ** 6 * 1000 for rows in (19, 300))
    x[7] = q[4]
    x[8] = q[4] * (1 + 1e-9)
    q[:, 3] = x[:200, 3] = 0
    points, queries = torch.from_numpy(x).to(device), torch.from_numpy(q).to(device)
    form, flags = make_form(points, metric), new_flags(points.device)
    ready, asked = pack_points(points, form, "float32", flags), pack_queries(queries, form, "float32", flags)
    found = screened(asked, ready, metric, group)
    scores = pairwise(q, x, metric) * float(form.scale[0]) ** METRICS[metric].degree
    bounds = np.add.outer(array(asked.norm), -array(ready.low)[: len(x)])
    assert (found <= over_groups(scores, group, np.inf).min(axis=2)).all()
    assert (found >= over_groups(scores - 2 * bounds, group, np.inf).min(axis=2)).all()
