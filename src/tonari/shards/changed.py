"""Points of a metric that compares transformed rows: every range of rows is transformed when it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.rows.slices import cut
from tonari.metrics.changes.change import Change
from tonari.shards import tuning
from tonari.shards.source import FileSource, Source


class ChangedSource(Source):
    """The rows of another source, transformed by a change for its base metric: float64 rows in host memory.

    Parameters
    ----------
    origin : Source
    change : Change

    Raises
    ------
    TypeError, ValueError
        The change does not support the first row, or rows of this width.
    """

    def __init__(self, origin: Source, change: Change) -> None:
        self._origin, self.change, self.name = origin, change, origin.name
        self.n, self.dtype = origin.n, "float64"
        self.d = int(self._changed(origin.rows(0, 1), 0, None).shape[1])

    @property
    def origin(self) -> Source:
        return self._origin

    @property
    def row_bytes(self) -> int:
        """Total bytes of a transformed row and its original row.

        The original row counts as 0 bytes in mapped files, which are read in small pieces.
        """
        return super().row_bytes + (0 if isinstance(self._origin, FileSource) else self._origin.row_bytes)

    def pieces(self, begin: int, end: int) -> Iterator[slice]:
        """Split the rows [begin, end) into short slices.

        A caller that copies the rows slice by slice needs little memory in addition to its copy.
        """
        step = max(1, tuning.CHANGED_BYTES // (8 * (self.d + self._origin.d)))
        for part in cut(end - begin, step):
            yield slice(begin + part.start, begin + part.stop)

    def rows(self, begin: int, end: int) -> npt.NDArray[np.float64]:
        out = np.empty((end - begin, self.d))
        for part in self.pieces(begin, end):
            some = self._origin.rows(part.start, part.stop)
            out[part.start - begin : part.stop - begin] = self._changed(some, part.start, None)
        return out

    def take(self, ids: npt.NDArray[np.int64], threads: int) -> npt.NDArray[np.float64]:
        out = np.empty((len(ids), self.d))
        mapped = isinstance(self._origin, FileSource)
        for part in cut(len(ids), tuning.TAKEN_AT_ONCE if mapped else max(1, len(ids))):
            out[part] = self._changed(self._origin.take(ids[part], threads), None, threads)
        return out

    def facts(self) -> dict[str, Any]:
        return self._origin.facts() | {"dtype": self.dtype}

    def check_unchanged(self) -> None:
        self._origin.check_unchanged()

    def _changed(self, rows: Any, begin: int | None, threads: int | None) -> Any:
        """Transform rows; error messages give row numbers of the source, whose row `begin` is the first of these."""
        name = self.name if not begin else f"{self.name}[{begin}:{begin + len(rows)}]"
        return self.change.rows(inputs.to_host(rows), name, threads)
