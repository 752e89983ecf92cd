"""Searches among rows with missing values on the CPU, against the reference, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import plans
from tests.helpers.missing import DATA
from tonari.core.results.radius_neighbors import Within
from tonari.core.rows.listed import Listed
from tonari.missing import tuning
from tonari.missing.cpu.listed import count_listed, search_listed
from tonari.missing.cpu.method import MissingOnCpu
from tonari.missing.cpu.search import PreparedMissing
from tonari.missing.cpu.values import pair_values
from tonari.missing.reference import brute, pairwise

METHOD = MissingOnCpu()


def same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def problem(rows: Any, m: int, k: int, **given: Any) -> Any:
    n, d = rows.shape
    return plans.problem(n, m, d, k, dtype=rows.dtype.name, metric="nan_euclidean", threads=1, **given)


@pytest.fixture(params=[False, True], ids=["whole", "parts"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        for name, value in {"SAMPLE": 7, "QUERY_BLOCK": 13, "PAIRS": 5, "PAIRS_HELD": 200}.items():
            monkeypatch.setattr(tuning, name, value)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("name", DATA)
def test_the_nearest(name: str) -> None:
    rows = DATA[name]
    for k in (1, 6, len(rows) // 2, len(rows) - 1):
        for own, queries in ((True, rows), (False, rows[:30]), (False, (rows[:9] * 3).astype(rows.dtype))):
            plan = METHOD.plan(problem(rows, len(queries), k, self_join=own))
            found = METHOD.search_once(queries, rows, plan, self_join=own)
            same(found, brute(queries, rows, k, own=own))


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("name", DATA)
def test_those_within(name: str) -> None:
    rows = DATA[name]
    table = pairwise(rows, rows)
    values = np.sort(table[~np.isnan(table)])
    plan = METHOD.plan(problem(rows, len(rows), 1))
    prepared = METHOD.prepare(rows, plan)
    for limit in (
        values[0],
        values[len(values) // 20],
        np.nextafter(values[len(values) // 3], values.dtype.type(0)),
        np.inf,
    ):
        limits = np.full(len(rows), limit, table.dtype)
        inside = table <= limit
        found = METHOD.find_within(Within(rows, limits), prepared, plan)
        assert np.diff(found.indptr).tolist() == inside.sum(axis=1).tolist()
        assert METHOD.count_within(Within(rows, limits), prepared, plan).tolist() == inside.sum(axis=1).tolist()
        for i in range(0, len(rows), 7):
            near = sorted(np.flatnonzero(inside[i]), key=lambda j, i=i: (table[i, j], j))
            assert found.indices[found.indptr[i] : found.indptr[i + 1]].tolist() == near
            assert found.distances[found.indptr[i] : found.indptr[i + 1]].tolist() == table[i, near].tolist()
        later = METHOD.find_within(Within(rows, limits, range(len(rows)), later=True), prepared, plan)
        assert np.diff(later.indptr).tolist() == np.triu(inside, 1).sum(axis=1).tolist()


def test_estimates_are_only_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are far too small, or 0, lead to the same lists."""
    rows = DATA["few"]
    from tonari.missing.cpu import search

    usual = search._estimates
    monkeypatch.setattr(search, "_estimates", lambda *given: np.column_stack([usual(*given) * 1e-3, usual(*given)]))
    with tonari.recording() as record:
        found = METHOD.search_once(rows, rows, METHOD.plan(problem(rows, len(rows), 4)))
    same(found, brute(rows, rows, 4))
    assert "points within a larger distance" in str(record)


def test_points_are_prepared_once() -> None:
    rows = DATA["few"]
    plan = METHOD.plan(problem(rows, 9, 3))
    prepared = METHOD.prepare(rows, plan)
    assert isinstance(prepared, PreparedMissing)
    assert METHOD.held_bytes(prepared, plan) > prepared.rows.nbytes
    later = METHOD.plan(problem(rows, 9, 3), prepared_by=plan)
    same(METHOD.search(rows[:9], prepared, later), brute(rows[:9], rows, 3))


@pytest.mark.usefixtures("parts")
def test_listed_points() -> None:
    rows = DATA["blocks"]
    table, rng = pairwise(rows, rows), np.random.default_rng(0)
    lists = [np.sort(rng.choice(len(rows), rng.integers(0, 50), replace=False)) for _ in rows]
    ends = np.cumsum([len(each) for each in lists])
    listed = Listed(np.concatenate(lists), np.append(0, ends[:-1]), ends, np.arange(len(rows)))
    found = search_listed(rows, rows, 4, "nan_euclidean", listed)
    counts = count_listed(rows, rows, np.full(len(rows), 3, np.float32), "nan_euclidean", listed)
    for i, each in enumerate(lists):
        allowed = [j for j in each if j != i and not np.isnan(table[i, j])]
        near = sorted(allowed, key=lambda j, i=i: (table[i, j], j))[:4]
        assert found.indices[i].tolist() == near + [-1] * (4 - len(near))
        assert found.distances[i].tolist() == [*table[i, near], *[np.inf] * (4 - len(near))]
        assert counts[i] == sum(table[i, j] <= 3 for j in allowed)


@pytest.mark.parametrize("d", [1, 5, 16, 17, 40])
def test_values_are_those_of_the_definition(d: int) -> None:
    rows = np.random.default_rng(0).standard_normal((40, d))
    rows[np.random.default_rng(1).random(rows.shape) < 0.4] = np.nan
    of, ids = (each.ravel() for each in np.indices((40, 40)))
    assert pair_values(rows, rows, of, ids).tobytes() == pairwise(rows, rows).ravel().tobytes()
