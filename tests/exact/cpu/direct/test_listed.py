"""The nearest of the points listed for each query: the bits of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.filter_checks import Mask, assert_equal, nearest_allowed
from tests.helpers.kernels import WITHOUT_AMX
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.listed import Listed
from tonari.exact.cpu.direct.listed import count_listed, search_listed
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

BATCH = 2048  # values computed at a time (native/exact/direct.cpp)


def lists_of(allowed: Mask, own: Any = None) -> Listed:
    """Return all lists, one after the other with gaps, and the start and end of each query's list."""
    parts, begins = [], []
    at = 0
    for row in allowed:
        part = np.append(np.flatnonzero(row), 0)  # entries after a list do not belong to it
        parts.append(part)
        begins.append(at)
        at += len(part)
    starts = np.array(begins)
    return Listed(np.concatenate(parts), starts, starts + allowed.sum(axis=1), own)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_bits_of_the_reference(metric: str, maker: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.core.tuning.LISTED_SECONDS", 1e-6)  # many blocks
    points = checks.HOSTILE[maker](90, 19, 0)
    points = np.abs(points) if METRICS[metric].nonnegative else points
    rng = np.random.default_rng(0)
    allowed = rng.random((12, 90)) < rng.choice([0, 0.02, 0.3, 1], (12, 1))
    own = np.where(np.arange(12) % 3, np.arange(12), -1)
    without = allowed & (np.arange(90) != own[:, None])
    for k in (1, 7, 90, 91):
        found = search_listed(points[:12], points, k, metric, lists_of(allowed, own), threads=threads)
        assert_equal(found, nearest_allowed(points[:12], points, k, without, metric))


@pytest.mark.parametrize("length", [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 7])
@pytest.mark.parametrize("k", [1, 32, 33, 65, BATCH])
def test_lists_of_every_length(length: int, k: int) -> None:
    points = -np.arange(5_000, dtype=np.float32)[:, None]
    allowed = np.zeros((2, 5_000), bool)
    allowed[0, 3 : 3 + length] = allowed[1, 700:705] = True
    queries = np.array([[9], [-4_000]], np.float32)
    found = search_listed(queries, points, k, "euclidean", lists_of(allowed))
    assert_equal(found, nearest_allowed(queries, points, k, allowed))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "float16"])
