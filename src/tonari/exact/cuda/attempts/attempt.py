"""The interface of attempts at rows that are not proved, and the rows that are left.

A new way to search such rows is a module with an :class:`Attempt`, and a line in the table in ladder.py.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from tonari.core.neighbors import Neighbors
from tonari.core.slices import cut
from tonari.cuda.ahead import expecting
from tonari.cuda.rehearsal import without_data
from tonari.exact.cuda.attempts.first import Again, Search, Searchable
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.copies import Subset
from tonari.exact.cuda.rows.part import plan_for_part
from tonari.exact.cuda.screens.sampling import FirstAttempt
from tonari.exact.report import Report

# Queries, prepared points, plan, and the points that queries are -> neighbours of all of them, and the report.
SearchAll: TypeAlias = Callable[[Any, Searchable, CudaPlan, Any], tuple[Neighbors, Report]]


class Attempt(abc.ABC):
    """One way to search rows that are not proved.

    Attributes
    ----------
    name : str
    when : str
        When it is worth it, in a few words.
    counts : bool
        Whether the host knows how many rows it proved.
    waits : bool
        Whether it ends when the device is done.
    """

    name: str
    when: str
    counts: ClassVar[bool] = True
    waits: ClassVar[bool] = True

    @abc.abstractmethod
    def worth(self, left: Unproved) -> Any:
        """Return what :meth:`run` needs, such as the numbers of rows; None if it is not worth it for the rows left.

        May wait for the device.
        """

    @abc.abstractmethod
    def run(self, left: Unproved, given: Any) -> None:
        """Search rows, and take the answers that are proved; `given` is from :meth:`worth`."""

    def foresee(self, search: Search, rows: int) -> None:  # noqa: B027 - most launch nothing to find out
        """Launch what :meth:`worth` launches for this number of remaining rows; the data are on the device "meta".

        It is rehearsed together with the attempt before this one.
        """

    def __str__(self) -> str:
        return f"{self.name}: {self.when}"


class Unproved:
    """The rows of a search that are not proved yet.

    Parameters
    ----------
    search : Search
    own : int64 tensor of shape (m,) or None
    found : Neighbors
        Of all rows; written where a row is proved.
    proved : uint8 tensor of shape (m,)
        1 for each row that is proved; written.
    report : Report
    search_all : callable
        Searches some queries among some points until all are proved.

    Attributes
    ----------
    known : int64 tensor, optional
        The numbers of the rows that are left, as long as these are known: see :meth:`look`.
    tried : list of Attempt
        Attempts that were run so far.
    following : Attempt, optional
        The one after the present attempt.
    """

    def __init__(
        self, search: Search, own: Any, found: Neighbors, proved: Any, report: Report, search_all: SearchAll
    ) -> None:
        self.search, self.own, self.found, self.proved, self.report = search, own, found, proved, report
        self.plan = search.plan
        self.points = search.prepared.points
        self.known: Any = None
        self.tried: list[Attempt] = []
        self.following: Attempt | None = None
        self._search_all = search_all

    @property
    def is_done(self) -> bool:
        """Whether it is known that no row is left."""
        return self.known is not None and not len(self.known)

    def look(self) -> Any:
        """Return the numbers of the rows that are not proved; waits for the device unless they are known."""
        if self.known is None:
            self.known = (self.proved == 0).nonzero()[:, 0]
        return self.known

    def again(self, rows: Any, way: Callable[[Search], Again], *, some_proved: bool = False) -> None:
        """Search some rows again, in batches of the length that is planned; proved rows keep their neighbours.

        `way` makes of the search the function that does it; of the same search without data, to rehearse it. If
        `some_proved`, rows may have been proved before.
        """
        batch = self.plan.query_batch

        def rehearse(search: Search, own: Any) -> None:
            search_again = way(search)
            for count in {some.stop - some.start for some in cut(len(rows), batch)}:
                search_again(search.queries[:count], None if own is None else own[:count])

        with self.expecting(rehearse, len(rows)):
            search_again = way(self.search)

            def work(some: slice) -> None:
                these = rows[some]
                ids = None if self.own is None else self.own[these]
                part, done = search_again(self.search.queries[these], ids)
                if some_proved:
                    before = self.proved[these]
                    both = zip(self.found, part, strict=True)
                    part = Neighbors(*(again.where(before[:, None] == 0, lists[these]) for lists, again in both))
                    done = before | done
                self.found.distances[these], self.found.indices[these] = part
                self.proved[these] = done

            in_batches(len(rows), batch, work, planned=self.plan.total_bytes)
        self.known = None

    def among(self, numbers: Any, rows: Any) -> None:
        """Search some rows among the points of these numbers, which hold their answers."""
        some, queries = Subset(self.points, numbers), self.search.queries[rows]
        ids = None if self.own is None else some.places(self.own[rows])
        fewer = self.search.some_points(some.rows, self._first_attempt)
        found, done = self._search_all(queries, fewer, self.part(len(numbers), len(rows)), ids)
        self._take(rows, some.of_all(found), done)

    def expecting_among(self, sizes: list[tuple[int, int]]) -> contextlib.AbstractContextManager[None]:
        """Return the context of searches among some of the points: of each, the number of rows and that of points."""

        def rehearse(search: Search, own: Any) -> None:
            points = search.prepared.points
            for rows, count in sizes:
                fewer = search.some_points(points.new_empty((count, points.shape[1])), self._first_attempt)
                self.rehearse(fewer, self.part(count, rows), search.queries, own, rows)

        return self.expecting(rehearse, sum(rows for rows, _ in sizes))

    def among_all(self, rows: Any, queries: Any, prepared: Searchable, plan: CudaPlan) -> None:
        """Search some rows, whose queries are given, among all points, which have been prepared in another way."""
        ids = None if self.own is None else self.own[rows]
        self._take(rows, *self._search_all(queries, prepared, plan, ids))

    def rehearse(self, prepared: Searchable, plan: CudaPlan, queries: Any, own: Any, rows: int) -> None:
        """Rehearse a search of this number of rows of `queries`, without data."""
        some = queries.new_empty((rows, queries.shape[1]))
        self._search_all(some, prepared, plan, None if own is None else own.new_empty(rows))

    def part(self, points: int, rows: int) -> CudaPlan:
        """Return the plan of a search of this number of rows and points, which does not look for bytes again."""
        part = plan_for_part(self.plan, points, rows, self.plan.devices[0])
        return dataclasses.replace(part, bytes_later=False)

    def expecting(self, stage: Callable[[Search, Any], None], rows: int) -> contextlib.AbstractContextManager[None]:
        """Return the context of an attempt at this many rows, which `stage` makes for the same search without data.

        Each attempt is rehearsed like this, together with the check whether the next one is worth its time.

        Parameters
        ----------
        stage : callable(Search, own)
            `own` is as for this class.
        rows : int
        """

        def rehearse() -> None:
            search = self.search.prepared.without_data().begin(without_data(self.search.queries), self.plan)
            search.width = self.search.width
            stage(search, without_data(self.own))
            if self.following is not None:
                self.following.foresee(search, rows)

        return expecting(rehearse)

    def _take(self, rows: Any, found: Neighbors, done: Report) -> None:
        """Take the answers of some rows, all of which are proved, from a search of theirs."""
        self.found.distances[rows], self.found.indices[rows] = found
        self.proved[rows] = 1
        self.known = rows[:0] if rows is self.known else None
        self.report.include(done)

    @functools.cached_property
    def _first_attempt(self) -> FirstAttempt | None:
        return self.search.first_attempt()
