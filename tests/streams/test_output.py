"""Streams into files: contents of the disk after the end, an error, Ctrl-C or kill -9, and restarts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import Array, check_interrupt
from tests.helpers.streaming import UNEVEN, D, K, M, N, Watched, cut, index_of, points, queries, soon
from tonari import io
from tonari.core.results.neighbors import Neighbors
from tonari.io.neighbors.ground_truth_part import GroundTruthPart
from tonari.streams import output, tuning
from tonari.streams.journal import Journal

KEPT = ["t.ibin.part", "t.ibin.part.json"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; every chunk is synced to disk separately."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuning, "SYNC_SECONDS", 0.0)
    return tmp_path


def watched(rows: Array | None = None) -> Watched:
    return Watched(points() if rows is None else rows, method="exact", threads=1)


def truth(rows: Array | None = None, k: int = K, **options: Any) -> bytes:
    """Return the file that one search of all queries gives."""
    io.write_ground_truth("truth.ibin", index_of(**options).search(queries() if rows is None else rows, k))
    content = Path("truth.ibin").read_bytes()
    os.remove("truth.ibin")
    return content


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


def test_an_older_file_is_replaced_at_the_end_or_not_at_all(folder: Path) -> None:
    (folder / "real.ibin").write_bytes(b"precious")
    (folder / "t.ibin").symlink_to("real.ibin")
    for resume in (True, False):
        with pytest.raises(FileExistsError, match=r"t.ibin: exists already, .*overwrite=True \(--force\)"):
            tonari.search_to_file(iter([]), index_of(), K, "t.ibin", rows=M, resume=resume)  # before any work
    with pytest.raises(ValueError, match="not finite"):
        tonari.search_to_file(np.full((3, D), np.nan, np.float32), index_of(), K, "t.ibin", overwrite=True)
    assert sorted(os.listdir()) == ["real.ibin", "t.ibin"]
    assert (folder / "real.ibin").read_bytes() == b"precious"
    tonari.search_to_file(queries(), index_of(), K, "t.ibin", overwrite=True)
    assert (folder / "t.ibin").is_symlink()
    assert (folder / "real.ibin").read_bytes() == truth()


def test_a_file_that_appears_meanwhile_is_kept() -> None:
    def source() -> Iterator[Array]:
        yield queries()
        Path("t.ibin").write_bytes(b"precious")

    with pytest.raises(FileExistsError, match=r"t.ibin: exists already"):
        tonari.search_to_file(source(), index_of(), K, "t.ibin", rows=M)
    assert Path("t.ibin").read_bytes() == b"precious"
    assert rows_done() == M
    index = watched()
    tonari.search_to_file(queries(), index, K, "t.ibin", overwrite=True)
    assert index.searched == []
    assert Path("t.ibin").read_bytes() == truth()


def test_arguments_are_checked_before_any_work() -> None:
    index = index_of()
    for arguments, options, kind, said in (
        ((queries(), index, K, "no/t.ibin"), {}, FileNotFoundError, "the directory .*no does not exist"),
        ((queries(), index, K, "t.npz"), {}, ValueError, "expected .ibin"),
        ((queries(), index, N + 1, "t.ibin"), {}, ValueError, f"the largest k is {N}"),
        (
            (queries(), index, K, "t.ibin"),
            {"metric": "l1", "threads": 1},
            ValueError,
            "metric, threads: are set by the Index",
        ),
        ((queries(), index, K, "t.ibin"), {"resume": "no"}, TypeError, "resume='no'"),
        ((iter([queries()]), index, K, "t.ibin"), {}, ValueError, "give rows="),
        ((queries(), "absent.fbin", K, "t.ibin"), {}, FileNotFoundError, "absent.fbin"),
    ):
        with pytest.raises(kind, match=said):
            tonari.search_to_file(*arguments, **options)
    assert os.listdir() == []


def test_an_error_in_a_later_chunk_loses_nothing_before_it() -> None:
    bad = list(cut(queries(), 20, 10))
    whole = [*bad[:2], bad[2].copy()]
    bad[2][4, 3] = np.nan
    for given, said in (
        (bad, "queries: row 34 has a value"),
        ([*bad[:2], bad[2][:, :4]], r"chunk 2 \(rows 30 to 59\)"),
    ):
        with pytest.raises(ValueError, match=said):
            tonari.search_to_file(given, index_of(), K, "t.ibin")
        assert sorted(os.listdir()) == KEPT
        assert rows_done() == 30
    found = np.memmap(KEPT[0], "<i4", "r", 8, (M, K))
    np.testing.assert_array_equal(found[:30], index_of().search(queries(), K).indices[:30])
    index = watched()
    tonari.search_to_file(whole, index, K, "t.ibin")
    assert index.searched == [30]
    assert Path("t.ibin").read_bytes() == truth()
    assert os.listdir() == ["t.ibin"]


@pytest.mark.parametrize("done", [(1,), (7, 20), (7, 20, M - 28), (7, 20, M - 27)])
def test_a_restart_goes_on_from_what_is_done(done: tuple[int, ...]) -> None:
    """The queries may come in other chunks: finished queries are not searched again."""
    arrays: list[Callable[[], Any]] = [queries, lambda: cut(queries(), *UNEVEN), lambda: cut(queries(), 9, 25)]
    for again in arrays:
        cut_off(*done)
        index = watched()
        tonari.search_to_file(again(), index, K, "t.ibin", rows=None if again is queries else M)
        assert sum(index.searched) == M - sum(done)
        assert Path("t.ibin").read_bytes() == truth()
        os.remove("t.ibin")


def test_progress_goes_on_too(capsys: pytest.CaptureFixture[str]) -> None:
    cut_off(20)
    calls: list[tuple[int, int]] = []
    tonari.search_to_file(queries(), index_of(), K, "t.ibin", chunk_rows=10, progress=lambda *call: calls.append(call))
    assert calls[0][0] > 20
    assert calls[-1] == (M, M)
    tonari.search_to_file(queries(), index_of(), K, "t.ibin", progress=True, overwrite=True)
    assert "query/s]" in capsys.readouterr().err


def test_a_run_that_ended_just_before_the_file_had_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(output.Output, "finish", lambda self: (_ for _ in ()).throw(InterruptedError))
        with pytest.raises(InterruptedError):
            tonari.search_to_file(queries(), index_of(), K, "t.ibin")
    assert rows_done() == M
    index = watched()
    tonari.search_to_file(queries(), index, K, "t.ibin")
    assert index.searched == []
    assert Path("t.ibin").read_bytes() == truth()


def test_small_chunks_reach_the_disk_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SYNC_SECONDS", 60.0)
    synced: list[int] = []
    real = GroundTruthPart.sync
    monkeypatch.setattr(GroundTruthPart, "sync", lambda part: (synced.append(1), real(part))[1])
    tonari.search_to_file(queries(), index_of(), K, "t.ibin", chunk_rows=1)
    assert len(synced) == 1
    os.remove("t.ibin")
    cut_off(20, 10)  # an error loses none of them


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    real = GroundTruthPart.write

    def write(part: GroundTruthPart, first: int, found: Neighbors) -> None:
        if first >= 30:
            raise OSError(28, "No space left on device")
        real(part, first, found)

    with monkeypatch.context() as patch:
        patch.setattr(GroundTruthPart, "write", write)
        with pytest.raises(OSError, match="No space left"):
            tonari.search_to_file(queries(), index_of(), K, "t.ibin", chunk_rows=10)
    assert rows_done() == 30
    index = watched()
    tonari.search_to_file(queries(), index, K, "t.ibin", chunk_rows=10)
    assert sum(index.searched) == M - 30
    assert Path("t.ibin").read_bytes() == truth()


KILLED = """
import sys, time
import numpy as np, tonari
from tonari import io
queries = io.read("q.npy")
def source():
    for first in range(0, len(queries), 50):
        print("read", first, flush=True)
        if first >= 200:
            time.sleep(0.25)
        yield queries[first : first + 50]
