"""Threads: the choice of their number, and running a list of tasks on them such that Ctrl-C takes effect at once.

Calls of native code release the GIL and take at most a few tens of milliseconds each; between them, tasks call
:meth:`Workers.check`.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from tonari.core import tuning
from tonari.core.process.caches import cached
from tonari.core.process.leaving import Helper, hold, start
from tonari.core.trail import carried, current

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
R = TypeVar("R")


class Stopped(Exception):
    """Raised inside a task after another task has failed or the user has pressed Ctrl-C."""


def worth_sharing(seconds: float) -> bool:
    """Return whether work that takes this many seconds on one thread takes longer than starting other threads."""
    return seconds >= tuning.WORTH_SHARING


def default_threads(seconds: float = math.inf) -> int:
    """Return the default number of threads: TONARI_NUM_THREADS, else the processors this process may run on.

    Parameters
    ----------
    seconds : float
        Expected duration on one thread. Short work gets fewer threads, unless TONARI_NUM_THREADS is set.

    Examples
    --------
    >>> default_threads() >= 1
    True
    >>> default_threads(seconds=1e-4)
    1
    """
    setting = os.environ.get("TONARI_NUM_THREADS")
    if setting is not None:
        if not (setting.isascii() and setting.isdigit()) or int(setting) < 1:
            raise ValueError(f"TONARI_NUM_THREADS={setting!r}: expected a whole number of at least 1")
        return int(setting)
    if not worth_sharing(seconds):
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_processors()
    most = max(1, min(allowed, quota) if quota is not None else allowed)
    return int(min(most, seconds / tuning.WORTH_STARTING))


@cached()
def _cgroup_processors(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the container's CPU quota in processors, rounded up; None without a quota. It is read once."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):  # not Linux, cgroup v1, or no CPU controller: no quota applies
        return None
    return None if quota == "max" else max(1, -(-int(quota) // int(period)))


class Workers:
    """Run tasks on `threads` threads; with one thread, on the caller's own.

    In a ``with`` block, the threads are kept until its end, so that many short calls of :meth:`map` share them.

    Examples
    --------
    >>> Workers(2).map(lambda x: x * x, [1, 2, 3])
    [1, 4, 9]
    >>> with Workers(2) as workers:
    ...     print(workers.map(abs, [-1, 2]), workers.map(abs, [3, -4]))
    [1, 2] [3, 4]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._stopped = False  # set by any thread, and never reset
        self._keeper: int | None = None  # the thread in the context; maps that others call have threads of their own
        self._kept: list[_Thread] = []

    def __enter__(self) -> Self:
        self._keeper = threading.get_ident()
        return self

    def __exit__(self, *_: object) -> None:
        self._keeper = None
        try:
            _end(self._kept)
        except BaseException:  # Ctrl-C
            _end(self._kept)
            raise

    def check(self) -> None:
        """Raise Stopped if the work should end; tasks call this between native calls."""
        if self._stopped:
            hold()
            raise Stopped

    def stop(self) -> None:
        """Make every task end at its next :meth:`check`."""
        self._stopped = True

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return [function(item) for item in items], in order; the first error stops the other tasks and is raised."""
        tasks = list(items)
        if self.threads == 1 or len(tasks) <= 1:
            return [function(item) for item in tasks]
        source = iter(enumerate(tasks))
        lock = threading.Lock()
        results: dict[int, R] = {}
        errors: list[BaseException] = []  # in the order in which they were raised

        def work() -> None:
            try:
                for at, item in _shared(source, lock):
                    self.check()
                    results[at] = function(item)
            except BaseException as error:  # raised again below, on the caller's thread
                errors.append(error)
                self._stopped = True

        self._run(work, min(self.threads, len(tasks)))
        for error in errors:
            if not isinstance(error, Stopped):
                raise error
        if errors:  # stopped from outside
            self.check()
        return [results[at] for at in range(len(tasks))]

    def _run(self, work: Callable[[], None], count: int) -> None:
        """Run `work` on each of `count` threads, and wait for them.

        The caller's thread only waits: Ctrl-C could end a task on it at any point, for example while it holds a lock.
        """
        record = current.get()
        if record is not None:
            work = carried(work, record)
        keep = self._keeper == threading.get_ident()
        threads = self._kept if keep else []
        ended: SimpleQueue[None] = SimpleQueue()
        try:
            at = 0
            while at < min(count, len(threads)):
                if threads[at].give(work, ended):
                    at += 1
                else:
                    threads.pop(at).join()  # it has left
            new = [_Thread(self.stop, tuning.IDLE_SECONDS if keep else 0.0) for _ in range(at, count)]
            threads += new
            for thread in new:
                thread.give(work, ended)
            start(*new)
            for _ in range(count):
                _take(ended)  # not Thread.join: if Ctrl-C interrupts it, it regards the thread as ended
            if not keep:
                for thread in threads:
                    thread.join()
        except BaseException:  # Ctrl-C here, on the caller's thread: the others end after their current call
            self._stopped = True
            _end(threads)
            raise


class _Thread(Helper):
    """A thread that runs functions one after another, and ends after `idle` seconds without one.

    It therefore ends even if Ctrl-C interrupts the code that would end it.
    """

    def __init__(self, stop: Callable[[], None], idle: float) -> None:
        super().__init__(self._serve, stop)
        self._idle = idle
        self._given: SimpleQueue[tuple[Callable[[], None], SimpleQueue[None]] | None] = SimpleQueue()
        self._lock = threading.Lock()  # while it is decided whether the thread leaves
        self._left = False

    def give(self, work: Callable[[], None], ended: SimpleQueue[None]) -> bool:
        """Pass `work` to the thread, which reports its end to `ended`; return False if the thread has already ended."""
        with self._lock:
            if not self._left:
                self._given.put((work, ended))
            return not self._left

    def end(self) -> None:
        """Let the thread end after the functions that it has received."""
        with self._lock:
            self._left = True
            self._given.put(None)

    def _serve(self) -> None:
        task = self._given.get()
        while task is not None:
            work, ended = task
            try:
                work()
            finally:
                del task, work  # otherwise, their objects would stay in memory while the thread waits
                ended.put(None)
            task = self._next() if self._idle else None

    def _next(self) -> tuple[Callable[[], None], SimpleQueue[None]] | None:
        try:
            return self._given.get(timeout=self._idle)
        except Empty:
            with self._lock:
                if self._given.empty():
                    self._left = True
                    return None
            return self._given.get()


def _take(ended: SimpleQueue[None]) -> None:
    """Wait for one thread to end, but wake up regularly, since another thread may have received the signal."""
    while True:
        try:
            return ended.get(timeout=tuning.WAKE_SECONDS)
        except Empty:
            continue


def _end(threads: list[_Thread]) -> None:
    """Let threads end, and wait for all of them.

    The interpreter's list of threads is right even after an interrupt in Thread.start or Thread.join. A thread without
    an identity was interrupted while it started; it may never begin.
    """
    for thread in threads:
        thread.end()
    patience = time.monotonic() + tuning.BEGIN_SECONDS
    while left := set(threads).intersection(threading.enumerate()):
        if time.monotonic() > patience and all(thread.ident is None for thread in left):
            return
        time.sleep(tuning.LEAVE_SECONDS)


def _shared(source: Iterator[tuple[int, T]], lock: threading.Lock) -> Iterator[tuple[int, T]]:
    """Iterate over items that many threads draw from one iterator."""
    while True:
        with lock:
            item = next(source, None)
        if item is None:
            return
        yield item
