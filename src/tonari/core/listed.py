"""Queries that have lists of points of different lengths, and the distribution of their native calls among threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonari.core import tuning
from tonari.core.progress import Progress, ProgressLike
from tonari.core.workers import Workers, default_threads


@dataclass(frozen=True, eq=False)
class Listed:
    """The listed points of each of m queries.

    Attributes
    ----------
    numbers : int64 array
        Row numbers of points. The lists of several queries may share a part of this array.
    begins, ends : int64 arrays of shape (m,)
        Query i is compared with the points ``numbers[begins[i]:ends[i]]``, which are in ascending order.
    self_ids : int64 array of shape (m,), optional
        For each query a point that it must not find, or -1.
    """

    numbers: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    self_ids: npt.NDArray[np.int64] | None = None

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of points listed for each query.

        >>> Listed(np.array([4, 7, 9]), np.array([0, 1]), np.array([3, 2])).lengths.tolist()
        [3, 1]
        """
        return self.ends - self.begins


def in_blocks(
    lengths: npt.NDArray[np.int64],
    seconds: float,
    call: Callable[[slice], None],
    *,
    threads: int | None,
    progress: ProgressLike,
) -> None:
    """Call `call` for consecutive blocks that cover all rows, on any thread.

    Parameters
    ----------
    lengths : int64 array of shape (m,)
        The length of the list of each row.
    seconds : float
        The seconds that one core would take for all rows.
    call : callable(slice)
    threads : int, optional
    progress : None, bool or callable(done, total)
        Counts rows.
    """
    m = len(lengths)
    pairs = np.concatenate([[0], np.cumsum(lengths)])
    workers = Workers(threads or default_threads(seconds))
    cost = np.arange(m + 1) * (seconds / max(m, 1)) if not pairs[-1] else pairs * (seconds / pairs[-1])
    cuts = np.unique([0, *np.searchsorted(cost, np.arange(tuning.LISTED_SECONDS, seconds, tuning.LISTED_SECONDS)), m])
    blocks = [slice(a, b) for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]
    with Progress(progress, total=m, seconds=seconds / workers.threads, label="neighbours") as bar:

        def work(rows: slice) -> None:
            workers.check()
            call(rows)
            bar.add(rows.stop - rows.start)

        workers.map(work, blocks)
