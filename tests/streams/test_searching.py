"""A stream of queries: answers in order, each computed while the previous one is used, and the end of a stream."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_TORCH
from tests.helpers.streaming import UNEVEN, K, M, N, Watched, cut, index_of, joined, points, queries, soon
from tonari.core import tuning
from tonari.core.results.neighbors import Neighbors


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    before = set(threading.enumerate())  # other libraries keep thread pools, such as the compiler of torch.compile
    yield
    gc.collect()
    assert soon(lambda: not _begun(before)), threading.enumerate()


def _begun(before: set[threading.Thread]) -> list[str]:
    """Return threads that started since then, except tqdm's monitor and threads that Dask keeps."""
    begun = set(threading.enumerate()) - before
    return [each.name for each in begun if type(each).__name__ != "TMonitor" and not each.name.startswith("Dask-")]


@pytest.mark.parametrize("method", ["exact", "kdtree", "auto"])
@pytest.mark.parametrize("chunk_rows", [1, 7, M - 1, M, M + 1, None])
def test_an_array_has_the_bits_of_one_search(method: str, chunk_rows: int | None) -> None:
    index = index_of(method=method)
    found = list(index.search_chunks(queries(), K, chunk_rows=chunk_rows))
    assert_same_neighbors(joined(found), index.search(queries(), K))
    if chunk_rows is not None:
        assert [len(part.indices) for part in found[:-1]] == [chunk_rows] * (len(found) - 1)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1", "chi2"])
def test_uneven_and_empty_chunks(metric: str) -> None:
    index = index_of(metric=metric)
    found = list(index.search_chunks(cut(queries(), *UNEVEN), K))
    assert [len(part.indices) for part in found] == [*UNEVEN, M - sum(UNEVEN)]
    for part in found:
        checks.assert_valid_neighbors(part, m=len(part.indices), n=N, k=K, metric=metric)
    assert_same_neighbors(joined(found), index.search(queries(), K), metric=metric)


@pytest.mark.parametrize("dtype", checks.DTYPES)
@pytest.mark.parametrize("held", ["float32", "bfloat16", "float64", "uint8"])
def test_each_chunk_has_the_dtype_of_its_own_search(dtype: str, held: str) -> None:
    index = index_of(points(held))
    rows = queries(dtype=dtype)
    parts = [rows[:0], rows[:20], rows[20:].astype("float64")]
    for part, found in zip(parts, index.search_chunks(iter(parts), K), strict=True):
        wide = "float64" in (str(part.dtype), held)
        assert found.distances.dtype == (np.float64 if wide else np.float32)
        assert found.distances.shape == found.indices.shape == (len(part), K)
        if len(part):
            assert_same_neighbors(found, index.search(part, K))


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_results_are_of_the_kind_of_their_chunk() -> None:
    import torch

    rows = queries()
    parts = [torch.from_numpy(rows[:20]), rows[20:30], torch.from_numpy(rows[30:30]), torch.from_numpy(rows[30:])]
    found = list(index_of().search_chunks(parts, K))
    assert [isinstance(part.indices, torch.Tensor) for part in found] == [True, False, True, True]
    assert_same_neighbors(joined(Neighbors(*map(np.asarray, part)) for part in found), index_of().search(rows, K))
    whole = list(index_of().search_chunks(torch.from_numpy(rows), K, chunk_rows=25))
    assert all(isinstance(part.distances, torch.Tensor) for part in whole)


def test_one_chunk_is_searched_and_one_read_ahead_of_the_caller() -> None:
    index = Watched(points(), method="exact", threads=1)
    given: list[int] = []

    def source() -> Iterator[Array]:
        for part in cut(queries(), *[5] * 11):
            given.append(len(part))
            yield part

    stream = index.search_chunks(source(), K)
    time.sleep(0.02)
    assert (given, index.searched) == ([], [])  # nothing starts before it is requested
    for taken in range(1, 13):
        next(stream)
        assert soon(lambda: len(index.searched) >= min(12, taken + 1))  # noqa: B023
        assert soon(lambda: len(given) >= min(12, taken + 2))  # noqa: B023
        time.sleep(0.01)
        assert len(index.searched) == min(12, taken + 1)
        assert len(given) == min(12, taken + 2)
    assert next(stream, None) is None


