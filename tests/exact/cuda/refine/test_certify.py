"""The certificate on a GPU: the threshold of native/exact/bounds.cpp bit for bit, and Lemma 2 by brute force.

Without a CUDA device the kernel runs in Triton's interpreter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.certify import certify
from tonari.exact.cuda.rows.form import DeviceForm, make_form
from tonari.exact.cuda.rows.pack import new_flags, pack_queries
from tonari.metrics import METRICS, definitions, reference

if HAS_TORCH:
    import torch

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [needs_torch, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

Array = npt.NDArray[Any]
FLOAT32_MAX = float(np.finfo(np.float32).max)


def verdicts(device: str, form: DeviceForm, shift: Array, kth: Array, following: Array, *, double: bool) -> Array:
    """Return the kernel's verdict on each row."""
    rows = [torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in (shift, kth, following)]
    proved = torch.empty(len(kth), dtype=torch.bool, device=device)
    certify(form, *rows, proved, double=double)
    return np.asarray(proved.cpu().numpy())


def form_of(device: str, metric: str, d: int, scale: float) -> DeviceForm:
    centre = torch.zeros(d, dtype=torch.float64, device=device)
    return DeviceForm(metric, d, centre, torch.full((1,), scale, dtype=torch.float64, device=device))


def threshold(metric: str, d: int, scale: float, value: float, shift: float, *, double: bool) -> float:
    """Compute `Bounds::threshold_from_value` without its last rounding to float32; in angular forms, scale 64 stands
    for 1.
    """
    evaluation = (d + 16) * 2.0**-51
    underflow = (d + 16) * METRICS[metric].underflow
    smallest = underflow + (2.0**-1070 if double else 2.0**-148)
    slack = abs(value) * ((0.0 if double else 2.0**-22) + evaluation) + smallest
    slack += evaluation if metric in ("cosine", "correlation") else 0.0
    worst = value - slack if metric == "inner_product" else value + slack
    if not double and not abs(worst) < FLOAT32_MAX:
        return np.inf
    if metric == "sqeuclidean":
        score, size = worst * scale * scale - shift, worst * scale * scale + shift
    elif metric == "euclidean":
        square = (worst * scale) * (worst * scale) + underflow * scale * scale
        score, size = square - shift, square + shift
    elif metric == "inner_product":
        score = 2 * shift - 2 * worst * scale * scale
        size = 2 * abs(shift) + 2 * abs(worst) * scale * scale
    elif metric in ("cosine", "correlation"):
        if worst >= 2:
            return np.inf
        score, size = 2 * (worst - 1) * scale * scale, 2 * scale * scale
    else:
        score = size = worst * scale ** METRICS[metric].degree
    found = score + size * (2.0**-50 + evaluation)
    return np.inf if found >= FLOAT32_MAX else max(found, -float(np.float32(1e30)))


@on_device
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_thresholds_are_those_of_the_cpu(device: str, metric: str, double: bool) -> None:
    """Verdicts at the two float32 numbers next to the threshold, which only this threshold gives."""
    angular = metric in ("cosine", "correlation")
    squared = metric in ("sqeuclidean", "inner_product")
    rng = np.random.default_rng(len(metric) + double)
    for d, exponent in ((1, 0), (100, -4), (3000, 40), (16, -400 if double else -50)):
        if METRICS[metric].degree > 1:
            exponent = max(exponent, -240 if double else -30)  # so that powers are numbers of that dtype
        scale = 64.0 if angular else 2.0**exponent
        power = METRICS[metric].degree * exponent if METRICS[metric].elementwise else exponent  # of scores to values
        n = 60
        values = rng.uniform(0, 2.2, n) * (1.0 if angular else 2.0 ** ((6 - power) * (1 + squared)))
        values[:3] = 0.0, 1e-300, 1.0
        values *= rng.choice([-1.0, 1.0], n) if metric == "inner_product" else 1.0
        if not double:
            values = values.astype(np.float32).astype(np.float64)
        shifts = rng.uniform(0, 2.0**12, n) if METRICS[metric].form == "gemm" and not angular else np.zeros(n)
        limits = np.array(
            [threshold(metric, d, scale, v, s, double=double) for v, s in zip(values, shifts, strict=True)]
        )
        at = limits.astype(np.float32)
        above = np.where(at > limits, at, np.nextafter(at, np.float32(np.inf)))
        below = np.where(at > limits, np.nextafter(at, np.float32(-np.inf)), at)
        form = form_of(device, metric, d, scale)
        kth = values if double else values.astype(np.float32)
        proved = np.isfinite(limits)
        assert proved.mean() > 0.5
        np.testing.assert_array_equal(verdicts(device, form, shifts, kth, above, double=double), proved)
        assert not verdicts(device, form, shifts, kth, below, double=double).any()


