"""The choice among ways to apply rules in radius searches: each way gives the same answer."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.filter_checks import assert_equal, cut
from tonari.filters import looking, tuning
from tonari.filters.scope import Scope
from tonari.filters.searches import counting, within
from tonari.methods.places.points import DecidedPoints

N, M = 2_000, 200
RNG = np.random.default_rng(0)
POINTS, QUERIES = (RNG.standard_normal((rows, 3), dtype=np.float32) for rows in (N, M))
OF_POINTS, OF_QUERIES = RNG.integers(0, 3, N), RNG.integers(0, 4, M)
MASK = RNG.random((M, N)) < 0.6
EXCLUDE = RNG.integers(0, N, (M, 150))
GROUPS: dict[str, Any] = {"point_groups": OF_POINTS, "query_groups": OF_QUERIES}
RULES: dict[str, tuple[dict[str, Any], Any]] = {
    "same": (GROUPS, OF_QUERIES[:, None] == OF_POINTS),
    "other": (GROUPS | {"groups": "other"}, OF_QUERIES[:, None] != OF_POINTS),
    "mask": ({"where": MASK}, MASK),
    "exclude": ({"exclude": EXCLUDE}, ~(EXCLUDE[:, :, None] == np.arange(N)).any(axis=1)),
    "all": (GROUPS | {"where": MASK}, (OF_QUERIES[:, None] == OF_POINTS) & MASK),
}


def check(rule: str, radius: float) -> None:
    given, allowed = RULES[rule]
    truth = cut(tonari.radius_search(QUERIES, POINTS, radius), allowed)
    index = tonari.Index(POINTS)
    assert_equal(tonari.radius_search(QUERIES, POINTS, radius, **given), truth)
    assert_equal(index.radius_search(QUERIES, radius, **given), truth)
    for counts in (
        tonari.radius_count(QUERIES, POINTS, radius, **given),
        index.radius_count(QUERIES, radius, **given),
    ):
        assert counts.tolist() == np.diff(truth.indptr).tolist()


@pytest.fixture
def unfiltered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make searches that apply no rules, as on a device."""
    monkeypatch.setattr(Scope, "allowed_by", lambda *_: None)
    monkeypatch.setattr(Scope, "count_listed", lambda *_: None)


