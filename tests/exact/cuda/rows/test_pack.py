"""Forms and packed rows on a GPU: every packed value, valid bounds, and Lemma 1 under the worst arithmetic.

True values are computed in long double from the original rows. Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tests.helpers.checks import ELEMENTWISE
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.gpu_checks import tensor_of
from tonari.core import _native
from tonari.cuda.compiling.rehearsal import Card, rehearsing
from tonari.exact.cpu.rows import prepared
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import DeviceForm, make_form, shifted_form
from tonari.exact.cuda.rows.groups import POINT_TILE, group_count
from tonari.exact.cuda.rows.pack import (
    PackedPoints,
    PackedQueries,
    largest_element,
    new_flags,
    pack_points,
    pack_queries,
    packed_bytes,
    packed_width,
    query_bytes,
    room_for,
)
from tonari.exact.cuda.rows.tiles import RESIDENT_BYTES
from tonari.exact.cuda.screens.all_minima import screen
from tonari.metrics import METRICS, definitions

if HAS_TORCH:
    import torch

pytestmark = needs_torch

Array = npt.NDArray[Any]
PRODUCTS = ("euclidean", "inner_product", "cosine", "correlation")
PRECISIONS = [(metric, precision) for metric in PRODUCTS for precision in ("float16", "split")]
PRECISIONS += [(metric, "float32") for metric in ELEMENTWISE]
INT8 = ("euclidean", "int8")
NO_ROW = 2**62
UNIT = np.longdouble(2) ** -24
TINY = np.longdouble(2) ** -100
M = 9  # queries


def gaussian(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d)).astype(np.float32)


def offset(rng: np.random.Generator, n: int, d: int) -> Array:
    return (rng.standard_normal((n, d)) + 1e4).astype(np.float32)


def offset_float64(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make rows 1e8 from the origin, with differences far below float32's resolution there."""
    return rng.standard_normal((n, d)) * 1e-3 + 1e8


