"""The interface of attempts, the ways to search unproved rows: rows whose answers are not yet certified as exact.

A new attempt is a module with a subclass of :class:`Attempt`, and a line in the table in attempts/ladder.py.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.compiling.ahead import expecting
from tonari.cuda.compiling.rehearsal import without_data
from tonari.exact.cuda.attempts.first import Search, Searchable
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.attempts.level import Again
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.copies import Subset
from tonari.exact.cuda.rows.part import plan_for_part
from tonari.exact.cuda.screens.sampling import FirstAttempt
from tonari.exact.report import Report

# Takes queries, prepared points, a plan, and the row number of each query's own point (excluded from its answer);
# returns neighbours and a report.
SearchAll: TypeAlias = Callable[[Any, Searchable, CudaPlan, Any], tuple[Neighbors, Report]]


class Attempt(abc.ABC):
    """A way to search unproved rows again: rows whose answers are not yet certified as exact.

    Attributes
    ----------
    name : str
    when : str
        The condition under which the attempt is worth its time, in a few words.
    counts : bool
        Whether the host learns how many rows the attempt proved.
    waits : bool
        Whether the attempt ends with a wait for the device.
    """

    name: str
    when: str
    counts: ClassVar[bool] = True
    waits: ClassVar[bool] = True

    @abc.abstractmethod
    def worth(self, left: Unproved) -> Any:
        """Return the input of :meth:`run`, such as row numbers; None if the attempt is not worth its time.

        May wait for the device.
        """

    @abc.abstractmethod
    def run(self, left: Unproved, given: Any) -> None:
        """Search the unproved rows again, and store the answers that are now exact.

        `given` is the result of :meth:`worth`.
        """

    def foresee(self, search: Search, rows: int) -> None:  # noqa: B027 - most launch nothing to find out
        """Compile the kernels that :meth:`worth` launches for `rows` unproved rows, on tensors without data.

        The rehearsal of the preceding attempt calls this method.
        """

    def __str__(self) -> str:
        return f"{self.name}: {self.when}"


class Begun:
    """A search whose first attempt at all queries has been launched, but may not be finished.

    Parameters
    ----------
    found : Neighbors
    proved_all : callable() -> bool
        Waits for the device; True if the first attempt certified all rows as exact.
    end : callable() -> (Neighbors, Report)
        Waits for the device, and searches again the rows that are not yet certified as exact.

    Attributes
    ----------
    found : Neighbors
        The results of the first attempt, available in the order of the current stream; :meth:`end` overwrites the rows
        that it searches again.
    """

    def __init__(
        self, found: Neighbors, proved_all: Callable[[], bool], end: Callable[[], tuple[Neighbors, Report]]
    ) -> None:
        self.found, self._proved_all, self._end = found, proved_all, end

    def proved_all(self) -> bool:
        """Wait for the device, and return whether the first attempt proved all rows."""
        return self._proved_all()

    def end(self) -> tuple[Neighbors, Report]:
        """Wait for the device, search the unproved rows again, and return the answer."""
        return self._end()


class Unproved:
    """The rows of a search whose answers are not yet certified as exact (unproved rows), and the means to search them.

    Parameters
    ----------
    search : Search
    own : int64 tensor of shape (m,) or None
        For each row, the row number of its own point, which is excluded from its answer.
    found : Neighbors
        The answers of all rows; an answer is written when its row is proved.
    proved : uint8 tensor of shape (m,)
        1 for each proved row; updated.
    report : Report
    search_all : callable
        Searches some queries among some points until all of them are proved.

    Attributes
    ----------
    known : int64 tensor, optional
        The row numbers of the unproved rows, if the host knows them; see :meth:`look`.
    tried : list of Attempt
        The attempts that have been run.
    following : Attempt, optional
        The attempt after the present one.
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
        return self.known is not None and not len(self.known)

    def look(self) -> Any:
        """Return the row numbers of the rows that are not certified as exact; may wait for the device."""
        if self.known is None:
            self.known = (self.proved == 0).nonzero()[:, 0]
        return self.known

    def again(self, rows: Any, way: Callable[[Search], Again], *, some_proved: bool = False) -> None:
        """Search the rows with the row numbers `rows` again, in batches; rows certified as exact keep their neighbours.

        `way(search)` returns the function that searches a batch. `way` is also called with a search without data, to
        rehearse the batches. `some_proved` is True if some of the rows may already be certified.
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
        """Search some rows among the points with row numbers `numbers`, which must contain all their neighbours."""
        some, queries = Subset(self.points, numbers), self.search.queries[rows]
        ids = None if self.own is None else some.places(self.own[rows])
        fewer = self.search.some_points(some.rows, self._first_attempt)
        found, done = self._search_all(queries, fewer, self.part(len(numbers), len(rows)), ids)
        self._take(rows, some.of_all(found), done)

    def expecting_among(self, sizes: list[tuple[int, int]]) -> contextlib.AbstractContextManager[None]:
        """Return a context that compiles, all at once, the kernels of searches among subsets of the points.

        `sizes` has a pair for each search: the number of rows, and the number of points.
        """

        def rehearse(search: Search, own: Any) -> None:
            points = search.prepared.points
            for rows, count in sizes:
                fewer = search.some_points(points.new_empty((count, points.shape[1])), self._first_attempt)
                self.rehearse(fewer, self.part(count, rows), search.queries, own, rows)

        return self.expecting(rehearse, sum(rows for rows, _ in sizes))

    def among_all(self, rows: Any, queries: Any, prepared: Searchable, plan: CudaPlan) -> None:
        """Search some rows among all points, which `prepared` has in another form, such as int8; store the answers."""
        ids = None if self.own is None else self.own[rows]
        self._take(rows, *self._search_all(queries, prepared, plan, ids))

    def rehearse(self, prepared: Searchable, plan: CudaPlan, queries: Any, own: Any, rows: int) -> None:
        """Rehearse a search for `rows` queries, with the columns and dtype of `queries`, on tensors without data."""
        some = queries.new_empty((rows, queries.shape[1]))
        self._search_all(some, prepared, plan, None if own is None else own.new_empty(rows))

    def part(self, points: int, rows: int) -> CudaPlan:
        """Return the plan for `rows` queries among a subset of `points` points, without a test for 8-bit integers."""
        part = plan_for_part(self.plan, points, rows, self.plan.devices[0])
        return dataclasses.replace(part, bytes_later=False)

    def expecting(self, stage: Callable[[Search, Any], None], rows: int) -> contextlib.AbstractContextManager[None]:
        """Return a context that compiles, all at once, the kernels that the attempt `stage` launches for `rows` rows.

        A rehearsal finds these kernels: it runs the attempt on tensors without data, and the check whether the next
        attempt is worth its time.

        Parameters
        ----------
        stage : callable(Search, own)
            Runs the attempt; `own` as for this class.
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
        """Store the answers of some rows, all of which a separate search has certified as exact."""
        self.found.distances[rows], self.found.indices[rows] = found
        self.proved[rows] = 1
        self.known = rows[:0] if rows is self.known else None
        self.report.include(done)

    @functools.cached_property
    def _first_attempt(self) -> FirstAttempt | None:
        return self.search.first_attempt()
