"""Streams of queries: the bits of one search for any chunks, threads that end, and messages of errors."""

from __future__ import annotations

import gc
import re
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors, check_interrupt
from tests.helpers.streaming import D, K, M, N, cut, index_of, joined, queries, soon
from tonari import io
from tonari.streams.chunks import LEAST_ROWS, Pace, planned_rows


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


def test_any_kind_of_rows() -> None:
    index, rows = index_of(), queries()
    truth = index.search(rows, K)
    strided = np.repeat(rows, 2, axis=0)[::2]
    frozen = rows.copy()
    frozen.flags.writeable = False
    for given in (strided, frozen, np.asfortranarray(rows), rows.astype(">f4"), rows[::-1][::-1]):
        assert_same_neighbors(joined(index.search_chunks(given, K, chunk_rows=13)), truth)
        assert_same_neighbors(joined(index.search_chunks(cut(given, 13, 20), K)), truth)
    listed, _ = index.search_chunks([rows[:9].tolist(), rows[9:]], K)
    assert_same_neighbors(listed, index.search(rows[:9].astype(np.float64), K))  # as NumPy reads lists


@pytest.mark.parametrize("name", ["q.fbin", "q.npy", "q.fvecs", "q.npz", "q.bvecs", "q.u8bin"])
def test_files_are_read_chunk_by_chunk(tmp_path: Path, name: str) -> None:
    whole = name in ("q.bvecs", "q.u8bin")
    rows = queries(dtype="uint8" if whole else "float32")
    io.write(tmp_path / name, rows)
    truth = index_of().search(rows, K)
    for given in (tmp_path / name, str(tmp_path / name), io.read(tmp_path / name)):
        assert_same_neighbors(joined(index_of().search_chunks(given, K, chunk_rows=7)), truth)


def test_a_buffer_may_be_filled_anew() -> None:
    rows = queries()

    def same_buffer() -> Iterator[Array]:
        buffer = np.full((10, D), np.nan, np.float32)
        for first in range(0, M, 10):
            buffer[:] = rows[first : first + 10]
            yield buffer
            buffer[:] = np.nan

    assert_same_neighbors(joined(index_of().search_chunks(same_buffer(), K)), index_of().search(rows, K))


def test_a_stream_of_nothing() -> None:
    assert list(index_of().search_chunks([], K)) == []
    assert list(index_of().search_chunks(iter([]), K)) == []


def test_memory_is_that_of_a_few_chunks(tmp_path: Path) -> None:
    rows, width, k = 4096, 64, 32
    np.save(tmp_path / "q.npy", np.tile(checks.gaussian(rows, width), (40, 1)))
    index = index_of(checks.gaussian(500, width), threads=2)
    chunk = rows * (4 * width + 8 * k)
    total = 0
    tracemalloc.start()
    try:
        for found in index.search_chunks(tmp_path / "q.npy", k, chunk_rows=rows):
            total += len(found.indices)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 40 * rows
    assert peak < 4 * chunk, f"{peak / chunk:.1f} chunks"


def test_the_first_chunks_tell_the_size_of_the_others() -> None:
    pace = Pace(1_000_000, fixed=False)
    assert pace.rows == 8192
    pace.note(8192, 0.01)
    assert pace.rows == 8 * 8192
    pace.note(8 * 8192, 2.0)
    assert pace.rows == 327_680  # in ten seconds
    pace.note(300_000, 0.1)
    assert pace.rows == 1_000_000
    pace.note(1_000_000, 1e6)
    assert pace.rows == LEAST_ROWS
    asked = Pace(10, fixed=True)
    asked.note(10, 1e-6)
    assert asked.rows == 10
    assert Pace(3, fixed=False).rows == 3


def test_chunks_are_planned_by_bytes() -> None:
    assert planned_rows(4 * 128, 10, None) * (4 * 128 + 8 * 10) <= 128 << 20
    assert planned_rows(4, 10**6, None) == LEAST_ROWS
    assert planned_rows(40, 10, 12_000) == 12  # an eighth of a budget
    rows = queries(40_000)
    found = list(index_of(memory="6MB").search_chunks(rows, K))
    assert max(len(part.indices) for part in found) == 750_000 // (4 * D + 8 * K)
    assert_same_neighbors(joined(found), index_of().search(rows, K))


def test_a_source_that_is_stuck_does_not_hold_the_caller() -> None:
    leave = threading.Event()

    def source() -> Iterator[Array]:
        yield queries(3)
        leave.wait(60)
        yield queries(3)

    stream = index_of().search_chunks(source(), K)
    next(stream)
    started = time.perf_counter()
    stream.close()
    assert time.perf_counter() - started < 1.0
    leave.set()


@pytest.mark.process
def test_ctrl_c_ends_a_stream() -> None:
    assert (
        check_interrupt(
            """
import threading, time
import numpy as np, tonari
points = np.random.default_rng(0).random((300_000, 64), np.float32)
index = tonari.Index(points, method="exact")
def source():
    yield points[:1]
    print("started", flush=True)
    yield points
try:
    for found in index.search_chunks(source(), 10):
        pass
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
until = time.monotonic() + 10  # the thread that reads is not waited for, as its source may be stuck
while threading.active_count() > 1 and time.monotonic() < until:
    time.sleep(0.01)
print("threads", threading.active_count(), flush=True)
print("right", index.search(points[:1], 1).indices[0, 0] == 0, flush=True)
"""
        )["right"]
        == "True"
    )