index = tonari.Index(io.read("p.npy"), method="exact", threads=1)
tonari.search_to_file(source(), index, 5, "t.ibin", rows=len(queries))
"""


def _child(code: str, **more: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment, **more)


@pytest.mark.process
def test_kill_9_loses_no_finished_chunk() -> None:
    rows = queries(1000)
    io.write("p.npy", points())
    io.write("q.npy", rows)
    with _child(KILLED) as child:
        assert soon(lambda: Path(KEPT[1]).exists() and rows_done() >= 300, seconds=60)
        child.send_signal(signal.SIGKILL)
        assert child.stdout is not None
        read = [int(line.split()[1]) for line in child.stdout]  # chunks that were requested, the last one in vain
    assert child.returncode == -signal.SIGKILL
    done = rows_done()
    assert 300 <= done < 1000
    assert read[-1] <= done + 100  # the chunk being searched, and the one being read
    assert not Path("t.ibin").exists()
    found = index_of().search(rows, K)
    np.testing.assert_array_equal(np.memmap(KEPT[0], "<i4", "r", 8, (1000, K))[:done], found.indices[:done])
    index = watched()
    tonari.search_to_file((rows[first : first + 50] for first in range(0, 1000, 50)), index, K, "t.ibin", rows=1000)
    assert index.searched == [50] * ((1000 - done) // 50)
    assert Path("t.ibin").read_bytes() == truth(rows)


INTERRUPTED = """
import threading, time
import numpy as np, tonari
from tonari import io
queries, points = io.read("q.npy"), io.read("p.npy")
index = tonari.Index(points, method="exact")
def source():
    yield queries[:1000]
    print("started", flush=True)
    yield queries[1000:]
