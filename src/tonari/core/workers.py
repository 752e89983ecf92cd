"""Threads: how many to use, and how a list of tasks runs on them so that Ctrl-C takes effect at once.

Calls of native code release the GIL and take at most a few tens of milliseconds each; between them, tasks call
:meth:`Workers.check`.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from tonari.core.leaving import Helper, hold

T = TypeVar("T")
R = TypeVar("R")

_WAKE_SECONDS = 0.1  # how often the waiting thread checks for Ctrl-C
_LEAVE_SECONDS = 0.001  # how often a stopped map checks whether its threads have ended
_BEGIN_SECONDS = 0.5  # how long it waits for a thread that may never start
_WORTH_SHARING = 2e-3  # seconds of work; less than this is finished before other threads have started and taken over
_WORTH_STARTING = 5e-4  # seconds of work that make one more thread worth starting


class Stopped(Exception):
    """Raised inside a task after another task has failed or the user has pressed Ctrl-C."""


def worth_sharing(seconds: float) -> bool:
    """Return whether so much work, in seconds of one thread, takes longer than other threads take to start."""
    return seconds >= _WORTH_SHARING


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
    asked = os.environ.get("TONARI_NUM_THREADS")
    if asked is not None:
        if not (asked.isascii() and asked.isdigit()) or int(asked) < 1:
            raise ValueError(f"TONARI_NUM_THREADS={asked!r}: expected a whole number of at least 1")
        return int(asked)
    if not worth_sharing(seconds):
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_processors()
    most = max(1, min(allowed, quota) if quota is not None else allowed)
    return int(min(most, seconds / _WORTH_STARTING))


@functools.cache
def _cgroup_processors(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the container's CPU quota in processors, rounded up; None without a quota. It is read once."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):  # not Linux, cgroup v1, or no CPU controller: no quota applies
        return None
    return None if quota == "max" else max(1, -(-int(quota) // int(period)))


class Workers:
    """Run tasks on `threads` threads; with one thread, on the caller's own.

    Examples
    --------
    >>> Workers(2).map(lambda x: x * x, [1, 2, 3])
    [1, 4, 9]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._stopped = False  # set by any thread, and never reset

    def check(self) -> None:
        """Raise Stopped if the work should end; tasks call this between native calls."""
        if self._stopped:
            raise Stopped

    def stop(self) -> None:
        """Make every task end at its next :meth:`check`."""
        self._stopped = True

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return [function(item) for item in items], in order; the first error stops the rest and is raised."""
        tasks = list(items)
        if self.threads == 1 or len(tasks) <= 1:
            return [function(item) for item in tasks]
        source = iter(enumerate(tasks))
        lock = threading.Lock()
        results: dict[int, R] = {}
        errors: list[BaseException] = []  # in the order in which they were raised
        ended: SimpleQueue[None] = SimpleQueue()

        def work() -> None:
            try:
                for at, item in _shared(source, lock):
                    self.check()
                    results[at] = function(item)
            except BaseException as error:  # raised again below, on the caller's thread
                errors.append(error)
                self._stopped = True
            finally:
                ended.put(None)

        # The caller's thread only waits: Ctrl-C would end its task anywhere, with a lock that others wait for, say.
        threads = [Helper(work, self.stop) for _ in range(min(self.threads, len(tasks)))]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                _take(ended)  # not Thread.join: if Ctrl-C interrupts it, it regards the thread as ended
            for thread in threads:
                thread.join()
        except BaseException:  # Ctrl-C here, on the caller's thread: the others end after their current call
            self._stopped = True
            _wait_until_ended(threads)
            raise
        for error in errors:
            if not isinstance(error, Stopped):
                raise error
        if errors:  # stopped from outside
            hold()
            raise errors[0]
        return [results[at] for at in range(len(tasks))]


def _take(ended: SimpleQueue[None]) -> None:
    """Wait for one thread to end, but wake up regularly: another thread may have received the signal."""
    while True:
        try:
            return ended.get(timeout=_WAKE_SECONDS)
        except Empty:
            continue


def _wait_until_ended(threads: list[Helper]) -> None:
    """Wait until no thread is left.

    The interpreter's own list is right even if an interrupt fell into Thread.start or Thread.join. A thread without an
    identity was interrupted while it started; it may still begin, or never.
    """
    patience = time.monotonic() + _BEGIN_SECONDS
    while left := set(threads).intersection(threading.enumerate()):
        if time.monotonic() > patience and all(thread.ident is None for thread in left):
            return
        time.sleep(_LEAVE_SECONDS)


def _shared(source: Iterator[tuple[int, T]], lock: threading.Lock) -> Iterator[tuple[int, T]]:
    """Iterate over items that many threads draw from one iterator."""
    while True:
        with lock:
            item = next(source, None)
        if item is None:
            return
        yield item
