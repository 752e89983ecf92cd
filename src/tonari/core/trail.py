"""The record of a call, kept on request: its plan, its later choices and its attempts.

    current          the record of the call in this context; None if the call is not recorded
    recording()      a context whose calls are recorded
    part()           a context for a search inside the call, such as that of a sample, with a record of its own
    unrecorded()     a context for work that does not belong to the answer, such as a rehearsal
    decided()        records a choice that is made while the call runs, with its reason, and logs it at INFO

An attempt is one pass over some rows; a row is proved when its answer is known to be exact. If a call makes several
other calls, their records are added up, and so are parts with the same title. :mod:`tonari.io.record` reads the records
that files contain.

Code that must not take longer than microseconds reads ``current.get()`` itself, and records nothing if that is None. A
thread that works for a call adds to the record of this call (:func:`carried`). Calls that run at the same time have
separate records.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from tonari.core import tuning
from tonari.core.process.compiling import not_compiled
from tonari.core.units import duration

logger = logging.getLogger("tonari")

_writing = threading.Lock()  # held while a step is added, because the threads of a call share its record


class Choice(NamedTuple):
    """A choice that was made while a call ran, and the reason.

    Attributes
    ----------
    what : str
        The subject, such as "columns".
    why : str
        A sentence with the choice and its reason.
    """

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class Attempt(NamedTuple):
    """One way of searching rows, such as a screen in int8; passes of the same name count as one attempt.

    Attributes
    ----------
    name : str
        The name of the attempt, such as "int8", or "int8 in 64 columns".
    rows : int
        Number of rows that were searched.
    proved : int or None
        Number of rows whose answer this attempt proved exact; None for attempts that prove no answers, such as a round
        of NN-Descent.
    seconds : float or None
        Duration of the attempt; None on CUDA unless the record is timed.
    note : str
        Other facts; "" for none.
    """

    name: str
    rows: int
    proved: int | None
    seconds: float | None = None
    note: str = ""

    def __str__(self) -> str:
        counts = f"{self.rows:,} rows" if self.proved is None else f"{self.proved:,} of {self.rows:,} rows proved"
        parts = [counts, *([] if self.seconds is None else [duration(self.seconds)]), *filter(None, [self.note])]
        return f"{self.name}: {', '.join(parts)}"


Step: TypeAlias = "Choice | Attempt | Record"


class PlanFields(Protocol):
    """The interface of a plan of any kind: for a search, for a build in a directory, or read from a file."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""


@dataclass(eq=False)
class Record:
    """The plan of a call, its later choices, and its attempts.

    Attributes
    ----------
    title : str
        The name of the call.
    rows : int
        Number of rows whose neighbours are searched. In an exact search, each row is proved by exactly one attempt. 0
        for work without a search, such as merging lists in a directory.
    timed : bool
        Whether attempts on CUDA wait for the device, so that their duration is known.
    method : str
        The method that was chosen first; "" if an earlier search was replayed, or if several searches produced the
        answer.
    reason : str
        The reason for choosing the method; "" if the caller named the method.
    plan : Plan, optional
        The plan of the method; None if `method` is "".
    steps : list of Choice, Attempt and Record
        In the order of their beginning. A Record among them describes a search for something other than the answer,
        such as the true neighbours of a sample, or a call or stage within the call, such as the graphs of all shards.
    seconds : float
        Duration of the call; for a stage, the sum over its tasks, even if they ran at the same time.
    """

    title: str
    rows: int
    timed: bool = False
    method: str = ""
    reason: str = ""
    plan: PlanFields | None = None
    steps: list[Step] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def choices(self) -> list[Choice]:
        """The choices that were made while the call ran."""
        return [step for step in self.steps if isinstance(step, Choice)]

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts at searching the rows of the call."""
        return [step for step in self.steps if isinstance(step, Attempt)]

    @property
    def parts(self) -> list[Record]:
        """The records of inner calls, and of searches for something other than the answer, such as that of a sample."""
        return [step for step in self.steps if isinstance(step, Record)]

    @property
    def proved(self) -> int:
        """The number of rows whose answers were proved exact, over all attempts."""
        return sum(attempt.proved or 0 for attempt in self.attempts)

    def planned(self, method: str, reason: str, plan: PlanFields | None) -> None:
        """Record the method and plan of the call's first search; later searches of the call change nothing."""
        if not self.method:
            self.method, self.reason, self.plan = method, reason, plan

    def decided(self, what: str, why: str) -> None:
        """Record a new choice; after RECORDED_CHOICES choices about a subject, record only that there are more."""
        with _writing:
            known = [choice.why for choice in self.choices if choice.what == what]
            if len(known) >= tuning.RECORDED_CHOICES:
                why = "in other ways too, which are not recorded"
            if why not in known:
                self.steps.append(Choice(what, why))

    def tried(self, name: str, rows: int, proved: int | None, seconds: float | None = None, note: str = "") -> None:
        """Record a pass over some rows; passes of the same name are added up, and their last note is kept."""
        with _writing:
            for at, step in enumerate(self.steps):
                if isinstance(step, Attempt) and step.name == name:
                    proved = None if proved is None else proved + (step.proved or 0)
                    seconds = None if seconds is None or step.seconds is None else step.seconds + seconds
                    self.steps[at] = Attempt(name, step.rows + rows, proved, seconds, note)
                    return
            self.steps.append(Attempt(name, rows, proved, seconds, note))

    def part(self, title: str, rows: int) -> Record:
        """Add `rows` to the inner record called `title`, which is made if necessary, and return the inner record."""
        with _writing:
            inner = next((step for step in self.parts if step.title == title), None)
            if inner is None:
                inner = Record(title, 0, self.timed)
                self.steps.append(inner)
            inner.rows += rows
        return inner

    def add(self, other: Record) -> None:
        """Add the rows, seconds and steps of another record to this one, for example to sum up the tasks of a stage."""
        self.planned(other.method, other.reason, other.plan)
        self.rows += other.rows
        self.seconds += other.seconds
        for step in list(other.steps):
            if isinstance(step, Choice):
                self.decided(*step)
            elif isinstance(step, Attempt):
                self.tried(*step)
            else:
                self.part(step.title, 0).add(step)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        facts = {name: getattr(self, name) for name in ("title", "rows", "timed", "method", "reason", "seconds")}
        steps = [step.as_dict() if isinstance(step, Record) else step._asdict() for step in self.steps]
        return facts | {"plan": None if self.plan is None else self.plan.as_dict(), "steps": steps}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: int = 0) -> list[str]:
        """Return the record as lines of text: one for the call and one for each step; inner records are indented."""
        by = f" by {self.method}" if self.method else ""
        why = f" ({self.reason})" if self.reason else ""
        rows = f": {self.rows:,} rows" if self.rows else ""
        lines = [f"{' ' * indent}{self.title}{rows}{by}{why}, {duration(self.seconds)}"]
        for step in self.steps:
            lines += step.lines(indent + 2) if isinstance(step, Record) else [f"{' ' * (indent + 2)}{step}"]
        return lines


