"""The journal of an unfinished output file: the search that writes it, and the number of rows that are on the disk.

A journal is a small JSON file next to the output file. It is replaced atomically, and only after the rows that it
counts are on the disk, so it never counts missing rows, not even after kill -9 or a power cut.

Queries and points are identified by the digest of a sample of their rows. Another file of the same shape is almost
certainly detected, but not always if only a few rows differ.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.trail import Record
from tonari.io._atomic import atomic
from tonari.io._common import open_regular
from tonari.io.record import read_record

SAMPLED_ROWS = 1024
LONGEST = 1 << 20  # maximum size of a valid journal in bytes; typical journals have a few hundred


class Sample:
    """The digest of a sample of a stream's rows, which does not depend on the division into chunks.

    Parameters
    ----------
    rows : int
        The number of rows in the stream, of which `SAMPLED_ROWS` are sampled, evenly spaced from the first to the last.

    Examples
    --------
    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> whole, cut = Sample(3), Sample(3)
    >>> whole.add(0, rows), cut.add(0, rows[:2]), cut.add(2, rows[2:])
    (None, None, None)
    >>> whole.digest() == cut.digest()
    True
    """

    def __init__(self, rows: int) -> None:
        count = min(rows, SAMPLED_ROWS)
        self._rows = np.array([row * (rows - 1) // max(1, count - 1) for row in range(count)], np.int64)
        self._hash = hashlib.sha256()

    def add(self, first: int, rows: Any, count: int | None = None) -> None:
        """Add rows to the sample, if they belong to it; ``rows[0]`` is row `first` of the stream.

        If `count` is given, only the first `count` rows are considered.
        """
        last = first + (len(rows) if count is None else count)
        low, high = np.searchsorted(self._rows, [first, last])
        for row in self._rows[low:high].tolist():
            values = inputs.held(inputs.to_host(rows[row - first]))
            dtype = values.dtype.newbyteorder("<")
            self._hash.update(dtype.str.encode() + values.astype(dtype).tobytes())

    def digest(self) -> str:
        """Return the digest of the sampled rows that have been added so far."""
        return self._hash.hexdigest()


@dataclass(frozen=True)
class Journal:
    """The contents of the journal file.

    Attributes
    ----------
    search : dict
        The properties that identify the search. Method, device and chunk size are not among them, because they do not
        change the answer.
    rows : int
        The number of queries, from the first on, whose neighbours are on the disk.
    sample : str
        The digest of these queries.
    record : dict, optional
        The record of the searches for these queries; see :class:`tonari.core.trail.Record`. None in journals of earlier
        releases.
    """

    search: dict[str, Any]
    rows: int = 0
    sample: str = ""
    record: dict[str, Any] | None = None

    @property
    def made(self) -> Record | None:
        """The record of the search so far, with a duration of at least the sum of its parts; None without a record."""
        if self.record is None:
            return None
        record = read_record(self.record)
        record.seconds = max(record.seconds, sum(part.seconds for part in record.parts))
        return record

    def write(self, path: Path) -> None:
        """Write the journal to its file, which is replaced atomically."""
        with atomic(path, follow=False) as file:
            file.write(json.dumps(self.__dict__, indent=1).encode())

    @classmethod
    def read(cls, path: Path) -> Journal | None:
        """Read the journal from its file; return None if the file does not exist.

        Raises
        ------
        ValueError
            The file is not a journal.
        """
        try:
            with open_regular(path) as file:
                found = json.loads(file.read(LONGEST))
            search, rows, sample = (found[name] for name in ("search", "rows", "sample"))
            record = found.get("record")
            if record is not None:
                read_record(record)
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError, RecursionError):
            raise not_a_journal(path) from None
        if type(search) is not dict or type(rows) is not int or type(sample) is not str or rows < 0:
            raise not_a_journal(path)
        return cls(search, rows, sample, record)

    def differences(self, search: dict[str, Any]) -> list[str]:
        """Describe each property in which another search differs from the one in this journal."""
        others = [name for name in {**self.search, **search} if self.search.get(name) != search.get(name)]
        words = {"points_sample": "other points (their values differ)", "ids": "points with other ids"}
        words["transform"] = "another matrix of the rows (transform=, VI= or covariance=)"
        return [words.get(name, f"{name}={search.get(name)!r}, not {self.search.get(name)!r}") for name in others]


def not_a_journal(path: Path) -> ValueError:
    """Return the error for a file that is damaged or not a journal."""
    return ValueError(f"{path}: is not the journal of a search; remove it and its file")


def search_facts(index: Any, queries: int, k: int) -> dict[str, Any]:
    """Return the properties that identify a search of an Index."""
    points = Sample(index.n)
    points.add(0, index.points)
    facts = {
        "queries": queries,
        "dimensions": index.d,
        "k": k,
        "metric": index.metric,
        "points": index.n,
        "points_sample": points.digest(),
    }
    if index.weights is not None:
        facts["weights"] = list(index.weights)
    if index.transform is not None:
        facts["transform"] = [*index.transform.shape, zlib.crc32(index.transform)]
    if not index.ids_are_rows:
        facts["ids"] = zlib.crc32(index.ids)
    return facts
