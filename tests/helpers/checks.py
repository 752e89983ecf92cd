"""Assertions about neighbour lists, and data that are hard to search, for all tests.

``test_checks.py`` shows that each assertion fails for wrong lists.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import tonari
from tonari.core.results.neighbors import Neighbors
from tonari.metrics import METRICS, get_metric

Array = npt.NDArray[Any]

ELEMENTWISE = tuple(name for name, metric in METRICS.items() if metric.form == "elementwise")

POWERS = tuple(name for name in ELEMENTWISE if METRICS[name].degree not in (0, 1))

# Dtypes of rows; importing ml_dtypes registers "bfloat16" with NumPy.
DTYPES = ("float32", "float16", np.dtype(ml_dtypes.bfloat16).name, "float64", "uint8", "int8")


def assert_valid_neighbors(
    found: Neighbors,
    *,
    m: int,
    n: int,
    k: int,
    dtype: npt.DTypeLike = np.float32,
    metric: str = "euclidean",
    self_ids: Array | None = None,
    complete: bool = True,
) -> None:
    """Check the form of (m, k) lists of neighbours among n points, but not whether the neighbours are right.

    The conditions: shapes, dtypes and layout; ids in range, and none twice in a row; no point as its own neighbour;
    order by (value, index); no NaN, no negative distance and no -0.0; missing entries, allowed only with
    ``complete=False``, are last, as -1 at inf.
    """
    assert isinstance(found, Neighbors), f"a {type(found).__name__} is not Neighbors"
    distances, indices = found
    descending = get_metric(metric).descending
    assert distances.shape == indices.shape == (m, k), f"{distances.shape} and {indices.shape} are not both {(m, k)}"
    assert distances.dtype == np.dtype(dtype), f"distances are {distances.dtype}, not {np.dtype(dtype)}"
    id_dtype = np.dtype(np.int32 if n < 2**31 else np.int64)
    assert indices.dtype == id_dtype, f"indices are {indices.dtype}, not {id_dtype}"
    for array in found:
        assert array.flags.c_contiguous, "a result is not contiguous"
        assert array.flags.writeable, "a result cannot be written to"

    assert not np.isnan(distances).any(), f"NaN distance {_first(np.isnan(distances))}"
    _assert_none((indices < -1) | (indices >= n), "index out of range")
    missing = indices == -1
    if complete:
        _assert_none(missing, "missing neighbour")
    _assert_none(missing & (distances != (-np.inf if descending else np.inf)), "missing neighbour has a distance")
    _assert_none(missing[:, :-1] & ~missing[:, 1:], "missing neighbour before a present one")
    _assert_none((distances == 0) & np.signbit(distances), "negative zero")
    if not descending:
        _assert_none(distances < 0, "negative distance")
    if self_ids is not None:
        _assert_none(indices == np.asarray(self_ids)[:, None], "a point is its own neighbour")

    ids = np.sort(indices, axis=1)
    _assert_none((ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] >= 0), "id twice in a row (column of the sorted ids)")
    left, right = distances[:, :-1], distances[:, 1:]
    _assert_none(left < right if descending else left > right, "unsorted distances")
    tied = (left == right) & ~missing[:, 1:]
    _assert_none(tied & (indices[:, :-1] > indices[:, 1:]), "tie not in order of index")


def assert_same_neighbors(found: Neighbors, truth: Neighbors, *, metric: str = "euclidean") -> None:
    """Check that an exact answer equals the reference to the last bit: dtypes, shape, distances and indices.

    Both must be in order (see :func:`assert_valid_neighbors`), so that a wrong reference cannot hide a wrong answer.
    """
    for answer in (truth, found):
        assert isinstance(answer, Neighbors), f"a {type(answer).__name__} is not Neighbors"
        # The reference decides the dtype of ids; an id that it lacks is reported below, with its place.
        n = max(int(answer.indices.max(initial=0)) + 1, 2**31 if truth.indices.dtype == np.int64 else 1)
        m, k = truth.indices.shape
        assert_valid_neighbors(answer, m=m, n=n, k=k, dtype=truth.distances.dtype, metric=metric, complete=False)
    bits = np.dtype(f"u{truth.distances.itemsize}")
    different = (found.distances.view(bits) != truth.distances.view(bits)) | (found.indices != truth.indices)
    if different.any():
        row = int(different.any(axis=1).argmax())
        raise AssertionError(
            f"{int(different.any(axis=1).sum())} of {m} rows differ; the first is row {row}, "
            f"in columns {np.flatnonzero(different[row]).tolist()}:\n"
            f"found {found.indices[row].tolist()} at {found.distances[row].tolist()}\n"
            f"truth {truth.indices[row].tolist()} at {truth.distances[row].tolist()}"
        )


def sizes(x: Array, metric: str) -> Array:
    """Compute a bound `size` for each element, by which the metric's term satisfies f(q, x) <= size(q) + size(x)."""
    record = METRICS[metric]
    if record.degree == 0:
        return (x != 0).astype(x.dtype)
    if metric in POWERS:
        return np.asarray(np.abs(x) ** record.degree * x.dtype.type(2) ** max(0, record.degree - 1))
    return np.abs(x)