def spread(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make elements from 1 down to 2^-90: most underflow in float16, many in float32."""
    return (rng.standard_normal((n, d)) * 2.0 ** rng.integers(-90, 1, (n, d))).astype(np.float32)


def subnormal(rng: np.random.Generator, n: int, d: int) -> Array:
    return (rng.integers(-(2**20), 2**20, (n, d)) * 2.0**-149).astype(np.float32)


def subnormal_float64(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make rows whose squares underflow, and that no scale can lift far enough."""
    return rng.integers(-(2**20), 2**20, (n, d)) * 2.0**-1074


def faint(rng: np.random.Generator, n: int, d: int) -> Array:
    """Give every other row a norm whose products float64 cannot represent."""
    return rng.standard_normal((n, d)) * np.where(np.arange(n) % 2, 1e-150, 1e-140)[:, None]


def huge(rng: np.random.Generator, n: int, d: int) -> Array:
    return (rng.standard_normal((n, d)) * 1e37).astype(np.float32)


def huge_float64(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.uniform(-1e150, 1e150, (n, d))


def outliers(rng: np.random.Generator, n: int, d: int) -> Array:
    """Put every fifth row far from the form's sample (see `problem`), and some beyond range."""
    rows = rng.standard_normal((n, d))
    rows[4::5] *= 10.0 ** rng.integers(2, 16, (len(rows[4::5]), 1))
    return rows


def widest_float64(rng: np.random.Generator, n: int, d: int) -> Array:
    """Use most of float64's range in every row: at the row's scale, some elements underflow."""
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-320, 140, (n, d))


def constant_rows(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make rows of one repeated value, whose mean is rounded; zero rows, also of -0.0; rows that differ in a single
    element.
    """
    rows = np.repeat(rng.choice([0.1, 1e8 / 3, 0.0, -0.0, 7.0], (n, 1)), d, axis=1)
    rows[::3, -1] += rng.choice([1e-7, 1.0], len(rows[::3]))
    return rows


def halves(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d)).astype(np.float16)


def bfloat16s(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make magnitudes that float16 cannot represent, down to subnormal ones."""
    return (rng.standard_normal((n, d)) * 2.0 ** rng.integers(-135, 120, (n, 1))).astype("bfloat16")


def unsigned_bytes(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.integers(0, 256, (n, d)).astype(np.uint8)


def signed_bytes(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.integers(-128, 128, (n, d)).astype(np.int8)


def whole_numbers(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make whole numbers in SIFT's range, in float32."""
    return (rng.integers(0, 219, (n, d)) * rng.integers(0, 2, (n, d))).astype(np.float32)


def fractions(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make bytes, and elements between bytes in every third row."""
    rows = rng.integers(0, 256, (n, d)).astype(np.float64)
    rows[::3] -= rng.choice([0, 0.5, 1 / 3, 1e-13], rows[::3].shape)
    return rows


def black_and_white(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make the longest possible rows of bytes: float32 can just represent their squares, but not all scores."""
    rows = np.repeat(rng.choice([0.0, 255.0], (n, 1)), d, axis=1)
    return np.abs(rows - (rng.random((n, d)) < rng.choice([0, 0.01, 0.5], (n, 1))))


def longer(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make the same with more columns: for most rows, float32 cannot represent the squares."""
    return black_and_white(rng, n, d)


def nearly_grey(rng: np.random.Generator, n: int, d: int) -> Array:
    """Make the longest possible rows of bytes, and queries of almost no length, whose loss is far below float32's
    steps.
    """
    rows = black_and_white(rng, n, d)
    rows[-4:] = 128 + 1e-7 * rng.standard_normal((4, d))  # queries
    return rows


# maker, and a shape of its own
MAKERS: dict[Callable[..., Array], tuple[int, int]] = {
    gaussian: (129, 100),
    offset: (128, 16),
    offset_float64: (127, 7),
    spread: (60, 300),
    subnormal: (30, 33),
    subnormal_float64: (20, 16),
    faint: (33, 12),
    huge: (40, 16),
    huge_float64: (50, 20),
    outliers: (130, 16),
    widest_float64: (40, 6),
    constant_rows: (64, 24),
    halves: (129, 40),
    bfloat16s: (40, 12),
    unsigned_bytes: (100, 128),
    signed_bytes: (128, 1),
    whole_numbers: (1, 64),
    fractions: (140, 300),
    black_and_white: (40, 1024),
    longer: (40, 1100),
    nearly_grey: (40, 1000),
}
BYTES = (unsigned_bytes, signed_bytes, whole_numbers, fractions, black_and_white, longer, nearly_grey)
DATA = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
ON_RUNGS = pytest.mark.parametrize(("metric", "precision"), [*PRECISIONS, INT8])


@dataclass(frozen=True)
class Side:
    """Points or queries: the packed values, and the true values in long double."""

    form: Array  # (n, d): x', in real arithmetic
    square: Array  # (n,): the squared norm of a row, minus its mean under correlation, in float64
    seen: Array  # (n, d): x^, from the packed values
    values: Array
    usable: Array  # bool (n,): whether it is within range
    whole: Array  # bool (n,): whether it has only whole numbers
    out: SimpleNamespace


@dataclass(frozen=True)
class Problem:
    points: Side
    queries: Side
    scale: float
    flags: list[int]


def host(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy())


def form_rows(rows: Array, form: DeviceForm) -> tuple[Array, Array]:
    """Compute the form rows nearly in real arithmetic (long double has 11 more bits), and their squares; see Side."""
    scale = np.longdouble(host(form.scale)[0])
    x = rows.astype(np.float64)
    if form.metric == "correlation":
        x = definitions.less_mean(np.ascontiguousarray(x.T)).T
    square = np.square(x).sum(axis=1)
    x = x.astype(np.longdouble)
    if form.metric in ("cosine", "correlation"):  # a row whose squares underflow in float64 has norm 0, by definition
        norm = np.where(square == 0, 1, np.sqrt((x * x).sum(axis=1)))[:, None]
        return np.where(square[:, None] == 0, 0, x * scale / norm), square
    return (x - host(form.centre).astype(np.longdouble)) * scale, square


def seen_rows(values: Array, d: int, precision: str, *, points: bool) -> Array:
    """Return the values that the packed ones represent; check sections and padding."""
    x = values.astype(np.longdouble)
    if precision == "split":
        low, high = x[:, :d], x[:, 3 * d : 4 * d]
        middle = np.hstack((high, low) if points else (low, high))
        np.testing.assert_array_equal(x[:, d : 3 * d], middle)
        assert not x[:, 4 * d :].any()
        x = low + high
    else:
        assert not x[:, d:].any()
        x = x[:, :d]
    return x if points or precision in ("float32", "int8") else x / -2


def pack(rows: Array, form: DeviceForm, precision: str, device: str, flags: Any, *, points: bool) -> Side:
    tensor = tensor_of(rows).to(device)
    out = (pack_points if points else pack_queries)(tensor, form, precision, flags)
    found = SimpleNamespace(**{name: host(field) for name, field in vars(out).items() if name != "n"})
    n, d = rows.shape
    usable = found.low[:n] != np.float32(-1e30) if points else np.isfinite(found.shift)
    seen = seen_rows(found.values, d, precision, points=points)[:n]
    with np.errstate(over="ignore", invalid="ignore"):  # rows that no search accepts
        truth = form_rows(rows, form)
    numbers = rows.astype(np.float64)
    return Side(*truth, seen, found.values, usable, (numbers == np.rint(numbers)).all(axis=1), found)


@functools.cache
def problem(device: str, maker: Callable[..., Array], metric: str, precision: str) -> Problem:
    """Make points and queries of one kind: some queries are points, one is far away, one is zero."""
    rng = np.random.default_rng(len(maker.__name__))
    n, d = MAKERS[maker]
    rows = maker(rng, n + M, d)
    if METRICS[metric].nonnegative:
        rows = np.maximum(rows, -rows) if rows.dtype != np.int8 else np.maximum(rows, 0)
    points, queries = rows[:n], rows[n:]
    queries[:3] = points[:3] if n > 2 else points[0]
    queries[3] = 0
    queries[4] = queries[4] // 2 * 3 if rows.dtype.kind in "iu" else queries[4] * 1.5
    if rows.dtype == np.float64:
        queries[4] = np.clip(queries[4], -1e150, 1e150)
    sample = points if maker is not outliers else np.delete(points, np.s_[4::5], axis=0)
    form = make_form(tensor_of(sample).to(device), metric)
    if precision == "int8":
        form = shifted_form(metric, d, 0 if rows.dtype == np.int8 else 128, torch.device(device))
    flags = new_flags(torch.device(device))
    sides = [pack(part, form, precision, device, flags, points=part is points) for part in (points, queries)]
    return Problem(*sides, float(host(form.scale)[0]), host(flags).tolist())


def norm(rows: Array, metric: str) -> Array:
    """Return the size of rows in which a metric's rounding is measured."""
    if metric in PRODUCTS:
        return np.asarray(np.sqrt((rows * rows).sum(axis=-1)))
    return summed(checks.sizes(rows, metric), metric)


def summed(terms: Array, metric: str) -> Array:
    return np.asarray(terms.max(axis=-1) if METRICS[metric].maximum else terms.sum(axis=-1))


def lost(side: Side, metric: str) -> Array:
    """Return the loss by rounding of each row."""
    if metric in PRODUCTS:
        return norm(side.form - side.seen, metric)
    return summed(checks.differences(side.form, side.seen, metric), metric)


def gamma(side: Side, precision: str) -> Any:
    """Return the largest relative loss of a sum for each row, by the bound's own formula."""
    d = side.form.shape[1]
    additions = {"float16": 4 * d, "split": 4.05 * (d + 64) if d > 32 else 16 * d, "float32": d, "int8": -48}[precision]
    n = (additions + 64) * UNIT
    return np.where(are_exact(side, precision), 0, n / (1 - 2 * n))


def are_exact(side: Side, precision: str) -> Array:
    """Return which rows have no error: whole numbers whose squares float32 can add."""
    return np.asarray(side.whole & ((side.form * side.form).sum(axis=1) <= 2**24) & (precision == "int8"))


def per_tile(values: Array, usable: Array) -> Array:
    """Return the largest value of each tile of the screen; rows beyond range count as 0."""
    padded = np.zeros(-(-len(values) // POINT_TILE) * POINT_TILE, np.longdouble)
    padded[: len(values)] = np.where(usable, values, 0)
    return padded.reshape(-1, POINT_TILE).max(axis=1)


def assert_bounds(found: Array, truth: Array, loose: Array) -> None:
    """Check that each bound is at least the true value, and at most `loose` above it."""
    found = found.astype(np.longdouble)
    assert (found >= truth).all(), f"{(truth - found).max()} too small"
    assert (found <= truth * (1 + 2.0**-18) + loose).all(), f"{(found - truth).max()} too large"


@on_device
@ON_RUNGS
@DATA
def test_packed_values(device: str, maker: Callable[..., Array], metric: str, precision: str) -> None:
    """Values are rounded once from float64 by way of float32; padding is zero."""
    case = problem(device, maker, metric, precision)
    assert case.flags == [NO_ROW] * 3
    for side in (case.points, case.queries):  # of queries, which is half of the packed value
        n, d = side.form.shape
        assert side.values.shape[1] == packed_width(d, precision)
        assert not side.values[n:].any()
        assert not side.values[:n][~side.usable].any()
        x, seen = side.form[side.usable].astype(np.float64), side.seen[side.usable].astype(np.float64)
        if precision == "float32":
            np.testing.assert_array_equal(seen, np.where(np.abs(x) < 2.0**-60, 0, x).astype(np.float32))
            continue
        y = x.astype(np.float32)
        if precision == "int8":
            np.testing.assert_array_equal(seen, np.floor(y + np.float32(0.5)))
            continue
        high = y.astype(np.float16)
        expected = high.astype(np.float64)
        if precision == "split":
            expected += (y - high.astype(np.float32)).astype(np.float16)
        if metric in ("cosine", "correlation"):  # the norm's own rounding may change an element
            last = (
                np.spacing(np.abs(high)).astype(np.float64) if precision == "float16" else np.abs(expected) * 2.0**-20
            )
            assert (np.abs(seen - expected) <= last + 2.0**-24).all()
        else:
            np.testing.assert_array_equal(seen, expected)


@on_device
@ON_RUNGS
@DATA
def test_bounds_bound(device: str, maker: Callable[..., Array], metric: str, precision: str) -> None:
    """Every bound is at least the measured true value, and not much larger."""
    case = problem(device, maker, metric, precision)
    x, q = case.points, case.queries
    n, d = x.form.shape
    g, q_gamma = gamma(x, precision), gamma(q, precision)
    of_point = g if precision == "int8" else 0 * g  # an exact query has no gamma for points that are not exact
    factor = METRICS[metric].stretch
    x_lost, seen, size = lost(x, metric), *(norm(rows, metric) for rows in (x.seen, x.form))
    q_lost, q_seen, q_size = lost(q, metric), *(norm(rows, metric) for rows in (q.seen, q.form))
    term = (x.form * x.form).sum(axis=1) if metric == "euclidean" else np.zeros(n, np.longdouble)
    if metric in PRODUCTS:
        own = g * np.abs(term) + TINY
        slack = np.where(are_exact(x, precision), 0, 2 * UNIT * size + 2.0**-50)
        in_e1 = 2 * (x_lost + of_point * seen)
        assert_bounds(x.out.e1, per_tile(in_e1, x.usable), per_tile(2 * slack + 3 * of_point * x_lost, x.usable))
        assert_bounds(x.out.e2, per_tile(2 * seen, x.usable), per_tile(4 * (x_lost + slack), x.usable))
        assert_bounds(q.out.norm[q.usable], q_size[q.usable], 2 * TINY)
        step = 2.0**-11 * (1 + 2.0**-18) if precision == "int8" else 0.0  # for the loss of exact points in float32
        slack = np.where(are_exact(q, precision), 2 * TINY, step + 4 * UNIT * q_size + 2.0**-50 + 2 * q_gamma * q_lost)
        assert_bounds(q.out.rest[q.usable], (q_lost + q_gamma * q_seen)[q.usable], slack[q.usable])
    else:
        own = (factor * x_lost + g * seen) * (1 + g + 2.0**-20) + TINY
        assert (x.out.e1 == (per_tile(size + 1, x.usable) > 0)).all()
        assert not x.out.e2.any()
        assert not q.out.rest.any()
        q_own = factor * q_lost + q_gamma * q_seen
        unseen = q_gamma * (q_size + factor * q_lost - q_seen)  # sizes after rounding are not measured, but bounded
        assert_bounds(q.out.norm[q.usable], q_own[q.usable], (unseen + q_size * 2.0**-40 + 2 * TINY)[q.usable])
    assert not q.out.norm[~q.usable].any()
    assert not q.out.rest[~q.usable].any()
    low = x.out.low.astype(np.longdouble)
    assert np.isposinf(low[n:]).all()
    assert (low[:n] <= term - own)[x.usable].all()
    assert (low[:n] >= term - own - (own / 64 + 4 * UNIT * term + size * 2.0**-30 + 2.0**-60))[x.usable].all()
    shift = (q.form * q.form).sum(axis=1) if metric == "euclidean" else np.zeros(M)
    np.testing.assert_allclose(q.out.shift[q.usable], shift[q.usable].astype(np.float64), rtol=1e-13)
    for side, points in ((x, True), (q, False)):
        if metric in ("cosine", "correlation"):
            expected = (side.square == 0) | (side.square >= 2.0**-960)
        else:
            largest = min(largest_element(d, precision, points=points), METRICS[metric].largest)
            half = 0.5 if precision == "int8" else 0.0
            expected = np.abs(side.form + half).max(axis=1) <= largest
            if metric in ELEMENTWISE and METRICS[metric].degree == 0:
                expected &= ((side.form == 0) | (np.abs(side.form) >= 2.0**-1022)).all(axis=1)
        np.testing.assert_array_equal(side.usable, expected)


def true_scores(case: Problem, metric: str) -> tuple[Array, Array]:
    """Return the score of every pair, and the reserve R of Lemma 1."""
    q, x = case.queries.form, case.points.form
    if metric in PRODUCTS:
        term = (x * x).sum(axis=1) if metric == "euclidean" else np.zeros(len(x), np.longdouble)
        sizes = np.outer(norm(q, metric), norm(x, metric))
        return term - 2 * q @ x.T, 2.0**-21 * (term + 2 * sizes) + TINY / 2
    scores = elementwise(q, x, metric)
    return scores, np.full_like(scores, TINY / 2)


def lost_on_matrix_units(q: Array, x: Array, low: Array) -> Array:
    """Return the largest loss of sums of products if each addition loses 4 units of the sum of magnitudes up to its
    step of 64.

    Sums of short rows start at `low`.
    """
    magnitudes = np.zeros((len(q), len(x)), np.longdouble)
    if q.shape[1] * q.itemsize <= RESIDENT_BYTES:
        magnitudes += np.where(low > -1e30, np.abs(low), 0)
    lost = np.zeros_like(magnitudes)
    used = np.flatnonzero(q.any(axis=0) | x.any(axis=0))
    for begin in range(0, q.shape[1], 64):
        here = used[(used >= begin) & (used < begin + 64)]
        magnitudes += np.abs(q[:, here]).astype(np.longdouble) @ np.abs(x[:, here]).astype(np.longdouble).T
        lost += len(here) * 4 * UNIT * magnitudes
    return lost / (1 - 4 * len(used) * UNIT)


def elementwise(q: Array, x: Array, metric: str) -> Array:
    value = METRICS[metric].value
    assert value is not None
    return np.asarray(value(q.T[:, :, None], x.T[:, None, :]))


@on_device
@pytest.mark.parametrize(("metric", "precision"), PRECISIONS)
@DATA
def test_lower_bounds_hold_under_the_worst_arithmetic(
    device: str, maker: Callable[..., Array], metric: str, precision: str
) -> None:
    """Lemma 1 holds if all rounding of float32 and matrix units is upwards, and the bound is rounded downwards."""
    case = problem(device, maker, metric, precision)
    x, q = case.points, case.queries
    scores, reserve = true_scores(case, metric)
    d = x.form.shape[1]
    low = x.out.low[: len(x.form)].astype(np.longdouble)
    if metric in PRODUCTS:
        products = -2 * q.seen @ x.seen.T
        accumulated = products + lost_on_matrix_units(q.out.values, x.out.values[: len(x.form)], low)
    else:
        products = elementwise(q.seen, x.seen, metric)
        worst = (d + 10) * UNIT  # additions, and 10 roundings of a term, including division
        accumulated = products + worst / (1 - worst) * products
    tiles = np.arange(len(x.form)) // POINT_TILE
    bound = np.outer(q.out.norm, x.out.e1[tiles]) + np.outer(q.out.rest, x.out.e2[tiles])
    bound = bound.astype(np.longdouble) * (1 - 2.0**-22)
    score = low + accumulated + UNIT * (np.abs(low) + np.abs(accumulated))
    lower = score - bound + UNIT * (np.abs(score) + bound)
    held = lower + reserve <= scores
    judged = q.usable[:, None] & x.usable
    assert held[judged].all()
    # Points beyond range are below every threshold.
    assert (lower[:, ~x.usable] <= -np.longdouble(np.float32(1e30)) * (1 - 2.0**-22)).all()


@on_device
def test_bounds_are_needed(device: str) -> None:
    """Without them the lower bound fails for many pairs, so the test of the lemma can fail."""
    case = problem(device, gaussian, "euclidean", "float16")
    x, q = case.points, case.queries
    scores, _ = true_scores(case, "euclidean")
    seen = (x.form * x.form).sum(axis=1) - 2 * q.seen @ x.seen.T
    assert (seen > scores).mean() > 0.3


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("maker", [unsigned_bytes, signed_bytes, whole_numbers], ids=lambda maker: maker.__name__)
def test_whole_numbers_are_exact(device: str, maker: Callable[..., Array], metric: str) -> None:
    case = problem(device, maker, metric, "float16")
    for side in (case.points, case.queries):
        np.testing.assert_array_equal(side.seen, side.form)
    if maker is not whole_numbers:
        assert case.scale == 1
        assert (case.points.form == np.rint(case.points.form)).all()


@on_device
@pytest.mark.parametrize(("n", "d"), [(1, 300), (127, 7), (128, 16), (129, 1), (130, 20)])
def test_strided_rows(device: str, n: int, d: int) -> None:
    """Rows with any stride, at any address, of every dtype: the same result as for a copy."""
    rng = np.random.default_rng(n + d)
    dtype = [np.float32, np.float64, np.float16, np.uint8, "bfloat16"][(n + d) % 5]
    wide = tensor_of((rng.standard_normal((2 * n, d + 5)) * 40 + 100).astype(dtype)).to(device)
    strided = wide[::2, 3 : d + 3]
    for metric, precision in (("euclidean", "float16"), ("inner_product", "split"), ("correlation", "float16")):
        results = []
        for rows in (strided, strided.contiguous()):
            form = make_form(rows, metric)
            flags = new_flags(rows.device)
            points, queries = (how(rows, form, precision, flags) for how in (pack_points, pack_queries))
            results.append({name: field for part in (form, points, queries) for name, field in vars(part).items()})
        for name, ours in results[0].items():
            if not isinstance(ours, torch.Tensor):
                assert ours == results[1][name]
                continue
            # Without wide loads, sums may run in another order; angular rows are divided by one.
            rounding = 0.0 if name in ("centre", "scale") else 2.0**-9 if name == "values" else 2.0**-18
            if name == "values" and metric != "correlation":
                rounding = 0.0
            torch.testing.assert_close(ours, results[1][name], rtol=rounding, atol=rounding * 2.0**-10)


@on_device
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0001e150, -1e-40])
@pytest.mark.parametrize(
    ("metric", "precision"), [("euclidean", "float16"), ("correlation", "split"), ("chi2", "float32")]
)
def test_rows_that_no_search_accepts(device: str, metric: str, precision: str, bad: float) -> None:
    """The first such row is recorded, none is packed, and no other row changes, nor does the form."""
    rng = np.random.default_rng(5)
    rows = rng.uniform(1, 2, (140, 21)).astype(np.float32 if abs(bad) < 1 else np.float64)
    worse = rows.copy()
    worse[2, 20] = worse[5, 0] = worse[139, 3] = bad
    causes = [not np.isfinite(bad), np.isfinite(bad) and abs(bad) > 1e150, METRICS[metric].nonnegative and bad < 0]
    hit = np.zeros(140, bool)
    hit[[2, 5, 139]] = any(causes)
    form = make_form(torch.from_numpy(worse).to(device), metric)
    assert np.isfinite(host(form.centre)).all()
    assert 2.0**5 < host(form.scale)[0] < 2.0**10
    for points, n in ((True, 140), (False, 20)):
        flags = new_flags(torch.device(device))
        clean = pack(rows[:n], form, precision, device, flags, points=points)
        assert host(flags).tolist() == [NO_ROW] * 3
        side = pack(worse[:n], form, precision, device, flags, points=points)
        assert host(flags).tolist() == [2 if cause else NO_ROW for cause in causes]
        np.testing.assert_array_equal(side.usable, ~hit[:n])
        same = side.values[:n] == clean.values[:n]
        assert same[~(worse != rows)[:n].any(axis=1)].all()
        assert not side.values[:n][hit[:n]].any()


@on_device
def test_flags_keep_the_first_row(device: str) -> None:
    rows = torch.zeros((300, 3), device=device)
    rows[290, 1] = np.inf
    form = make_form(rows, "euclidean")
    for pack_rows in (pack_points, pack_queries):
        flags = new_flags(rows.device)
        for first, number, noted in ((0, 7, 297), (280, 280, 290), (280, 2**40, 290), (280, 0, 10), (0, 0, 10)):
            pack_rows(rows[first:], form, "float16", flags, first=number)
            assert host(flags).tolist() == [noted, NO_ROW, NO_ROW]


@pytest.mark.parametrize("precision", ["float16", "split", "float32"])
def test_rows_too_long_are_beyond_range(precision: str) -> None:
    """A sum's bound must stay below its magnitude: n <= 1/4."""
    additions = {"float16": 4, "split": 16, "float32": 1}[precision]
    longest = (2**22 - 64) // additions
    for points in (True, False):
        assert largest_element(longest, precision, points=points) > 0
        assert largest_element(longest + 1, precision, points=points) < 0


@on_device
def test_a_limit_that_nothing_is_below(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.exact.cuda.rows.pack.MOST_COLUMNS", 2)
    rows = gaussian(np.random.default_rng(0), 5, 3)
    form = make_form(torch.from_numpy(rows).to(device), "euclidean")
    flags = new_flags(torch.device(device))
    for points in (True, False):
        side = pack(rows, form, "float16", device, flags, points=points)
        assert not side.usable.any()
        assert not side.values.any()
    assert host(flags).tolist() == [NO_ROW] * 3


@on_device
@pytest.mark.parametrize("maker", [gaussian, offset, spread, subnormal, huge, huge_float64, halves, whole_numbers])
def test_form_of_a_sample(device: str, maker: Callable[..., Array], monkeypatch: pytest.MonkeyPatch) -> None:
    """The centre is the mean of every fourth row, on its grid; the largest magnitude comes to 2^6 or just above."""
    monkeypatch.setattr(tuning, "CENTRE_ROWS", 50)
    rows = maker(np.random.default_rng(3), 199, 150)
    sample = rows[::4].astype(np.float64)
    for metric in ("sqeuclidean", "inner_product", "l1"):
        form = make_form(torch.from_numpy(rows).to(device), metric)
        centre, scale = host(form.centre), float(host(form.scale)[0])
        assert (form.metric, form.d, centre.dtype) == (metric, 150, np.float64)
        assert np.frexp(scale)[0] == 0.5
        if metric == "sqeuclidean":
            assert (np.abs(centre - sample.mean(axis=0)) * scale <= 2.0**-5 * (1 + 1e-6)).all()
            grid = centre * scale * 16
            assert (grid == np.rint(grid)).all()
        else:
            assert not centre.any()
        assert 64 - 2.0**-5 <= np.abs((sample - centre) * scale).max() < 128 + 2.0**-5


@on_device
@pytest.mark.parametrize("metric", checks.POWERS)
@pytest.mark.parametrize("largest", [1.0, 0.9, 4.0, 3e-30, 1e-70, 1e-300, 7e60, 1e72, 1e150, 0.0])
def test_scales_of_powers(device: str, metric: str, largest: float) -> None:
    """The power of the scale is a power of two, on both devices; elements are below 1 unless the scale would be too
    small.
    """
    rows = np.linspace(-largest, largest / 2, 12).reshape(4, 3)
    scale = float(host(make_form(torch.from_numpy(rows).to(device), metric).scale)[0])
    degree = METRICS[metric].degree
    assert np.frexp(scale**degree)[0] == 0.5
    assert abs(np.log2(scale) * degree) <= 1000
    on_cpu = prepared.centre_and_scale(rows, metric)[1]
    if degree > 1 and 1e-70 <= largest <= 1e72:
        assert (0.25 if degree % 1 else 0.5) <= largest * scale < 1
        assert on_cpu == scale
    assert np.frexp(on_cpu**degree)[0] == 0.5
    _native.Form(metric, [0.0], on_cpu)


@on_device
def test_forms_without_a_sample(device: str) -> None:
    rows = torch.arange(12, dtype=torch.uint8, device=device).reshape(4, 3)
    for metric, numbers, scale in (
        ("cosine", rows.float(), 64.0),
        ("correlation", rows, 64.0),
        ("inner_product", rows, 1.0),
        ("inner_product", rows.to(torch.int8), 1.0),
    ):
        form = make_form(numbers, metric)
        assert host(form.centre).tolist() == [0, 0, 0]
        assert host(form.scale).tolist() == [scale]
    assert host(make_form(rows, "euclidean").centre).tolist() == [5, 6, 7]  # means 4.5, 5.5, 6.5: halves round up
    equal = make_form(torch.full((5, 2), 0.1, device=device), "euclidean")
    assert host(equal.scale).tolist() == [1]


@on_device
@pytest.mark.parametrize(("metric", "precision"), [*(level for level in PRECISIONS if level[1] != "float32"), INT8])
def test_minima_of_the_screen_are_lower_bounds(device: str, metric: str, precision: str) -> None:
    """With the additions of this device, no score lies below the minimum of its group."""
    for maker in (offset, spread, constant_rows) if precision != "int8" else BYTES:
        case = problem(device, maker, metric, precision)
        scores, _ = true_scores(case, metric)
        n = len(case.points.form)
        points, queries = (
            {name: torch.from_numpy(array).to(device) for name, array in vars(side.out).items()}
            for side in (case.points, case.queries)
        )
        minima = torch.empty((M, group_count(n, 8)), dtype=torch.float32, device=device)
        screen(PackedQueries(**queries), PackedPoints(**points, n=n), slice(0, M), 8, minima)
        column = np.arange(n)
        group = column // POINT_TILE * (POINT_TILE // 8) + column % POINT_TILE // 32 * 4 + column % 8 // 2
        lower = host(minima)[:, group]
        assert (lower[case.queries.usable] <= scores[case.queries.usable]).all()


@on_device
@pytest.mark.parametrize(
    ("d", "one_sign"), [(16, True), (32, True), (16, False), (100, False), (128, False), (960, False)]
)
def test_products_lose_no_more_than_is_assumed(device: str, d: int, one_sign: bool) -> None:
    """The worst cases for the model of matrix units: terms just below the last bit of a sum, and sums that cancel.

    With one sign, one product is 1, and all others are lost if sums have 19 to 23 bits: the largest possible loss of a
    short row.
    """
    rng = np.random.default_rng(d)
    n = 64
    x = rng.uniform(1, 2, (n, d)) * 2.0**-6
    x[:, 0] = 2.0**6
    x[::2, -1] = -(2.0**6)
    x[n // 2 :] = x[n // 2 :, rng.permutation(d)]
    if one_sign:
        x[:, 0] = 1.0
        x[:, 1:] = (2.0 ** -(7 + np.arange(n) % 6) * (1 - 2.0**-9) * np.where(np.arange(n) < n // 2, 1, -1))[:, None]
    values = np.zeros((POINT_TILE, packed_width(d, "float16")), np.float16)
    low = np.full(POINT_TILE, np.inf, np.float32)
    column = np.arange(n) * 2  # one point of a group: each group has two adjacent columns of every eight
    values[column, :d], low[column] = x, 0
    zeros = np.zeros(1, np.float32)
    q = np.full((1, values.shape[1]), 2.0**5, np.float16)
    q[:, 1:] = rng.uniform(1, 2, values.shape[1] - 1) * 2.0**-6
    if one_sign:  # products of x's elements and 2^-12: just below 2^-19 to 2^-24
        q[:, 0], q[:, 1:] = 1.0, 2.0**-12

    def put(array: Array) -> Any:
        return torch.from_numpy(array).to(device)

    points = PackedPoints(put(values), put(low), put(zeros), put(zeros), POINT_TILE)
    queries = PackedQueries(put(q), put(zeros), put(zeros), shift=None)
    found = []
    for i in range(0, n, 16):  # 16 groups of 8: four points of each, one at a time
        only = np.full(POINT_TILE, np.inf, np.float32)
        chosen = column[i : i + 16]
        only[chosen] = 0
        minima = torch.empty((1, group_count(POINT_TILE, 8)), dtype=torch.float32, device=device)
        screen(queries, dataclasses.replace(points, low=put(only)), slice(0, 1), 8, minima)
        found.append((chosen, host(minima)[0]))
    products = values.astype(np.longdouble) * q.astype(np.longdouble)
    truth, magnitude = products.sum(axis=1), np.abs(products).sum(axis=1)
    worst = 4 * d * UNIT
    for chosen, minima in found:
        group = chosen // 32 * 4 + chosen % 8 // 2
        smallest = np.full(len(minima), np.inf, np.longdouble)
        np.minimum.at(smallest, group, truth[chosen])
        room = np.zeros(len(minima), np.longdouble)
        np.maximum.at(room, group, magnitude[chosen])
        judged = np.isfinite(smallest)
        assert (np.abs(minima[judged] - smallest[judged]) <= worst / (1 - worst) * room[judged]).all()


@pytest.mark.parametrize("precision", ["int8", "float16", "split", "float32"])
def test_bytes_are_those_of_the_tensors(precision: str) -> None:
    def nbytes(rows: Any) -> int:
        parts = (part for part in vars(rows).values() if isinstance(part, torch.Tensor))
        return sum(part.numel() * part.element_size() for part in parts)

    for n, d in ((1, 1), (128, 40), (300, 130)):
        assert nbytes(room_for(n, d, precision, "cpu")) == packed_bytes(n, d, precision)
        queries = torch.empty((n, d), device="meta")
        form = shifted_form("l1" if precision == "float32" else "euclidean", d, 0, "meta")
        with rehearsing(Card((9, 0), 132)):
            packed = pack_queries(queries, form, precision, new_flags("meta"))
        assert nbytes(packed) == n * query_bytes(d, (precision,))