try:
    tonari.search_to_file(source(), index, 5, "t.ibin", rows=len(queries))
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
until = time.monotonic() + 10  # the thread that reads is not waited for, as its source may be stuck
while threading.active_count() > 1 and time.monotonic() < until:
    time.sleep(0.01)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
def test_ctrl_c_keeps_what_is_finished() -> None:
    io.write("p.npy", np.random.default_rng(0).random((200_000, 64), np.float32))
    io.write("q.npy", np.random.default_rng(1).random((200_000, 64), np.float32))
    check_interrupt(INTERRUPTED, wait=0.7)
    assert rows_done() == 1000
    first = io.read("q.npy")[:1000]
    found = tonari.search(first, io.read("p.npy"), K, method="exact")
    np.testing.assert_array_equal(np.memmap(KEPT[0], "<i4", "r", 8, (200_000, K))[:1000], found.indices)


def changed(row: int) -> Array:
    rows = queries()
    rows[row, 2] += 1
    return rows


@pytest.mark.parametrize("again", ["array", "iterable"])
def test_other_searches_do_not_go_on(again: str) -> None:
    cut_off(20)
    part = Path(KEPT[0]).read_bytes()
    other_points = points()
    other_points[5, 5] += 1
    for rows, index, k, said in (
        (queries(), index_of(), K - 1, f"k={K - 1}, not {K}"),
        (queries(M - 1), index_of(), K, f"queries={M - 1}, not {M}"),
        (queries(), index_of(metric="l1"), K, "metric='l1', not 'euclidean'"),
        (queries(), index_of(points()[:-1]), K, f"points={N - 1}, not {N}; other points"),
        (queries(), index_of(other_points), K, r"other points \(their values differ\)"),
        (queries(), index_of(points("float64")), K, r"other points \(their values differ\)"),
        (changed(19), index_of(), K, r"other queries \(their values differ\)"),
        (queries().astype("float64"), index_of(), K, r"other queries \(their values differ\)"),
        (queries()[:, :5], index_of(points()[:, :5].copy()), K, "dimensions=5, not 6"),
    ):
        given = rows if again == "array" else cut(rows, 7, 30)
        with pytest.raises(
            ValueError, match=rf"t.ibin.part: belongs to another search: .*{said}.*resume=False \(--force\)"
        ):
            tonari.search_to_file(given, index, k, "t.ibin", rows=None if again == "array" else len(rows))
        assert sorted(os.listdir()) == KEPT
        assert rows_done() == 20
        assert Path(KEPT[0]).read_bytes() == part
    # Unfinished queries may change, because no stored answer depends on them.
    tonari.search_to_file(changed(20), index_of(), K, "t.ibin")
    assert Path("t.ibin").read_bytes() == truth(changed(20))


