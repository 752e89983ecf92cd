"""Searches in which each query has its own list of points, and their distribution among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import tuning
from tonari.core.process.isa import chosen_isa
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers, default_threads
from tonari.core.results.neighbors import Neighbors


@dataclass(frozen=True, eq=False)
class Listed:
    """The points that each of m queries is compared with: one list of points per query, stored in a common array.

    Attributes
    ----------
    numbers : int64 array
        Row numbers of points. The lists of several queries may overlap in this array.
    begins, ends : int64 arrays of shape (m,)
        Query i is compared with the points ``numbers[begins[i]:ends[i]]``, which are in ascending order.
    self_ids : int64 array of shape (m,), optional
        For each query the row number of a point that it must not find, or -1.
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

    def batches(self, device: Any, *, widening: float, most: int) -> Iterator[Batch]:
        """Yield all queries in batches of similar list lengths; within a batch, shorter lists are padded with -1.

        Parameters
        ----------
        device : torch.device
        widening : float
            The longest list of a batch is at most this many times as long as the shortest; lists of up to 16 points may
            always share a batch.
        most : int
            The largest number of list entries, with padding, in a batch of more than one query.
        """
        import torch

        order = np.argsort(self.lengths, kind="stable")
        lengths = np.maximum(self.lengths[order], 1)
        numbers = torch.from_numpy(self.numbers if len(self.numbers) else np.zeros(1, np.int64)).to(device)
        at = 0
        while at < len(order):
            stop = int(np.searchsorted(lengths, max(16, int(lengths[at] * widening)), side="right"))
            while (stop - at) * int(lengths[stop - 1]) > most and stop > at + 1:
                stop = at + (stop - at + 1) // 2
            rows = order[at:stop]
            first, last = (torch.from_numpy(part[rows]).to(device)[:, None] for part in (self.begins, self.ends))
            places = first + torch.arange(int(lengths[stop - 1]), device=device)
            there = places < last
            ids = torch.where(there, numbers[torch.where(there, places, 0)], -1).to(torch.int32)
            yield Batch(torch.from_numpy(rows).to(device), ids)
            at = stop


class Batch(NamedTuple):
    """Some queries and their lists, on a device. The lists are the rows of one tensor.

    Attributes
    ----------
    rows : int64 tensor of shape (count,)
        The row number of each query.
    ids : int32 tensor of shape (count, longest)
        The points listed for each query; -1 after the end of a shorter list.
    """

    rows: Any
    ids: Any


@dataclass(frozen=True)
class ListedSearch:
    """A search on the CPU for the k nearest points of each query among its listed points.

    Attributes
    ----------
    native : callable
        Searches the lists of some queries on one thread.
    seconds : callable(m, pairs, d, isa)
        The expected seconds on one core for comparing `pairs` pairs of m queries and their points.
    """

    native: Callable[..., None]
    seconds: Callable[[int, int, int, str], float]

    def __call__(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        k: int,
        metric: str,
        listed: Listed,
        *,
        threads: int | None = None,
        progress: ProgressLike = False,
        found: Neighbors | None = None,
    ) -> Neighbors:
        """Search the lists of all queries; see :meth:`tonari.core.method.SearchMethod.search_listed`."""
        isa = chosen_isa()
        if found is None:
            found = Neighbors.empty(len(queries), k, len(points), queries.dtype, points.dtype)
        distances, indices = found
        begins, ends = (np.ascontiguousarray(part, np.int64) for part in (listed.begins, listed.ends))
        numbers, lengths, self_ids = listed.numbers, ends - begins, listed.self_ids
        seconds = self.seconds(len(queries), int(lengths.sum()), points.shape[1], isa)

        def call(rows: slice) -> None:
            own = None if self_ids is None else self_ids[rows]
            part = distances[rows], indices[rows]
            self.native(metric, isa, queries[rows], points, k, own, numbers, begins[rows], ends[rows], *part)

        in_blocks(lengths, seconds, call, threads=threads, progress=progress)
        return found


def in_blocks(
    lengths: npt.NDArray[np.int64],
    seconds: float,
    call: Callable[[slice], None],
    *,
    threads: int | None,
    progress: ProgressLike,
) -> None:
    """Call `call` on consecutive blocks that together contain all rows, from several threads if that is faster.

    Parameters
    ----------
    lengths : int64 array of shape (m,)
        The length of each row's list; blocks have about the same sum of lengths.
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