def refusal(
    chunks: Any, index: tonari.Index | None = None, kind: type[Exception] = ValueError, **options: Any
) -> tuple[int, str]:
    """Return the number of queries that were answered before an error, and its message."""
    answered: list[int] = []
    stream = (index or index_of()).search_chunks(chunks, K, **options)
    with pytest.raises(kind) as caught:
        answered.extend(len(found.indices) for found in stream)
    return sum(answered), str(caught.value)


def test_a_chunk_of_another_width_is_named() -> None:
    answered, said = refusal([queries(20), queries(10), queries(7)[:, :4], queries(5)])
    assert answered == 30
    assert said == "queries, chunk 2 (rows 30 to 36): expected 6 columns like the points, got shape (7, 4)"
    answered, said = refusal([queries(20), np.empty((0, 4), np.float32)])
    assert answered == 20
    assert said.startswith("queries, chunk 1 (no rows, at row 20): expected 6 columns")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_values_are_numbered_from_the_beginning_of_the_stream(bad: float) -> None:
    parts = list(cut(queries(), 20, 10))
    parts[2][[4, 6], 3] = bad
    answered, said = refusal(parts)
    assert answered == 30
    assert f"queries: row 34 has a value that is not finite ({bad} in column 3)" in said
    with pytest.raises(ValueError, match="queries: row 34 has"):
        list(index_of().search_chunks(np.vstack(parts), K, chunk_rows=8))


def test_other_bad_values_too() -> None:
    parts = [part.astype("float64") for part in cut(queries(), 20)]
    parts[1][5, 2] = 1e200
    assert "queries: row 25 has a value whose square overflows" in refusal(parts)[1]
    parts[1][5, 2] = -1
    assert "queries: row 25 has a negative value" in refusal(parts, index_of(metric="chi2"))[1]


def test_chunks_that_are_no_rows_are_named() -> None:
    for bad, kind, said in (
        (queries(4)[0], ValueError, r"queries, chunk 1 \(from row 20 on\): expected shape \(n, d\), got \(6,\)"),
        (
            queries(4).astype(np.complex64),
            TypeError,
            r"queries, chunk 1 \(from row 20 on\): complex64 is not supported",
        ),
        (3.5, ValueError, r"queries, chunk 1 \(from row 20 on\): expected shape \(n, d\)"),
        (None, TypeError, r"queries, chunk 1 \(from row 20 on\): object"),
        ("rows", TypeError, r"queries, chunk 1 \(from row 20 on\): text"),
        (np.ma.masked_equal(queries(4), queries(4)[0, 0]), ValueError, "masked values"),
    ):
        answered, message = refusal([queries(20), bad], kind=kind)
        assert answered == 20
        assert re.search(said, message), message


def test_arguments_are_checked_before_any_work() -> None:
    index = index_of()
    for arguments, options, kind, said in (
        ((queries(), N + 1), {}, ValueError, f"the largest k is {N}"),
        ((queries(), 2.0), {}, TypeError, "k=2.0"),
        ((3, K), {}, TypeError, "expected an array, a path or an iterable of arrays, got int"),
        ((queries()[0], K), {}, ValueError, r"expected shape \(n, d\)"),
        ((queries()[:, :0], K), {}, ValueError, "is empty"),
        (("absent.fbin", K), {}, FileNotFoundError, "absent.fbin"),
        (([queries()], K), {"chunk_rows": 5}, ValueError, "an iterable has its own chunks; leave chunk_rows out"),
        ((queries(), K), {"chunk_rows": 0}, ValueError, "chunk_rows"),
        ((queries(), K), {"rows": M + 1}, ValueError, "leave rows out"),
    ):
        with pytest.raises(kind, match=said):
            index.search_chunks(*arguments, **options)


@pytest.mark.parametrize("name", ["none.fvecs", "none.bvecs", "none.ivecs", "none.csv", "blank.tsv", "none.npy"])
def test_a_file_without_rows_has_an_empty_answer(name: str, tmp_path: Path) -> None:
    """A file of 0 bytes, or of empty lines, if its format stores the number of columns only in its rows."""
    points, path = checks.gaussian(60, 5), tmp_path / name
    if name == "none.npy":
        np.save(path, points[:0])
    else:
        path.write_text("\n" if name.startswith("blank") else "")
    for more in ({}, {"chunk_rows": 7}, {"rows": 0}):
        out = tonari.search_to_file(path, points, 3, tmp_path / "found.ibin", overwrite=True, **more)
        assert tonari.io.read_ground_truth(out).indices.shape == (0, 3)
    index = tonari.Index(points)
    (found,) = index.search_chunks(path, 3)
    assert found.indices.shape == found.distances.shape == (0, 3)
    assert found.distances.dtype == (np.float64 if path.suffix in (".csv", ".tsv") else np.float32)
    (within,) = index.radius_chunks(path, radius=1.0)
    assert [part.tolist() for part in within] == [[0], [], []]
    with pytest.raises(ValueError, match="rows=2: the queries have 0 rows; leave rows out"):
        tonari.search_to_file(path, points, 3, tmp_path / "found.ibin", overwrite=True, rows=2)