def test_to_begin_anew() -> None:
    cut_off(20)
    index = watched()
    tonari.search_to_file(queries(), index, K - 1, "t.ibin", resume=False)
    assert sum(index.searched) == M
    assert Path("t.ibin").read_bytes() == truth(k=K - 1)
    assert os.listdir() == ["t.ibin"]


def test_files_that_are_not_what_a_run_leaves() -> None:
    def refused(kind: type[Exception], said: str) -> None:
        with pytest.raises(kind, match=said):
            tonari.search_to_file(queries(), index_of(), K, "t.ibin")

    cut_off(20)
    journal, part = Path(KEPT[1]).read_text(), Path(KEPT[0]).read_bytes()
    Path(KEPT[1]).write_text(journal[:20])
    refused(ValueError, "is not the journal of a search")
    Path(KEPT[1]).write_text('{"rows": 3}')
    refused(ValueError, "is not the journal of a search")
    os.remove(KEPT[1])
    refused(FileExistsError, "exists without its journal t.ibin.part.json")
    Path(KEPT[1]).write_text(journal)
    Path(KEPT[0]).write_bytes(part[:-1])
    refused(ValueError, f"found {len(part) - 1} bytes, expected {len(part)} bytes")
    os.remove(KEPT[0])  # then there is nothing to resume
    index = watched()
    tonari.search_to_file(queries(), index, K, "t.ibin")
    assert sum(index.searched) == M
    assert Path("t.ibin").read_bytes() == truth()


@pytest.mark.parametrize("rows", [M - 1, M + 1, 20])
def test_an_iterable_has_as_many_rows_as_was_said(rows: int) -> None:
    said = f"got {M} rows, expected {M + 1} in all" if rows > M else f"expected {rows} rows in all"
    with pytest.raises(ValueError, match=said):
        tonari.search_to_file(cut(queries(), 20, 10), index_of(), K, "t.ibin", rows=rows)
    assert rows_done() == {M - 1: 30, M + 1: M, 20: 20}[rows]


def test_a_run_that_was_killed_before_anything_was_done_binds_nobody() -> None:
    cut_off(20)
    journal = json.loads(Path(KEPT[1]).read_text())
    Path(KEPT[1]).write_text(json.dumps(journal | {"rows": 0, "sample": ""}))
    tonari.search_to_file(queries(), index_of(), K - 1, "t.ibin")
    assert Path("t.ibin").read_bytes() == truth(k=K - 1)


def test_two_runs_do_not_write_one_file() -> None:
    cut_off(20)
    held = GroundTruthPart(Path(KEPT[0]), M, K)
    try:
        for resume in (True, False):
            with pytest.raises(BlockingIOError, match="another process is writing it"):
                tonari.search_to_file(queries(), index_of(), K, "t.ibin", resume=resume)
    finally:
        held.close()
    assert rows_done() == 20


