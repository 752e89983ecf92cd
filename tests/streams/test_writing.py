"""The neighbours of a stream in a file have the bits of one search, however queries are read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.checks import Array
from tests.helpers.streaming import K, M, index_of, queries
from tonari import io
from tonari.core.trail import recording
from tonari.streams import tuning
from tonari.streams.output import kept


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; every chunk is synced to disk separately."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuning, "SYNC_SECONDS", 0.0)
    return tmp_path


def truth(rows: Array | None = None, k: int = K, **options: Any) -> bytes:
    """Return the file that one search of all queries gives."""
    io.write_ground_truth("truth.ibin", index_of(**options).search(queries() if rows is None else rows, k))
    content = Path("truth.ibin").read_bytes()
    os.remove("truth.ibin")
    return content


@pytest.mark.parametrize("chunk_rows", [1, 7, M - 1, M, M + 1, None])
def test_the_file_is_that_of_one_search(chunk_rows: int | None) -> None:
    out = tonari.search_to_file(queries(), index_of(), K, "t.ibin", chunk_rows=chunk_rows)
    assert out == Path("t.ibin")
    assert out.read_bytes() == truth()
    assert os.listdir() == ["t.ibin"]


def test_the_record_of_a_resumed_run_is_that_of_all_rows(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Iterator[Array]:
        yield queries()[:20]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        tonari.search_to_file(broken(), index_of(), K, "t.ibin", rows=M)
    journal = kept(Path("t.ibin"))[1]
    assert journal is not None
    assert journal.made is not None
    (before,) = journal.made.parts
    assert (before.title, before.rows, before.proved) == ("search", 20, 20)
    with caplog.at_level(logging.INFO, "tonari"), recording("mine", M) as mine:
        tonari.search_to_file(queries(), index_of(), K, "t.ibin", chunk_rows=7)
    (record,) = mine.parts
    assert (record.title, record.rows) == ("search_to_file", M)
    assert [(part.title, part.rows, part.proved) for part in record.parts] == [("search", M, M)]
    assert record.choices == [("resumed", f"20 of {M} queries were on the disk")]
    assert record.seconds > before.seconds
    assert caplog.messages[-1].startswith(f"search_to_file: {M} rows, ")


def test_float64_distances_are_rounded_as_in_any_file() -> None:
    rows = queries(dtype="float64") * 1.1
    out = tonari.search_to_file(rows, index_of(), K, "t.ibin", chunk_rows=8)
    assert out.read_bytes() == truth(rows)
    with pytest.raises(ValueError, match="too large for float32"):
        tonari.search_to_file(rows * 1e60, index_of(), K, "other.ibin")
    assert os.listdir() == ["t.ibin"]
