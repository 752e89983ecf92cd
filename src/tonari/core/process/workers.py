"""Choose the number of threads, and run lists of tasks on them such that Ctrl-C takes effect at once.

Tasks call native code, which releases the GIL and returns after at most a few tens of milliseconds. Between these
calls, tasks call :meth:`Workers.check`.
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
    """Raised in a task by :meth:`Workers.check` after another task has failed or the user has pressed Ctrl-C."""


def worth_sharing(seconds: float) -> bool:
    """Return whether work of this many seconds on one thread is long enough that starting more threads pays off."""
    return seconds >= tuning.WORTH_SHARING


def default_threads(seconds: float = math.inf) -> int:
    """Return the default number of threads: TONARI_NUM_THREADS, or else the processors that this process may use.

    Parameters
    ----------
    seconds : float
        Expected duration of the work on one thread. Short work gets fewer threads, unless TONARI_NUM_THREADS is set.

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
    """Return the CPU quota of the container in processors, rounded up; None without a quota. It is read only once."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):  # not Linux, cgroup v1, or no CPU controller: no quota applies
        return None
    return None if quota == "max" else max(1, -(-int(quota) // int(period)))


class Workers:
    """Runs tasks on `threads` threads; if that is one, on the caller's own thread.

    In a ``with`` block, the threads are kept until the end of the block, so that many short calls of :meth:`map` can
    share them.

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
        self._keeper: int | None = None  # the thread that entered the context; only its `map` uses the kept threads
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
        """Raise Stopped if tasks should end; tasks call this between native calls."""
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
        errors: list[BaseException] = []  # in the order of raising

        def work() -> None:
            try:
                for at, item in _shared(source, lock):
                    self.check()
                    results[at] = function(item)
            except BaseException as error:  # the caller's thread raises it again
                errors.append(error)
                self._stopped = True

        self._run(work, min(self.threads, len(tasks)))
        for error in errors:
            if not isinstance(error, Stopped):
                raise error
        if errors:  # only Stopped: another thread called `stop`
            self.check()
        return [results[at] for at in range(len(tasks))]

    def _run(self, work: Callable[[], None], count: int) -> None:
        """Run `work` once on each of `count` threads, and wait until all have ended.

        The caller's thread only waits, because Ctrl-C could end a task on it at any point, for example while the task
        has locked a lock.
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
                    threads.pop(at).join()  # this thread has ended
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
        except BaseException:  # Ctrl-C on the caller's thread: the other threads end after their current call
            self._stopped = True
            _end(threads)
            raise


class _Thread(Helper):
    """A thread that runs functions one after another, and ends after `idle` seconds without a function.

    The time limit ends the thread even if Ctrl-C interrupts the code that would have ended it.
    """

    def __init__(self, stop: Callable[[], None], idle: float) -> None:
        super().__init__(self._serve, stop)
        self._idle = idle
        self._given: SimpleQueue[tuple[Callable[[], None], SimpleQueue[None]] | None] = SimpleQueue()
        self._lock = threading.Lock()  # held to decide whether the thread ends
        self._left = False

    def give(self, work: Callable[[], None], ended: SimpleQueue[None]) -> bool:
        """Let the thread run `work` and report the end to `ended`; return False if the thread has already ended."""
        with self._lock:
            if not self._left:
                self._given.put((work, ended))
            return not self._left

    def end(self) -> None:
        """Let the thread end after it has run the functions that it has received."""
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
                del task, work  # a task's objects would stay in memory while the thread waits
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
    """Wait for one thread to report its end; wake up regularly, because Ctrl-C may have reached another thread."""
    while True:
        try:
            return ended.get(timeout=tuning.WAKE_SECONDS)
        except Empty:
            continue


def _end(threads: list[_Thread]) -> None:
    """Let all threads end, and wait until they have ended.

    The interpreter's list of threads is right even if Thread.start or Thread.join was interrupted. A thread without an
    identity was interrupted during its start, and may never run.
    """
    for thread in threads:
        thread.end()
    patience = time.monotonic() + tuning.BEGIN_SECONDS
    while left := set(threads).intersection(threading.enumerate()):
        if time.monotonic() > patience and all(thread.ident is None for thread in left):
            return
        time.sleep(tuning.LEAVE_SECONDS)


def _shared(source: Iterator[tuple[int, T]], lock: threading.Lock) -> Iterator[tuple[int, T]]:
    """Iterate over the items of an iterator that many threads share; each item goes to one thread."""
    while True:
        with lock:
            item = next(source, None)
        if item is None:
            return
        yield item
