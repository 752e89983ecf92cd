"""Searches among rows with missing values on the CPU, against the reference, bit for bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tests.helpers.missing import DATA, with_gaps
from tonari.core import _native
from tonari.core.results.radius_neighbors import Within
from tonari.core.rows.listed import Listed
from tonari.missing import tuning
from tonari.missing.cpu.listed import count_listed, search_listed
from tonari.missing.cpu.method import MissingOnCpu
from tonari.missing.cpu.search import PreparedMissing
from tonari.missing.cpu.values import pair_values
from tonari.missing.memory import GROUP
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
        for name, value in {"QUERY_BLOCK": 13, "SCANNED": 1, "PAIRS": 5, "PAIRS_HELD": 200}.items():
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


@pytest.mark.parametrize("isa", [isa for isa in _native.supported_isas() if isa != "amx"])
def test_every_instruction_set(isa: str) -> None:
    rng = np.random.default_rng(8)
    for d, dtype in ((1, np.float16), (17, np.float32), (130, np.float64)):
        rows = with_gaps(rng.standard_normal((150, d)).astype(dtype), 0.3)
        plan = dataclasses.replace(METHOD.plan(problem(rows, 150, 9, self_join=True)), isa=isa)
        same(METHOD.search_once(rows, rows, plan, self_join=True), brute(rows, rows, 9, own=True))


def test_few_pairs_are_refined() -> None:
    """Nearly all pairs with exact values are nearer than the k nearest of earlier groups."""
    rows = with_gaps(np.random.default_rng(9).standard_normal((2000, 40)).astype(np.float32) + 100, 0.2)
    points = METHOD.prepare(rows, METHOD.plan(problem(rows, 1, 1))).packed
    block = _native.MissingBlock("generic", points, rows[:50], 5, None, None, False, False)
    block.scan(0, -(-len(rows) // GROUP))
    table, nearer = pairwise(rows[:50], rows), 50 * GROUP
    for begin in range(GROUP, len(rows), GROUP):
        farthest = np.partition(table[:, :begin], 4, axis=1)[:, 4:5]
        nearer += np.count_nonzero(table[:, begin : begin + GROUP] <= farthest)
    assert nearer <= block.refined() <= nearer + 10


def test_points_are_prepared_once() -> None:
    rows = DATA["few"]
    plan = METHOD.plan(problem(rows, 9, 3))
    prepared = METHOD.prepare(rows, plan)
    assert isinstance(prepared, PreparedMissing)
    assert METHOD.held_bytes(prepared, plan) == prepared.packed.bytes()
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
    np.testing.assert_array_equal(pair_values(rows, rows, of, ids), pairwise(rows, rows).ravel())