@pytest.mark.usefixtures("unfiltered")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("block", [None, 70])
def test_short_lists_are_cut_in_blocks(rule: str, block: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a few queries have few points within the radius, all lists are made, for as many queries at once as memory
    holds.
    """
    seen: list[int] = []
    for module, name in ((counting, "_by_lists"), (within, "_by_dropping")):
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda scope, *given, plain=plain: seen.append(1) or plain(scope, *given))
    monkeypatch.setattr(tuning, "SOON", -1.0)
    if block is not None:
        monkeypatch.setattr("tonari.filters.tuning.ROOM_BYTES", block * N * looking.PAIR)
    check(rule, 0.3)
    assert len(seen) == (0 if block is not None and block < tuning.UNCOUNTED_QUERIES else 4)
    seen.clear()
    check(rule, 1e9)
    assert not seen


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("radius", [0.3, 1.5, 1e9])
def test_rules_are_applied_while_points_are_found(rule: str, radius: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU no unfiltered list is made, however large the radius; a mask of another layout is not copied."""
    monkeypatch.setattr(tuning, "SOON", -1.0)
    with monkeypatch.context() as patch:
        for module, name in ((counting, "_by_lists"), (within, "_by_dropping"), (within, "_by_rows")):
            patch.setattr(module, name, None)
        if rule in ("mask", "all"):
            patch.setattr(counting, "_by_rows", None)
        check(rule, radius)
    if rule == "mask":
        mask = np.asfortranarray(MASK)
        counts = tonari.radius_count(QUERIES, POINTS, radius, where=mask)
        assert counts.tolist() == tonari.radius_count(QUERIES, POINTS, radius, where=MASK).tolist()


def test_rules_in_a_search_need_no_count_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search on the CPU looks up excluded points as it counts, so it counts once, whatever is excluded."""
    rows = list[int]()
    count = DecidedPoints.count

    def counted(those: DecidedPoints, some: Any, *given: Any) -> Any:
        rows.append(len(some))
        return count(those, some, *given)

    monkeypatch.setattr(DecidedPoints, "count", counted)
    for radius in (0.3, 1.5):
        truth = np.diff(cut(tonari.radius_search(QUERIES, POINTS, radius), RULES["exclude"][1]).indptr)
        assert tonari.radius_count(QUERIES, POINTS, radius, exclude=EXCLUDE).tolist() == truth.tolist()
    assert rows == [M, M]


def test_few_listed_points_are_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within, "_by_dropping", None)
    monkeypatch.setattr(counting, "_by_lists", None)
    monkeypatch.setattr(tuning, "SOON", 1e9)
    assert len(tonari.radius_count(QUERIES, POINTS, 0.3, **GROUPS)) == M
    assert len(tonari.radius_search(QUERIES, POINTS, 0.3, **GROUPS).indptr) == M + 1
    monkeypatch.setattr(tuning, "LISTED_POINT", 1e9)
    for rules in ({"exclude": EXCLUDE[:, :1]}, GROUPS | {"groups": "other"}):
        assert len(tonari.radius_count(QUERIES, POINTS, 0.3, **rules)) == M


@pytest.mark.usefixtures("unfiltered")
def test_lists_of_everything_are_not_counted_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a search finds almost all points within the radius, only a few queries are counted first."""
    rows = list[int]()
    count = DecidedPoints.count

    def counted(those: DecidedPoints, some: Any, *given: Any) -> Any:
        rows.append(len(some))
        return count(those, some, *given)

    monkeypatch.setattr(DecidedPoints, "count", counted)
    monkeypatch.setattr("tonari.filters.tuning.ROOM_BYTES", (M - 1) * N * looking.PAIR)
    for rules in ({"exclude": EXCLUDE[:, :1]}, GROUPS | {"groups": "other"}):
        assert len(tonari.radius_search(QUERIES, POINTS, 0.3, **rules).indptr) == M + 1
    assert max(rows) < M


@pytest.mark.parametrize("rule", ["same", "other"])
def test_few_large_groups_are_counted_one_by_one(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups have most points: each is counted among its own points, or among those of the other group."""
    monkeypatch.setattr(tuning, "COUNTED_LARGE", 1)
    sizes = list[int]()
    plain = counting._among
    monkeypatch.setattr(counting, "_among", lambda *given: sizes.append(len(given[-1])) or plain(*given))
    of_points, of_queries = np.arange(N) % 5 // 2, np.arange(M) % 2  # groups 0 and 1 have two fifths of the points each
    given = {"point_groups": of_points, "query_groups": of_queries, "groups": rule}
    allowed = (of_queries[:, None] == of_points) == (rule == "same")
    truth = np.diff(cut(tonari.radius_search(QUERIES, POINTS, 0.3), allowed).indptr)
    monkeypatch.setattr(tuning, "APART_GROUPS", 2)
    assert tonari.radius_count(QUERIES, POINTS, 0.3, **given).tolist() == truth.tolist()
    assert sizes == [2 * N // 5 if rule == "same" else 3 * N // 5] * 2
    sizes.clear()
    monkeypatch.setattr(tuning, "APART_GROUPS", 1)
    assert tonari.radius_count(QUERIES, POINTS, 0.3, **given).tolist() == truth.tolist()
    assert not sizes


@pytest.mark.usefixtures("unfiltered")
@pytest.mark.parametrize("near", [0, 3, 4, 5, 40])
def test_forbidden_points_within_the_radius_are_all_counted(near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list of forbidden points has few points within the radius, or more than are tested at first."""
    monkeypatch.setattr(tuning, "LISTED_POINT", 1e9)
    everything = tonari.radius_search(QUERIES, POINTS, 1.5)
    assert np.diff(everything.indptr).min() < 40
    rng = np.random.default_rng(0)
    exclude = rng.integers(0, N, (M, 60))
    for own, first, last in zip(exclude, everything.indptr[:-1], everything.indptr[1:], strict=True):
        nearest = everything.indices[first:last][:near]
        own[: len(nearest)] = nearest
    exclude[1::2] = exclude[1::2, :1]  # queries have different numbers of excluded points
    allowed = np.ones((M, N), bool)
    np.put_along_axis(allowed, exclude, False, axis=1)
    truth = np.diff(cut(everything, allowed).indptr)
    for given in (exclude, exclude[:, ::-1].tolist()):
        assert tonari.radius_count(QUERIES, POINTS, 1.5, exclude=given).tolist() == truth.tolist()


def ratio(rules: dict[str, Any], queries: Any, points: Any, radius: float) -> float:
    """Return the ratio of the CPU times of a count with rules and a count without rules."""
    seconds = []
    for _ in range(7):
        begun = time.thread_time()
        tonari.radius_count(queries, points, radius, threads=1, **rules)
        between = time.thread_time()
        tonari.radius_count(queries, points, radius, threads=1)
        seconds.append((between - begun, time.thread_time() - between))
    rule, plain = np.min(seconds, axis=0)
    return float(rule / plain)


@pytest.mark.parametrize("kind", ["same", "other"])
@pytest.mark.parametrize("m", [20, 2_000])
def test_groups_take_about_as_long_as_no_rules(kind: str, m: int) -> None:
    """Few queries with large groups, and many queries with many groups, take 1.3 to 1.7 times as long."""
    rng = np.random.default_rng(0)
    points, queries = (rng.standard_normal((rows, 3), dtype=np.float32) for rows in (20_000, m))
    of_points, of_queries = rng.integers(0, 50, 20_000), rng.integers(0, 50, m)
    rules = {"point_groups": of_points, "query_groups": of_queries, "groups": kind}
    assert ratio(rules, queries, points, 0.15) < 2.1