def differences(x: Array, y: Array, metric: str) -> Array:
    """Compute the bound `difference` for pairs of elements: the term itself if it obeys the triangle inequality."""
    record = METRICS[metric]
    assert record.value is not None
    return np.abs(x - y) if record.stretch > 1 else record.value(x[None], y[None])


def _assert_none(bad: Array, what: str) -> None:
    assert not bad.any(), f"{what} {_first(bad)}"


def _first(bad: Array) -> str:
    row, column = np.argwhere(bad)[0]
    return f"at row {row}, column {column} ({int(bad.sum())} in all)"


def gaussian(n: int, d: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Make N(0, 1) data, the only easy kind in this module: every library finds the right neighbours."""
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def offset(n: int, d: int, seed: int = 0, *, by: float = 1e4, dtype: npt.DTypeLike = np.float32) -> Array:
    """Make N(0, 1) data moved away from the origin: |x|^2 + |y|^2 - 2<x, y> cancels to noise in float32."""
    return (gaussian(n, d, seed, np.float64) + by).astype(dtype)


def offset_float64(n: int, d: int, seed: int = 0) -> Array:
    """Make float64 data 1e8 from the origin: the same cancellation in double precision."""
    return offset(n, d, seed, by=1e8, dtype=np.float64)


def gps_metres(n: int, d: int = 3, seed: int = 0) -> Array:
    """Make positions within 1 km on the ground in earth-centred metres (columns beyond 3 are 0), float32."""
    rng = np.random.default_rng(seed)
    east, north = rng.uniform(-500, 500, (2, n))
    latitude, longitude, radius = np.radians(35.68), np.radians(139.77), 6.371e6
    latitudes = latitude + north / radius
    longitudes = longitude + east / (radius * np.cos(latitude))
    metres = np.zeros((n, max(d, 3)), np.float32)
    metres[:, 0] = radius * np.cos(latitudes) * np.cos(longitudes)
    metres[:, 1] = radius * np.cos(latitudes) * np.sin(longitudes)
    metres[:, 2] = radius * np.sin(latitudes)
    return np.ascontiguousarray(metres[:, :d])


def tight_far_clusters(n: int, d: int, seed: int = 0) -> Array:
    """Make 20 clusters of width 1 with centres 1e4 apart: subtracting one mean does not avoid cancellation."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, d)) * 1e4
    return (centres[rng.integers(20, size=n)] + rng.standard_normal((n, d))).astype(np.float32)


def duplicates(n: int, d: int, seed: int = 0) -> Array:
    """Make about n / 8 different points, each repeated in scattered places: every row has many ties."""
    rng = np.random.default_rng(seed)
    return gaussian(max(1, n // 8), d, seed)[rng.integers(max(1, n // 8), size=n)]


def all_equal(n: int, d: int, seed: int = 0) -> Array:
    """Make n equal points, which only their indices order."""
    return np.repeat(gaussian(1, d, seed), n, axis=0)


def one_hot(n: int, d: int, seed: int = 0) -> Array:
    """Make unit vectors along random axes, with only two different distances, 0 and sqrt(2)."""
    rows = np.zeros((n, d), np.float32)
    rows[np.arange(n), np.random.default_rng(seed).integers(d, size=n)] = 1
    return rows


def subnormal(n: int, d: int, seed: int = 0) -> Array:
    """Make float32 data below the smallest normal number: flushing to zero makes all points equal."""
    smallest = np.float64(np.finfo(np.float32).smallest_subnormal)
    return (np.random.default_rng(seed).integers(-(2**20), 2**20, (n, d)) * smallest).astype(np.float32)


def huge(n: int, d: int, seed: int = 0) -> Array:
    """Make data of magnitude 1e30: squares overflow float32."""
    return (gaussian(n, d, seed, np.float64) * 1e30).astype(np.float32)


def widest(n: int, d: int, seed: int = 0) -> Array:
    """Make values that bfloat16 represents, from the smallest (subnormal) to the largest, of both signs, and zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1, 1], (n, d)) * rng.integers(128, 256, (n, d)) * 2.0 ** rng.integers(-140, 120, (n, d))
    rows[::7, ::2], rows[1::7, ::2] = 0, -255 * 2.0**120
    return rows.astype("bfloat16").astype(np.float32)


def angles(n: int, d: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Make rows at many angles to a few rows: copies, multiples, near copies, about 60 degrees, opposite, random."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    base = rows[rng.integers(0, min(n, 5), n)]
    side = rows - base * ((rows * base).sum(1) / (base * base).sum(1))[:, None]
    side *= np.sqrt((base * base).sum(1) / np.maximum((side * side).sum(1), 1e-300))[:, None]
    half = 0.5 * base + np.sqrt(0.75) * side * (1 + rng.integers(-4, 5, (n, 1)) * np.finfo(dtype).eps)
    kinds = [base, 3 * base, -base, base * (1 + 1e-7 * rows), base * (1 + 1e-4 * rows), base + 0.5 * rows, half, rows]
    return np.stack(kinds)[np.arange(n) % len(kinds), np.arange(n)].astype(dtype)


def zero_rows(n: int, d: int, seed: int = 0) -> Array:
    """Make N(0, 1) data with every third row zero; every other zero row is -0.0."""
    rows = gaussian(n, d, seed)
    rows[::3] = 0.0
    rows[::6] = -0.0
    return rows


def offset_1e2(n: int, d: int, seed: int = 0) -> Array:
    """Make float32 data 1e2 from the origin."""
    return offset(n, d, seed, by=1e2)


def offset_1e4(n: int, d: int, seed: int = 0) -> Array:
    """Make float32 data 1e4 from the origin."""
    return offset(n, d, seed, by=1e4)


# name -> maker(n, d, seed) for pytest.mark.parametrize; all values are finite, some are negative (see `accepted`).
HOSTILE: dict[str, Callable[[int, int, int], Array]] = {
    maker.__name__: maker
    for maker in (
        gaussian,
        offset_1e2,
        offset_1e4,
        offset_float64,
        gps_metres,
        tight_far_clusters,
        duplicates,
        all_equal,
        one_hot,
        subnormal,
        huge,
        zero_rows,
    )
}


def accepted(rows: Array, metric: str) -> Array:
    """Return rows that a metric accepts: absolute values if it refuses negative ones."""
    return np.abs(rows) if METRICS[metric].nonnegative else rows


def in_range(rows: Array, metric: str) -> Array:
    """Return rows that public functions accept: float64 if float32 distances would underflow or overflow."""
    record, largest = METRICS[metric], np.abs(rows.astype(np.float64)).max(initial=0)
    grows = record.products or (record.power > 1 and not record.angular)
    return rows.astype(np.float64) if grows and largest and not 1e-9 < largest < 1e9 else rows


def check_interrupt(code: str, *, wait: float = 0.2) -> dict[str, str]:
    """Press Ctrl-C in a process that runs `code`: it stops within a second and no thread stays.

    The code must print "started" when its long work begins, and "stopped TIME" and "threads COUNT" after the
    interruption. All lines of two words that it prints are returned, as a dict.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as child:
        try:
            assert child.stdout is not None
            began = child.stdout.readline()
            assert began == "started\n", began + "".join(child.communicate(timeout=60))
            time.sleep(wait)
            sent = time.time()
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    lines = dict(line.split() for line in out.splitlines() if " " in line)
    assert "stopped" in lines, out + err
    assert float(lines["stopped"]) - sent < 1.0
    assert lines["threads"] == "1"
    assert child.returncode == 0, err
    return lines


def look_for_copies_always(monkeypatch: Any) -> None:
    """Let searches on the CPU of any size look for copies among the rows and skip them, even if this takes longer."""
    from tonari.exact import tuning
    from tonari.exact.cpu.rows import copies

    monkeypatch.setattr(copies, "_ROW_BYTES", 0)
    for name in ("COPIES_PAIRS", "LEAST_COPIES", "COPIES_ROW_SECONDS"):
        monkeypatch.setattr(tuning, name, 0)