def test_source_search_and_caller_overlap() -> None:
    """A slow source and a slow caller take the time of one of them."""

    def source() -> Iterator[Array]:
        for part in cut(queries(), *[6] * 9):
            time.sleep(0.06)
            yield part

    index = index_of()
    index.search(queries(), K)
    started = time.perf_counter()
    for _ in index.search_chunks(source(), K):
        time.sleep(0.06)
    assert time.perf_counter() - started < 0.9  # 0.66 if everything overlaps, 1.2 if nothing does


class Enough(Exception):
    pass


def test_a_caller_that_stops_early() -> None:
    before = set(threading.enumerate())
    for _ in index_of().search_chunks(cut(queries(), *[5] * 11), K):
        break
    gc.collect()
    assert not _begun(before)
    stream = index_of().search_chunks(cut(queries(), *[5] * 11), K)
    next(stream)
    assert set(_begun(before)) == {"tonari-read", "tonari-search"}
    stream.close()
    assert not _begun(before)
    assert list(stream) == []


def test_a_caller_that_fails() -> None:
    def use(stream: Iterator[Neighbors]) -> None:
        for _ in stream:
            raise Enough

    with pytest.raises(Enough):
        use(index_of().search_chunks(queries(), K, chunk_rows=5))


@pytest.mark.parametrize(("method", "d"), [("exact", 48), ("kdtree", 10)])
def test_a_long_search_is_ended_in_the_middle(method: str, d: int) -> None:
    many = checks.gaussian(200_000, d)
    index = tonari.Index(many, metric="l1", method=method)
    stream = index.search_chunks(cut(many, 3), K)
    next(stream)
    time.sleep(0.2)
    started = time.perf_counter()
    stream.close()
    assert time.perf_counter() - started < 1.0


def test_what_the_source_raises_comes_after_all_before_it() -> None:
    def source() -> Iterator[Array]:
        yield queries(3)
        yield queries(4)
        raise Enough("the disk is gone")

    assert refusal(source(), kind=Enough) == (7, "the disk is gone")


def refusal(
    chunks: Any, index: tonari.Index | None = None, kind: type[Exception] = ValueError, **options: Any
) -> tuple[int, str]:
    """Return the number of queries that were answered before an error, and its message."""
    answered: list[int] = []
    stream = (index or index_of()).search_chunks(chunks, K, **options)
    with pytest.raises(kind) as caught:
        answered.extend(len(found.indices) for found in stream)
    return sum(answered), str(caught.value)


@pytest.mark.parametrize("rows", [None, M])
def test_progress_counts_queries(rows: int | None) -> None:
    calls: list[tuple[int, int]] = []
    stream = index_of().search_chunks(
        cut(queries(), *UNEVEN), K, rows=rows, progress=lambda done, total: calls.append((done, total))
    )
    assert sum(len(found.indices) for found in stream) == M
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
    assert calls[-1][0] == M
    assert {total for _, total in calls} == {rows or 0}


def test_an_array_knows_its_total() -> None:
    calls: list[tuple[int, int]] = []
    list(index_of().search_chunks(queries(), K, chunk_rows=9, progress=lambda *call: calls.append(call)))
    assert calls[-1] == (M, M)


def test_what_a_callback_raises_ends_the_stream() -> None:
    def callback(done: int, total: int) -> None:
        if done >= 20:
            raise Enough(str(done))

    assert refusal(cut(queries(), *[5] * 11), kind=Enough, progress=callback) == (15, "20")


def test_the_bar_shows_the_rate(capsys: pytest.CaptureFixture[str]) -> None:
    list(index_of().search_chunks(queries(), K, chunk_rows=9, progress=True))
    shown = capsys.readouterr().err
    assert f"/{M}.0 [" in shown
    assert "query/s]" in shown
    list(index_of().search_chunks(queries(), K, chunk_rows=9))
    list(index_of().search_chunks(queries(), K, chunk_rows=9, progress=False))
    assert capsys.readouterr().err == ""


def test_a_bar_appears_by_itself_when_the_work_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    list(index_of().search_chunks(queries(), K, chunk_rows=9))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(tuning, "SHOW_FROM_SECONDS", 0.05)

    def source() -> Iterator[Array]:
        for part in cut(queries(), 20, 20):
            time.sleep(0.1)
            yield part

    list(index_of().search_chunks(source(), K))
    assert "query/s]" in capsys.readouterr().err
