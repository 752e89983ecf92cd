"""Searches by distances of the caller, compared with the plain definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tonari.user_metrics.cpu.nearest import nearest
from tonari.user_metrics.cpu.within import count, within
from tonari.user_metrics.plan import GivenPlan
from tonari.user_metrics.reference import brute, brute_within
from tonari.user_metrics.values import MatrixValues

N = 40


def ties(rng: Any) -> Any:
    return rng.integers(0, 3, (N, N)).astype(float)


def infinite(rng: Any) -> Any:
    return np.where(rng.random((N, N)) < 0.7, np.inf, rng.integers(0, 2, (N, N)))


def signs(rng: Any) -> Any:
    return rng.choice([-1.0, -0.0, 0.0, 1e-320, -1e300, 1e300], (N, N))


def plain(rng: Any) -> Any:
    return rng.standard_normal((N, N)) ** 2


TABLES = [ties, infinite, signs, plain]


def table_of(maker: Any, *, symmetric: bool) -> Any:
    made = maker(np.random.default_rng(0))
    return np.minimum(made, made.T) if symmetric else made


def same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("maker", TABLES)
@pytest.mark.parametrize("rows", [1, 7, N])
@pytest.mark.parametrize("columns", [3, N])
@pytest.mark.parametrize("k", [1, 5, N - 1])
def test_the_nearest(maker: Any, rows: int, columns: int, k: int) -> None:
    plan = GivenPlan(rows, columns, 0, 0)
    for own in (False, True):
        for symmetric in (False, True) if own else (False,):
            table = table_of(maker, symmetric=symmetric)
            given = np.where(np.eye(N, dtype=bool), np.nan, table) if own else table
            found, selves = nearest(MatrixValues(given), k, plan, own=own, symmetric=symmetric)
            same(found, brute(table, k, own=own))
            np.testing.assert_array_equal(selves, given.diagonal() if own else [])


@pytest.mark.parametrize("maker", TABLES)
@pytest.mark.parametrize("rows", [1, 7, N])
@pytest.mark.parametrize("limit", [0.0, 0.5, 1.0, np.inf])
def test_those_within(maker: Any, rows: int, limit: float) -> None:
    plan, limits = GivenPlan(rows, 9, 0, 0), np.full(N, limit)
    for own in (False, True):
        for symmetric in (False, True) if own else (False,):
            table = table_of(maker, symmetric=symmetric)
            found = within(MatrixValues(table), limits, plan, own=own, symmetric=symmetric)
            same(found, brute_within(table, limits, own=own))
    table = table_of(maker, symmetric=False)
    assert count(MatrixValues(table), limits, plan).tolist() == (table <= limit).sum(axis=1).tolist()


def test_a_symmetric_graph_reads_half_of_the_distances() -> None:
    table, read = table_of(plain, symmetric=True), []

    class Counting(MatrixValues):
        def block(self, rows: slice, columns: slice) -> Any:
            made = super().block(rows, columns)
            read.append(made.size)
            return made

    plan = GivenPlan(4, N, 0, 0)
    for search in (
        lambda counted: nearest(counted, 3, plan, own=True, symmetric=True),
        lambda counted: within(counted, np.ones(N), plan, own=True, symmetric=True),
    ):
        read.clear()
        search(Counting(table))
        assert sum(read) == sum(4 * (N - begin) for begin in range(0, N, 4))