@on_device
@pytest.mark.parametrize("metric", METRICS)
def test_nothing_is_proved_by_nothing(device: str, metric: str) -> None:
    """NaN, infinities, queries beyond range, and values that may overflow, for any next minimum."""
    form = form_of(device, metric, 8, 64.0)
    infinite = np.full(7, np.inf, np.float32)
    worst = -FLOAT32_MAX if METRICS[metric].descending else FLOAT32_MAX
    kth = np.array([np.nan, np.inf, -np.inf, 1, 1, worst, 1], np.float64)
    shift = np.array([0, 0, 0, np.inf, np.nan, 0, 0])
    expected = [False] * 6 + [True]
    assert verdicts(device, form, shift, kth.astype(np.float32), infinite, double=False).tolist() == expected
    assert verdicts(device, form, shift, kth, infinite, double=True).tolist() == expected
    huge = worst / FLOAT32_MAX * np.full(7, 1e300)
    assert not verdicts(device, form, np.zeros(7), huge, infinite, double=True).any()
    no_bound = np.full(7, np.nan, np.float32)
    assert not verdicts(device, form, np.zeros(7), np.ones(7), no_bound, double=True).any()


@on_device
def test_points_beyond_range_are_never_left_out(device: str) -> None:
    """Their lower bound, -1e30 minus the allowance of the screen, is below every threshold."""
    form = form_of(device, "inner_product", 4, 2.0**40)
    kth = np.array([1.0, 1e30])
    following = np.array([-1e30, np.nextafter(np.float32(-1e30), np.float32(0))], np.float32)
    for value in kth:  # the best possible products would have even lower thresholds
        found = verdicts(device, form, np.zeros(2), np.full(2, value), following, double=True)
        assert not found[0]
    assert verdicts(device, form, np.zeros(1), np.array([1e30]), following[1:], double=True).tolist() == [True]


@on_device
@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_columns_of_wider_tables(device: str, dtype: str) -> None:
    """kth and the next minimum are columns of wider tables; there are more rows than a program has."""
    rows = tuning.CERTIFIED_ROWS + 3
    form = form_of(device, "l1", 2, 1.0)
    rng = np.random.default_rng(1)
    distances = torch.from_numpy(rng.uniform(0, 1, (rows, 5)).astype(np.float32)).to(device)
    minima = torch.from_numpy(rng.uniform(0, 1, (rows, 3)).astype(np.float32)).to(device)
    shift = torch.zeros(rows, dtype=torch.float64, device=device)
    proved = torch.full((rows + 1,), 1, dtype=getattr(torch, dtype), device=device)
    certify(form, shift, distances[:, 4], minima[:, 1], proved[:rows], double=False)
    expected = (minima[:, 1].double() > distances[:, 4].double() * (1 + 1e-6)).cpu()
    assert proved[:rows].cpu().bool().tolist() == expected.tolist()
    assert proved[rows:].bool().all()


def exact_scores(q: Array, x: Array, form: DeviceForm) -> tuple[Array, Array]:
    """Compute the scores of all pairs in long double, and the reserve between them and the screen's lower bounds (Lemma
    1).
    """
    metric = form.metric
    scale = np.longdouble(form.scale.cpu().numpy()[0])
    centre = form.centre.cpu().numpy().astype(np.longdouble)
    floor = np.longdouble(2) ** -101
    if METRICS[metric].form == "elementwise":
        value = METRICS[metric].value
        assert value is not None
        scores = value(q.T[:, :, None].astype(np.longdouble), x.T[:, None, :].astype(np.longdouble))
        return scores * scale ** METRICS[metric].degree, np.full_like(scores, floor)
    rows = []
    for side in (q, x):
        form_row = side.astype(np.longdouble)
        if metric in ("cosine", "correlation"):
            if metric == "correlation":
                form_row = definitions.less_mean(np.ascontiguousarray(side.T, np.float64)).T.astype(np.longdouble)
            norm = np.sqrt((form_row * form_row).sum(axis=1, keepdims=True))
            form_row = form_row / np.where(norm == 0, 1, norm)
        rows.append((form_row - centre) * scale)
    left, right = rows
    term = (right * right).sum(axis=1) if metric in ("euclidean", "sqeuclidean") else np.zeros(len(x), np.longdouble)
    sizes = 2 * np.outer(*(np.sqrt((side * side).sum(axis=1)) for side in rows))
    return term - 2 * left @ right.T, 2.0**-21 * (term + sizes) + floor


