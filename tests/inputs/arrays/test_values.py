"""Values of many rows are checked by several threads, part by part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tonari.core import _native
from tonari.inputs import as_rows, tuning
from tonari.inputs.arrays import values
from tonari.inputs.arrays.values import check_finite, check_nonnegative

N, D = 40, 3
BYTES = 4 * 4 * D  # elements of a part: four rows of float32


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Use parts of four rows; record the parts that are checked, each with its thread."""
    monkeypatch.setattr(tuning, "CHECKED_BYTES", BYTES)
    seen: list[tuple[int, int, int]] = []

    def noted(find: Callable[..., int]) -> Callable[[Any, int, int], int]:
        def look(rows: Any, begin: int, end: int) -> int:
            seen.append((begin, end, threading.get_ident()))
            return find(rows, begin, end)

        return look

    for name in ("first_nonfinite_row", "first_negative_row"):
        monkeypatch.setattr(_native, name, noted(getattr(_native, name)))
    return seen


def rows_of(dtype: Any = np.float32) -> npt.NDArray[Any]:
    return np.ones((N, D), dtype)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_row_is_looked_at_once(parts: list[Any], threads: int) -> None:
    check_finite(rows_of(), "points", threads)
    assert sorted(part[:2] for part in parts) == [(first, first + 4) for first in range(0, N, 4)]
    assert len({thread for *_, thread in parts}) <= threads
    assert (threading.get_ident() in {thread for *_, thread in parts}) is (threads == 1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("bad", [[0], [N - 1], [3, 4], [39, 7, 21]])
def test_the_first_row_is_named(parts: list[Any], threads: int, bad: list[int]) -> None:
    for value, check in ((np.nan, check_finite), (-1.0, check_nonnegative)):
        rows = rows_of()
        rows[bad, 1] = value
        with pytest.raises(ValueError, match=f"^points: row {min(bad)} has"):
            check(rows, "points", threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_values_that_are_too_large_are_found_in_any_part(parts: list[Any], threads: int) -> None:
    for row in (0, 17, N - 1):
        rows = rows_of(np.float64)
        rows[row, 2] = -1.1e150
        with pytest.raises(ValueError, match=f"^points: row {row} has a value whose square overflows"):
            check_finite(rows, "points", threads)


def test_few_rows_are_looked_at_at_once(parts: list[Any]) -> None:
    check_finite(rows_of()[:4], "points", 2)
    assert parts == [(0, 4, threading.get_ident())]


def test_a_row_longer_than_a_part(parts: list[Any]) -> None:
    rows = np.ones((3, BYTES), np.float32)
    rows[2, -1] = np.inf
    with pytest.raises(ValueError, match=r"^points: row 2 "):
        as_rows(rows, "points", threads=2)
    assert sorted(part[:2] for part in parts) == [(0, 1), (1, 2), (2, 3)]


def test_searches_pass_their_threads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each public function, for points and for queries."""
    asked: list[int | None] = []
    check = values.check_finite

    def noted(rows: Any, name: str, threads: int | None = None) -> None:
        asked.append(threads)
        check(rows, name, threads)

    monkeypatch.setattr("tonari.inputs.arrays.rows.check_finite", noted)
    points, queries = rows_of(), rows_of()[:2]
    here = {"threads": 1, "device": "cpu"}
    index, bare = tonari.Index(points, **here), tonari.Index(points, device="cpu")
    weighted = tonari.Index(points, weights=np.ones(D), device="cpu")
    calls: list[Callable[[], Any]] = [
        lambda: tonari.search(queries, points, 2, **here),
        lambda: tonari.search(queries, points, 2, where=np.arange(N) < 9, **here),
        lambda: tonari.knn_graph(points, 2, **here),
        lambda: tonari.knn_graph(points, 2, where=np.arange(N) < 9, **here),
        lambda: tonari.radius_search(queries, points, 1.0, **here),
        lambda: tonari.mutual_reachability_tree(points, 3, **here),
        lambda: tonari.kth_distance(points, 2, **here),
        lambda: tonari.radius_count(queries, points, 1.0, **here),
        lambda: tonari.Index(points, **here),
        lambda: index.search(queries, 2),
        lambda: index.search(queries, 2, where=np.arange(N) < 9),
        lambda: index.radius_search(queries, 1.0),
        lambda: index.add(points),
        lambda: index.search(queries, 2),  # in two segments now
        lambda: bare.search(queries, 2, threads=1),
        lambda: bare.search(queries, 2, where=np.arange(N) < 9, threads=1),
        lambda: bare.radius_search(queries, 1.0, threads=1),
        lambda: bare.radius_count(queries, 1.0, threads=1),
        lambda: weighted.search(queries, 2, threads=1),
    ]
    for call in calls:
        asked.clear()
        call()
        assert asked, call
        assert set(asked) == {1}, call


def test_ctrl_c_takes_effect_between_parts(parts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    find = _native.first_nonfinite_row

    def stopped(rows: Any, begin: int, end: int) -> int:
        if begin == 8:
            raise KeyboardInterrupt
        return find(rows, begin, end)

    monkeypatch.setattr(_native, "first_nonfinite_row", stopped)
    with pytest.raises(KeyboardInterrupt):
        check_finite(rows_of(), "points", 1)
    assert len(parts) == 2