current: ContextVar[Record | None] = ContextVar("tonari_record", default=None)


class recording:
    """Record the calls in a ``with`` block: their first plan, later choices with their reasons, and all attempts.

    All functions and methods of tonari that search are recorded, including the work of their threads. Some calls, such
    as :func:`tonari.knn_graph`, have a record of their own, which becomes a part of this record. The attempts of all
    other calls are added up.

    Parameters
    ----------
    title : str
    rows : int
        Number of rows whose neighbours are searched, if it is known.
    timed : bool
        Whether attempts on CUDA wait for the device, so that their duration is known.

    Returns
    -------
    Record
        The target of ``with ... as record``. Its `seconds` are known at the end of the block.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.arange(9, dtype=np.float32)[:, None]
    >>> with tonari.recording() as record:
    ...     _ = tonari.radius_search(line, line, radius=1.5)
    >>> record.method, [(attempt.rows, attempt.proved) for attempt in record.attempts]
    ('exact', [(9, 9)])
    """

    __slots__ = ("_before", "_record", "_started")

    @not_compiled
    def __init__(self, title: str = "calls", rows: int = 0, *, timed: bool = False) -> None:
        self._record = Record(title, rows, timed)

    def __enter__(self) -> Record:
        self._before, self._started = current.set(self._record), time.perf_counter()
        return self._record

    def __exit__(self, *_: object) -> None:
        current.reset(self._before)
        self._record.seconds += time.perf_counter() - self._started
        outer = current.get()
        if outer is not None:
            outer.part(self._record.title, 0).add(self._record)


@contextlib.contextmanager
def _into(record: Record) -> Iterator[None]:
    """Return a context whose work is added to a record."""
    before = current.set(record)
    try:
        yield
    finally:
        current.reset(before)


@contextlib.contextmanager
def part(title: str, rows: int) -> Iterator[None]:
    """Return a context for a search inside a call that does not find the answer itself; it has its own record."""
    outer = current.get()
    if outer is None:
        yield
        return
    inner, started = outer.part(title, rows), time.perf_counter()
    try:
        with _into(inner):
            yield
    finally:
        inner.seconds += time.perf_counter() - started


class _Nowhere(Record):
    """A record that stays empty, for work that is not recorded."""

    def planned(self, method: str, reason: str, plan: PlanFields | None) -> None:
        pass

    def decided(self, what: str, why: str) -> None:
        pass

    def tried(self, name: str, rows: int, proved: int | None, seconds: float | None = None, note: str = "") -> None:
        pass

    def part(self, title: str, rows: int) -> Record:
        return self

    def add(self, other: Record) -> None:
        pass


_nowhere = _Nowhere("", 0)


def unrecorded() -> contextlib.AbstractContextManager[None]:
    """Return a context whose work is not recorded, and whose choices are not logged, even if the call is recorded."""
    return _into(_nowhere)


def decided(what: str, why: str) -> None:
    """Record and log a choice that is made while a call runs; `what` is its subject, `why` the choice and the reason.

    >>> with recording("search", 7) as record:
    ...     decided("columns", "64 of 768 are screened")
    ...     record.tried("int8", 7, 6, 0.002)
    ...     record.tried("bfloat16", 1, 1, 0.001)
    >>> print("; ".join(map(str, record.steps)))
    columns: 64 of 768 are screened; int8: 6 of 7 rows proved, 2 ms; bfloat16: 1 of 1 rows proved, 1 ms
    >>> record.proved == record.rows
    True
    """
    record = current.get()
    if record is not None:
        record.decided(what, why)
    if record is not _nowhere:
        logger.info("%s: %s", what, why)


def carried(work: Callable[[], None], record: Record) -> Callable[[], None]:
    """Wrap a function so that another thread, which runs it, adds its work to `record`."""

    def there() -> None:
        with _into(record):
            work()

    return there
