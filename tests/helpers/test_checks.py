"""The assertions of ``checks.py`` fail when they should, and the hostile data have the named properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors, assert_valid_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute

M, N, K = 5, 12, 4


@pytest.fixture
def truth() -> Neighbors:
    points = checks.gaussian(N, 3)
    points[9] = points[4]
    return brute(points[:M], points, K, self_ids=np.arange(M))


def _changed(truth: Neighbors, **cells: Any) -> Neighbors:
    """Return a copy with changed cells: distances={(row, column): value}, indices={...}."""
    answer = Neighbors(truth.distances.copy(), truth.indices.copy())
    for name, changes in cells.items():
        for place, value in changes.items():
            getattr(answer, name)[place] = value
    return answer


def _swapped(truth: Neighbors) -> Neighbors:
    """Exchange the ids of the first two columns of row 2, but not their distances, so that distances still ascend."""
    return _changed(truth, indices={(2, 0): truth.indices[2, 1], (2, 1): truth.indices[2, 0]})


def _unsorted(truth: Neighbors) -> Neighbors:
    """Reverse row 3: ids and their distances."""
    answer = _changed(truth)
    for array in answer:
        array[3] = array[3, ::-1].copy()
    return answer


def _repeated(truth: Neighbors) -> Neighbors:
    return _changed(truth, indices={(1, 3): truth.indices[1, 1]})


def _one_ulp(truth: Neighbors) -> Neighbors:
    last = truth.distances[0, K - 1]
    return _changed(truth, distances={(0, K - 1): np.nextafter(last, np.float32(np.inf))})


def _other_id(truth: Neighbors) -> Neighbors:
    stranger = np.setdiff1d(np.arange(N), [*truth.indices[4], 4])[-1]
    return _changed(truth, indices={(4, 2): stranger})


def _valid(answer: Neighbors, **options: Any) -> None:
    assert_valid_neighbors(answer, **({"m": M, "n": N, "k": K} | options))


def test_right_answers_pass(truth: Neighbors) -> None:
    assert_same_neighbors(_changed(truth), truth)
    _valid(truth, self_ids=np.arange(M))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_swapped, "1 of 5 rows differ; the first is row 2, in columns \\[0, 1\\]"),
        (_unsorted, "unsorted distances at row 3"),
        (_repeated, "id twice in a row"),
        (_one_ulp, "1 of 5 rows differ; the first is row 0, in columns \\[3\\]"),
        (_other_id, "the first is row 4, in columns \\[2\\]"),
        (lambda t: Neighbors(t.distances.astype(np.float64), t.indices), "distances are float64, not float32"),
        (lambda t: Neighbors(t.distances, t.indices.astype(np.int64)), "indices are int64, not int32"),
        (lambda t: Neighbors(t.distances, t.indices.astype(np.uint32)), "indices are uint32, not int32"),
        (lambda t: Neighbors(t.distances[:, :3], t.indices[:, :3]), "are not both"),
        (lambda t: Neighbors(t.distances[1:], t.indices[1:]), "are not both"),
        (lambda t: (t.distances, t.indices), "tuple is not Neighbors"),
        (lambda t: _changed(t, indices={(0, 0): -1}, distances={(0, 0): np.inf}), "missing neighbour before"),
    ],
)
def test_same_neighbors_fails(truth: Neighbors, spoil: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_same_neighbors(spoil(truth), truth)


def test_same_neighbors_fails_on_a_wrong_truth(truth: Neighbors) -> None:
    wrong = _unsorted(truth)
    with pytest.raises(AssertionError, match="unsorted"):
        assert_same_neighbors(wrong, wrong)


def test_same_neighbors_tells_zeros_apart() -> None:
    zero = Neighbors(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int32))
    minus = Neighbors(-zero.distances, zero.indices)
    with pytest.raises(AssertionError, match="negative zero"):
        assert_same_neighbors(minus, zero)


def test_same_neighbors_fails_on_a_missing_entry(truth: Neighbors) -> None:
    short = _changed(truth, indices={(2, K - 1): -1}, distances={(2, K - 1): np.inf})
    with pytest.raises(AssertionError, match="the first is row 2"):
        assert_same_neighbors(short, truth)


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (_unsorted, {}, "unsorted distances at row 3"),
        (_repeated, {}, "id twice in a row"),
        (lambda t: t, {"m": M + 1}, "are not both"),
        (lambda t: t, {"k": K - 1}, "are not both"),
        (lambda t: t, {"dtype": np.float64}, "not float64"),
        (lambda t: t, {"n": 2**31}, "not int64"),
        (lambda t: t, {"self_ids": lambda t: t.indices[:, 0]}, "its own neighbour at row 0, column 0"),
        (lambda t: t, {"metric": "inner_product"}, "unsorted"),
        (lambda t: _changed(t, indices={(0, 1): N}), {}, "index out of range at row 0, column 1"),
        (lambda t: _changed(t, indices={(0, 1): -2}), {}, "index out of range"),
        (lambda t: _changed(t, distances={(0, 1): np.nan}), {}, "NaN distance"),
        (lambda t: _changed(t, distances={(0, 0): -1.0}), {}, "negative distance"),
        (lambda t: _changed(t, distances={(0, 0): -0.0}), {}, "negative zero"),
        (lambda t: _changed(t, indices={(0, 3): -1}, distances={(0, 3): np.inf}), {}, "missing neighbour at row 0"),
        (lambda t: _changed(t, indices={(0, 3): -1}), {"complete": False}, "missing neighbour has a distance"),
        (lambda t: Neighbors(np.asfortranarray(t.distances), t.indices), {}, "not contiguous"),
    ],
)
def test_valid_neighbors_fails(truth: Neighbors, spoil: Any, options: dict[str, Any], message: str) -> None:
    if "self_ids" in options:
        options = {"self_ids": options["self_ids"](truth)}
    with pytest.raises(AssertionError, match=message):
        _valid(spoil(truth), **options)


def test_valid_neighbors_fails_on_ties_out_of_order() -> None:
    tied = Neighbors(np.ones((1, 2), np.float32), np.array([[3, 1]], np.int32))
    with pytest.raises(AssertionError, match="tie not in order of index"):
        assert_valid_neighbors(tied, m=1, n=4, k=2)


def test_valid_neighbors_fails_on_a_read_only_result(truth: Neighbors) -> None:
    truth.indices.flags.writeable = False
    with pytest.raises(AssertionError, match="cannot be written to"):
        _valid(truth)


def test_valid_neighbors_accepts_missing_entries_at_the_end() -> None:
    short = Neighbors(np.array([[1.0, np.inf, np.inf]], np.float32), np.array([[0, -1, -1]], np.int32))
    assert_valid_neighbors(short, m=1, n=2, k=3, complete=False)
    real = Neighbors(np.array([[np.inf, np.inf]], np.float32), np.array([[0, 1]], np.int32))
    assert_valid_neighbors(real, m=1, n=2, k=2)


@pytest.mark.parametrize("name", checks.HOSTILE)
def test_hostile_data_is_finite_and_seeded(name: str) -> None:
    maker = checks.HOSTILE[name]
    data = maker(50, 6, 3)
    assert data.shape == (50, 6)
    assert data.flags.c_contiguous
    assert data.dtype == (np.float64 if name == "offset_float64" else np.float32)
    assert np.isfinite(data).all()
    assert data.tobytes() == maker(50, 6, 3).tobytes()
    assert data.tobytes() != maker(50, 6, 4).tobytes()


def test_hostile_data_hurts() -> None:
    wide = checks.gps_metres(400)
    assert np.linalg.norm(wide, axis=1).min() > 5e6
    assert np.ptp(wide, axis=0).max() < 1500
    assert np.unique(wide, axis=0).shape[0] > 390
    assert len(np.unique(checks.duplicates(80, 4), axis=0)) <= 10
    assert len(np.unique(checks.all_equal(9, 4), axis=0)) == 1
    tiny = checks.subnormal(40, 4)
    assert 0 < np.abs(tiny).max() < np.finfo(np.float32).smallest_normal
    with np.errstate(over="ignore"):
        assert np.isinf(np.square(checks.huge(40, 4))).any()
    zeros = checks.zero_rows(12, 4)
    assert zeros.any(axis=1).tolist() == [False, True, True] * 4
    assert np.signbit(zeros[::3]).all(axis=1).tolist() == [True, False] * 2
    clusters = checks.tight_far_clusters(200, 8)
    near, far = brute(clusters, clusters, 200).distances[:, [2, -1]].T
    assert np.median(near) < 10
    assert np.median(far) > 1e4


STOPS = """
import threading, time
print("started", flush=True)
try:
    time.sleep(30)
except KeyboardInterrupt:
    {late}
    print("stopped", time.time(), flush=True)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
def test_a_process_that_stops_passes() -> None:
    assert set(checks.check_interrupt(STOPS.format(late="pass"))) == {"stopped", "threads"}


@pytest.mark.process
@pytest.mark.parametrize("late", ["time.sleep(1.5)", "threading.Thread(target=time.sleep, args=(1,)).start()", "raise"])
def test_a_process_that_goes_on_fails(late: str) -> None:
    with pytest.raises(AssertionError):
        checks.check_interrupt(STOPS.format(late=late))