def nearly_equal(n: int, d: int, seed: int = 0) -> Array:
    """Distances that differ in the last bits of float64: most returned values are the same."""
    rng = np.random.default_rng(seed)
    return np.sign(rng.standard_normal((n, d))) * (1 + rng.integers(0, 64, (n, d)) * 2.0**-50)


def equal_when_rounded(n: int, d: int, seed: int = 0) -> Array:
    """Make points whose distances from the zero row are the same in float32 by every metric."""
    rows = np.zeros((n, d), np.float32)
    rows[: n - 3, 0] = 1
    rows[: n - 3, 1] = np.arange(n - 3) * 2.0**-30
    return rows


def far_apart(n: int, d: int, seed: int = 0) -> Array:
    """Make rows with magnitudes from 1e-140 to 1e140, one magnitude for each row."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-140, 140, (n, 1))


MAKERS: dict[str, Callable[[int, int, int], Array]] = checks.HOSTILE | {
    maker.__name__: maker for maker in (nearly_equal, equal_when_rounded, far_apart)
}


@on_device
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("metric", METRICS)
def test_no_member_of_an_answer_is_left_out(device: str, metric: str, maker: str) -> None:
    """Lemma 2: every point that is returned as no worse than the k-th has a lower bound that proves nothing.

    For every pair (query, point) the point is taken as the next minimum, with the highest bound that Lemma 1 allows.
    Its true score is compared with T as well, since float32 hides the allowance in T.
    """
    n, m, d = 40, 6, 16
    points = checks.accepted(MAKERS[maker](n + m, d, 3), metric)
    queries, points = points[n:], points[:n]
    queries[0] = points[0]
    tensor = torch.from_numpy(points).to(device)
    form = make_form(tensor, metric)
    precision = "float32" if METRICS[metric].form == "elementwise" else "split"
    packed = pack_queries(torch.from_numpy(queries).to(device), form, precision, new_flags(tensor.device))
    shift = packed.shift.cpu().numpy()
    double = points.dtype == np.float64
    values = reference.returned(reference.pairwise(queries, points, metric), points.dtype)
    order = np.sort(values, axis=1)
    scale = float(form.scale.cpu().numpy()[0])
    scores, reserve = exact_scores(queries, points, form)
    with np.errstate(over="ignore"):
        bounds = (scores - reserve).astype(np.float32)
        bounds = np.where(bounds > scores - reserve, np.nextafter(bounds, np.float32(-np.inf)), bounds)
    if METRICS[metric].descending:
        order = order[:, ::-1]
    better = np.greater_equal if METRICS[metric].descending else np.less_equal
    proved = np.zeros((3, m, n), bool)
    for i, k in enumerate((1, 7, n)):
        kth = order[:, k - 1 : k]
        pairs = [np.broadcast_to(column, (m, n)).ravel() for column in (shift[:, None], kth)]
        proved[i] = verdicts(device, form, *pairs, bounds.ravel(), double=double).reshape(m, n)
        member = better(values, kth)
        assert not (proved[i] & member).any()
        # The reserve is only for the inner product; for other metrics the true score itself is at most T, except for
        # underflow.
        limits = [
            threshold(metric, d, scale, *pair, double=double)
            for pair in zip(kth[:, 0].tolist(), shift.tolist(), strict=True)
        ]
        truth = scores - (reserve if METRICS[metric].descending else np.longdouble(2) ** -1074)
        assert not (member & (truth > np.array(limits)[:, None]) & np.isfinite(shift)[:, None]).any()
    if maker == "gaussian":  # a point that is clearly worse proves the row
        assert proved[0][np.abs(values - order[:, :1]) > 0.1].all()


def test_long_double_is_longer() -> None:
    """The reference of these tests needs a long double with more bits than float64."""
    if sys.platform == "linux":
        assert np.finfo(np.longdouble).nmant >= 63
