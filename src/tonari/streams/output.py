"""The output file of a stream of queries.

While the file OUT is being written, it is named OUT.part, and has a journal, OUT.part.json; at the end it is
renamed."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Record
from tonari.io.neighbors.ground_truth_part import GroundTruthPart, being_written, is_locked
from tonari.streams import tuning
from tonari.streams.chunks import Chunk
from tonari.streams.journal import Journal, Sample, not_a_journal
from tonari.streams.searching import Answer

logger = logging.getLogger("tonari")

_ANEW = "start over with resume=False (--force)"


def kept(out: Path) -> tuple[Path, Journal | None]:
    """Return the path of the unfinished file of `out`, and its journal, or None instead of a missing journal."""
    part = _part_of(out)
    return part, Journal.read(_journal_of(part))


def check_unfinished(out: Path) -> None:
    """Check, before any work begins, that the unfinished file of `out` and its journal can have their names.

    Raises
    ------
    FileExistsError
        One of these files exists and is a symbolic link or not a regular file.
    OSError
        The name is too long.
    """
    part = _part_of(out)
    for path in (_journal_of(part), part):  # the longest name is tested first, since it may be too long
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            added = len(os.fsencode(path.name)) - len(os.fsencode(part.with_suffix("").name))
            raise OSError(
                errno.ENAMETOOLONG,
                f"name too long: until it is complete, {added} bytes are added to it",
                os.fspath(out),
            ) from None
        if not stat.S_ISREG(mode):
            what = "is a symbolic link, which is not followed" if stat.S_ISLNK(mode) else "is not a regular file"
            raise FileExistsError(f"{path}: exists and {what}; remove it, or write to another file")


def check_absent(out: Path, *, overwrite: bool) -> None:
    """Raise FileExistsError if `out` exists, unless `overwrite` allows it to be replaced."""
    if not overwrite and out.exists():
        raise FileExistsError(
            f"{out}: exists already, and does not record which search wrote it; name another file, or replace it with "
            "overwrite=True (--force)"
        )


def _part_of(out: Path) -> Path:
    return Path(f"{os.path.realpath(out)}.part")  # if `out` is a symbolic link, its target is written


def _journal_of(part: Path) -> Path:
    return Path(f"{part}.json")


class Output:
    """A context that writes the output file; if it ends before :meth:`finish`, a later run can resume it.

    Parameters
    ----------
    out : Path
    search : dict
        The properties that identify the search; only a run with the same properties is resumed.
    total, k : int
        The shape of the lists in the finished file.
    queries : array of shape (total, d), optional
        All queries, if they can be read in any order; they are then compared with those of the earlier run at once.
    resume : bool
        Whether to resume an earlier run.
    overwrite : bool
        Whether the finished file may replace an existing one.

    Attributes
    ----------
    rows : int
        The number of queries whose neighbours are on the disk.
    """

    def __init__(
        self, out: Path, search: dict[str, Any], total: int, k: int, queries: Any, *, resume: bool, overwrite: bool
    ) -> None:
        self._part = _part_of(out)
        self._out = self._part.with_suffix("")
        self._journal = _journal_of(self._part)
        self._total, self._overwrite = total, overwrite
        self._sample = Sample(total)
        self._file = GroundTruthPart(self._part, total, k)
        self.rows = 0
        try:
            # A run that has renamed its file keeps the lock of the file until it has also removed the journal.
            if is_locked(self._out):
                raise being_written(self._part)
            check_absent(self._out, overwrite=overwrite)  # another run may have finished before this run got the lock
            self._before = self._begin(search, resume=resume)
            self.rows = self._before.rows
            if self.rows and queries is not None:
                self._sample.add(0, queries, self.rows)
                self._check_sample()
        except BaseException:
            if not self._file.bytes:
                self._discard()
            self._file.close()
            raise
        self._now = self._before
        self._synced = time.monotonic()
        if self.rows:
            logger.info("%s: resuming at query %d of %d", self._part, self.rows, total)

    def _begin(self, search: dict[str, Any], *, resume: bool) -> Journal:
        """Return the journal of an earlier run of this search.

        If there is none, begin a new file and return its journal.
        """
        if resume and self._file.bytes:
            journal = Journal.read(self._journal)
            if journal is None:
                raise FileExistsError(f"{self._part}: exists without its journal {self._journal.name}; {_ANEW}")
            if journal.rows:
                differences = journal.differences(search)
                if differences:
                    raise self._other("; ".join(differences))
                if journal.rows > self._total:
                    raise not_a_journal(self._journal)
                found, expected = self._file.bytes, self._file.whole_bytes
                if found != expected:
                    raise ValueError(f"{self._part}: found {found} bytes, expected {expected} bytes; {_ANEW}")
                fault = self._file.header_fault()
                if fault:
                    raise ValueError(f"{self._part}: {fault}; {_ANEW}")
                return journal
        journal = Journal(search)
        # written before the file is created, so that a file without a journal belongs to another program
        journal.write(self._journal)
        self._file.begin()
        return journal

    def _other(self, how: str) -> ValueError:
        return ValueError(f"{self._part}: belongs to another search: {how}. Search as before, or {_ANEW}")

    def _check_sample(self) -> None:
        if self._sample.digest() != self._before.sample:
            raise self._other("other queries (their values differ)")

    @property
    def record(self) -> Record | None:
        """The record of the earlier run's searches, for the rows that it left on the disk; None without a record."""
        return self._before.made

    def to_do(self, chunks: Iterable[Chunk], *, first: int) -> Iterator[Chunk]:
        """Yield the chunks, or parts of chunks, whose neighbours are not on the disk yet.

        `chunks` must contain all rows of the stream from row `first` on.
        """
        done, last = self.rows, first
        for chunk in chunks:
            last = chunk.last
            if last > self._total:
                raise ValueError(f"{chunk.name}: ends at row {last}, expected {self._total} rows in all; correct rows=")
            if chunk.first < done:
                known = min(done, last) - chunk.first
                self._sample.add(chunk.first, chunk.rows, known)
                if last >= done:
                    self._check_sample()
                if last <= done:
                    continue
                chunk = dataclasses.replace(chunk, first=done, rows=chunk.rows[known:])
            self._sample.add(chunk.first, chunk.rows)
            yield dataclasses.replace(chunk, sample=self._sample.digest())
            del chunk
        if last < self._total:
            raise ValueError(f"queries: got {last} rows, expected {self._total} in all; correct rows=")

    def written(self, answers: Iterable[Answer]) -> Iterator[int]:
        """Write the answers to the file, and yield the number of rows in each.

        When the iterator ends, all rows are on the disk.
        """
        try:
            for answer in answers:
                yield self._write(answer)
                del answer
        except BaseException:
            with contextlib.suppress(OSError):  # an earlier error is raised instead of this one
                self._sync()
            raise
        self._sync()

    def _write(self, answer: Answer) -> int:
        rows = len(answer.found.indices)
        if rows:
            self._file.write(answer.first, Neighbors(*(np.asarray(inputs.to_host(part)) for part in answer.found)))
            self._now = Journal(self._now.search, answer.first + rows, answer.sample, answer.record)
            if time.monotonic() - self._synced >= tuning.SYNC_SECONDS:
                self._sync()
        return rows

    def _sync(self) -> None:
        if self._now.rows > self.rows:
            self._file.sync()
            self._check_in_place()  # do not write a journal next to a file of another program
            self._now.write(self._journal)
            self.rows = self._now.rows
        self._synced = time.monotonic()

    def finish(self) -> None:
        """Give the complete file its final name, and remove the journal."""
        assert self.rows == self._total, f"{self.rows} rows of {self._total}"
        self._check_in_place()
        check_absent(self._out, overwrite=self._overwrite)  # another program may have created the file since the start
        os.replace(self._part, self._out)
        self._journal.unlink(missing_ok=True)

    def _check_in_place(self) -> None:
        if not self._file.in_place:
            raise FileNotFoundError(
                f"{self._part}: was removed or replaced by another program while it was written, so its results are "
                f"lost; {self._out} is unchanged. Search again."
            )

    def _discard(self) -> None:
        """Remove the file and its journal, in an order that never leaves a file for a later run to resume or refuse."""
        if self._file.in_place:
            self._file.clear()
            self._journal.unlink(missing_ok=True)
            self._file.remove()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *failed: object) -> None:
        if failed[0] is not None and self.rows == 0:
            self._discard()
        self._file.close()