@pytest.mark.parametrize("isa", WITHOUT_AMX)
def test_queries_that_share_their_list(
    metric: str, d: int, dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If consecutive queries share a list of points with few columns, the points are copied; the bits stay the same."""
    monkeypatch.setenv("TONARI_ISA", isa)
    points = np.abs(checks.duplicates(70, d) * 9).astype(dtype)
    groups = np.repeat([0, 1, 2, 3, 4], [30, 1, 9, 20, 10])
    allowed = groups[:, None] == groups
    begins = np.searchsorted(groups, groups)
    ends = begins + np.bincount(groups)[groups]
    own = np.where(np.arange(70) % 2, np.arange(70), -1)
    truth = nearest_allowed(points, points, 11, allowed & (np.arange(70) != own[:, None]), metric)
    found = search_listed(held(points), held(points), 11, metric, Listed(np.arange(70), begins, ends, own))
    assert_equal(found, truth)


def test_lists_that_begin_alike_and_end_elsewhere() -> None:
    points = checks.gaussian(60, 3)
    ends = np.repeat([30, 10, 60], [20, 20, 20])
    truth = nearest_allowed(points, points, 5, np.arange(60) < ends[:, None])
    begins = np.zeros(60, np.int64)
    assert_equal(search_listed(points, points, 5, "euclidean", Listed(np.arange(60), begins, ends), threads=1), truth)


def test_progress_counts_queries() -> None:
    points, seen = checks.gaussian(20, 3), []
    begins = np.zeros(20, np.int64)
    given: dict[str, Any] = {"progress": lambda *pair: seen.append(pair)}
    search_listed(points, points, 2, "l1", Listed(np.arange(20), begins, begins + 20), **given)
    assert seen[-1] == (20, 20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k=0: expected at least 1"),
        ({"listed": np.array([0, 5])}, "listed has 5 at place 1, expected 0 to 4"),
        ({"listed": np.array([-1, 0])}, "listed has -1 at place 0"),
        ({"listed": np.frombuffer(bytes(17), "i8", 2, 1)}, "listed: elements are not aligned"),
        ({"begins": np.array([0, 3]), "ends": np.array([1, 2])}, "listed"),
        ({"ends": np.array([1, 3])}, "listed"),
        ({"begins": np.array([-1, 0])}, "listed"),
        ({"begins": np.array([0])}, "begins"),
        ({"ends": np.array([1])}, "ends"),
        ({"self_ids": np.array([0])}, "self_ids"),
        ({"points": np.zeros((5, 4), "f4")}, "points"),
        ({"distances": np.zeros((2, 2), "f4")}, "distances"),
        ({"distances": np.zeros((2, 3), "f8")}, "distances"),
    ],
    ids=str,
)
def test_what_the_binding_refuses(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"metric": "euclidean", "isa": "generic", "queries": np.zeros((2, 3), "f4"), "k": 3}
    given |= {"points": np.zeros((5, 3), "f4"), "self_ids": None, "listed": np.array([0, 4])}
    given |= {"begins": np.array([0, 1]), "ends": np.array([2, 2])}
    given |= Neighbors(np.empty((2, 3), "f4"), np.empty((2, 3), "i4"))._asdict()
    _native.search_listed(**given)
    with pytest.raises((TypeError, ValueError), match=message):
        _native.search_listed(**(given | changes))


def counts_by_hand(queries: Any, points: Any, metric: str, limits: Any, allowed: Mask) -> list[int]:
    everything = brute(queries, points, len(points), metric)
    inside = everything.distances >= limits[:, None] if METRICS[metric].descending else None
    inside = everything.distances <= limits[:, None] if inside is None else inside
    return (inside & np.take_along_axis(allowed, everything.indices, axis=1)).sum(axis=1).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("d", [3, 19])
def test_counts_of_listed_points(metric: str, maker: str, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits equal to values, limits where points tie, limits above all values; lists of no, some and all points."""
    monkeypatch.setattr("tonari.core.tuning.LISTED_SECONDS", 1e-6)  # many blocks
    points = checks.HOSTILE[maker](90, d, 0)
    points = np.abs(points) if METRICS[metric].nonnegative else points
    rng = np.random.default_rng(0)
    allowed = rng.random((12, 90)) < rng.choice([0, 0.02, 0.3, 1], (12, 1))
    queries = points[:12].copy()
    values = brute(queries, points, 90, metric).distances
    for place in (0, 7, 89):
        limits = np.ascontiguousarray(values[:, place])
        counts = count_listed(queries, points, limits, metric, lists_of(allowed), threads=2)
        assert counts.tolist() == counts_by_hand(queries, points, metric, limits, allowed)


@pytest.mark.parametrize("length", [0, 1, 7, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 7])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "float16"])
@pytest.mark.parametrize("isa", WITHOUT_AMX)
def test_counts_of_lists_of_every_length(length: int, dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several queries share a list, and some lists begin within another query's list."""
    monkeypatch.setenv("TONARI_ISA", isa)
    points = np.random.default_rng(0).integers(0, 9, (5_000, 2)).astype(dtype)
    queries = points[:20].copy()
    numbers = np.arange(5_000)
    begins = np.where(np.arange(20) < 12, 3, np.arange(20))
    listed = Listed(numbers, begins, np.minimum(begins + length, 5_000))
    allowed = (numbers >= begins[:, None]) & (numbers < listed.ends[:, None])
    value = np.float64 if dtype == "float64" else np.float32
    limits = np.linspace(0, 9, 20).astype(value)
    counts = count_listed(held(queries), held(points), limits, "euclidean", listed)
    assert counts.tolist() == counts_by_hand(queries, points, "euclidean", limits, allowed)