def _begun_and_held(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Delay a thread called "late" after it has opened a file and before it locks it."""
    import fcntl

    opened, released = threading.Event(), threading.Event()
    real = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        if threading.current_thread().name == "late" and not released.is_set():
            opened.set()
            assert released.wait(60)
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    return opened, released


@pytest.mark.parametrize("resume", [True, False])
def test_a_late_run_does_not_write_into_the_finished_file(resume: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opened OUT.part before another run renamed that to OUT, and locks it afterwards."""
    opened, released = _begun_and_held(monkeypatch)
    seen: list[bytes] = []

    def late() -> None:
        def source() -> Iterator[Array]:
            seen.append(Path("t.ibin").read_bytes())
            yield queries()[::-1]
            seen.append(Path("t.ibin").read_bytes())

        tonari.search_to_file(source(), index_of(), K, "t.ibin", rows=M, resume=resume, overwrite=True)

    other = threading.Thread(target=late, name="late")

    def source() -> Iterator[Array]:
        yield queries()[:20]
        other.start()
        assert opened.wait(60)
        yield queries()[20:]

    try:
        tonari.search_to_file(source(), index_of(), K, "t.ibin", rows=M)
        assert Path("t.ibin").read_bytes() == truth()
    finally:
        released.set()
        other.join(60)
    assert seen == [truth()] * 2  # OUT is complete until it is replaced
    assert Path("t.ibin").read_bytes() == truth(queries()[::-1])
    assert os.listdir() == ["t.ibin"]


def test_a_run_that_comes_while_another_ends_leaves_its_journal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its last two steps, OUT.part is already OUT, and its journal still exists."""
    real, refused = os.replace, []

    def replace(source: Any, target: Any) -> None:
        real(source, target)
        if str(source).endswith(".part"):
            with pytest.raises(BlockingIOError, match="another process is writing it") as caught:
                tonari.search_to_file(queries()[::-1], index_of(), K, "t.ibin", overwrite=True)
            refused.append(caught)

    monkeypatch.setattr(os, "replace", replace)
    tonari.search_to_file(queries(), index_of(), K, "t.ibin")
    assert len(refused) == 1
    assert Path("t.ibin").read_bytes() == truth()
    assert os.listdir() == ["t.ibin"]


MANY = """
import sys, time
import numpy as np, tonari
from tonari import io
index = tonari.Index(io.read("p.npy"), method="exact", threads=1)
queries = io.read("q.npy")
print("ready", flush=True)
until = time.monotonic() + float(sys.stdin.readline())
done = 0
while time.monotonic() < until:
    try:
        tonari.search_to_file(queries, index, 5, "t.ibin", resume=RESUME, overwrite=True)
        done += 1
    except BlockingIOError:
        pass
print(done)
"""


@pytest.mark.process
@pytest.mark.parametrize("resume", [True, pytest.param(False, marks=pytest.mark.full)])
def test_many_runs_of_one_file_at_a_time(resume: bool) -> None:
    """Each run either writes the file or learns that another one does; the file is always complete."""
    io.write("p.npy", points())
    io.write("q.npy", queries())
    whole, seen = truth(), Counter[bool]()
    runs = [_child(MANY.replace("RESUME", str(resume)), stdin=subprocess.PIPE) for _ in range(4)]
    try:
        for run in runs:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("3\n")
            run.stdin.close()
        while any(run.poll() is None for run in runs):
            with contextlib.suppress(FileNotFoundError):
                seen[Path("t.ibin").read_bytes() == whole] += 1
        assert [run.returncode for run in runs] == [0] * 4
        assert sum(int(run.stdout.read()) for run in runs if run.stdout is not None) > 0
    finally:
        for run in runs:
            run.kill()
            run.wait()
            for pipe in (run.stdout, run.stdin):
                assert pipe is not None
                pipe.close()
    assert set(seen) == {True}
    assert sorted(os.listdir()) == ["p.npy", "q.npy", "t.ibin"]


def test_a_file_that_is_removed_while_it_is_written() -> None:
    def source() -> Iterator[Array]:
        yield queries()[:20]
        assert soon(lambda: Path(KEPT[1]).exists() and rows_done() == 20)
        os.remove(KEPT[0])
        Path(KEPT[0]).write_bytes(b"another's")
        yield queries()[20:]

    with pytest.raises(FileNotFoundError, match="was removed or replaced by another program"):
        tonari.search_to_file(source(), index_of(), K, "t.ibin", rows=M)
    assert Path(KEPT[0]).read_bytes() == b"another's"
    assert rows_done() == 20
    assert not Path("t.ibin").exists()


def test_a_damaged_header_is_seen() -> None:
    cut_off(20)
    with open(KEPT[0], "r+b") as file:
        file.write(b"\xff")
    with pytest.raises(ValueError, match=rf"found the header ff00.*, expected {M:02x}0000000{K}000000; start over"):
        tonari.search_to_file(queries(), index_of(), K, "t.ibin")
    assert sorted(os.listdir()) == KEPT
    tonari.search_to_file(queries(), index_of(), K, "t.ibin", resume=False)
    assert Path("t.ibin").read_bytes() == truth()


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("kept", KEPT)
def test_a_symbolic_link_is_not_followed(kept: str, resume: bool) -> None:
    Path("victim").write_bytes(b"precious")
    os.symlink("victim", kept)
    with pytest.raises(FileExistsError, match=rf"{kept}: exists and is a symbolic link, which is not followed"):
        tonari.search_to_file(queries(), "absent.fbin", K, "t.ibin", resume=resume)  # before any work
    with pytest.raises(OSError, match="symbolic links"):  # a run that starts later
        GroundTruthPart(Path(kept), M, K)
    Journal({}, 3, "ab").write(Path(kept))
    assert Path("victim").read_bytes() == b"precious"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_pipes_are_refused_before_any_work() -> None:
    for name, said in (
        ("t.ibin", "is a device, a pipe"),
        *((kept, "exists and is not a regular file") for kept in KEPT),
    ):
        os.mkfifo(name)
        with pytest.raises(FileExistsError, match=rf"{name}: {said}"):
            tonari.search_to_file(queries(), "absent.fbin", K, "t.ibin")
        assert os.listdir() == [name]
        os.remove(name)
    os.mkfifo(KEPT[0])
    with pytest.raises(FileExistsError, match="not a regular file"):
        GroundTruthPart(Path(KEPT[0]), M, K)


def test_a_name_that_is_too_long_with_what_is_added_to_it() -> None:
    longest = os.pathconf(".", "PC_NAME_MAX")
    name = f"{'x' * (longest - 14)}.ibin"  # one byte too many for its journal
    with pytest.raises(OSError, match=r"name too long: until it is complete, 10 bytes are added to it: '.*x\.ibin'"):
        tonari.search_to_file(queries(), "absent.fbin", K, name)
    assert os.listdir() == []
    tonari.search_to_file(queries(), index_of(), K, name[1:])
    assert Path(name[1:]).read_bytes() == truth()


@pytest.mark.parametrize("fails", ["journal", "header"])
@pytest.mark.parametrize("resume", [True, False])
def test_a_disk_that_is_full_at_the_very_start(fails: str, resume: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    kind, name = (Journal, "write") if fails == "journal" else (GroundTruthPart, "_put")
    with monkeypatch.context() as patch:
        patch.setattr(kind, name, full)
        with pytest.raises(OSError, match="No space left"):
            tonari.search_to_file(queries(), index_of(), K, "t.ibin", resume=resume)
    assert os.listdir() == []
    cut_off(20)  # an earlier run is lost only after the new one has started
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", full)
        with pytest.raises(OSError, match="No space left"):
            tonari.search_to_file(queries(), index_of(), K, "t.ibin", resume=False)
    assert rows_done() == 20
    tonari.search_to_file(queries(), index_of(), K, "t.ibin")
    assert Path("t.ibin").read_bytes() == truth()
