"""Journals of unfinished streams: samples, and invalid files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers.checks import Array
from tests.helpers.streaming import K, M, cut, index_of, queries
from tonari.streams import tuning
from tonari.streams.journal import SAMPLED_ROWS, Journal, Sample

KEPT = ["t.ibin.part", "t.ibin.part.json"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; every chunk is synced to disk separately."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuning, "SYNC_SECONDS", 0.0)
    return tmp_path


def rows_done() -> int:
    return int(json.loads(Path(KEPT[1]).read_text())["rows"])


def cut_off(*sizes: int, error: Exception | None = None) -> None:
    """Leave a run that ended after chunks of these sizes."""

    def source() -> Iterator[Array]:
        yield from list(cut(queries(), *sizes))[:-1]
        raise error or InterruptedError("that was it")

    with pytest.raises(type(error or InterruptedError())):
        tonari.search_to_file(source(), index_of(), K, "t.ibin", rows=M)
    assert sorted(os.listdir()) == KEPT
    assert rows_done() == sum(sizes)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_journal_that_is_a_pipe_is_not_waited_for() -> None:
    journal = Path("t.ibin.part.json")
    os.mkfifo(journal)
    with pytest.raises(ValueError, match=f"{journal}: is not the journal of a search"):
        Journal.read(journal)


@pytest.mark.parametrize(
    "damaged",
    [
        "[" * 100_000,
        '{"search": {}, "rows": 1e400, "sample": ""}',
        '{"search": {}, "rows": -3, "sample": ""}',
        '{"search": {}, "rows": true, "sample": ""}',
        '{"search": {}, "rows": 2.5, "sample": ""}',
        '{"search": {}, "rows": "7", "sample": ""}',
        '{"search": [], "rows": 7, "sample": ""}',
        '{"search": {}, "rows": 7, "sample": null}',
        '{"search": {}, "rows": 7, "sample": "", "record": [1]}',
        '{"search": {}, "rows": 7, "sample": "", "record": {"title": "search_to_file"}}',
        "[1, 2]",
        "\ud800",
    ],
    ids=lambda text: text[:44],
)
def test_damaged_journals(damaged: str) -> None:
    cut_off(20)
    Path(KEPT[1]).write_bytes(damaged.encode(errors="surrogatepass"))
    with pytest.raises(ValueError, match=f"{KEPT[1]}: is not the journal of a search; remove it and its file"):
        tonari.search_to_file(queries(), index_of(), K, "t.ibin")
    assert sorted(os.listdir()) == KEPT


def test_a_journal_of_more_rows_than_there_are() -> None:
    cut_off(20)
    journal = json.loads(Path(KEPT[1]).read_text())
    Path(KEPT[1]).write_text(json.dumps(journal | {"rows": M + 1}))
    with pytest.raises(ValueError, match="is not the journal of a search"):
        tonari.search_to_file(queries(), index_of(), K, "t.ibin")


def test_a_sample_does_not_depend_on_chunks() -> None:
    rows = np.arange(3000 * 2, dtype=np.float32).reshape(3000, 2)
    whole, parts, some = Sample(3000), Sample(3000), Sample(3000)
    whole.add(0, rows)
    first = 0
    for size in (1, 0, 999, 1500, 500):
        parts.add(first, rows[first : first + size])
        first += size
    assert parts.digest() == whole.digest()
    some.add(0, rows, 2999)
    assert len({whole.digest(), some.digest(), Sample(3000).digest()}) == 3
    assert sum(_differs(rows, row) for row in range(3000)) == SAMPLED_ROWS
    assert _differs(rows, 0)
    assert _differs(rows, 2999)


def _differs(rows: Array, row: int) -> bool:
    before, after = Sample(len(rows)), Sample(len(rows))
    other = rows[max(0, row - 1) : row + 2].copy()
    before.add(max(0, row - 1), other)
    other[min(row, 1)] += 0.5
    after.add(max(0, row - 1), other)
    return before.digest() != after.digest()


def test_a_journal_is_read_as_it_was_written(folder: Path) -> None:
    journal = Journal({"k": 3, "metric": "l1"}, 7, "ab")
    journal.write(folder / "j.json")
    assert Journal.read(folder / "j.json") == journal
    assert Journal.read(folder / "none.json") is None
    assert journal.differences({"k": 3, "metric": "l1"}) == []
    assert journal.differences({"k": 4}) == ["k=4, not 3", "metric=None, not 'l1'"]
